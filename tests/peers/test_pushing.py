"""Push notifications of the official SDK, in both of its lines, to our receiver."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

import dragoman
from dragoman import Poll
from dragoman.model import AuthenticationInfo
from dragoman.webhook import Notification, Receiver
from tests.peers.processes import PROGRAMS, serving_agent
from tests.webhook.serving import receiving

NEVER = Poll(first=60, longest=60, unheard=60)
BOUND = 30.0


@pytest.fixture(scope="module")
def pushing(sdk_python: Path) -> Iterator[str]:
    with serving_agent([str(sdk_python), str(PROGRAMS / "sdk_pushing.py"), "sdk_agent"]) as url:
        yield url


@pytest.fixture(scope="module")
def pushing_v03(sdk_v03_python: Path) -> Iterator[str]:
    with serving_agent([str(sdk_v03_python), str(PROGRAMS / "sdk_pushing.py"), "sdk_agent_v03"]) as url:
        yield url


@pytest.mark.req("PUSH-11", "PUSH-13", "PUSH-14", "PUSH-21")
@pytest.mark.parametrize("binding", ["JSONRPC", "HTTP+JSON", "GRPC"])
async def test_a_task_of_the_sdk_is_followed_by_push_alone(pushing: str, binding: str) -> None:
    told: list[Notification] = []
    info = AuthenticationInfo(scheme="Bearer", credentials="s3cret")
    connecting = dragoman.connect(pushing, bindings=(binding,), poll=NEVER)

    hearing = receiving(lambda url: Receiver(told.append, url=url, authentication=info))
    async with asyncio.timeout(BOUND), connecting as client, hearing as receiver:
        result = await client.run("do it", pushed=receiver.expect())

    assert result.ok
    assert told
    assert {(n.wire, n.task_id) for n in told} == {("1.0", result.task_id)}


@pytest.mark.req("PUSH-11", "PUSH-13", "PUSH-14", "PUSH-21")
@pytest.mark.parametrize("binding", ["JSONRPC", "HTTP+JSON", "GRPC"])
async def test_so_is_one_of_its_0_3_line(pushing_v03: str, binding: str) -> None:
    told: list[Notification] = []
    connecting = dragoman.connect(pushing_v03, bindings=(binding,), poll=NEVER)

    hearing = receiving(lambda url: Receiver(told.append, url=url))
    async with asyncio.timeout(BOUND), connecting as client, hearing as receiver:
        result = await client.run("do it", pushed=receiver.expect())

    assert result.ok
    assert {(n.wire, type(n.event).__name__, n.task_id) for n in told} == {("0.3", "Task", result.task_id)}
