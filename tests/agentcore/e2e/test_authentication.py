"""Tokens and signatures, from the first refusal to the first answer."""

from __future__ import annotations

import time

import pytest

from dragoman.agentcore import AccessDenied, AuthenticationRequired, AwsCredentials, Timing
from dragoman.auth import BearerToken, ClientCredentials
from dragoman.testing.agentcore_front import AuthorizationServer, AwsKey, Jwt, SigV4
from dragoman.testing.agentcore_front.authorization_server import CLIENT_ID, CLIENT_SECRET
from tests.agentcore.e2e.parts import Tides, calling, rehearsal, said


@pytest.mark.req("E2E-10")
@pytest.mark.parametrize("forms", [("oidc",), ("rfc8414",)])
async def test_from_a_refusal_by_discovery_to_a_token_and_an_answer(forms) -> None:
    async with (
        AuthorizationServer(forms=forms, scopes=("tides/read",)) as server,
        rehearsal(Tides().agent, front={"auth": server.jwt}) as front,
        calling(front, bearer=ClientCredentials(CLIENT_ID, CLIENT_SECRET)) as client,
    ):
        task = await client.send("hello")
        await client.send("again")

    assert said(task) == ["18:42, hello"]
    assert [(record.method, record.status) for record in front.requests] == [
        ("GET", 401),
        ("GET", 200),
        ("GET", 200),
        ("POST", 200),
        ("POST", 200),
    ]
    metadata = front.requests[1]
    assert "oauth-protected-resource" in metadata.target
    assert "authorization" not in metadata.headers
    assert (server.metadata_calls, server.token_calls) == (1, 1)


class Tokens:
    """A source whose tokens are counted; the first ``stale`` of them are too old, and do not say so."""

    def __init__(self, auth: Jwt, stale: int) -> None:
        self.auth = auth
        self.stale = stale
        self.given = 0

    def __call__(self) -> BearerToken:
        self.given += 1
        now = time.time()
        lifetime = -5.0 if self.given <= self.stale else 600.0
        return BearerToken(self.auth.mint(now, lifetime=lifetime), now + 600)


@pytest.mark.req("E2E-11")
async def test_a_token_that_has_expired_is_renewed_once() -> None:
    auth = Jwt("https://login.harbour.example/pool-9")
    tokens = Tokens(auth, stale=1)
    async with (
        rehearsal(Tides().agent, front={"auth": auth}) as front,
        calling(front, bearer=tokens, card=False) as client,
    ):
        task = await client.send("hello")

    assert said(task) == ["18:42, hello"]
    assert tokens.given == 2
    assert [record.status for record in front.requests if record.method == "POST"] == [401, 200]


@pytest.mark.req("E2E-11")
async def test_a_second_refusal_is_the_last() -> None:
    auth = Jwt("https://login.harbour.example/pool-9")
    async with (
        rehearsal(Tides().agent, front={"auth": auth}) as front,
        calling(front, bearer=Tokens(auth, stale=9), card=False) as client,
    ):
        with pytest.raises(AuthenticationRequired) as raised:
            await client.send("hello")

    assert raised.value.error == "invalid_token"
    assert "expired" in raised.value.description
    assert [record.status for record in front.requests if record.method == "POST"] == [401, 401]


@pytest.mark.req("E2E-12")
async def test_a_token_for_a_runtime_that_wants_signatures_is_refused_without_a_challenge() -> None:
    async with rehearsal(Tides().agent) as front, calling(front, bearer="some-token", card=False) as client:
        with pytest.raises(AccessDenied) as raised:
            await client.send("hello")

    assert "mismatch" in str(raised.value)
    assert raised.value.origin.status == 403
    assert len(front.requests) == 1
    assert "some-token" not in str(raised.value) + repr(raised.value.origin)


@pytest.mark.req("E2E-13")
async def test_what_is_said_about_a_token_that_cannot_be_read_is_kept() -> None:
    auth = Jwt("https://login.harbour.example/pool-9")
    async with (
        rehearsal(Tides().agent, front={"auth": auth}) as front,
        calling(front, bearer="no-token-at-all", card=False) as client,
    ):
        with pytest.raises(AccessDenied) as raised:
            await client.send("hello")

    assert "OAuth authorization failed: Failed to parse token" in str(raised.value)


@pytest.mark.req("E2E-24")
@pytest.mark.parametrize("offset", [-400, 400])
async def test_a_clock_that_is_wrong_is_put_right_once(offset: int) -> None:
    timing = Timing(wall=lambda: time.time() + offset)
    async with rehearsal(Tides().agent) as front, calling(front, timing=timing, card=False) as client:
        task = await client.send("hello")
        await client.send("again")

    assert said(task) == ["18:42, hello"]
    assert [record.status for record in front.requests] == [403, 200, 200]


@pytest.mark.req("E2E-24")
async def test_temporary_keys_are_taken_with_their_token_and_not_without() -> None:
    role = AwsKey("ASIAREHEARSAL0000002", "not-a-real-secret-key-for-rehearsals-0002", "dGVtcG9yYXJ5LXRva2Vu")
    async with rehearsal(Tides().agent, front={"auth": SigV4(role)}) as front:
        async with calling(front, credentials=AwsCredentials(role.key_id, role.secret, role.token)) as client:
            task = await client.send("hello")
        async with calling(front, credentials=AwsCredentials(role.key_id, role.secret), card=False) as client:
            with pytest.raises(AccessDenied):
                await client.send("hello")

    assert said(task) == ["18:42, hello"]
