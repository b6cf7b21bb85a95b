"""The official SDK and dragoman: each one's client with the other's server, over the three bindings."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.peers.cells import caller_of, parameters, run
from tests.peers.deviation import SDK_CLIENT, SDK_SERVER
from tests.peers.deviations import DEVIATIONS
from tests.peers.scenario import SCENARIOS, Scenario
from tests.peers.scenarios_frameworks import FRAMEWORKS
from tests.peers.scenarios_v03 import V03


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("scenario", "who", "binding"), parameters(SDK_CLIENT, SDK_SERVER))
async def test_both_understand_each_other(
    scenario: Scenario,
    who: str,
    binding: str,
    sdk_python: Path,
    request: pytest.FixtureRequest,
) -> None:
    ours = who == SDK_SERVER
    async with caller_of("sdk_server" if ours else "sdk_client", binding, request, ours=ours) as caller:
        await run(scenario, who, binding, caller, request.node, ours=ours)


def test_every_deviation_names_a_scenario() -> None:
    gone_through = [SCENARIOS, *V03.values(), *FRAMEWORKS.values()]
    assert {known.scenario for known in DEVIATIONS} <= {name for scenarios in gone_through for name in scenarios}
