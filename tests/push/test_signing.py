"""Signed deliveries, verified with the published keys by a library that did not make them."""

from __future__ import annotations

import hashlib
import time
from typing import Any

import httpx2
import pytest
from joserfc import jwt
from joserfc.jwk import KeySet

import dragoman
from dragoman import App
from dragoman.errors import ConfigurationError
from dragoman.jose import new_key
from dragoman.model import AuthenticationInfo, TaskPushNotificationConfig
from dragoman.push import PushSigner
from tests.conformance.quick_server import quick_serving
from tests.push.agents import counting
from tests.push.hooks import Hooks

ALGORITHMS = ["ES256", "EdDSA", "RS256"]


@pytest.mark.req("PUSH-14", "PUSH-18", "AMB-67")
@pytest.mark.parametrize("algorithm", ALGORITHMS)
async def test_a_receiver_can_verify_a_notification_by_the_published_keys(algorithm: str, hooks: Hooks) -> None:
    former = new_key("ES256", kid="old")
    signer = PushSigner(new_key(algorithm, kid="now"), issuer="https://agent.example", former=[former.public])

    async with quick_serving(App(counting(signer=signer))) as url, dragoman.connect(url) as client:
        await client.send("count 0", push=TaskPushNotificationConfig(url=f"{hooks.url}/h?key=secret"))
        calls = await hooks.ended("/h?key=secret")
        async with httpx2.AsyncClient() as http:
            published = await http.get(f"{url}/.well-known/jwks.json")

    keys: Any = published.json()
    assert [key["kid"] for key in keys["keys"]] == ["now", "old"]
    assert not any("d" in key for key in keys["keys"])
    for call in calls:
        header = call.headers["x-a2a-notification-signature"]
        token = jwt.decode(header, KeySet.import_key_set(keys), algorithms=ALGORITHMS)
        assert token.header["typ"] == "JWT"
        assert token.claims["iss"] == "https://agent.example"
        assert token.claims["aud"] == f"{hooks.url}/h"
        assert token.claims["jti"] == call.id
        assert abs(token.claims["iat"] - time.time()) < 30
        assert token.claims["exp"] == token.claims["iat"] + 300
        assert token.claims["request_body_sha256"] == hashlib.sha256(call.body).hexdigest()
        assert "authorization" not in call.headers


@pytest.mark.req("AMB-67")
async def test_a_scheme_without_credentials_gets_the_jwt_or_nothing(hooks: Hooks) -> None:
    bearer = TaskPushNotificationConfig(url=f"{hooks.url}/b", authentication=AuthenticationInfo(scheme="Bearer"))
    basic = TaskPushNotificationConfig(url=f"{hooks.url}/c", authentication=AuthenticationInfo(scheme="Basic"))
    signed = counting(signer=PushSigner(new_key()))

    for agent in (signed, counting()):
        async with App(agent) as app, dragoman.connect(app) as client:
            for config in (bearer, basic):
                await client.send("count 0", push=config)
            await hooks.ended("/b")
            await hooks.ended("/c")
        sent = [call.headers.get("authorization", "") for call in hooks.at("/b")]
        expected = [f"Bearer {call.headers.get('x-a2a-notification-signature')}" for call in hooks.at("/b")]
        assert sent == (expected if agent is signed else [""] * len(expected))
        assert not any("authorization" in call.headers for call in hooks.at("/c"))
        hooks.calls.clear()


async def test_without_a_signer_no_keys_are_published() -> None:
    async with quick_serving(App(counting())) as url, httpx2.AsyncClient() as http:
        assert (await http.get(f"{url}/.well-known/jwks.json")).status_code == 404


def test_a_key_that_cannot_sign_is_refused() -> None:
    with pytest.raises(ConfigurationError):
        PushSigner(new_key().public.members)
    assert "hidden" in repr(PushSigner(new_key()))
