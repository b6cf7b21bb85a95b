"""``make demo``: two agents at work, a server killed in mid-task, and nothing lost.

Starts ``analyst`` and ``travel`` as processes on SQLite in a folder of its own, and works with them through the
client, over both bindings. Ends with 0 only if all of it came out as it should.
"""

from __future__ import annotations

import asyncio
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from rich.console import Console

import dragoman
from dragoman.client import Client, Result
from dragoman.model import (
    Artifact,
    Message,
    Part,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatusUpdateEvent,
)
from examples.process import AgentProcess

JSON_RPC, HTTP_JSON = "JSONRPC", "HTTP+JSON"
GAUGES = Path(__file__).parent / "analyst" / "gauges.csv"
LIMIT = 60.0
LEASE = "2"  # seconds after which a lost server's tasks are taken over; 10 by default
LONG_WORK = {"resamples": 2500}

Event = Task | Message | TaskStatusUpdateEvent | TaskArtifactUpdateEvent
out = Console(highlight=False, soft_wrap=True)


class NotAsPromised(Exception):
    """Something did not come out as it should."""


def headline(text: str) -> None:
    """A new chapter."""
    out.print(f"\n[bold cyan]{text}[/]")


def check(holds: bool, what: str) -> None:
    """Say that something holds, or end the demonstration."""
    if not holds:
        raise NotAsPromised(what)
    out.print(f"  [green]✓[/] {what}")


def table_file(raw: bytes) -> Part:
    """A CSV file as a part."""
    return Part(raw=raw, media_type="text/csv", filename="gauges.csv")


def state_name(state: TaskState | int) -> str:
    """A state as people say it."""
    return state.name if isinstance(state, TaskState) else str(state)


def show(event: Event) -> None:
    """One line, or a few, for an event of a stream."""
    if isinstance(event, Task):
        out.print(f"  [dim]task[/]     {event.id}: {state_name(event.status.state)}")
    elif isinstance(event, TaskStatusUpdateEvent):
        words = said(event.status.message)
        out.print(f"  [dim]status[/]   {state_name(event.status.state)}{f': {words}' if words else ''}")
    elif isinstance(event, TaskArtifactUpdateEvent):
        verb = "  +" if event.append else "new"
        out.print(f"  [dim]artifact[/] {verb} {event.artifact.artifact_id}: [yellow]{preview(event.artifact)}[/]")


def said(message: Message | None) -> str:
    """The text of a message, or nothing."""
    return " ".join(part.text or "" for part in message.parts) if message else ""


def preview(artifact: Artifact) -> str:
    """The beginning of an artifact, in one line."""
    part = artifact.parts[0] if artifact.parts else Part(text="")
    if part.raw is not None:
        return f"{part.filename}, {part.media_type}, {len(part.raw):,} bytes"
    text = part.text if part.text is not None else str(part.data)
    line = " ".join(text.split())
    return line if len(line) <= 90 else f"{line[:89]}…"


def data_of(result: Result, name: str) -> Any:
    """The data of the artifact of this name."""
    return next(artifact.parts[0].data for artifact in result.artifacts if artifact.name == name)


def names_of(artifacts: list[Artifact]) -> list[str]:
    """Names of artifacts, sorted."""
    return sorted(artifact.name for artifact in artifacts)


@asynccontextmanager
async def over(binding: str, process: AgentProcess) -> AsyncIterator[Client]:
    """A client of the agent over one binding."""
    async with dragoman.connect(process.url, bindings=(binding,)) as client:
        yield client


async def show_streamed_run(analyst: AgentProcess) -> Any:
    """JSON-RPC: send the file, watch every event. Returns the statistics."""
    headline(f"1. A table of {GAUGES.stat().st_size:,} bytes, analyzed in a stream over JSON-RPC")
    async with over(JSON_RPC, analyst) as client:
        out.print(f"  [dim]card[/]     {client.card.name}: {client.card.description}")
        count = 0
        task_id = ""
        async for event in client.stream(table_file(GAUGES.read_bytes())):
            show(event)
            count += 1
            task_id = event.id if isinstance(event, Task) else task_id
        task = await client.get_task(task_id)
    check(task.status.state is TaskState.COMPLETED, f"{count} events, one after the other, and the task is COMPLETED")
    check(names_of(task.artifacts) == ["plot", "statistics", "summary"], "it has statistics, a summary and a plot")
    return next(artifact.parts[0].data for artifact in task.artifacts if artifact.name == "statistics")


async def show_same_over_rest(analyst: AgentProcess, expected: Any) -> None:
    """HTTP+JSON: the same work, and a file that is broken."""
    headline("2. The same over HTTP+JSON, and a broken file")
    async with over(HTTP_JSON, analyst) as client:
        result = await client.run(table_file(GAUGES.read_bytes()))
        check(data_of(result, "statistics") == expected, "the same statistics to the last digit")
        broken = await client.run(table_file(b"gauge,level\nFenmouth,183\nHolt Weir,high\n"))
        out.print(f"  [dim]answer[/]   {said(broken.task.status.message if broken.task else None)}")
        check(broken.state is TaskState.FAILED, "the broken file FAILED, and the message names the line")


async def show_conversation(travel: AgentProcess) -> None:
    """HTTP+JSON: several turns, the server killed between two of them."""
    headline("3. A conversation over HTTP+JSON; the server is killed between question and answer")
    async with over(HTTP_JSON, travel) as client:
        turn = await client.run("I want to go to Rome, for 4 nights")
        for answer in ("from Prague", "2026-05-03"):
            turn = await reply(client, turn, answer)
        crash(travel)
        task = await client.get_task(turn.task.id if turn.task else "")
        check(task.status.state is TaskState.INPUT_REQUIRED, "after the restart the task still waits for its answer")
        turn = await reply(client, turn, "2 people")
        out.print(f"  [dim]agent[/]    {turn.text}")
        check(turn.state is TaskState.COMPLETED, f"and it went on from there: {data_of(turn, 'plan')['total']} euros")


async def reply(client: Client, turn: Result, answer: str) -> Result:
    """Answer the question of a task that waits."""
    out.print(f"  [dim]agent[/]    {said(turn.task.status.message if turn.task else None)}")
    check(turn.state is TaskState.INPUT_REQUIRED, f"the task waits; the answer is “{answer}”")
    return await client.run(answer, task=turn.task)


def crash(process: AgentProcess) -> None:
    """Kill the server the hard way, and start it again on the same store and port."""
    process.kill()
    out.print("  [bold red]kill -9[/]  the server is gone")
    started = time.monotonic()
    process.start()
    out.print(f"  [bold green]restart[/]  it serves again after {time.monotonic() - started:.1f} s")


async def show_crash_in_mid_task(analyst: AgentProcess) -> None:
    """JSON-RPC: a long run; the server is killed in the middle, the stream goes on after the restart."""
    headline("4. A longer analysis over JSON-RPC; the server is killed in mid-task")
    async with over(JSON_RPC, analyst) as client:
        task_id, pieces, crashed = "", 0, False
        async for event in client.stream(table_file(GAUGES.read_bytes()), message_metadata=LONG_WORK):
            show(event)
            task_id = event.id if isinstance(event, Task) else task_id
            pieces += isinstance(event, TaskArtifactUpdateEvent)
            if pieces == 4 and not crashed:
                crashed = True
                crash(analyst)
        check(crashed, "the server was killed while the task was WORKING, after four pieces of its summary")
        task = await client.get_task(task_id)
        check(task.id == task_id, f"the task is still there: {task.id}")
        ended = f"it was taken up again and ended {state_name(task.status.state)}"
        check(task.status.state is TaskState.COMPLETED, ended)
        check(names_of(task.artifacts) == ["plot", "statistics", "summary"], "with all three artifacts, none twice")
        page = await client.list_tasks()
        states = ", ".join(state_name(listed.status.state) for listed in page.tasks)
        check(page.total_size == 4, f"the store has every task of this hour: {states}")


async def demonstrate(folder: Path) -> None:
    """All chapters, one after the other."""
    analyst = AgentProcess.serving(
        "examples.analyst.agent:agent", "--store", str(folder / "analyst.db"), "--lease", LEASE
    )
    travel = AgentProcess.serving("examples.travel.agent:agent", "--store", str(folder / "travel.db"), "--lease", LEASE)
    headline("Two agents, each a process on a SQLite file of its own")
    with analyst, travel:
        out.print(f"  analyst at {analyst.url}, travel desk at {travel.url}")
        statistics = await show_streamed_run(analyst)
        await show_same_over_rest(analyst, statistics)
        await show_conversation(travel)
        await show_crash_in_mid_task(analyst)
        ends = {analyst.stop(), travel.stop()}
        check(ends <= {0, -signal.SIGTERM}, "both servers ended in order when asked to")


async def main() -> int:
    """Run the demonstration; 0 only if all of it came out as promised."""
    started = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="dragoman-demo-"))
    try:
        async with asyncio.timeout(LIMIT):
            await demonstrate(folder)
    except NotAsPromised as missing:
        out.print(f"  [bold red]✗ not so:[/] {missing}")
        return 1
    except TimeoutError:
        out.print(f"  [bold red]✗ it took longer than {LIMIT:.0f} seconds[/]")
        return 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    out.print(f"\n[bold green]All of it happened, in {time.monotonic() - started:.0f} seconds.[/]")
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
