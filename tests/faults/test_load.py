"""A server under load: nobody is slowed by others, memory is bounded, and every event arrives."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest

import dragoman
from dragoman import Client, Task
from dragoman.testing.process import ServerProcess
from tests.faults.agents import MB
from tests.faults.rounds import note, scaled
from tests.faults.sockets import RawStream, time_card
from tests.runtime.running import S, reaches, within

ROOT = Path(__file__).parents[2]
BIG_EVENTS = 60
STALLED = 10
AT_ONCE = 40
STREAMS = 1_000


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[ServerProcess]:
    """The loaded agent in a process of its own, on SQLite."""
    options = ("--store", str(tmp_path / "tasks.db"), "--grace", "0.1")
    async with ServerProcess("tests.faults.agents:loaded", *options, cwd=ROOT) as server:
        yield server


@pytest.fixture
async def client(server: ServerProcess) -> AsyncIterator[Client]:
    async with dragoman.connect(server.url) as client:
        yield client


async def begin(client: Client, text: str) -> Task:
    task = await client.send(text, wait=False)
    assert isinstance(task, Task)
    return task


def peak_mb(pid: int) -> float:
    """The most memory that a process ever had."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return psutil.Process(pid).memory_info().rss / 2**20


@pytest.mark.req("B051")
async def test_subscribers_that_stop_reading_slow_nobody_and_cost_bounded_memory(
    server: ServerProcess, client: Client, request: pytest.FixtureRequest
) -> None:
    alone, _ = await time_big_events(server, client, "alone", 0)
    before = peak_mb(server.pid)

    beside, stalled = await time_big_events(server, client, "beside", STALLED)
    grown = peak_mb(server.pid) - before

    # Each may hold on to what a stream takes at once, its frame, and what the server's transport has of it.
    assert grown < 5 * STALLED
    assert beside < 3 * alone + 1
    for stream in stalled:  # who comes back to a stream in time finds all of it
        assert await within(stream.count_to_the_end(), 30) == (BIG_EVENTS + 2, pytest.approx(BIG_EVENTS * MB, rel=0.01))
        stream.close()
    late = peak_mb(server.pid) - before
    assert late < 8 * STALLED
    note(
        request.node,
        f"{BIG_EVENTS} events of 1 MB in {alone:.2f} s alone, in {beside:.2f} s beside {STALLED} stalled readers; the "
        f"server's {before:.0f} MB grew by {grown:.0f} MB, and by {late:.0f} MB when they read on",
    )


async def time_big_events(
    server: ServerProcess, client: Client, gate: str, stalled: int
) -> tuple[float, list[RawStream]]:
    """Seconds that a reader takes for large events beside some that do not read, and those."""
    task = await begin(client, f"big {gate} {BIG_EVENTS}")
    stuck = [await RawStream.open(server.url, task.id, buffer=2**16) for _ in range(stalled)]
    reader = await RawStream.open(server.url, task.id)
    begun = time.monotonic()
    await client.send(f"open {gate}")
    events, _ = await within(reader.count_to_the_end(), 60)
    assert events == BIG_EVENTS + 2
    return time.monotonic() - begun, stuck


@pytest.mark.req("B049", "B077")
async def test_bursts_of_immediate_sends_that_end_together_leave_the_server_answering(
    server: ServerProcess, client: Client, request: pytest.FixtureRequest
) -> None:
    bursts = scaled(50, 20)
    cards, unread, done = [], [], asyncio.Event()

    async def watch_the_card() -> None:
        while not done.is_set():
            cards.append(await within(time_card(server.url)))

    watching = asyncio.create_task(watch_the_card())
    for burst in range(bursts):
        sends = [begin(client, f"together {burst} {AT_ONCE + 1}") for _ in range(AT_ONCE)]
        tasks = await within(asyncio.gather(*sends), 30)
        unread.append(await RawStream.open(server.url, tasks[0].id, buffer=2**16))
        tasks.append(await begin(client, f"together {burst} {AT_ONCE + 1}"))  # the last one lets all of them end
        for task in tasks:
            assert (await reaches(client, task, S.COMPLETED)).id == task.id
    done.set()
    await watching

    for stream in unread:
        await within(stream.read_to_the_end())
        stream.close()
    median = statistics.median(cards)
    note(
        request.node,
        f"{bursts} bursts; {len(cards)} cards, {1000 * median:.0f} ms each, {max(cards):.3f} s the longest",
    )
    assert median < 0.1
    assert max(cards) < 2


async def test_a_thousand_streams_on_one_process_get_every_event(
    server: ServerProcess, client: Client, request: pytest.FixtureRequest
) -> None:
    per_task, count = STREAMS // 10, 20
    tasks = [await begin(client, f"tick start {count}") for _ in range(10)]
    streams = {task.id: [await RawStream.open(server.url, task.id) for _ in range(per_task)] for task in tasks}
    for stream in (stream for group in streams.values() for stream in group):
        await within(stream.read_piece())
    begun = time.monotonic()
    await client.send("open start")

    await within(asyncio.gather(*(stream.read_to_the_end() for group in streams.values() for stream in group)), 60)

    note(
        request.node,
        f"{STREAMS} streams, {STREAMS * (count + 2)} events, {time.monotonic() - begun:.1f} s; "
        f"{peak_mb(server.pid):.0f} MB",
    )
    for group in streams.values():
        for stream in group:
            assert stream.numbers == list(range(1, count + 3))
        assert len({stream.body for stream in group}) == 1
        for stream in group:
            stream.close()
    assert await time_card(server.url) < 1
