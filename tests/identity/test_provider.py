"""With a real provider in a process of its own: discovery, keys that change, and a provider that misbehaves."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import httpx2
import pytest

from dragoman.auth import ClientCredentials, Introspection, JwtBearer, OAuth2, OpenIdConnect, Security
from dragoman.auth.metadata import Discovery
from dragoman.errors import ConfigurationError, UnauthenticatedError, UnavailableError
from dragoman.model import ClientCredentialsOAuthFlow
from tests.identity.parts import ProviderProcess, bearer, whoami
from tests.identity.provider import CLIENT, SECRET


def introspection(provider: ProviderProcess, **settings: Any) -> Introspection:
    return Introspection(f"{provider.issuer}/introspect", CLIENT, SECRET, **settings)


@pytest.mark.req("AUTH-05", "AUTH-04", "SEC-16", "DATA-33")
async def test_a_token_by_client_credentials_opens_every_door(enter: Any, provider: ProviderProcess) -> None:
    flow = ClientCredentialsOAuthFlow(token_url=f"{provider.issuer}/token", scopes={"ask": "Ask"})
    security = Security({"idp": OAuth2(flow, JwtBearer(provider.issuer, "agents"))}, require=[{"idp": ["ask"]}])
    source = ClientCredentials(CLIENT, SECRET, token_url=f"{provider.issuer}/token", scopes=["ask"])
    fetched = await source.fetch(Discovery())
    assert fetched is not None

    client = await enter(whoami(security=security), bearer(fetched.value))

    assert (await client.run("hello")).text == f"{provider.issuer}#{CLIENT}|ask"
    assert client.card.security_schemes["idp"].oauth2_security_scheme.flows.client_credentials == flow


async def test_keys_are_found_by_discovery_and_fetched_once(provider: ProviderProcess) -> None:
    scheme = OpenIdConnect(provider.issuer, "agents")
    text, before = provider.mint(), provider.seen("/jwks")

    callers = await asyncio.gather(*(scheme.verify(text) for _ in range(20)))

    assert {caller.id for caller in callers} == {f"{provider.issuer}#ann"}
    assert provider.seen("/jwks") - before == 1
    url = scheme.declare().open_id_connect_security_scheme
    assert url is not None
    assert httpx2.get(url.open_id_connect_url).json()["issuer"] == provider.issuer


@pytest.mark.req("SEC-06", "AUTH-05")
async def test_the_issuer_may_change_its_keys_without_a_restart(
    enter: Any, provider: ProviderProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman.jose.key_sets._AGAIN", 0.0)
    agent = whoami(security=JwtBearer(provider.issuer, "agents"))
    before = await enter(agent, bearer(provider.mint()))
    assert (await before.run("hello")).ok

    provider.order(do="rotate")
    after = await enter(agent, bearer(provider.mint()))

    assert (await after.run("hello")).ok
    assert (await before.run("hello")).ok, "the old key is still shown"


async def test_tokens_with_unknown_keys_do_not_have_the_keys_fetched_each_time(provider: ProviderProcess) -> None:
    scheme = JwtBearer(provider.issuer, "agents")
    await scheme.verify(provider.mint())
    before = provider.seen("/jwks")

    for number in range(20):
        with pytest.raises(Exception, match="unknown signing key"):
            await scheme.verify(provider.mint({"kid": f"invented-{number}"}))

    assert provider.seen("/jwks") - before <= 1


@pytest.mark.parametrize("mode", ["oversized", "loop", "down"])
@pytest.mark.req("SEC-03", "SEC-15", "ERR-11")
async def test_a_set_of_keys_that_is_too_large_or_leads_nowhere_is_refused(
    enter: Any, provider: ProviderProcess, mode: str
) -> None:
    text = provider.mint()
    provider.order(mode=mode)
    agent = whoami(security=JwtBearer(provider.issuer, "agents", jwks_url=f"{provider.issuer}/jwks"))
    before = provider.seen("/jwks")
    client = await enter(agent, bearer(text))

    with pytest.raises(UnavailableError) as raised:
        await client.run("hello")

    assert provider.issuer not in str(raised.value)
    provider.order(mode="")
    assert provider.seen("/jwks") - before <= 2, "no redirect is followed"


async def test_keys_that_are_known_do_while_the_provider_is_down(provider: ProviderProcess) -> None:
    scheme = JwtBearer(provider.issuer, "agents")
    text = provider.mint()
    await scheme.verify(text)

    provider.order(mode="down")

    assert (await scheme.verify(text)).id.endswith("#ann")


@pytest.mark.parametrize("url", ["http://id.example", "ftp://id.example", "id.example", ""])
def test_an_issuer_without_tls_is_refused(url: str) -> None:
    with pytest.raises(ConfigurationError):
        JwtBearer(url, "agents")


@pytest.mark.req("AUTH-05", "SEC-16")
async def test_opaque_tokens_are_asked_about(enter: Any, provider: ProviderProcess) -> None:
    provider.order(opaque="good", **{"as": {"active": True, "sub": "ann", "scope": "ask", "aud": "agents"}})
    provider.order(opaque="elsewhere", **{"as": {"active": True, "sub": "ann", "aud": ["else"]}})
    provider.order(opaque="late", **{"as": {"active": True, "sub": "ann", "aud": "agents", "exp": 5}})
    provider.order(opaque="nobody", **{"as": {"active": True, "aud": "agents"}})
    agent = whoami(security=introspection(provider, audience="agents"))

    assert (await (await enter(agent, bearer("good"))).run("hello")).text == f"{provider.issuer}#ann|ask"
    for text in ("elsewhere", "late", "nobody", "unheard of"):
        with pytest.raises(UnauthenticatedError):
            await (await enter(agent, bearer(text))).run("hello")


async def test_an_answer_about_a_token_is_believed_for_a_while_and_not_beyond_its_expiry(
    provider: ProviderProcess,
) -> None:
    now = time.time()
    clock = [now]
    provider.order(opaque="t", **{"as": {"active": True, "sub": "ann", "exp": int(now) + 10}})
    scheme = introspection(provider, cache=60, now=lambda: clock[0])
    before = provider.seen("/introspect")

    for _ in range(5):
        await scheme.verify("t")
    once = provider.seen("/introspect") - before
    clock[0] += 11
    with pytest.raises(Exception, match="not active"):
        await scheme.verify("t")

    assert once == 1
    assert provider.seen("/introspect") - before == 2


async def test_a_server_that_does_not_answer_about_tokens_is_no_refusal(provider: ProviderProcess) -> None:
    provider.order(mode="down")

    with pytest.raises(UnavailableError):
        await introspection(provider).verify("t")


def test_the_secret_of_introspection_is_not_shown(provider: ProviderProcess) -> None:
    assert SECRET not in repr(introspection(provider))
