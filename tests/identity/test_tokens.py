"""Tokens on every binding: the good ones say who calls, each kind of bad one is refused. Spec: §7.4; RFC 8725."""

from __future__ import annotations

import asyncio
import base64
import hmac
import json
import logging
import time
from typing import Any

import pytest

import dragoman
from dragoman import App
from dragoman.auth import RefusedError, Security
from dragoman.bindings.websocket import WebSocketBinding
from dragoman.errors import ConfigurationError, PermissionDeniedError, UnauthenticatedError
from tests.conformance.quick_server import quick_serving
from tests.identity.parts import AUDIENCE, FORGER, ISSUER, KEY, bearer, token, tokens, whoami


async def refused(enter: Any, text: str, **scheme: Any) -> UnauthenticatedError:
    client = await enter(whoami(security=tokens(**scheme)), bearer(text))
    with pytest.raises(UnauthenticatedError) as raised:
        await client.run("hello")
    return raised.value


def unsigned(header: dict[str, Any], **change: Any) -> str:
    claims = {"iss": ISSUER, "aud": AUDIENCE, "sub": "ann", "exp": int(time.time()) + 60, **change}
    parts = (base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in (header, claims))
    return ".".join(parts) + "."


@pytest.mark.req("AUTH-05", "AUTH-07", "SEC-16", "AUTH-04")
async def test_a_good_token_says_who_calls_and_what_for(enter: Any) -> None:
    client = await enter(whoami(security=tokens()), bearer(token(scope="read write")))

    assert (await client.run("hello")).text == f"{ISSUER}#ann|read write"


@pytest.mark.req("AUTH-05", "ERR-02", "SEC-16", "AMB-34")
async def test_no_token_is_refused(enter: Any) -> None:
    client = await enter(whoami(security=tokens()))

    with pytest.raises(UnauthenticatedError):
        await client.run("hello")
    with pytest.raises(UnauthenticatedError):
        await client.get_task("t-1")
    with pytest.raises(UnauthenticatedError):
        await client.cancel("t-1")


@pytest.mark.req("AUTH-05", "SEC-16")
async def test_an_expired_token_is_refused(enter: Any) -> None:
    await refused(enter, token(exp=int(time.time()) - 31))


@pytest.mark.req("AUTH-05", "SEC-16")
async def test_a_forged_token_is_refused(enter: Any) -> None:
    await refused(enter, token(key=FORGER))


@pytest.mark.req("AUTH-05", "SEC-16")
async def test_a_token_for_another_audience_is_refused(enter: Any) -> None:
    await refused(enter, token(aud=["somebody-else", "agents-2"]))


@pytest.mark.req("AUTH-05", "SEC-16")
async def test_a_token_with_alg_none_is_refused(enter: Any) -> None:
    await refused(enter, unsigned({"alg": "none", "typ": "at+jwt"}))


@pytest.mark.req("AUTH-05", "SEC-16")
async def test_a_token_of_the_wrong_type_is_refused(enter: Any) -> None:
    await refused(enter, token(header={"typ": "logout+jwt"}))


@pytest.mark.req("AUTH-05", "SEC-16")
async def test_a_token_of_another_issuer_is_refused(enter: Any) -> None:
    await refused(enter, token(iss="https://id.example.evil"))


@pytest.mark.req("ERR-04", "AUTH-06", "AUTH-07", "AMB-36")
async def test_a_token_without_the_scope_is_not_permitted(enter: Any) -> None:
    agent = whoami(security=Security({"token": tokens()}, require=[{"token": ["ask"]}]))
    poor = await enter(agent, bearer(token(scope="look")))
    rich = await enter(agent, bearer(token(scope="look ask")))

    with pytest.raises(PermissionDeniedError):
        await poor.run("hello")
    with pytest.raises(PermissionDeniedError):
        await poor.get_task("t-1")
    assert (await rich.run("hello")).text.endswith("|ask look")


# What is the same for all bindings is shown without one.


def good_but(**change: Any) -> str:
    return token(**change)


BAD = {
    "no expiry": good_but(exp=None),
    "an expiry that is no number": good_but(exp="tomorrow"),
    "an expiry that is true": good_but(exp=True),
    "an expiry beyond all floats": unsigned({"alg": "ES256"}, exp=10**400),
    "a time long before all floats": unsigned({"alg": "ES256"}, nbf=-(10**400)),
    "not valid yet": good_but(nbf=int(time.time()) + 600),
    "issued in the future": good_but(iat=int(time.time()) + 600),
    "no audience": good_but(aud=None),
    "an audience that is an object": good_but(aud={"agents": 1}),
    "no issuer": good_but(iss=None),
    "no subject": good_but(sub=None),
    "an empty subject": good_but(sub=""),
    "a critical header": unsigned({"alg": "ES256", "crit": ["x"]}),
    "alg None in capitals": unsigned({"alg": "NONE"}),
    "no alg": unsigned({"typ": "JWT"}),
    "an alg that is a list": unsigned({"alg": ["ES256"]}),
    "another kid": token(header={"kid": "k2"}),
    "not a token": "hello",
    "two dots": "..",
    "five parts": "a.b.c.d.e",
    "not base64url": "e30=.e30=.e30=",
    "an array for claims": "e30.W10.AAAA",
    "very long": "a" * 20_000,
    "a key of its own": token(
        key=FORGER, header={"jwk": FORGER.as_dict(private=False), "jku": "https://evil.example/keys", "kid": "k1"}
    ),
}


@pytest.mark.parametrize("what", BAD)
@pytest.mark.req("AUTH-05", "SEC-16")
async def test_a_token_is_refused_that_has(what: str, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(RefusedError) as raised:
        await tokens().verify(BAD[what])

    assert BAD[what] not in str(raised.value) + raised.value.told


async def test_a_shared_secret_never_stands_in_for_a_public_key() -> None:
    """The public key as the secret of HMAC: the oldest trick of all."""
    head, claims = (
        base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in ({"alg": "HS256"}, _claims())
    )
    digest = hmac.digest(KEY.as_pem(private=False), head + b"." + claims, "sha256")
    signature = base64.urlsafe_b64encode(digest).rstrip(b"=")

    with pytest.raises(RefusedError) as raised:
        await tokens().verify(b".".join((head, claims, signature)).decode())
    assert raised.value.reason == "algorithm"


def _claims() -> dict[str, Any]:
    return {"iss": ISSUER, "aud": AUDIENCE, "sub": "ann", "exp": int(time.time()) + 60}


async def test_a_repeated_claim_is_refused() -> None:
    head, _, _ = token().split(".")
    claims = base64.urlsafe_b64encode(b'{"iss":"%s","iss":"evil"}' % ISSUER.encode()).rstrip(b"=").decode()

    with pytest.raises(RefusedError) as raised:
        await tokens().verify(f"{head}.{claims}.AAAA")
    assert raised.value.reason == "malformed"


async def test_clocks_may_differ_by_the_leeway() -> None:
    now = time.time()
    scheme = tokens(leeway=30, now=lambda: now)

    caller = await scheme.verify(token(exp=int(now) - 20, nbf=int(now) + 20))

    assert caller.id == f"{ISSUER}#ann"


@pytest.mark.parametrize("claims", [{"scp": ["a", "b"]}, {"scp": "a b"}, {"scope": "a b"}])
async def test_scopes_are_read_however_they_are_written(claims: dict[str, Any]) -> None:
    assert (await tokens().verify(token(**claims))).scopes == {"a", "b"}


@pytest.mark.parametrize(
    "settings",
    [{"algorithms": ("none",)}, {"algorithms": ("HS256",)}, {"algorithms": ()}, {"leeway": 1e6}],
)
def test_rules_that_let_too_much_pass_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        tokens(**settings)


@pytest.mark.req("SEC-05", "SEC-07", "SEC-09", "SEC-08")
async def test_a_failure_is_logged_without_the_token(enter: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    text = token(aud="elsewhere")

    error = await refused(enter, text)

    lines = [record.getMessage() for record in caplog.records if record.name == "dragoman.audit"]
    assert any("authentication failed" in line and "why=audience" in line for line in lines)
    own = "".join(record.getMessage() for record in caplog.records if record.name.startswith("dragoman"))
    for part in text.split("."):
        assert part not in own
        assert part not in str(error)


async def test_a_token_is_not_good_beyond_its_expiry_however_often_it_was_before() -> None:
    now = time.time()
    clock = [now]
    scheme, text = tokens(leeway=0, now=lambda: clock[0]), token(exp=int(now) + 5)
    for _ in range(3):
        await scheme.verify(text)

    clock[0] += 6

    with pytest.raises(RefusedError) as raised:
        await scheme.verify(text)
    assert raised.value.reason == "expired"


@pytest.mark.req("SEC-06", "AUTH-05")
async def test_a_socket_is_to_be_opened_anew_when_its_token_has_expired() -> None:
    agent = whoami(security=tokens(leeway=0))
    app = App(agent, bindings=[WebSocketBinding()])
    async with quick_serving(app) as url:
        headers = bearer(token(exp=int(time.time()) + 2))
        async with dragoman.connect(url, bindings=(WebSocketBinding(),), headers=headers) as client:
            assert (await client.run("hello")).ok
            with pytest.raises(UnauthenticatedError):
                await asyncio.wait_for(calling(client), 10)


async def calling(client: dragoman.Client) -> None:
    """Calls until the server has had enough of the socket, and the client opens another."""
    while True:
        await client.run("hello")
        await asyncio.sleep(0.05)
