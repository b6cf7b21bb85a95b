"""Large events: what waits for the store, for a reader, or is read back for one, is bounded in bytes too."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dragoman import Agent
from dragoman.model import SEND_STREAMING_MESSAGE
from dragoman.ports.operations import CallContext
from dragoman.ports.store import Record
from dragoman.runtime.live import UNSAVED_BYTES
from dragoman.runtime.streams import FIRST_PAGE, PAGE
from dragoman.runtime.window import BATCH_BYTES
from tests.faults.agents import MB
from tests.faults.onlookers import read, request, turns
from tests.runtime.running import FaultyStore, S, Server, reaches, until, within

EVENTS = 24


class ReadsCounted(FaultyStore):
    """Remembers how many bytes each page of a log had."""

    def __init__(self) -> None:
        super().__init__()
        self.pages: list[tuple[int, int]] = []

    async def records(self, task_id: str, after: int, limit: int) -> list[Record]:
        records = await super().records(task_id, after, limit)
        self.pages.append((len(records), sum(len(record.event_json) for record in records)))
        return records


def large(count: int = EVENTS, size: int = MB) -> Agent:
    agent = Agent("Large", description="Replaces a large artifact again and again.")

    @agent.task
    async def work(ctx):
        for number in range(count):
            await ctx.artifact(f"{number} ".ljust(size, "x"), artifact_id="last")

    return agent


@pytest.mark.req("B051")
async def test_a_handler_waits_while_large_events_are_unsaved(server: Server) -> None:
    store = FaultyStore()
    client = await server(large(), store=store)
    store.hold()
    sending = asyncio.create_task(client.send("go"))
    await within(store.held.wait())
    await turns(200)
    (live,) = server.app.runtime._registry.all()

    held = live._staged_bytes + live._in_flight_bytes

    assert UNSAVED_BYTES < held <= UNSAVED_BYTES + 1.1 * MB
    store.release()
    assert (await within(sending)).status.state is S.COMPLETED


@pytest.mark.req("B051")
async def test_a_stream_takes_and_reads_back_large_events_in_bounded_portions(server: Server) -> None:
    store = ReadsCounted()
    await server(large(), store=store)
    stream = await server.app.operations.stream(SEND_STREAMING_MESSAGE, request("go"), CallContext())
    store.hold()
    first: list[Any] = await within(stream.next_batch())
    (live,) = server.app.runtime._registry.all()
    store.release()
    await until(lambda: live.task.status.state is S.COMPLETED)  # the reader is far behind the window now

    portions = [first]
    while batch := await within(stream.next_batch()):
        portions.append(batch)

    events = [event for portion in portions for event in portion]
    assert [event.number for event in events] == list(range(1, EVENTS + 3))
    for portion in portions:
        assert len(portion) <= FIRST_PAGE or sum(len(event.json) for event in portion) <= BATCH_BYTES
    assert store.pages[0][0] == FIRST_PAGE
    assert {count for count, _ in store.pages[1:]} == {1}


async def test_small_events_are_read_back_in_pages_that_grow(server: Server) -> None:
    store = ReadsCounted()
    client = await server(large(5_000, 10), store=store)
    stream = await server.app.operations.stream(SEND_STREAMING_MESSAGE, request("go"), CallContext())
    task_id = (await within(stream.next_batch()))[0].response.task.id
    await reaches(client, task_id, S.COMPLETED)

    assert (await within(read(stream)))[-1].number == 5_002

    assert max(count for count, _ in store.pages) == PAGE
    assert len(store.pages) < 20
