"""The extended card, for each caller. Spec: §3.1.11, §3.3.4, §13.3."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dragoman import Agent, AgentCard, AgentSkill, Caller, CardSigner, SignaturePolicy, TrustStore
from dragoman.errors import (
    A2AError,
    CardSignatureError,
    ExtendedAgentCardNotConfiguredError,
    InvalidAgentResponseError,
    UnauthenticatedError,
    UnsupportedOperationError,
)
from dragoman.jose import new_key
from tests.conformance.wire import SPOKEN, as_caller, by_header, served

V1 = {"A2A-Version": "1.0"}
BOTH = pytest.mark.parametrize("spoken", SPOKEN)
on_sockets = pytest.mark.parametrize(
    "binding", ["in process", "JSONRPC", "HTTP+JSON", "GRPC", "WebSocket"], indirect=True
)
in_memory = pytest.mark.parametrize("store", ["memory"], indirect=True)


async def by_header_or_nobody(scope: Any) -> Caller:
    return Caller(id=dict(scope["headers"]).get(b"x-test-caller", b"").decode())


def having_more(**settings: Any) -> Agent:
    agent = Agent("Library", description="Lends books.", **settings)

    @agent.reply
    async def lend(ctx):  # type: ignore[no-untyped-def]
        return "here"

    @agent.extended_card
    async def more(caller: Caller, card: AgentCard) -> AgentCard | None:
        await asyncio.sleep(0)
        if caller.id == "nobody-special":
            return None
        if caller.id == "clumsy":
            card.name = ""
            return card
        card.skills[0].description = f"Lends to {caller.id}."
        card.skills.append(AgentSkill(id="vault", name="Vault", description="Rare books.", tags=["rare"]))
        return card

    return agent


@on_sockets
@in_memory
@pytest.mark.req("XCARD-02", "XCARD-05", "XCARD-06", "XCARD-07", "XCARD-08", "XCARD-10", "B133", "CARD-13")
async def test_each_caller_gets_a_whole_card_of_its_own_which_takes_the_public_ones_place(connect: Any) -> None:
    ann = await connect(having_more(), identify=by_header, client_settings={"headers": as_caller("ann")})
    bob = await connect(connect.app, client_settings={"headers": as_caller("bob")})
    public = ann.card

    cards = dict(
        zip(("ann", "bob"), await asyncio.gather(ann.get_extended_card(), bob.get_extended_card()), strict=True)
    )

    for name, card in cards.items():
        assert card.skills[0].description == f"Lends to {name}."
        assert [skill.id for skill in card.skills] == ["lend", "vault"]
        assert (card.name, card.version, card.capabilities) == (public.name, public.version, public.capabilities)
        told, shown = ({entry.protocol_binding for entry in found.supported_interfaces} for found in (card, public))
        assert told == shown
    assert public.capabilities.extended_agent_card is True
    assert len(public.skills) == 1
    assert ann.card is cards["ann"]
    assert [skill.description for skill in connect.app.card("https://library.example").skills] == ["Lend"]


@on_sockets
@in_memory
@pytest.mark.req("XCARD-04", "XCARD-02", "AMB-39", "AMB-40", "AUTH-10")
async def test_who_is_nobody_is_asked_for_credentials_before_it_is_said_that_there_is_no_card(connect: Any) -> None:
    for agent in (Agent("Bare", description="Says that it has more.", extended_card=True), having_more()):
        if agent.name == "Bare":
            agent.reply(lambda ctx: "hi")  # type: ignore[arg-type,return-value]
        settings = {"identify": by_header_or_nobody}
        nobody = await connect(agent, **settings)
        someone = await connect(connect.app, client_settings={"headers": as_caller("nobody-special")})

        with pytest.raises(UnauthenticatedError):
            await nobody.get_extended_card()
        with pytest.raises(ExtendedAgentCardNotConfiguredError):
            await someone.get_extended_card()


@on_sockets
@in_memory
@pytest.mark.req("AMB-37", "CARD-08", "XCARD-05")
async def test_a_card_that_is_none_is_the_agents_fault_and_not_shown(connect: Any) -> None:
    settings = {"identify": by_header, "client_settings": {"headers": as_caller("clumsy")}}
    client = await connect(having_more(), **settings)

    with pytest.raises(A2AError) as caught:
        await client.get_extended_card()

    assert caught.value.reason == InvalidAgentResponseError.reason
    assert client.card.name == "Library"


@BOTH
@pytest.mark.req("XCARD-11", "XCARD-12", "XCARD-08", "CARD-19")
async def test_what_is_for_one_caller_is_kept_by_nobody_between_and_asked_for_again(spoken: str) -> None:
    async with served(having_more(), identify=by_header) as wire:
        ann = await wire.call(spoken, "GetExtendedAgentCard", headers=as_caller("ann"))
        bob = await wire.call(spoken, "GetExtendedAgentCard", headers=as_caller("bob"))
        tag = ann.headers["etag"]
        again, others = [
            await wire.ask("GET", "/extendedAgentCard", None, {**as_caller(name), **V1, "If-None-Match": tag})
            for name in ("ann", "bob")
        ]
        refused = await wire.call(spoken, "GetExtendedAgentCard", headers=as_caller("nobody-special"))
        public = await wire.ask("GET", "/.well-known/agent-card.json")

    for told in (ann, bob):
        assert told.headers["cache-control"] == "private, no-cache"
        assert "Authorization" in told.headers["vary"]
    assert tag != bob.headers["etag"]
    assert (again.status, again.body, again.headers["cache-control"]) == (304, b"", "private, no-cache")
    assert (others.status, others.headers["etag"]) == (200, bob.headers["etag"])
    assert "etag" not in refused.headers
    assert public.headers["cache-control"].startswith("public")
    assert b"Vault" not in public.body


@BOTH
@pytest.mark.req("XCARD-05", "CARD-06", "B131")
async def test_the_addresses_on_it_are_those_of_the_public_card(spoken: str) -> None:
    async with served(having_more(), identify=by_header) as wire:
        public = (await wire.ask("GET", "/.well-known/agent-card.json")).json
        told = (await wire.call(spoken, "GetExtendedAgentCard", headers=as_caller("ann"))).result

    urls = {entry["url"] for entry in public["supportedInterfaces"]}
    assert {entry["url"] for entry in told["supportedInterfaces"]} == urls
    assert {url.startswith(wire.url) for url in urls} == {True}


@BOTH
@pytest.mark.req("XCARD-03", "AMB-39", "AMB-40")
async def test_an_agent_without_one_says_so_to_everybody(spoken: str) -> None:
    agent = Agent("Plain", description="Has one card.")
    agent.reply(lambda ctx: "hi")  # type: ignore[arg-type,return-value]
    async with served(agent, identify=by_header_or_nobody) as wire:
        for headers in ({}, as_caller("ann")):
            told = await wire.call(spoken, "GetExtendedAgentCard", headers=headers)
            assert told.reason == UnsupportedOperationError.reason


@pytest.mark.parametrize("binding", ["JSONRPC", "HTTP+JSON", "GRPC"], indirect=True)
@in_memory
@pytest.mark.req("SIGN-01", "SIGN-16", "XCARD-05")
async def test_it_is_signed_as_the_public_one_is_and_verified_by_the_same_policy(connect: Any) -> None:
    key, other = new_key("ES256", kid="k-1"), new_key("ES256", kid="k-1")
    required = SignaturePolicy(mode="required", trust=TrustStore(key.public.members))
    given = {"client_settings": {"headers": as_caller("ann"), "signatures": required}}
    client = await connect(having_more(card_signer=CardSigner(key)), identify=by_header, **given)

    card = await client.get_extended_card()
    connect.app.signers = (CardSigner(other),)
    with pytest.raises(CardSignatureError):
        await client.get_extended_card()
    connect.app.signers = ()
    with pytest.raises(CardSignatureError):
        await client.get_extended_card()

    assert len(card.signatures) == 1
    assert client.card is card
