"""One cell of the matrix as a test: a scenario, whose client, whose server, which binding."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

import tests.peers.scenarios  # noqa: F401  registers what is run
from dragoman import App, Limits
from dragoman.server import GrpcServerSettings
from dragoman.testing.serving import serving
from tests.peers.calling import Caller, Json, Refused, SdkCaller, our_caller
from tests.peers.deviation import ALL
from tests.peers.deviations import deviations_of
from tests.peers.matrix import record
from tests.peers.our_agent import make_agent
from tests.peers.scenario import SCENARIOS, Scenario


def parameters(
    *whos: str, scenarios: Mapping[str, Scenario] = SCENARIOS, bindings: Sequence[str] = ALL
) -> Sequence[Any]:
    """Every scenario with every pair and binding. Only a cell that is as it must be proves rows of the register."""
    return [
        _parameter(scenario, who, binding) for scenario in scenarios.values() for who in whos for binding in bindings
    ]


@asynccontextmanager
async def caller_of(
    fixture: str, binding: str, request: pytest.FixtureRequest, *, ours: bool, theirs: type[SdkCaller] = SdkCaller
) -> AsyncIterator[Caller]:
    """The client of a cell: ours with the server of the peer that ``fixture`` gives, or its client with our server.

    ``theirs`` is how its client is driven.
    """
    peer = request.getfixturevalue(fixture)
    if ours:
        async with our_caller(peer, binding) as caller:
            yield caller
    else:
        app = App(make_agent(), limits=Limits(shutdown_grace=0.2, cancel_wait=2))
        async with serving(app, grpc=GrpcServerSettings(port=0)) as url:
            yield await theirs.connect(peer, url, binding)


def _parameter(scenario: Scenario, who: str, binding: str) -> Any:
    plain = not deviations_of(scenario.name, who, binding)
    rows = [pytest.mark.req(*scenario.rows)] if scenario.rows and plain else []
    return pytest.param(scenario, who, binding, id=f"{scenario.name}-{who}-{binding}", marks=rows)


async def run(scenario: Scenario, who: str, binding: str, caller: Caller, item: pytest.Item, *, ours: bool) -> None:
    """Run a scenario and compare what was seen; ``ours``: whether the client is."""
    known = deviations_of(scenario.name, who, binding)
    expected: Json = {**scenario.expected, **(scenario.ours if ours else {})}
    for deviation in known:
        expected = deviation.seen if deviation.stops else expected | deviation.seen
    notes, through = [deviation.reason for deviation in known], not any(deviation.stops for deviation in known)
    with record(item, scenario.name, who, binding, notes, through=through):
        if any(deviation.hangs for deviation in known):
            return
        try:
            seen = await scenario.run(caller)
        except Refused as refused:
            seen = {"refused": refused.name}
            refused_with = str(refused)
        else:
            refused_with = ""

        assert seen == expected, f"{refused_with or seen} instead of {expected}"
