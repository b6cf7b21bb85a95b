"""Signed notifications: genuine, forged, changed, repeated, old."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from dragoman.errors import ConfigurationError
from dragoman.http.client import HttpClient
from dragoman.jose import encode_base64url, new_key
from dragoman.push.signing import PushSigner
from dragoman.webhook import Receiver, SenderKeys
from dragoman.webhook.refusals import Refusal
from tests.push.hooks import hooks_serving
from tests.webhook.deliveries import KEY, NOW, URL, Inbox, claims, headers, jwt, status, text

BODY = text(status("COMPLETED"))
KEYS = KEY.public.members


def inbox(**settings: Any) -> Inbox:
    return Inbox(**{"token": (), "keys": SenderKeys(KEYS), **settings})


def signed(said: dict[str, Any] | None = None, **head: Any) -> dict[str, str]:
    return headers("", Signature=jwt(said or claims(BODY), **head))


@pytest.mark.req("PUSH-14", "PUSH-18")
async def test_a_signature_of_the_sender_is_proof_enough_and_its_jti_is_the_id() -> None:
    box = inbox()

    assert await box.post(BODY, signed()) == 204
    assert await box.post(BODY, signed()) == 204
    assert [(n.id, n.signed, n.sent_ms) for n in box.taken] == [("n-1", True, NOW * 1000)]


@pytest.mark.req("PUSH-14", "PUSH-18")
@pytest.mark.parametrize("algorithm", ["ES256", "RS256", "PS256", "EdDSA"])
async def test_what_our_own_sender_signs_is_verified(algorithm: str) -> None:
    signer = PushSigner(new_key(algorithm))
    box = inbox(keys=SenderKeys({"keys": signer.public_keys}))
    token = signer.sign(notification_id="n", address=f"{URL}?key=secret", body=BODY, now=NOW)

    assert await box.post(BODY, headers("", Signature=token)) == 204


@pytest.mark.req("AMB-67")
async def test_a_sender_without_credentials_may_put_the_signature_in_their_place() -> None:
    assert await inbox().post(BODY, headers("", Authorization=f"Bearer {jwt(claims(BODY))}")) == 204


@pytest.mark.req("PUSH-14", "PUSH-18")
@pytest.mark.parametrize(
    "changes",
    [
        {"request_body_sha256": "0" * 64},
        {"request_body_sha256": None},
        {"request_body_sha256": 7},
        {"request_body_sha256": "é"},
        {"iat": None},
        {"iat": NOW - 301},
        {"iat": NOW + 61},
        {"iat": True},
        {"iat": "1"},
        {"iat": 1e300},
        {"exp": NOW - 61},
        {"aud": "https://elsewhere.example.com/"},
        {"aud": None},
        {"aud": [7, "x"]},
        {"jti": None},
        {"jti": ""},
        {"jti": 7},
        {"iss": "https://somebody.example.com"},
    ],
)
async def test_a_signature_about_something_else_is_no_proof(changes: dict[str, Any]) -> None:
    box = inbox(keys=SenderKeys(KEYS, issuer="https://agent.example.com"))

    assert await box.post(BODY, signed(claims(BODY, **changes))) == 401
    assert not box.taken


@pytest.mark.req("PUSH-14")
@pytest.mark.parametrize(
    "token",
    [
        "",
        "a.b",
        "a.b.c",
        "..",
        "é.é.é",
        "x" * 9_000,
        jwt(claims(BODY))[:-4] + "AAAA",
        jwt(claims(BODY), new_key("ES256", kid="k1")),
        jwt(claims(BODY), kid="another"),
        jwt(claims(BODY), crit=["exp"]),
        jwt(claims(BODY), alg="none"),
        jwt(claims(BODY), alg="HS256"),
        jwt(claims(BODY), alg="RS256"),
        jwt(claims(BODY), alg=7),
        jwt(claims(BODY), kid=7),
        f"{encode_base64url(b'[]')}.{encode_base64url(b'[]')}.AAAA",
        f"{encode_base64url(json.dumps({'alg': 'none'}).encode())}.{encode_base64url(b'{}')}.",
    ],
)
async def test_a_forged_signature_is_unauthorized(token: str) -> None:
    assert await inbox().post(BODY, headers("", Signature=token)) == 401


@pytest.mark.req("PUSH-14")
async def test_another_body_under_the_same_signature_is_unauthorized() -> None:
    assert await inbox().post(status("FAILED"), signed()) == 401


@pytest.mark.req("PUSH-18", "PUSH-12")
async def test_a_repetition_under_another_name_is_known_by_what_was_signed() -> None:
    box = inbox()

    for name in ("", "a", "b"):
        await box.post(BODY, signed() | {"X-A2A-Notification-Id": name, "X-A2A-Notification-Token": name})

    assert len(box.taken) == 1


async def test_an_algorithm_that_is_not_allowed_is_unauthorized() -> None:
    assert await inbox(keys=SenderKeys(KEYS, algorithms=["RS256"])).post(BODY, signed()) == 401


async def test_senders_that_name_no_receiver_are_taken_by_who_asks_for_it() -> None:
    box = inbox(keys=SenderKeys(KEYS, audience=""))

    assert await box.post(BODY, signed(claims(BODY, aud=None, exp=None))) == 204


@pytest.mark.parametrize(
    "make",
    [
        lambda: SenderKeys(b"nonsense"),
        lambda: SenderKeys({"keys": []}),
        lambda: SenderKeys(KEYS, algorithms=["none"]),
        lambda: Receiver(keys=SenderKeys(KEYS)),
    ],
)
def test_what_could_verify_nothing_is_refused_at_once(make: Any) -> None:
    with pytest.raises(ConfigurationError):
        make()


@pytest.mark.req("PUSH-14", "PUSH-18")
async def test_keys_are_fetched_from_the_sender_once() -> None:
    asked = 0

    async def publish(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        asked += 1
        await reader.readuntil(b"\r\n\r\n")
        body = json.dumps({"keys": [KEYS]}).encode()
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(publish, "127.0.0.1", 0)
    async with server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/.well-known/jwks.json"
        box = inbox(keys=SenderKeys(url))
        found = [await box.post(BODY, signed(claims(BODY, jti=f"n-{i}"))) for i in range(3)]
        await box.receiver.aclose()

    assert found == [204, 204, 204]
    assert asked == 1


@pytest.mark.req("PUSH-14")
async def test_while_the_keys_cannot_be_had_the_sender_is_asked_to_come_again() -> None:
    async with hooks_serving() as hooks:
        hooks.always["/jwks"] = 500
        box = inbox(keys=SenderKeys(f"{hooks.url}/jwks"))
        answer = await box.answer(BODY, signed())
        await box.receiver.aclose()

    assert answer.status == 503
    assert dict(answer.headers)["Retry-After"] == "10"
    assert not box.taken


async def test_keys_of_another_host_are_not_fetched_without_encryption() -> None:
    http = HttpClient()

    with pytest.raises(Refusal) as refused:
        await SenderKeys("http://keys.example.com/jwks").find("k", http)

    await http.aclose()
    assert refused.value.answer.status == 503
