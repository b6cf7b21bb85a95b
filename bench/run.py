"""``make bench``: a table of ratios to a bare ASGI app, and the ratios to reach.

The two servers run one after the other in processes of their own, on the same HTTP server with the same request and,
for the bare app, the bytes that ours answered. What is compared is the processor time of the server process for one
answer: it hardly depends on what else the machine is doing, and for a server that is kept busy it is the inverse of
its rate.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
import psutil

from bench.load import generate, once

MESSAGE = {"messageId": "m" * 32, "role": "ROLE_USER", "parts": [{"text": "Hello there"}]}
METHODS = {"send": "SendMessage", "stream": "SendStreamingMessage", "get": "GetTask"}
PATHS = {"send": "/message:send", "stream": "/message:stream"}


class Case(msgspec.Struct, frozen=True):
    """One row: which agent on which store is asked what, and the ratio to reach."""

    title: str
    agent: str
    durable: bool
    kind: str
    goal: float
    connections: int = 16


CASES = [
    Case("card", "reply", False, "card", 0.8),
    Case("GetTask, memory", "task", False, "get", 0.7),
    Case("GetTask, SQLite", "task", True, "get", 0.7),
    Case("SendMessage, reply", "reply", False, "send", 0.5),
    Case("SendMessage, task, memory", "task", False, "send", 0.35),
    Case("SendMessage, task, SQLite", "task", True, "send", 0.2, 64),
    Case("stream of 100 chunks, memory", "chunks", False, "stream", 0.5, 8),
    Case("stream of 100 chunks, SQLite", "chunks", True, "stream", 0.25, 16),
]
BINDINGS = ("JSONRPC", "HTTP+JSON")


def request_for(kind: str, binding: str, task_id: str = "") -> bytes:
    """The bytes of the request of a case."""
    if kind == "card":
        return _http("GET", "/.well-known/agent-card.json")
    params = {"id": task_id} if kind == "get" else {"message": MESSAGE}
    if binding == "JSONRPC":
        return _http("POST", "/", {"jsonrpc": "2.0", "id": 1, "method": METHODS[kind], "params": params})
    if kind == "get":
        return _http("GET", f"/tasks/{task_id}")
    return _http("POST", PATHS[kind], params)


def _http(method: str, path: str, value: object = None) -> bytes:
    body = b"" if value is None else msgspec.json.encode(value)
    head = [f"{method} {path} HTTP/1.1", "host: 127.0.0.1", "a2a-version: 1.0"]
    if body:
        head += ["content-type: application/json", f"content-length: {len(body)}"]
    return "\r\n".join([*head, "", ""]).encode() + body


@contextlib.contextmanager
def server(kind: str, name: str, store: str = "") -> Iterator[tuple[int, psutil.Process]]:
    """A server process; its port and process."""
    command = [sys.executable, "-m", "bench.serving", kind, name, store]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield int(process.stdout.readline()), psutil.Process(process.pid)
    finally:
        process.kill()
        process.wait()


Measured = dict[str, float]


async def measure(port: int, process: psutil.Process, request: bytes, seconds: float, connections: int) -> Measured:
    """Rate, CPU microseconds of the server for an answer, and its memory."""
    cpu = process.cpu_times()
    rate, tally = await generate(port, request, seconds, connections)
    after = process.cpu_times()
    if tally.wrong or tally.closed > connections:
        raise SystemExit(f"wrong answers in the benchmark: {tally.sample[:600]!r}")
    spent = (after.user - cpu.user) + (after.system - cpu.system)
    return {"rate": rate, "cpu": spent / max(tally.answers, 1) * 1e6, "rss": process.memory_info().rss / 1e6}


async def run_case(case: Case, binding: str, seconds: float, folder: Path) -> tuple[Measured, Measured]:
    """The case against dragoman, then against the bare app with the bytes that dragoman gave."""
    store = str(folder / f"{case.agent}-{case.kind}-{binding[0]}.db") if case.durable else ""
    with server("dragoman", case.agent, store) as (port, process):
        await _until_up(port)
        task_id = await _make_task(port) if case.kind == "get" else ""
        request = request_for(case.kind, binding, task_id)
        answer = await once(port, request)
        ours = await measure(port, process, request, seconds, case.connections)
    file = folder / "answer.json"
    file.write_bytes(msgspec.json.encode(_as_bare(answer)))
    with server("bare", str(file)) as (port, process):
        await _until_up(port)
        bare = await measure(port, process, request, seconds, case.connections)
    return ours, bare


async def _until_up(port: int) -> None:
    for _ in range(200):
        with contextlib.suppress(OSError):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.close()
            return
        await asyncio.sleep(0.05)


async def _make_task(port: int) -> str:
    answer = await once(port, request_for("send", "HTTP+JSON"))
    return str(msgspec.json.decode(answer.partition(b"\r\n\r\n")[2])["task"]["id"])


def _as_bare(answer: bytes) -> dict[str, object]:
    head, _, body = answer.partition(b"\r\n\r\n")
    headers = dict(line.decode().lower().split(": ", 1) for line in head.split(b"\r\n")[1:])
    stream = "content-length" not in headers
    return {"type": headers["content-type"], "stream": stream, "pieces": _frames(body) if stream else [body.decode()]}


def _frames(body: bytes) -> list[str]:
    """The events of a chunked SSE body, one piece each."""
    data = b""
    while body:
        size, _, body = body.partition(b"\r\n")
        length = int(size, 16)
        data, body = data + body[:length], body[length + 2 :]
    return [frame.decode() + "\n\n" for frame in data.split(b"\n\n") if frame]


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=3.0)
    options.add_argument("--only", default="", help="a part of a row's title")
    arguments = options.parse_args()
    titles = ("work", "binding", "ours/s", "bare/s", "ratio", "goal", "us", "bare us", "MB")
    print("{:32} {:10} {:>9} {:>9} {:>6} {:>5} {:>7} {:>8} {:>6}".format(*titles))
    with tempfile.TemporaryDirectory() as folder:
        for case in CASES:
            if arguments.only not in case.title:
                continue
            for binding in BINDINGS[:1] if case.kind == "card" else BINDINGS:
                ours, bare = asyncio.run(run_case(case, binding, arguments.seconds, Path(folder)))
                print(_row(case, binding, ours, bare), flush=True)


def _row(case: Case, binding: str, ours: Measured, bare: Measured) -> str:
    """One line; the ratio is that of the processor time which the two servers spend on an answer."""
    ratio = bare["cpu"] / ours["cpu"]
    mark = "" if ratio >= case.goal else "  below" if ratio >= case.goal * 2 / 3 else "  far below"
    return (
        f"{case.title:32} {binding:10} {ours['rate']:9.0f} {bare['rate']:9.0f} {ratio:6.2f} {case.goal:5.2f}"
        f" {ours['cpu']:7.0f} {bare['cpu']:8.0f} {ours['rss']:6.0f}{mark}"
    )


if __name__ == "__main__":
    main()
