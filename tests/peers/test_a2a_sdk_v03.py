"""The official SDK of the 0.3 line and dragoman: each one's client with the other's server, over the three bindings."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.peers.cells import caller_of, parameters, run
from tests.peers.deviation import SDK_03_CLIENT, SDK_03_SERVER
from tests.peers.older import OlderCaller
from tests.peers.scenario import Scenario
from tests.peers.scenarios_v03 import CLIENT, SERVER, V03

CELLS = (*parameters(SDK_03_CLIENT, scenarios=V03[CLIENT]), *parameters(SDK_03_SERVER, scenarios=V03[SERVER]))


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("scenario", "who", "binding"), CELLS)
async def test_both_understand_each_other(
    scenario: Scenario, who: str, binding: str, sdk_v03_python: Path, request: pytest.FixtureRequest
) -> None:
    ours = who == SDK_03_SERVER
    fixture = "sdk_v03_server" if ours else "sdk_v03_client"
    async with caller_of(fixture, binding, request, ours=ours, theirs=OlderCaller) as caller:
        await run(scenario, who, binding, caller, request.node, ours=ours)
