"""A server that is killed while it delivers: no update is lost, and each webhook gets its own in order."""

from __future__ import annotations

from pathlib import Path

import pytest

import dragoman
from dragoman.model import TaskPushNotificationConfig
from dragoman.testing.process import ServerProcess
from tests.push.hooks import Hooks

ROOT = Path(__file__).parents[2]
AGENT = "tests.push.agents:process_agent"


@pytest.mark.req("PUSH-04", "PUSH-12", "PCFG-02", "B045")
@pytest.mark.timeout(180)
async def test_kills_lose_no_update(tmp_path: Path, hooks: Hooks) -> None:
    hooks.always.update({f"/{number}": 0.01 for number in range(4)})
    options = ("--store", str(tmp_path / "tasks.db"), "--lease", "0.5", "--grace", "0.1")
    environment = {"PUSH_TIMEOUT": "0.5"}

    async with ServerProcess(AGENT, *options, cwd=ROOT, environment=environment) as server:
        async with dragoman.connect(server.url) as client:
            tasks = [
                await client.send("slowly 40", push=TaskPushNotificationConfig(url=f"{hooks.url}/{number}"), wait=False)
                for number in range(4)
            ]
        for seen in (5, 40, 80):
            await hooks.until(lambda seen=seen: len(hooks.calls) >= seen)  # type: ignore[misc]
            await server.kill()
            await server.start()
        ended = [await hooks.ended(f"/{number}") for number in range(4)]
        async with dragoman.connect(server.url) as client:
            logs = [await client.get_task(task.id) for task in tasks]

    for calls, task in zip(ended, logs, strict=True):
        assert {call.json.get("task", {"id": task.id})["id"] for call in calls} == {task.id}
        first_times = list(dict.fromkeys(call.sequence for call in calls))
        assert first_times == list(range(1, first_times[-1] + 1)), "a gap, or one that overtook another"
        ids = {call.sequence: call.id for call in calls}
        assert all(ids[call.sequence] == call.id for call in calls)


@pytest.mark.req("PUSH-04", "PUSH-19")
@pytest.mark.timeout(120)
async def test_a_server_that_is_asked_to_end_tells_what_became_of_its_tasks(tmp_path: Path, hooks: Hooks) -> None:
    options = ("--store", str(tmp_path / "tasks.db"), "--grace", "0.1")

    async with ServerProcess("tests.push.agents:once", *options, cwd=ROOT) as server:
        async with dragoman.connect(server.url) as client:
            await client.send("slowly 10000", push=TaskPushNotificationConfig(url=f"{hooks.url}/h"), wait=False)
        await hooks.until(lambda: len(hooks.taken("/h")) > 3)
        await server.terminate()
        if hooks.taken("/h")[-1].state != "TASK_STATE_FAILED":  # it had seconds for that; the rest is the next one's
            await server.start()
        await hooks.until(lambda: hooks.taken("/h")[-1].state == "TASK_STATE_FAILED")
