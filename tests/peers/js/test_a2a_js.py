"""The SDK for JavaScript and dragoman: each one's client with the other's server, over the three bindings."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from dragoman import App, Limits
from dragoman.server import GrpcServerSettings
from dragoman.testing.serving import serving
from tests.peers.calling import Caller, SdkCaller, our_caller
from tests.peers.cells import parameters, run
from tests.peers.deviations import ALL, JS_CLIENT, JS_SERVER
from tests.peers.our_agent import make_agent
from tests.peers.scenario import Scenario
from tools.peers import Node


@asynccontextmanager
async def _caller(who: str, binding: str, request: pytest.FixtureRequest) -> AsyncIterator[Caller]:
    if who == JS_SERVER:
        async with our_caller(request.getfixturevalue("js_server"), binding) as caller:
            yield caller
    else:
        process = request.getfixturevalue("js_client")
        app = App(make_agent(), limits=Limits(shutdown_grace=0.2, cancel_wait=2))
        async with serving(app, grpc=GrpcServerSettings(port=0)) as url:
            yield await SdkCaller.connect(process, url, binding)


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("scenario", "who", "binding"), parameters(JS_CLIENT, JS_SERVER, bindings=ALL))
async def test_both_understand_each_other(
    scenario: Scenario, who: str, binding: str, js: Node, request: pytest.FixtureRequest
) -> None:
    async with _caller(who, binding, request) as caller:
        await run(scenario, who, binding, caller, request.node, ours=who == JS_SERVER)
