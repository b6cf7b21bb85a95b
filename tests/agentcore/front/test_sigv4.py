"""Signed requests: what is taken, and what is refused without a word of OAuth."""

from __future__ import annotations

import subprocess
import sys

import httpx2
import pytest

from dragoman.http.asgi import Headers
from dragoman.testing.agentcore_front import AwsKey, FrontSettings, SigV4
from dragoman.testing.agentcore_front.headers import ERROR_TYPE, SESSION_ID
from dragoman.testing.agentcore_front.incoming import Incoming
from dragoman.testing.agentcore_front.refusals import Refusal
from tests.agentcore.front.parts import (
    SESSION,
    START,
    Caller,
    Container,
    ManualClock,
    event,
    rehearsal,
    rpc,
    signed_headers,
)

ROLE = AwsKey("ASIAREHEARSAL0000002", "not-a-real-secret-key-for-rehearsals-0002", "dGVtcG9yYXJ5LXRva2Vu")

BODY = b'{"jsonrpc":"2.0","id":7,"method":"GetTask","params":{"id":"t-0001"}}'
URL = (
    "/runtimes/arn%3Aaws%3Abedrock-agentcore%3Aeu-west-1%3A111122223333%3Aruntime%2Fledger_bot-Qw3rTy7UiO"
    "/invocations/?qualifier=DEFAULT"
)
LEDGER = AwsKey("AKIDLEDGERTEST000001", "not-a-real-secret-key-0000000000000000001")
SIGNATURE = "572be9a27c8158f327cf034494386e7281cd4403696c625a8861b09e0e6b03f6"


def known_answer(signature: str, body: bytes = BODY, target: str = URL) -> Incoming:
    """The request of 7.3 as it is received. Its address has https, which is no part of what is signed."""
    signed = "content-type;host;x-amz-date;x-amzn-bedrock-agentcore-runtime-session-id"
    authorization = (
        "AWS4-HMAC-SHA256 Credential=AKIDLEDGERTEST000001/20260102/eu-west-1/bedrock-agentcore/aws4_request, "
        f"SignedHeaders={signed}, Signature={signature}"
    )
    raw = [
        (b"Host", b"bedrock-agentcore.eu-west-1.amazonaws.com"),
        (b"content-type", b"application/json"),
        (b"x-amz-date", b"20260102T030405Z"),
        (SESSION_ID.encode(), b"5d0f7b8e-4d2a-4c1b-9f43-2f6a0f6a7c11"),
        (b"authorization", authorization.encode()),
        (b"user-agent", b"anything"),
    ]
    return Incoming(
        method="POST",
        target=target,
        raw_headers=raw,
        headers=Headers(raw),
        body=body,
        now=1_767_323_045.0,
        region="eu-west-1",
    )


@pytest.mark.req("AC-F-07")
def test_the_known_answer_is_taken_and_nothing_beside_it() -> None:
    auth = SigV4(LEDGER)

    assert auth.check(known_answer(SIGNATURE)) == LEDGER.key_id
    wrong = (
        known_answer("0" * 64),
        known_answer(SIGNATURE, body=BODY + b" "),
        known_answer(SIGNATURE, target=URL.replace("DEFAULT", "prod")),
        known_answer(SIGNATURE, target=URL.replace("/?", "?")),
    )
    for request in wrong:
        with pytest.raises(Refusal) as refused:
            auth.check(request)
        assert refused.value.row.status == 403


def refused(answer: httpx2.Response) -> str:
    """The message of a refusal: 403, no challenge, no JSON-RPC."""
    assert answer.status_code == 403
    assert answer.headers[ERROR_TYPE] == "AccessDeniedException"
    assert "www-authenticate" not in answer.headers
    (message,) = answer.json().values()
    return str(message)


async def send(caller: Caller, body: bytes, headers: dict[str, str], url: str = "") -> httpx2.Response:
    return await caller.client.post(url or caller.front.invocation_url, content=body, headers=headers)


def sign(caller: Caller, body: bytes = b"", headers: dict[str, str] | None = None, **options) -> dict[str, str]:
    own = {"content-type": "application/json", SESSION_ID: SESSION, **(headers or {})}
    options.setdefault("at", caller.front.now())
    return signed_headers("POST", options.pop("url", caller.front.invocation_url), body or rpc(), own, **options)


@pytest.mark.req("AC-F-07")
async def test_what_botocore_signs_is_taken_whatever_touches_it_on_the_way(
    container: Container, clock: ManualClock
) -> None:
    async with rehearsal(container, auth=SigV4(ROLE), clock=clock) as caller:
        plain = sign(caller, key=ROLE)
        touched = {**plain, "user-agent": "other", "accept-encoding": "br", "traceparent": "00-1", "accept": "*/*"}
        base = caller.front.invocation_url
        answers = [await send(caller, rpc(), touched)]
        for url in (base.rstrip("/"), f"{base}?qualifier=DEFAULT", f"{base}?b=2&a=1%2F&qualifier=DEFAULT"):
            answers.append(await send(caller, rpc(), sign(caller, key=ROLE, url=url), url))
        card = f"{base}.well-known/agent-card.json"
        headers = signed_headers("GET", card, b"", {SESSION_ID: SESSION}, key=ROLE, at=clock.now)
        answers.append(await caller.client.get(card, headers=headers))

    assert [answer.status_code for answer in answers] == [200] * 5
    assert all("authorization" not in headers for headers, _ in container.posts)


@pytest.mark.req("AC-F-07", "E2E-24")
async def test_a_tampered_body_a_shifted_clock_and_a_missing_header_are_refused(
    container: Container, clock: ManualClock
) -> None:
    async with rehearsal(container, auth=SigV4(), clock=clock) as caller:
        good = sign(caller)
        unsigned_session = sign(caller, headers={SESSION_ID: ""})
        unsigned_session[SESSION_ID] = SESSION
        messages = {
            "body": refused(await send(caller, rpc() + b" ", good)),
            "early": refused(await send(caller, rpc(), sign(caller, at=START - 301))),
            "late": refused(await send(caller, rpc(), sign(caller, at=START + 301))),
            "session": refused(await send(caller, rpc(), {**good, SESSION_ID: SESSION.upper()})),
            "extra": refused(await send(caller, rpc(), {**good, "x-amz-target": "x"})),
            "digest": refused(
                await send(caller, rpc() + b" ", sign(caller, headers={"x-amz-content-sha256": "UNSIGNED-PAYLOAD"}))
            ),
        }
        in_time = [await send(caller, rpc(), sign(caller, at=START + shift)) for shift in (-299, 299)]

    assert messages["body"] == messages["session"] == "Request signature could not be verified"
    assert messages["early"].startswith("Signature expired: ")
    assert messages["late"].startswith("Signature not yet current: ")
    assert messages["extra"] == "x-amz-target must be signed"
    assert "x-amz-content-sha256" in messages["digest"]
    assert [answer.status_code for answer in in_time] == [200, 200]
    assert len(container.posts) == 2


@pytest.mark.req("AC-F-07")
async def test_the_session_header_must_be_signed(container: Container, clock: ManualClock) -> None:
    async with rehearsal(container, auth=SigV4(), clock=clock) as caller:
        headers = signed_headers("POST", caller.front.invocation_url, rpc(), {}, at=clock.now)

        message = refused(await send(caller, rpc(), {**headers, SESSION_ID: SESSION}))

    assert message == f"{SESSION_ID} must be signed"


@pytest.mark.req("AC-F-07")
async def test_other_scopes_other_keys_and_no_key_are_refused(container: Container, clock: ManualClock) -> None:
    stranger = AwsKey("AKIDSTRANGER00000001", "not-a-real-secret-either")
    forged = AwsKey(ROLE.key_id, ROLE.secret, "another token")
    async with rehearsal(container, auth=SigV4(ROLE), clock=clock) as caller:
        attempts = [
            sign(caller, key=ROLE, region="us-east-1"),
            sign(caller, key=ROLE, service="lambda"),
            sign(caller, key=stranger),
            sign(caller, key=forged),
            {"authorization": "AWS4-HMAC-SHA256 Credential=x"},
            {"authorization": "AWS4-HMAC-SHA256"},
            {"authorization": "Bearer a.b.c"},
            {},
        ]
        messages = [refused(await send(caller, rpc(), headers)) for headers in attempts]

    assert "mismatch" in messages[6]
    assert messages[7] == "Missing Authentication Token"
    assert container.posts == []
    assert not any(ROLE.secret in message for message in messages)


@pytest.mark.req("AC-F-07")
async def test_who_may_invoke_need_not_be_allowed_to_read_the_card(container: Container) -> None:
    settings = FrontSettings(may_read_card=False, may_name_users=False)
    async with rehearsal(container, settings=settings) as caller:
        call = await caller.post()
        card = refused(await caller.card())
        user = refused(await caller.post(x_amzn_bedrock_agentcore_runtime_user_id="somebody"))

    assert call.status_code == 200
    assert "GetAgentCard" in card
    assert "InvokeAgentRuntimeForUser" in user


@pytest.mark.req("AC-F-06", "AC-F-07")
async def test_a_signed_call_is_answered_by_a_stream(container: Container, clock: ManualClock) -> None:
    container.answers = container.stream(event(1), event(2))
    async with rehearsal(container, auth=SigV4(), clock=clock) as caller:
        answer = await send(caller, rpc(), sign(caller))

    assert answer.content == event(1) + event(2)


def test_a_key_keeps_its_secret() -> None:
    assert ROLE.secret not in repr(ROLE)
    assert ROLE.token is not None
    assert ROLE.token not in repr(ROLE)


LIGHT = """
import sys
sys.modules["botocore"] = None  # as if it were not installed
from dragoman.errors import MissingExtraError
from dragoman.testing.agentcore_front import AuthorizationServer, Front, Jwt, Shared, SigV4
Front(Shared("http://127.0.0.1:9"), auth=Jwt("https://login.harbour.example/pool-9"))
try:
    SigV4()
except MissingExtraError as error:
    print(error)
print(*sorted({"boto3", "jose", "joserfc", "jwt", "requests", "fastapi", "starlette"} & set(sys.modules)))
"""


@pytest.mark.req("AC-F-15")
def test_only_signatures_need_more_than_the_servers_extra() -> None:
    done = subprocess.run([sys.executable, "-c", LIGHT], capture_output=True, text=True, timeout=60, check=True)

    message, brought = done.stdout.splitlines()
    assert "agentcore" in message
    assert brought == ""
