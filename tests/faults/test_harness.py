"""The harness itself: a witness overlooks nothing, a process is reaped, a proxy does what its plan says."""

from __future__ import annotations

import asyncio
import errno
import socket
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from dragoman import Task, TaskArtifactUpdateEvent
from dragoman.model import Artifact, Part, TaskState
from dragoman.ports.store import StoredTask
from dragoman.stores import MemoryStore
from dragoman.testing.cutting_proxy import CuttingProxy, Fate, Plan, seeded_plan
from dragoman.testing.process import NotServingError, ServerProcess, free_port
from dragoman.testing.sample_task import SampleTask
from dragoman.testing.witness import Witness, check_log
from tests.runtime.running import within

ROOT = Path(__file__).parents[2]


class Shown:
    """A stream of events with numbers, as a client sees it."""

    def __init__(self, *events: tuple[Any, int | None]) -> None:
        self._events = list(events)
        self.task_id = "task-1"
        self.last_event_id: str | None = None

    async def __aiter__(self) -> AsyncIterator[Any]:
        for event, number in self._events:
            if number is not None:
                self.last_event_id = str(number)
            yield event

    async def __aenter__(self) -> Shown:
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Nothing to close."""


def update(text: str) -> TaskArtifactUpdateEvent:
    artifact = Artifact(artifact_id="artifact-1", parts=[Part(text=text)])
    return TaskArtifactUpdateEvent(task_id="task-1", context_id="context-1", artifact=artifact, append=True)


async def follow(witness: Witness, *events: tuple[Any, int | None], resumes: bool = True) -> None:
    async for _ in witness.follow(Shown(*events), resumes=resumes):  # type: ignore[arg-type]
        pass


async def stored(sample: SampleTask) -> MemoryStore:
    store = MemoryStore()
    await store.open()
    await store.append([sample.take()])
    return store


async def test_a_witness_agrees_with_a_store_that_kept_everything() -> None:
    sample, witness = SampleTask(), Witness()
    begun = sample.task
    sample.chunk("a").chunk("b")
    half = sample.task
    sample.move(TaskState.COMPLETED)

    await follow(witness, (begun, 1), (update("a"), 2), (update("b"), 3))
    for moment in (begun, half, sample.task):
        witness.told(moment)

    assert await witness.compare(await stored(sample)) == []
    assert witness.count == 6


Deed = Callable[[Witness, SampleTask], Any]


def never_was(witness: Witness, sample: SampleTask) -> None:
    task = sample.task
    task.artifacts[0].parts.append(Part(text="more"))
    witness.told(task)


@pytest.mark.parametrize(
    ("deed", "text"),
    [
        (lambda witness, sample: witness.told(SampleTask("task-2").task), "it is not in the store"),
        (never_was, "which it never was"),
        (lambda witness, sample: follow(witness, (sample.task, 3), (update("c"), 4)), "the log ends at 3"),
        (lambda witness, sample: follow(witness, (update("x"), 3)), "was shown as"),
        (lambda witness, sample: follow(witness, (update("a"), 2), (update("b"), 4)), "4 came after 2"),
        (lambda witness, sample: follow(witness, (update("a"), 2), (update("a"), 2)), "2 came after 2"),
        (lambda witness, sample: follow(witness, (update("a"), 2), (sample.task, 3)), "was given the task at 3"),
        (lambda witness, sample: follow(witness, (update("a"), None)), "without a number"),
    ],
)
async def test_a_witness_finds_what_was_lost_or_made_up(deed: Deed, text: str) -> None:
    sample, witness = SampleTask(), Witness()
    sample.chunk("a").chunk("b")

    if asyncio.iscoroutine(done := deed(witness, sample)):
        await done

    found = [str(discrepancy) for discrepancy in await witness.compare(await stored(sample))]
    assert any(text in each for each in found), found


async def test_a_snapshot_may_jump_ahead_on_a_stream_that_cannot_be_resumed() -> None:
    sample, witness = SampleTask(), Witness()
    sample.chunk("a").chunk("b")
    await follow(witness, (update("a"), 2), (sample.task, 3), resumes=False)
    assert await witness.compare(await stored(sample)) == []


def test_a_log_with_a_gap_a_late_record_or_another_fold_is_found() -> None:
    sample = SampleTask().chunk("a").move(TaskState.COMPLETED).chunk("late")
    records = sample.records

    def check(given: Any, task: Task, number: int) -> str:
        return " ".join(check_log(given, StoredTask(task=task, number=number, scope=sample.scope, fence=1)))

    assert "gap: [1, 3]" in check([records[0], records[2]], sample.task, 3)
    assert "record 4 came after the end" in check(records, sample.task, 4)
    assert "is not the fold" in check(records[:3], sample.task, 3)
    assert "is at 4, and its log ends at 3" in check(records[:3], sample.task, 4)


async def test_a_witness_tells_when_it_has_seen_enough() -> None:
    witness = Witness()
    seeing = asyncio.create_task(witness.sees(2))
    await asyncio.sleep(0)

    witness.told(SampleTask().task)
    await asyncio.sleep(0)
    assert not seeing.done()
    witness.told(SampleTask().task)

    await within(seeing)


async def test_a_process_keeps_its_port_and_is_reaped(tmp_path: Path) -> None:
    async with ServerProcess("tests.faults.agents:once", cwd=ROOT) as server:
        first, url = server.pid, server.url
        assert await server.kill() == -9
        assert not server.is_running
        assert await server.start() == url
        second = server.pid
        assert await server.terminate() in (0, -15)
        await server.start()
        third = server.pid

    assert not any(psutil.pid_exists(pid) for pid in (first, second, third))
    assert server.starts == 3


async def test_a_process_that_does_not_serve_says_why() -> None:
    program = (sys.executable, "-c", "import sys; print('no luck'); sys.exit(7)")
    server = ServerProcess("agent", program=program)
    with pytest.raises(NotServingError, match=r"(?s)it ended with 7.*no luck"):
        await server.start()
    assert not server.is_running


async def test_a_process_that_takes_too_long_to_serve_or_to_end_is_killed() -> None:
    deaf = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); time.sleep(60)"
    )
    server = ServerProcess("agent", program=(sys.executable, "-c", deaf))
    with pytest.raises(NotServingError, match="did not serve within"):
        await server.start(0.2)
    server.output.clear()
    await server.launch()
    pid = server.pid
    async with asyncio.timeout(10):
        while not server.output:  # noqa: ASYNC110
            await asyncio.sleep(0.01)

    with pytest.raises(TimeoutError):
        await server.terminate(0.1)

    assert not psutil.pid_exists(pid)


async def send_a_page(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"x" * 10_000)
    await writer.drain()
    writer.close()


async def receive(plan: Plan) -> tuple[int, BaseException | None]:
    """How many of 10,000 bytes come through a proxy, and how it ends."""
    server = await asyncio.start_server(send_a_page, "127.0.0.1", 0)
    async with server, CuttingProxy(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", plan) as proxy:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(proxy.url.rpartition(":")[2]))
        received, end = 0, None
        try:
            while data := await within(reader.read(100_000)):
                received += len(data)
        except OSError as error:
            end = error
        writer.close()
    return received, end


@pytest.mark.parametrize("piece", [1, 7, 65_536])
async def test_a_proxy_passes_everything_in_pieces_or_cuts_at_the_byte(piece: int) -> None:
    assert await receive(lambda _: Fate(piece=piece)) == (10_000, None)
    assert await receive(lambda _: Fate(piece=piece, cut_after=4_321)) == (4_321, None)
    assert await receive(lambda _: Fate(piece=piece, stall_after=500, stall=0.01)) == (10_000, None)


async def test_a_proxy_can_reset() -> None:
    _, end = await receive(lambda _: Fate(cut_after=100, reset=True))
    assert isinstance(end, OSError)
    assert end.errno == errno.ECONNRESET


async def test_a_proxy_whose_server_is_not_there_resets() -> None:
    async with CuttingProxy(f"http://127.0.0.1:{free_port()}") as proxy:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(proxy.url.rpartition(":")[2]))
        with pytest.raises(ConnectionResetError):
            await within(reader.read())
        writer.close()


def test_a_seeded_plan_is_the_same_each_time_and_has_all_kinds() -> None:
    fates = [seeded_plan(3)(number) for number in range(200)]
    assert fates == [seeded_plan(3)(number) for number in range(200)]
    assert fates != [seeded_plan(4)(number) for number in range(200)]
    assert any(fate.cut_after is not None and fate.reset for fate in fates)
    assert any(fate.stall_after is not None for fate in fates)
    assert {fate.piece for fate in fates} > {1, 7}
    assert all(fate.cut_after is None for fate in fates[7::8])


def test_a_free_port_can_be_listened_on() -> None:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", free_port()))
