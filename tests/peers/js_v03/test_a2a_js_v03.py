"""The SDK for JavaScript of the 0.3 line and dragoman: each one's client with the other's server, by three bindings."""

from __future__ import annotations

import pytest

from dragoman import App
from dragoman.client import V03Settings
from dragoman.server import GrpcServerSettings, V03ServerSettings
from dragoman.testing.serving import serving
from tests.peers.calling import SdkProcess, our_caller
from tests.peers.cells import caller_of, parameters, run
from tests.peers.deviation import JS_03_CLIENT, JS_03_SERVER
from tests.peers.older import OlderCaller
from tests.peers.our_agent import make_agent
from tests.peers.scenario import Scenario, made_in, message, task_of
from tests.peers.scenarios import RAW
from tests.peers.scenarios_v03 import CLIENT, SERVER, V03
from tools.peers import Node

CELLS = (*parameters(JS_03_CLIENT, scenarios=V03[CLIENT]), *parameters(JS_03_SERVER, scenarios=V03[SERVER]))


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("scenario", "who", "binding"), CELLS)
async def test_both_understand_each_other(
    scenario: Scenario, who: str, binding: str, js_v03: Node, request: pytest.FixtureRequest
) -> None:
    ours = who == JS_03_SERVER
    fixture = "js_v03_server" if ours else "js_v03_client"
    async with caller_of(fixture, binding, request, ours=ours, theirs=OlderCaller) as caller:
        await run(scenario, who, binding, caller, request.node, ours=ours)


@pytest.mark.timeout(600)
@pytest.mark.req("V03-P09")
@pytest.mark.parametrize("binding", ["HTTP+JSON", "GRPC"])
async def test_files_arrive_as_they_are_once_dragoman_is_told_the_habit_of_the_peer(
    binding: str, js_v03_client: SdkProcess, js_v03_server: str
) -> None:
    theirs = App(make_agent(), v03=V03ServerSettings(raw_bytes=True))
    async with serving(theirs, grpc=GrpcServerSettings(port=0)) as url:
        echoed = await task_of(await OlderCaller.connect(js_v03_client, url, binding), message("echo", RAW))
    async with our_caller(js_v03_server, binding, v03=V03Settings(raw_bytes=True)) as ours:
        measured = await task_of(ours, message("size", RAW))
        returned = await task_of(ours, message("echo", RAW))

    assert echoed["artifacts"][0]["parts"][0]["raw"] == RAW["raw"]
    assert made_in(measured) == "256"
    assert returned["artifacts"][0]["parts"][0]["raw"] == RAW["raw"]
