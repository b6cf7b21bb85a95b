"""What a request costs, next to a bare ASGI app that moves the same bytes and to a2a-sdk with the same agent.

The servers run one after the other in processes of their own, on the same HTTP server with the same request. What is
compared is the processor time of the server process for one answer: it hardly depends on what else the machine is
doing, and for a server that is kept busy it is the inverse of its rate.

The bare app gets the bytes that ours answered, in as many sends, since most of what it costs is sending. An agent that
never waits has all its chunks ready before the first can go, and they leave in one send; one by one, as a model makes
them, each leaves by itself, and only that shows what streaming costs.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TypedDict

import msgspec

from bench.agents import PAUSE, PIECE
from bench.load import WrongAnswer, once
from bench.processes import Measured, Server, command_for, measure, serving, wait_until_up
from bench.requests import TEXT, body_of, request_for, sends_of

BINDINGS = ("JSONRPC", "HTTP+JSON")


class Case(msgspec.Struct, frozen=True):
    """One row: which agent on which store is asked what, and the ratios to reach.

    ``goal`` is the part of the bare app's speed, ``sdk_goal`` how many times a2a-sdk's.
    """

    title: str
    agent: str
    durable: bool
    kind: str
    goal: float
    sdk_goal: float
    connections: int = 16

    @property
    def pause(self) -> float:
        """Seconds between the sends, which the bare app makes too."""
        return PAUSE if self.agent == "tokens" else 0.0

    @property
    def sdk_connections(self) -> int:
        """a2a-sdk's writers stand in each other's way on SQLite: a few are where it costs least."""
        return 4 if self.durable and self.kind != "get" else self.connections

    @property
    def proof(self) -> bytes:
        """What is in every right answer."""
        if self.kind == "card":
            return b'"supportedInterfaces"'
        return b"TASK_STATE_COMPLETED" if self.kind != "send" or self.agent != "reply" else f"said: {TEXT}".encode()


CASES = [
    Case("card", "reply", False, "card", 0.8, 6),
    Case("GetTask, memory", "task", False, "get", 0.7, 4),
    Case("GetTask, SQLite", "task", True, "get", 0.7, 4),
    Case("SendMessage, reply", "reply", False, "send", 0.5, 25),
    Case("SendMessage, task, memory", "task", False, "send", 0.35, 20),
    Case("SendMessage, task, SQLite", "task", True, "send", 0.2, 80, 64),
    Case("100 chunks one by one, memory", "tokens", False, "stream", 0.5, 30, 32),
    Case("100 chunks one by one, SQLite", "tokens", True, "stream", 0.25, 100, 32),
    Case("100 chunks at once, memory", "chunks", False, "stream", 0.5, 30, 8),
    Case("100 chunks at once, SQLite", "chunks", True, "stream", 0.25, 100, 16),
]


class BareAnswer(TypedDict):
    """What the bare app answers with."""

    type: str
    stream: bool
    pieces: list[str]
    pause: float


class Row(msgspec.Struct, frozen=True):
    """What was measured; ``sdk`` is None where a2a-sdk could not be installed."""

    case: Case
    binding: str
    ours: Measured
    bare: Measured
    sdk: Measured | None

    @property
    def sends(self) -> int:
        """In how many sends a stream of ours went out."""
        return len(sends_of(body_of(self.ours.answer))) if self.case.kind == "stream" else 1

    @property
    def ratio(self) -> float:
        """Of the bare app's speed."""
        return self.bare.cpu / self.ours.cpu

    @property
    def sdk_ratio(self) -> float | None:
        """How many times as fast as a2a-sdk."""
        return None if self.sdk is None else self.sdk.cpu / self.ours.cpu


def wanted(only: str) -> Iterator[tuple[Case, str]]:
    """The cases with this in their titles, with the bindings they are measured on."""
    for case in CASES:
        if only in case.title:
            for binding in BINDINGS[:1] if case.kind == "card" else BINDINGS:
                yield case, binding


async def run_case(case: Case, binding: str, seconds: float, folder: Path, sdk: Path | None) -> Row:
    """Measure one row. ``sdk`` is the interpreter of a2a-sdk, or None. Raises WrongAnswer."""
    ours = await _measure_agent("dragoman", case, binding, seconds, folder, None)
    file = folder / "answer.json"
    file.write_bytes(msgspec.json.encode(as_bare(ours.answer, case.pause)))
    with serving(command_for("bare"), str(file)) as server:
        await wait_until_up(server.port)
        request = request_for(case.kind, binding, "0" * 36)
        bare = await measure(server, request, case.proof, seconds=seconds, connections=case.connections)
    theirs = None
    if sdk is not None:
        theirs = await _measure_agent("a2a-sdk", case, binding, seconds, folder, sdk)
    return Row(case, binding, ours, bare, theirs)


async def _measure_agent(
    kind: str, case: Case, binding: str, seconds: float, folder: Path, python: Path | None
) -> Measured:
    store = str(folder / f"{kind}-{case.agent}-{case.kind}-{binding[0]}.db") if case.durable else ""
    with serving(command_for(kind, python), case.agent, store) as server:
        await wait_until_up(server.port)
        task_id = await _make_task(server) if case.kind == "get" else ""
        request = request_for(case.kind, binding, task_id)
        answer = await once(server.port, request)
        _check(case, answer)
        connections = case.connections if python is None else case.sdk_connections
        return await measure(server, request, case.proof, seconds=seconds, connections=connections)


def _check(case: Case, answer: bytes) -> None:
    """The first answer is looked at closely, the others by their proof only."""
    pieces = answer.count(PIECE.encode())
    if case.proof not in answer or (case.kind == "stream" and pieces != 100):
        raise WrongAnswer(f"{case.title}: {pieces} pieces in {answer[:600]!r}")


async def _make_task(server: Server) -> str:
    answer = await once(server.port, request_for("send", "HTTP+JSON"))
    return str(msgspec.json.decode(body_of(answer))["task"]["id"])


def as_bare(answer: bytes, pause: float = 0.0) -> BareAnswer:
    """An answer as the file that makes the bare app give the same, in the same sends."""
    head, _, body = answer.partition(b"\r\n\r\n")
    headers = dict(line.decode().lower().split(": ", 1) for line in head.split(b"\r\n")[1:])
    stream = "content-length" not in headers
    pieces = [send.decode() for send in sends_of(body)] if stream else [body.decode()]
    return {"type": headers["content-type"], "stream": stream, "pieces": pieces, "pause": pause}


HEADINGS = (
    "work",
    "binding",
    "sends",
    "of bare",
    "goal",
    "× a2a-sdk",
    "goal",
    "µs",
    "bare µs",
    "sdk µs",
    "answers/s",
    "bare/s",
    "sdk/s",
    "MB",
    "sdk MB",
)


def cells(row: Row) -> list[str]:
    """A line of the table. ``!`` is behind what is below its goal, ``!!`` behind what is below it by a third."""
    case, sdk = row.case, row.sdk
    return [
        case.title,
        row.binding if case.kind != "card" else "",
        str(row.sends),
        f"{row.ratio:.2f}{mark(row.ratio, case.goal)}",
        f"{case.goal:g}",
        "-" if row.sdk_ratio is None else f"{row.sdk_ratio:.1f}{mark(row.sdk_ratio, case.sdk_goal)}",
        f"{case.sdk_goal:g}",
        *(f"{one.cpu:,.0f}" if one else "-" for one in (row.ours, row.bare, sdk)),
        *(f"{one.rate:,.0f}" if one else "-" for one in (row.ours, row.bare, sdk)),
        f"{row.ours.memory:.0f}",
        f"{sdk.memory:.0f}" if sdk else "-",
    ]


def mark(found: float, goal: float) -> str:
    """How a ratio that is below its goal is marked."""
    return "" if found >= goal else "!" if found >= goal * 2 / 3 else "!!"
