"""The official SDK and dragoman: each one's client with the other's server, over both HTTP bindings."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import tests.peers.scenarios  # noqa: F401  registers what is run
from dragoman import App, Limits
from dragoman.testing.serving import serving
from tests.peers.calling import Caller, Json, SdkCaller, our_caller
from tests.peers.deviations import A2A_SDK_1_3, BOTH, SDK_CLIENT, SDK_SERVER, Deviation, deviations_of
from tests.peers.matrix import record
from tests.peers.our_agent import make_agent
from tests.peers.scenario import SCENARIOS, Scenario

CELLS = [(who, binding) for who in (SDK_CLIENT, SDK_SERVER) for binding in BOTH]


def _parameter(scenario: Scenario, who: str, binding: str) -> Any:
    plain = not deviations_of(scenario.name, who, binding)
    rows = [pytest.mark.req(*scenario.rows)] if scenario.rows and plain else []
    return pytest.param(scenario, who, binding, id=f"{scenario.name}-{who}-{binding}", marks=rows)


@asynccontextmanager
async def _caller(who: str, binding: str, request: pytest.FixtureRequest) -> AsyncIterator[Caller]:
    if who == SDK_SERVER:
        async with our_caller(request.getfixturevalue("sdk_server"), binding) as caller:
            yield caller
    else:
        process = request.getfixturevalue("sdk_client")
        app = App(make_agent(), limits=Limits(shutdown_grace=0.2, cancel_wait=2))
        async with serving(app) as url:
            yield await SdkCaller.connect(process, url, binding)


def _expected(scenario: Scenario, who: str, known: list[Deviation]) -> Json:
    expected = dict(scenario.expected)
    if who == SDK_SERVER:
        expected |= scenario.ours
    for deviation in known:
        expected |= deviation.seen
    return expected


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("scenario", "who", "binding"),
    [_parameter(scenario, *cell) for scenario in SCENARIOS.values() for cell in CELLS],
)
async def test_both_understand_each_other(
    scenario: Scenario,
    who: str,
    binding: str,
    sdk_python: Path,
    request: pytest.FixtureRequest,
) -> None:
    known = deviations_of(scenario.name, who, binding)
    with record(request.node, scenario.name, who, binding, [deviation.reason for deviation in known]):
        async with _caller(who, binding, request) as caller:
            seen = await scenario.run(caller)

        assert seen == _expected(scenario, who, known)


def test_every_deviation_names_a_scenario() -> None:
    assert {known.scenario for known in A2A_SDK_1_3} <= set(SCENARIOS)
