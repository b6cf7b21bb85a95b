"""An agent without an extended card, which is every agent of today. Spec: §3.3.4, §13.3."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman import Agent
from dragoman.errors import UnsupportedOperationError
from tests.conformance.wire import SPOKEN, as_caller, by_header, served

BOTH = pytest.mark.parametrize("spoken", SPOKEN)
agent = Agent("Plain", description="Has one card.")


@agent.reply
async def answer(ctx):  # type: ignore[no-untyped-def]
    return "hi"


@BOTH
@pytest.mark.req("XCARD-03", "ERR-23", "AMB-39", "AMB-40", "CARD-25")
async def test_without_the_capability_it_is_an_unsupported_operation_without_credentials_too(spoken: str) -> None:
    async with served(agent) as wire:
        card = (await wire.ask("GET", "/.well-known/agent-card.json")).json
        told = await wire.call(spoken, "GetExtendedAgentCard")

    assert card["capabilities"]["extendedAgentCard"] is False
    assert told.reason == "UNSUPPORTED_OPERATION"
    assert told.code == (-32004 if spoken == "JSONRPC" else 400)


@BOTH
@pytest.mark.req("XCARD-03", "AMB-40", "AUTH-05")
async def test_an_agent_that_wants_credentials_for_everything_asks_for_them_first(spoken: str) -> None:
    async with served(agent, identify=by_header) as wire:
        without = await wire.call(spoken, "GetExtendedAgentCard")
        within = await wire.call(spoken, "GetExtendedAgentCard", headers=as_caller("ann"))

    assert without.status == 401
    assert within.reason == "UNSUPPORTED_OPERATION"


@pytest.mark.parametrize("store", ["memory"], indirect=True)
@pytest.mark.req("XCARD-03", "CARD-13")
async def test_a_client_is_refused_by_itself_or_by_the_agent_alike(connect: Any) -> None:
    for check in (True, False):
        client = await connect(agent, client_settings={"check_capabilities": check})
        with pytest.raises(UnsupportedOperationError):
            await client.get_extended_card()
        assert client.card.name == "Plain"
