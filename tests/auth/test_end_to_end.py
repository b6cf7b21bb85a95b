"""A real authorization server, a real agent that is protected by it, and a client that finds its way. Spec: §7."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
from msgspec.structs import replace

import dragoman
from dragoman import Agent, App, Client, Limits
from dragoman.auth import (
    ApiKey,
    ApiKeys,
    Basic,
    ClientCredentials,
    CredentialsMissingError,
    JwtBearer,
    OpenIdConnect,
    Passwords,
)
from dragoman.bindings.websocket import WebSocketBinding
from dragoman.errors import UnauthenticatedError
from tests.auth.provider import AUDIENCE, CLIENT, SECRET, Provider
from tests.conformance.quick_server import quick_serving

BINDINGS = ("in process", "JSONRPC", "HTTP+JSON", "GRPC", "WebSocket")
V03 = ("JSONRPC", "HTTP+JSON", "GRPC")


@pytest.fixture(params=[*((name, "1.0") for name in BINDINGS), *((name, "0.3") for name in V03)], ids=" ".join)
def connect(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """``async with connect(agent, credentials=…) as client``, by each binding and generation."""
    binding, version = request.param

    @asynccontextmanager
    async def connected(agent: Agent, **given: Any) -> AsyncIterator[Client]:
        async with AsyncExitStack() as stack:
            app = App(agent, bindings=[WebSocketBinding()], limits=Limits(shutdown_grace=0.2, lease=2))
            if binding == "in process":
                target: Any = await stack.enter_async_context(app)
            else:
                target = await stack.enter_async_context(quick_serving(app, grpc=binding == "GRPC"))
                given["bindings"] = [WebSocketBinding() if binding == "WebSocket" else binding]
                given["versions"] = [version]
            yield await stack.enter_async_context(dragoman.connect(target, **given))

    return connected


def guarded(*security: Any) -> Agent:
    agent = Agent("Vault", description="Keeps things.", security=list(security))

    @agent.task
    async def keep(ctx):  # type: ignore[no-untyped-def]
        return f"for {ctx.caller.id}"

    return agent


async def said(client: Client) -> str:
    result = await client.run("hello")
    assert result.task is not None
    return str(result.task.artifacts[0].parts[0].text)


@pytest.mark.req("AUTH-04", "AUTH-05", "XCARD-01", "A2ACLI_AUTH_006")
async def test_client_credentials_by_the_scheme_of_the_card(connect: Callable[..., Any], provider: Provider) -> None:
    agent = guarded(OpenIdConnect(provider.url, audience=AUDIENCE))

    async with connect(agent, credentials=ClientCredentials(CLIENT, SECRET)) as client:
        assert (await said(client)).endswith("#ann")
        assert (await said(client)).endswith("#ann")

    assert provider.grants() == ["client_credentials"]


@pytest.mark.req("AUTH-04", "AUTH-06", "SEC-06")
async def test_a_token_that_the_agent_refuses_is_changed(connect: Callable[..., Any], provider: Provider) -> None:
    agent = guarded(OpenIdConnect(provider.url, audience=AUDIENCE))
    provider.control(life=-1000)  # what is granted has expired already, and nobody said so

    async with connect(agent, credentials=ClientCredentials(CLIENT, SECRET)) as client:
        with pytest.raises(UnauthenticatedError):
            await client.send("hello")
        provider.control()
        assert (await said(client)).endswith("#ann")


@pytest.mark.req("AUTH-04", "AUTH-05")
@pytest.mark.parametrize(
    ("security", "credentials", "caller"),
    [
        (lambda: ApiKeys({"bob": "k-1"}), ApiKey("k-1"), "bob"),
        (lambda: ApiKeys({"bob": "k-1"}, name="X-Corp"), ApiKey("k-1"), "bob"),
        (lambda: Passwords({"eve": "pw"}), Basic("eve", "pw"), "eve"),
    ],
)
async def test_static_credentials_by_the_scheme_of_the_card(
    connect: Callable[..., Any], security: Callable[[], Any], credentials: Any, caller: str
) -> None:
    async with connect(guarded(security()), credentials=credentials) as client:
        assert await said(client) == f"for {caller}"


@pytest.mark.req("AUTH-04", "AUTH-05")
async def test_the_wrong_kind_is_told_before_any_call(connect: Callable[..., Any]) -> None:
    with pytest.raises(CredentialsMissingError):
        async with connect(guarded(Passwords({"eve": "pw"})), credentials=ApiKey("k-1")) as client:
            await client.send("hello")


@pytest.mark.req("AUTH-04", "AUTH-06", "AC-C-94")
async def test_the_challenge_leads_to_the_server_where_the_card_does_not_say(
    connect: Callable[..., Any], provider: Provider, request: pytest.FixtureRequest
) -> None:
    if "in process" in request.node.callspec.id or "GRPC" in request.node.callspec.id:
        pytest.skip("no document of the resource is named where there is no HTTP")
    agent = guarded(JwtBearer(provider.url, audience=AUDIENCE))
    source = ClientCredentials(CLIENT, SECRET)

    async with connect(agent, credentials=source) as client:
        assert (await said(client)).endswith("#ann")

    assert provider.grants() == ["client_credentials"]


@pytest.mark.req("XCARD-01", "AUTH-04")
async def test_the_extended_card_is_asked_for_with_the_scheme_of_the_public_one(
    connect: Callable[..., Any], provider: Provider
) -> None:
    agent = guarded(OpenIdConnect(provider.url, audience=AUDIENCE))

    @agent.extended_card
    def extend(caller, card):  # type: ignore[no-untyped-def]
        return replace(card, description=f"For {caller.id}")

    async with connect(agent, credentials=ClientCredentials(CLIENT, SECRET)) as client:
        card = await client.get_extended_card()

    assert card.description.endswith("#ann")
