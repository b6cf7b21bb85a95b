"""An example behind the front, with a process for each session, called by an SDK of each generation that signs."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from dragoman.testing.agentcore_front import REHEARSAL_KEY, Front, PerSession, SigV4
from examples.analyst import make_data
from tests.agentcore.e2e.parts import OTHER, SESSION, calling
from tests.peers.processes import needed
from tools.peers import SDK, SDK_03, interpreter

ROOT = Path(__file__).parent.parent.parent.parent
PROGRAM = Path(__file__).with_name("signing_sdk.py")
GAUGES = Path(make_data.__file__).with_name("gauges.csv")

pytestmark = pytest.mark.timeout(600)


async def run(python: Path, url: str, session: str, secret: str = REHEARSAL_KEY.secret) -> tuple[int, Any]:
    """The exit status of the SDK's program, and what it saw, or what it said of its failure."""
    words = [str(PROGRAM), url, session, REHEARSAL_KEY.key_id, secret, str(GAUGES)]
    process = await asyncio.create_subprocess_exec(
        str(python), *words, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, err = await process.communicate()
    return process.returncode or 0, json.loads(out) if process.returncode == 0 else err.decode()


def statistics(events: list[Any]) -> dict[str, Any]:
    """The data of the artifact with this name, wherever it stands in what a client saw."""
    for event in events:
        inner = event.get("task") or event.get("artifactUpdate") or event
        for artifact in [*inner.get("artifacts", []), *([inner["artifact"]] if "artifact" in inner else [])]:
            if artifact.get("name") == "statistics":
                found: dict[str, Any] = artifact["parts"][0]["data"]
                return found
    raise AssertionError("there are no statistics")


@pytest.mark.req("E2E-02")
async def test_an_sdk_of_each_generation_calls_the_analyst_with_signed_requests() -> None:
    pythons = [needed(interpreter, peer) for peer in (SDK, SDK_03)]
    agent = PerSession.of_agent("examples.analyst.agent:agent", cwd=ROOT)
    async with Front(agent, auth=SigV4()) as front:
        runs = [
            await run(python, front.invocation_url, session)
            for python, session in zip(pythons, (SESSION, OTHER), strict=True)
        ]
        async with calling(front, session_id=SESSION) as client:
            ours = await client.list_tasks()

    assert [status for status, _ in runs] == [0, 0], runs
    assert [saw["generation"] for _, saw in runs] == ["1.0", "0.3"]
    for _, saw in runs:
        assert saw["card"]["name"] == "Analyst"
        assert statistics(saw["call"])["rows"] == statistics(saw["stream"])["rows"] == 4380
        assert len(saw["stream"]) > len(saw["call"])
    assert len(ours.tasks) == 2
    methods = [record.rpc_method for record in front.requests if record.method == "POST"]
    assert {"SendMessage", "SendStreamingMessage", "message/send", "message/stream"} <= set(methods)
    assert all("a2a-version" not in record.forwarded.headers for record in front.requests if record.forwarded)
    assert {record.status for record in front.requests} == {200}
    assert front.violations == []


@pytest.mark.req("E2E-02", "E2E-24")
async def test_an_sdk_with_a_wrong_secret_gets_nowhere() -> None:
    python = needed(interpreter, SDK)
    async with Front(PerSession.of_agent("examples.analyst.agent:agent", cwd=ROOT), auth=SigV4()) as front:
        status, said = await run(python, front.invocation_url, SESSION, secret="another secret")

    assert status != 0
    assert "403" in said
    assert {record.status for record in front.requests} == {403}
    assert front.sessions == {}
