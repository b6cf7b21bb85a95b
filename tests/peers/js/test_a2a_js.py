"""The SDK for JavaScript and dragoman: each one's client with the other's server, over the three bindings."""

from __future__ import annotations

import pytest

from tests.peers.cells import caller_of, parameters, run
from tests.peers.deviation import JS_CLIENT, JS_SERVER
from tests.peers.scenario import Scenario
from tools.peers import Node


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("scenario", "who", "binding"), parameters(JS_CLIENT, JS_SERVER))
async def test_both_understand_each_other(
    scenario: Scenario, who: str, binding: str, js: Node, request: pytest.FixtureRequest
) -> None:
    ours = who == JS_SERVER
    async with caller_of("js_server" if ours else "js_client", binding, request, ours=ours) as caller:
        await run(scenario, who, binding, caller, request.node, ours=ours)
