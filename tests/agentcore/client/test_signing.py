"""SigV4: the known answer, and what is signed over a real socket. Signatures are checked by hand-written HMAC."""

from __future__ import annotations

import calendar
import hashlib
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import httpx2
import pytest

from dragoman.agentcore import AccessDenied, AwsCredentials, CredentialsNotFoundError
from dragoman.agentcore.signing import UNSIGNED, Signer, sign
from dragoman.errors import ConfigurationError
from dragoman.http.authentication import Outgoing, Reply
from dragoman.http.client import HttpClient
from dragoman.http.tap import make_client
from tests.agentcore.client.front import (
    CALLS,
    ESCAPED,
    KEYS,
    SESSION,
    FakeTime,
    call,
    done,
    forbidden,
)
from tests.agentcore.client.sigv4 import authorization_parts, canonical_request, is_genuine, signed_names
from tests.client.words import status, task
from tests.http.peer import Answer, Peer, Received, peer, plain, result, stream

BODY = b'{"jsonrpc":"2.0","id":7,"method":"GetTask","params":{"id":"t-0001"}}'
KNOWN = Outgoing(
    "POST",
    f"https://bedrock-agentcore.eu-west-1.amazonaws.com/runtimes/{ESCAPED}/invocations/?qualifier=DEFAULT",
    {"content-type": "application/json", SESSION: "5d0f7b8e-4d2a-4c1b-9f43-2f6a0f6a7c11"},
    BODY,
)
MOMENT = calendar.timegm((2026, 1, 2, 3, 4, 5))
TOKEN = "dGVtcG9yYXJ5LXRva2Vu"


@pytest.fixture
async def front() -> AsyncIterator[Peer]:
    async with peer() as made:
        yield made


@pytest.mark.req("AC-C-22", "AC-C-85", "AC-C-86")
@pytest.mark.parametrize(
    ("token", "names", "digest", "signature"),
    [
        (
            None,
            f"content-type;host;x-amz-date;{SESSION}",
            "831a20f63591a8d9cf9398131ca464f74c3a08883546b16b0df6bbf165edc004",
            "572be9a27c8158f327cf034494386e7281cd4403696c625a8861b09e0e6b03f6",
        ),
        (
            TOKEN,
            f"content-type;host;x-amz-date;x-amz-security-token;{SESSION}",
            "0e4a5b08d0332233da32f893f95ea821adf91d85b51c58c47d13e471e3c6d80b",
            "aa19c234c833614c5e734f0999c1fe491539642ad82db98e933a3234d5bbb042",
        ),
    ],
)
def test_the_known_request_has_the_known_signature(token: str | None, names: str, digest: str, signature: str) -> None:
    keys = AwsCredentials(KEYS.access_key, KEYS.secret_key, token)

    added = sign(KNOWN, keys, "eu-west-1", MOMENT)

    parts = authorization_parts(added)
    assert (parts["SignedHeaders"], parts["Signature"]) == (names, signature)
    assert parts["Credential"] == "AKIDLEDGERTEST000001/20260102/eu-west-1/bedrock-agentcore/aws4_request"
    assert added["x-amz-date"] == "20260102T030405Z"
    assert added.get("x-amz-security-token") == token
    by_hand = canonical_request(_received(KNOWN, added), names.split(";"))
    assert hashlib.sha256(by_hand.encode()).hexdigest() == digest
    assert by_hand.split("\n")[1].startswith("/runtimes/arn%253Aaws%253Abedrock-agentcore%253A")


def _received(request: Outgoing, added: Mapping[str, str]) -> Received:
    host, _, path = request.url.removeprefix("https://").partition("/")
    headers = {"host": host, **request.headers, **added}
    return Received(request.method, f"/{path}", headers, request.body, None)  # type: ignore[arg-type]


@pytest.mark.req("AC-C-81", "AC-C-83", "AC-C-87")
async def test_what_arrives_bears_a_signature_of_just_that(front: Peer) -> None:
    front.on("POST", CALLS, done())
    keys = AwsCredentials(KEYS.access_key, KEYS.secret_key, TOKEN)

    async with call(front, credentials=keys, user_id="alice", qualifier="prod") as client:
        await client.send("Grüße, 世界 🌊", extensions=["https://x.example/e"], headers={"X-Own": "a  b"})

    (sent,) = front.received
    assert is_genuine(sent)
    assert sent.headers["content-length"] == str(len(sent.body))
    assert sent.headers["x-amz-security-token"] == TOKEN
    assert sent.headers["host"] == front.url.removeprefix("http://")
    assert set(signed_names(sent.headers)) == {
        "a2a-extensions",
        "a2a-version",
        "accept",
        "content-type",
        "host",
        "x-amz-date",
        "x-amz-security-token",
        SESSION,
        "x-amzn-bedrock-agentcore-runtime-user-id",
        "x-own",
    }


@pytest.mark.req("AC-C-83")
async def test_a_big_body_is_signed_as_it_is_sent(front: Peer) -> None:
    front.on("POST", CALLS, done())

    async with call(front) as client:
        await client.send("ü" * 3_000_000)

    assert is_genuine(front.received[0])


class Signing:
    """An authenticator that signs and has no questions."""

    def __init__(self) -> None:
        self._signer = Signer(KEYS, "eu-west-1", lambda: MOMENT)

    async def sign(self, request: Outgoing) -> Mapping[str, str]:
        return await self._signer.sign(request)

    async def review(self, request: Outgoing, reply: Reply) -> bool:
        return False


@pytest.mark.req("AC-C-83")
async def test_a_body_out_of_an_iterator_is_collected_signed_and_sent_with_its_length(front: Peer) -> None:
    front.on("POST", "/", plain(200, b"{}"))

    async def pieces() -> AsyncIterator[bytes]:
        yield b'{"a":'
        yield b"1}"

    class Streaming(HttpClient):
        async def _build(self, *args: Any) -> httpx2.Request:
            return self._client.build_request("POST", front.url + "/", content=pieces())

    http = Streaming(authenticator=Signing())
    await http.fetch("POST", front.url + "/")
    await http.aclose()

    (sent,) = front.received
    assert (sent.body, sent.headers["content-length"]) == (b'{"a":1}', "7")
    assert "transfer-encoding" not in sent.headers
    assert is_genuine(sent)


@pytest.mark.req("AC-C-85")
async def test_a_changed_body_does_not_fit_the_signature(front: Peer) -> None:
    front.on("POST", CALLS, done())

    async with call(front) as client:
        await client.send("hi")

    sent = front.received[0]
    sent.body = sent.body.replace(b"hi", b"ho")
    assert not is_genuine(sent)


@pytest.mark.req("AC-C-26", "AC-C-82")
async def test_what_the_way_may_change_is_not_signed(front: Peer) -> None:
    front.on("POST", CALLS, done())
    trace = {"traceparent": "00-1", "tracestate": "a=b", "baggage": "c=d", "X-Amzn-Trace-Id": "Root=1"}

    async with call(front) as client:
        await client.send("hi", headers=trace)

    (sent,) = front.received
    assert not set(signed_names(sent.headers)) & UNSIGNED - {"x-amz-date"}
    assert sent.headers["traceparent"] == "00-1"
    for name in ("user-agent", "connection", "accept-encoding", *map(str.lower, trace)):
        sent.headers[name] = "changed on the way"
    assert is_genuine(sent)


@pytest.mark.req("AC-C-84")
async def test_signed_calls_stream(front: Peer) -> None:
    front.on("POST", CALLS, stream({"task": task("WORKING")}, status("COMPLETED")))

    async with call(front) as client:
        events = [type(event).__name__ async for event in client.stream("hi")]

    assert events == ["Task", "TaskStatusUpdateEvent"]
    assert is_genuine(front.received[0])


@pytest.mark.req("AC-C-88")
async def test_the_signature_is_made_after_every_hook_of_the_users_client(front: Peer) -> None:
    front.on("POST", CALLS, done())

    async def late(request: httpx2.Request) -> None:
        request.headers["x-late"] = "yes"

    own = httpx2.AsyncClient(event_hooks={"request": [late]}, auth=("user", "password"))
    async with own, call(front, http=own) as client:
        await client.send("hi")
        own.event_hooks = {"request": [*own.event_hooks["request"], late]}
        await client.send("hi")

    for sent in front.received:
        assert is_genuine(sent)
        assert "x-late" in signed_names(sent.headers)


async def test_a_client_of_the_users_own_signs_nothing_else(front: Peer) -> None:
    front.on("POST", CALLS, done()).on("GET", "/other", plain(200, b"{}"))
    own = make_client()

    async with call(front, http=own) as client:
        await client.send("hi")
    await own.get(f"{front.url}/other")
    await own.aclose()

    assert "authorization" not in front.received[1].headers


def clock_complains(time: FakeTime, ahead: float) -> Answer:
    date = "Fri, 02 Jan 2026 03:24:05 GMT"
    assert calendar.timegm((2026, 1, 2, 3, 24, 5)) == time.wall + ahead
    return forbidden("Signature expired: 20260102T030405Z is now earlier than 20260102T031905Z", date=date)


@pytest.mark.req("AC-C-89")
async def test_a_wrong_clock_is_corrected_by_that_of_the_answer(front: Peer) -> None:
    time = FakeTime()
    front.on("POST", CALLS, clock_complains(time, 1200.0), done())

    async with call(front, timing=time.timing) as client:
        await client.send("hi")
        await client.send("hi")

    dates = [request.headers["x-amz-date"] for request in front.received]
    assert dates == ["20260102T030405Z", "20260102T032405Z", "20260102T032405Z"]
    assert all(map(is_genuine, front.received))


@pytest.mark.req("AC-C-89")
async def test_the_clock_is_corrected_once(front: Peer) -> None:
    time = FakeTime()
    front.on("POST", CALLS, clock_complains(time, 1200.0))

    async with call(front, timing=time.timing) as client:
        with pytest.raises(AccessDenied, match="Signature expired"):
            await client.send("hi")
        with pytest.raises(AccessDenied):
            await client.send("hi")

    assert len(front.received) == 3


@pytest.mark.req("AC-C-80")
async def test_without_credentials_there_is_an_error_and_no_connection(
    front: Peer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _hide_credentials(monkeypatch, tmp_path)

    with pytest.raises(CredentialsNotFoundError, match="AWS_ACCESS_KEY_ID"):
        async with call(front, credentials=None):
            raise AssertionError("connected")

    assert front.connections == 0


@pytest.mark.req("AC-C-80")
async def test_the_usual_chain_is_used(front: Peer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _hide_credentials(monkeypatch, tmp_path)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEYS.access_key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", KEYS.secret_key)
    front.on("POST", CALLS, done())

    async with call(front, credentials=None) as client:
        await client.send("hi")

    assert is_genuine(front.received[0])


@pytest.mark.req("AC-C-80")
async def test_an_unknown_profile_is_an_error_of_its_own(
    front: Peer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _hide_credentials(monkeypatch, tmp_path)

    with pytest.raises(CredentialsNotFoundError):
        async with call(front, credentials=None, profile="nobody"):
            raise AssertionError("connected")


def _hide_credentials(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(folder / "none"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(folder / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


WITHOUT_BOTOCORE = """
import asyncio, sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "botocore":
            raise ModuleNotFoundError("No module named 'botocore'", name="botocore")
sys.meta_path.insert(0, Absent())
from dragoman import agentcore
async def main():
    async with agentcore.connect(sys.argv[1], bearer="t", card=False):
        print("bearer works")
    try:
        await agentcore.connect(sys.argv[1], card=False).open()
    except agentcore.errors.ConfigurationError as error:
        print(error)
asyncio.run(main())
"""


@pytest.mark.req("AC-C-80")
def test_without_botocore_everything_imports_and_sigv4_names_the_extra() -> None:
    arn = "arn:aws:bedrock-agentcore:eu-west-1:111122223333:runtime/ledger_bot-Qw3rTy7UiO"
    command = [sys.executable, "-c", WITHOUT_BOTOCORE, arn]

    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)

    assert done.stdout.splitlines()[0] == "bearer works"
    assert "pip install 'dragoman[agentcore]'" in done.stdout


class Refreshing:
    """Keys that have to be fetched, as those of a role."""

    access_key = "ASIALEDGERTEST000001"

    def __init__(self, *keys: AwsCredentials | Exception) -> None:
        self._keys = list(keys)

    def refresh_needed(self) -> bool:
        return True

    def get_frozen_credentials(self) -> AwsCredentials:
        found = self._keys.pop(0)
        if isinstance(found, Exception):
            raise found
        return found


@pytest.mark.req("AC-C-22")
async def test_keys_are_asked_for_at_every_request(front: Peer) -> None:
    front.on("POST", CALLS, result({"task": task("COMPLETED")}))
    keys = Refreshing(KEYS, AwsCredentials("AKIDSECOND", KEYS.secret_key), RuntimeError("secret words"))

    async with call(front, credentials=keys) as client:
        await client.send("hi")
        await client.send("hi")
        with pytest.raises(CredentialsNotFoundError) as caught:
            await client.send("hi")

    used = [authorization_parts(request.headers)["Credential"].partition("/")[0] for request in front.received]
    assert used == [KEYS.access_key, "AKIDSECOND"]
    assert "secret words" not in str(caught.value)


async def test_a_signature_needs_a_region(front: Peer) -> None:
    with pytest.raises(ConfigurationError, match="region"):
        async with call(front, target=f"{front.url}/runtimes/ledger_bot-Qw3rTy7UiO/invocations/", endpoint=""):
            raise AssertionError("connected")
