"""Sessions that are kept, reclaimed and stopped, by what the hosted agent says of itself."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from dragoman.agentcore import Report, Status
from dragoman.errors import TaskNotFoundError
from dragoman.model import Task, TaskState
from dragoman.stores import open_store
from dragoman.testing.agentcore_front import Front, FrontLimits, FrontSettings, Lifecycle, PerSession, SigV4, Truncate
from dragoman.testing.agentcore_front.pings import Ping
from tests.agentcore.e2e.parts import OTHER, SESSION, Tides, calling, rehearsal, said
from tests.agentcore.front.parts import ManualClock, until

ROOT = Path(__file__).parent.parent.parent.parent
IDLE = 900


def on_a_clock(clock: ManualClock) -> dict:
    """Front and agent on one clock, which no restore disturbs."""
    return {"front": {"clock": clock}, "wall": lambda: clock.now, "monotonic": lambda: clock.now}


def last_ping(front: Front) -> Ping:
    (session,) = front.sessions.values()
    assert session.life.ping is not None
    return session.life.ping


def processes(*arguments: str, **environment: str) -> PerSession:
    command = [sys.executable, "-m", "tests.agentcore.e2e.program", *arguments]
    return PerSession(command, cwd=ROOT, environment=environment)


@pytest.mark.req("E2E-16")
async def test_a_turn_in_the_background_keeps_its_session_and_its_end_starts_the_idle_time(clock: ManualClock) -> None:
    tides = Tides()
    async with rehearsal(tides.agent, **on_a_clock(clock)) as front, calling(front) as client:
        task = await client.send("wait", wait=False)
        for _ in range(30):
            clock.advance(3 * IDLE / 30)
            await front.look()
        busy, kept = last_ping(front).status, set(front.sessions)
        tides.go_on.release()
        await client.wait(task.id)
        ended = clock.now
        clock.advance(IDLE - 1)
        await front.look()
        idle, still = last_ping(front), set(front.sessions)
        clock.advance(1)
        await front.look()

    assert (busy, kept, still) == ("HealthyBusy", {client.session_id}, {client.session_id})
    assert (idle.status, idle.stamp) == ("Healthy", int(ended))
    assert [(ending.why, ending.at) for ending in front.ends] == [("idle", ended + IDLE)]
    assert front.violations == []


@pytest.mark.req("E2E-17")
async def test_an_idle_agent_is_reclaimed_on_time_however_often_it_is_pinged(clock: ManualClock) -> None:
    tides = Tides()
    async with rehearsal(tides.agent, **on_a_clock(clock)) as front, calling(front) as client:
        await client.send("hello")
        ended = clock.now
        stamps = set()
        while front.sessions:
            clock.advance(2)
            await front.look()
            stamps |= {session.life.ping.stamp for session in front.sessions.values() if session.life.ping}

    assert front.ends[0].at == ended + IDLE
    assert len(stamps) == 1
    assert front.violations == []


@pytest.mark.req("E2E-18")
async def test_pings_are_fine_while_the_agent_blocks_its_loop() -> None:
    async with Front(processes(), auth=SigV4(), watch=False) as front, calling(front, session_id=SESSION) as client:
        await client.send("hello")
        blocked = asyncio.create_task(client.send("block"))
        await until(lambda: front.sessions[SESSION].life.in_flight == 1)
        pings = []
        for _ in range(20):
            await front.look()
            pings.append(last_ping(front))
            await asyncio.sleep(0.1)
        was_blocked = not blocked.done()
        await blocked

    assert was_blocked
    assert max(ping.took for ping in pings) < 0.25
    assert {ping.status for ping in pings[3:]} == {"HealthyBusy"}
    assert front.violations == []


@pytest.mark.req("E2E-19")
async def test_a_stopped_session_comes_back_as_a_fresh_process_with_what_is_durable(tmp_path: Path) -> None:
    for store, is_there in ((None, False), (f"sqlite:///{tmp_path / 'tasks.db'}", True)):
        upstream = processes(*([store] if store else []))
        async with Front(upstream, auth=SigV4()) as front, calling(front, session_id=SESSION) as client:
            first = await client.send("hello")
            await client.stop_session()
            second = await client.send("hello")

            assert said(first)[0].startswith("turn 1 of process ")
            assert said(second)[0].startswith("turn 1 of process ")
            assert said(first) != said(second)
            if is_there:
                assert said(await client.get_task(first.id)) == said(first)
            else:
                with pytest.raises(TaskNotFoundError, match="session"):
                    await client.get_task(first.id)
        assert [(ending.why, ending.exit_status) for ending in front.ends] == [("stopped", 0), ("closed", 0)]
        assert front.violations == []


@pytest.mark.req("E2E-20")
async def test_a_background_turn_that_the_end_cuts_off_is_stored_as_failed(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'tasks.db'}"
    async with Front(processes(store), auth=SigV4()) as front, calling(front, session_id=SESSION) as client:
        task = await client.send("wait", wait=False)
        assert task.status.state in (TaskState.SUBMITTED, TaskState.WORKING)
        await front.stop_session(SESSION)

    stored = await read_task(store, task.id)
    assert stored.status.state is TaskState.FAILED
    assert [(ending.why, ending.exit_status) for ending in front.ends] == [("stopped", 0)]


async def read_task(url: str, task_id: str) -> Task:
    store = open_store(url)
    await store.open()
    try:
        found = await store.task(task_id, None)
    finally:
        await store.close()
    assert found is not None
    return found.task


@pytest.mark.req("E2E-25")
async def test_a_whole_run_under_the_eye_of_the_contract_watcher(tmp_path: Path) -> None:
    # A busy machine may take its time: a minute to start a process, a quarter of one to end it.
    limits, lifecycle = FrontLimits(init_s=3_000), Lifecycle(ping_s=2, stop_s=750, failing_pings=50)
    settings = FrontSettings(lifecycle=lifecycle, limits=limits, time_scale=0.02)
    upstream = processes(f"sqlite:///{tmp_path / 'tasks.db'}")
    async with Front(upstream, auth=SigV4(), settings=settings) as front:
        for session_id in (SESSION, OTHER):
            async with calling(front, session_id=session_id) as client, asyncio.timeout(60):
                await client.send("hello")
                background = await client.send("wait", wait=False)
                front.fail_next(Truncate(after_events=1), method="SendStreamingMessage")
                async for _ in client.stream("hello"):
                    pass
                await asyncio.gather(*(client.send("more") for _ in range(10)))
                with pytest.raises(TaskNotFoundError):
                    await client.get_task("unknown")
                await client.cancel(background.id)
                if session_id == SESSION:
                    await client.send("block")
                await client.list_tasks()
                await client.stop_session()
                await client.send("again")

    assert front.violations == []
    assert [ending.exit_status for ending in front.ends] == [0] * 4
    assert {record.status for record in front.requests} <= {200, 409}


def test_the_profile_says_what_the_front_reads() -> None:
    assert {status.value for status in Status} == {"Healthy", "HealthyBusy"}
    assert Report is not None
