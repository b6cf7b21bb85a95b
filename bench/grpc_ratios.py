"""What a gRPC call costs, next to a bare ``grpc.aio`` servicer that reads the same messages and sends the same ones,
and to a2a-sdk with the same agent.

As in ``ratios``, the servers run one after the other in processes of their own, and what is compared is the processor
time of the server process for one answer.
"""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
from grpc import aio

from bench.agents import PAUSE, PIECE
from bench.load import WARM_UP, WrongAnswer
from bench.processes import Measured, Server, command_for, serving
from bench.ratios import mark
from bench.requests import message
from dragoman.bindings.grpc.messages import encode_message
from dragoman.bindings.grpc.schema import SERVICE
from dragoman.model import SendMessageRequest, decode_value

BINDING = "GRPC"
CONNECTIONS = 4
CALLS_AT_A_TIME = 16
SDK_GOAL = 5.0
"""How many times a2a-sdk's speed is to be reached."""


class GrpcCase(msgspec.Struct, frozen=True):
    """One row: which agent is asked by which method, and the ratio to reach."""

    title: str
    agent: str
    method: str
    goal: float
    proof: bytes

    @property
    def streams(self) -> bool:
        """Whether the answer is a stream."""
        return self.method == "SendStreamingMessage"


GRPC_CASES = [
    GrpcCase("SendMessage, reply", "reply", "SendMessage", 0.7, b"You said: "),
    GrpcCase("SendMessage, task, memory", "task", "SendMessage", 0.5, b"You said: "),
    GrpcCase("100 chunks one by one, memory", "tokens", "SendStreamingMessage", 0.7, PIECE.encode()),
    GrpcCase("100 chunks at once, memory", "chunks", "SendStreamingMessage", 0.7, PIECE.encode()),
]


class GrpcRow(msgspec.Struct, frozen=True):
    """What was measured; ``messages`` are those of one answer."""

    case: GrpcCase
    messages: int
    ours: Measured
    bare: Measured
    sdk: Measured | None

    @property
    def ratio(self) -> float:
        """Of the bare servicer's speed."""
        return self.bare.cpu / self.ours.cpu

    @property
    def sdk_ratio(self) -> float | None:
        """How many times as fast as a2a-sdk; None where that could not be installed."""
        return None if self.sdk is None else self.sdk.cpu / self.ours.cpu


def grpc_cells(row: GrpcRow) -> list[str]:
    """A line of the table of ``ratios``."""
    case, servers, times = row.case, (row.ours, row.bare, row.sdk), row.sdk_ratio
    return [
        case.title,
        BINDING,
        str(row.messages),
        f"{row.ratio:.2f}{mark(row.ratio, case.goal)}",
        f"{case.goal:g}",
        "-" if times is None else f"{times:.1f}{mark(times, SDK_GOAL)}",
        f"{SDK_GOAL:g}",
        *(f"{one.cpu:,.0f}" if one else "-" for one in servers),
        *(f"{one.rate:,.0f}" if one else "-" for one in servers),
        f"{row.ours.memory:.0f}",
        f"{row.sdk.memory:.0f}" if row.sdk else "-",
    ]


class GrpcLoad:
    """Calls that begin anew as soon as they are answered, over a few connections."""

    def __init__(self, port: int, case: GrpcCase) -> None:
        self._case = case
        self._request = encode_message(decode_value(SendMessageRequest, message()))
        options = [("grpc.use_local_subchannel_pool", 1)]
        self._channels = [aio.insecure_channel(f"127.0.0.1:{port}", options) for _ in range(CONNECTIONS)]

    async def once(self) -> list[bytes]:
        """The messages of one answer."""
        return await self._ask(self._channels[0])

    async def run(self, seconds: float) -> tuple[int, float]:
        """How many answers came, and in how many seconds. Raises WrongAnswer."""
        began = time.perf_counter()
        until = began + seconds
        workers = [self._work(self._channels[n % CONNECTIONS], until) for n in range(CALLS_AT_A_TIME)]
        answers = sum(await asyncio.gather(*workers))
        return answers, time.perf_counter() - began

    async def aclose(self) -> None:
        """Close the connections."""
        for channel in self._channels:
            await channel.close()

    async def _work(self, channel: aio.Channel, until: float) -> int:
        answers = 0
        while time.perf_counter() < until:
            messages = await self._ask(channel)
            if self._case.proof not in messages[len(messages) // 2]:
                raise WrongAnswer(repr(messages[:3])[:600])
            answers += 1
        return answers

    async def _ask(self, channel: aio.Channel) -> list[bytes]:
        path, metadata = f"/{SERVICE}/{self._case.method}", (("a2a-version", "1.0"),)
        stream: Any = channel.unary_stream(path)
        call: Any = channel.unary_unary(path)
        if self._case.streams:
            return [item async for item in stream(self._request, metadata=metadata)]
        return [await call(self._request, metadata=metadata)]


async def run_grpc_case(case: GrpcCase, seconds: float, folder: Path, sdk: Path | None) -> GrpcRow:
    """Measure one row. ``sdk`` is the interpreter of a2a-sdk, or None. Raises WrongAnswer."""
    with serving(_command("dragoman"), case.agent) as server:
        messages, ours = await _measure(server, case, seconds)
    if case.streams and sum(PIECE.encode() in item for item in messages) != 100:
        raise WrongAnswer(f"{case.title}: {len(messages)} messages")
    file = folder / "messages.json"
    file.write_bytes(msgspec.json.encode(messages))
    with serving(_command("bare"), str(file), str(PAUSE if case.agent == "tokens" else 0)) as server:
        _, bare = await _measure(server, case, seconds)
    theirs = None
    if sdk is not None:
        with serving(command_for("a2a-sdk", sdk), case.agent, "", "grpc") as server:
            _, theirs = await _measure(server, case, seconds)
    return GrpcRow(case, len(messages), ours, bare, theirs)


def _command(kind: str) -> list[str]:
    return [sys.executable, "-m", "bench.grpc_serving", kind]


async def _measure(server: Server, case: GrpcCase, seconds: float) -> tuple[list[bytes], Measured]:
    load = GrpcLoad(server.port, case)
    try:
        messages = await load.once()
        await load.run(min(WARM_UP, seconds))
        before = server.cpu()
        answers, took = await load.run(seconds)
        spent = server.cpu() - before
    finally:
        await load.aclose()
    return messages, Measured(rate=answers / took, cpu=spent / answers * 1e6, memory=server.memory())
