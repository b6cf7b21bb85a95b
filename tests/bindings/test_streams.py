"""Streams over real sockets: framing, heartbeats, errors, disconnects, stalled readers."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from dragoman.bindings.endpoint import Endpoint
from dragoman.errors import UnavailableError
from dragoman.model import TaskState
from dragoman.ports.operations import CallContext
from tests.bindings.parts import (
    PARAMS,
    RecordingOperations,
    ScriptedStream,
    ask,
    connected,
    endpoint,
    happens,
    rpc,
    served,
    status_event,
    text_event,
)

STREAMS = pytest.mark.parametrize(
    ("path", "body"),
    [("/", rpc("SendStreamingMessage", id='"s"')), ("/message:stream", PARAMS)],
    ids=["JSONRPC", "HTTP+JSON"],
)

DONE = status_event(TaskState.COMPLETED, 9)


@pytest.fixture
def quiet(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Fails the test when anything was logged as a warning or worse."""
    caplog.set_level(logging.DEBUG)
    yield
    assert [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING] == []


def streaming(stream: ScriptedStream, **settings: Any) -> Endpoint:
    """An endpoint whose streams are this one."""
    return endpoint(RecordingOperations(stream=stream), **settings)


def data_of(frame: bytes, path: str) -> Any:
    """The StreamResponse, or the error, in one frame."""
    value = json.loads(frame.partition(b"data: ")[2])
    if path != "/":
        return value
    assert (value["jsonrpc"], value["id"]) == ("2.0", "s")
    return value.get("result", value)


@pytest.mark.req("STREAM-01", "JRPC-05", "HTTP-09", "MEDIA-03", "AMB-97", "STREAM-10", "B007")
@STREAMS
async def test_a_stream_is_sse_with_one_line_for_each_event_and_its_number(path: str, body: str, quiet: None) -> None:
    text = "你好 👋 \u0085\u2028\u2029\x0b é"
    stream = ScriptedStream([text_event(text, 1)], [DONE], [])
    async with connected(streaming(stream)) as connection:
        await connection.post(path, body)
        status, headers = await connection.head()
        frames = [await connection.chunk(), await connection.chunk()]
        assert await connection.chunk() == b""
    assert (status, headers["content-type"]) == (200, "text/event-stream")
    assert (headers["cache-control"], headers["x-accel-buffering"]) == ("no-store", "no")
    assert frames[0].startswith(b"id: 1\ndata: {")
    assert frames[0].endswith(b"}\n\n")
    assert text.encode().replace(b"\x0b", b"\\u000b") in frames[0]
    assert data_of(frames[0], path)["artifactUpdate"]["artifact"]["parts"] == [{"text": text}]
    assert data_of(frames[1], path)["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"
    assert stream.closed.is_set()


@pytest.mark.req("STREAM-07", "STREAM-12", "AMB-06")
@STREAMS
async def test_events_come_as_they_happen_and_a_batch_comes_in_one_piece(path: str, body: str) -> None:
    stream = ScriptedStream()
    async with connected(streaming(stream)) as connection:
        await connection.post(path, body)
        await connection.head()
        await happens(stream.waiting)
        stream.feed([text_event("first", 1)])
        assert b"first" in await connection.chunk()
        stream.feed([text_event(str(n), n) for n in range(2, 12)])
        frames = (await connection.chunk()).split(b"\n\n")
        assert [frame.split(b"\n")[0] for frame in frames if frame] == [b"id: %d" % n for n in range(2, 12)]
        stream.feed([])
        assert await connection.chunk() == b""


async def test_a_large_batch_is_cut_into_pieces_of_bounded_size() -> None:
    stream = ScriptedStream([text_event("x" * 10_000, n) for n in range(1, 51)], [])
    async with connected(streaming(stream)) as connection:
        await connection.post("/message:stream", PARAMS)
        await connection.head()
        pieces: list[bytes] = []
        while piece := await connection.chunk():
            pieces.append(piece)
    assert b"".join(pieces).count(b"data: ") == 50
    assert max(map(len, pieces)) < 80_000
    assert all(piece.endswith(b"\n\n") for piece in pieces)


@pytest.mark.req("B065", "AMB-97")
@STREAMS
async def test_an_idle_stream_sends_comments_and_loses_no_event(path: str, body: str, quiet: None) -> None:
    stream = ScriptedStream([text_event("one", 1)])
    async with connected(streaming(stream, heartbeat=0.05)) as connection:
        await connection.post(path, body)
        await connection.head()
        assert b"one" in await connection.chunk()
        assert [await connection.chunk() for _ in range(3)] == [b": \n\n"] * 3
        stream.feed([text_event("two", 2)])
        received = await connection.chunk()
        while received == b": \n\n":
            received = await connection.chunk()
        assert received.startswith(b"id: 2\n")
        stream.feed([])
        while (last := await connection.chunk()) == b": \n\n":
            pass
        assert last == b""


async def test_heartbeats_leave_no_cancellation_behind_in_the_requests_task() -> None:
    stream = ScriptedStream()
    beats: list[int] = []
    asked: list[int] = []

    async def receive() -> Any:
        return await asyncio.Future() if asked else asked.append(1) or {"type": "http.request", "body": PARAMS.encode()}

    async def send(message: Any) -> None:
        if message.get("body") == b": \n\n":
            beats.append(1)
            if len(beats) == 3:
                stream.feed([])

    scope = {"type": "http", "method": "POST", "path": "/message:stream", "headers": [], "query_string": b""}
    async with asyncio.timeout(5):
        await streaming(stream, heartbeat=0.01)(scope, receive, send)
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_heartbeats_can_be_turned_off() -> None:
    stream = ScriptedStream()
    async with connected(streaming(stream, heartbeat=0, stall_timeout=0.02)) as connection:
        await connection.post("/message:stream", PARAMS)
        await connection.head()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.15):
                await connection.chunk()


@pytest.mark.req("AMB-10", "B033")
@STREAMS
async def test_an_error_after_the_beginning_is_one_last_event(path: str, body: str, quiet: None) -> None:
    stream = ScriptedStream([text_event("one", 1)], UnavailableError("stopping", retry_after=2))
    async with connected(streaming(stream)) as connection:
        await connection.post(path, body)
        await connection.head()
        await connection.chunk()
        error = data_of(await connection.chunk(), path)["error"]
        assert await connection.chunk() == b""
    assert error["message"] == "stopping"
    assert error["code"] == (-32603 if path == "/" else 503)


@pytest.mark.req("AMB-10", "ERR-13")
@STREAMS
async def test_an_unexpected_exception_of_a_stream_is_logged_and_told_neutrally(
    path: str, body: str, caplog: pytest.LogCaptureFixture
) -> None:
    stream = ScriptedStream([text_event("one", 1)], RuntimeError("the password is hunter2"))
    answer = await ask(streaming(stream), "POST", path, body)
    assert b"hunter2" not in answer.body
    assert b"Internal error" in answer.body.split(b"\n\n")[1]
    assert len([r for r in caplog.records if r.levelno >= logging.ERROR]) == 1
    assert stream.closed.is_set()


@pytest.mark.req("EXT-09", "AMB-25")
async def test_active_extensions_are_in_the_head_of_a_stream() -> None:
    class Activating(RecordingOperations):
        async def stream(self, op: Any, request: Any, context: CallContext) -> Any:
            context.activated = ("https://a.example/x",)
            return ScriptedStream([])

    answer = await ask(endpoint(Activating()), "POST", "/message:stream", PARAMS)
    assert answer.header("a2a-extensions") == "https://a.example/x"


@pytest.mark.req("B041", "B067", "STRM-04")
@STREAMS
@pytest.mark.parametrize("how", ["close", "abort"])
async def test_a_client_that_leaves_an_idle_stream_is_noticed_at_once_and_without_noise(
    path: str, body: str, how: str, quiet: None
) -> None:
    stream = ScriptedStream([text_event("one", 1)])
    async with connected(streaming(stream)) as connection:
        await connection.post(path, body)
        await connection.head()
        await connection.chunk()
        getattr(connection, how)()
        await happens(stream.closed)


@pytest.mark.req("B067")
async def test_a_client_that_leaves_in_the_midst_of_a_flood_ends_it(quiet: None) -> None:
    class Flood(ScriptedStream):
        async def next_batch(self) -> Any:
            await asyncio.sleep(0)
            return [text_event("x" * 1000)]

    stream = Flood()
    async with connected(streaming(stream)) as connection:
        await connection.post("/", rpc("SendStreamingMessage"))
        await connection.head()
        connection.abort()
        await happens(stream.closed)


@pytest.mark.req("B051")
async def test_a_reader_that_does_not_read_is_cut_off() -> None:
    class Flood(ScriptedStream):
        sent = 0

        async def next_batch(self) -> Any:
            self.sent += 1
            return [text_event("x" * 60_000)]

    stream = Flood()
    async with connected(streaming(stream, stall_timeout=0.1, heartbeat=0.05)) as connection:
        await connection.post("/", rpc("SendStreamingMessage"))
        await connection.head()
        await happens(stream.closed)
    assert stream.sent * 60_000 < 32_000_000  # what sockets buffer, and not more


@pytest.mark.req("B067")
async def test_a_server_that_is_stopped_cancels_the_stream_without_noise(quiet: None) -> None:
    stream = ScriptedStream([text_event("one", 1)])

    async def receive() -> Any:
        return await asyncio.Future() if asked else asked.append(1) or {"type": "http.request", "body": PARAMS.encode()}

    async def send(message: Any) -> None:
        pass

    asked: list[int] = []
    scope = {"type": "http", "method": "POST", "path": "/message:stream", "headers": [], "query_string": b""}
    request = asyncio.create_task(streaming(stream)(scope, receive, send))
    await happens(stream.waiting)
    request.cancel()
    with pytest.raises(asyncio.CancelledError):
        await request
    assert stream.closed.is_set()


async def test_a_server_that_raises_from_send_ends_the_stream_quietly(quiet: None) -> None:
    stream = ScriptedStream([text_event("one", 1)])

    async def receive() -> Any:
        return await asyncio.Future() if asked else asked.append(1) or {"type": "http.request", "body": PARAMS.encode()}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.body":
            raise OSError("gone")

    asked: list[int] = []
    scope = {"type": "http", "method": "POST", "path": "/message:stream", "headers": [], "query_string": b""}
    await streaming(stream)(scope, receive, send)
    assert stream.closed.is_set()


@pytest.mark.req("AMB-88")
@pytest.mark.parametrize("request_line", ["GET", "POST"])
async def test_subscribing_works_by_both_verbs(request_line: str) -> None:
    stream = ScriptedStream([text_event("one", 4)], [])
    operations = RecordingOperations(stream=stream)
    async with connected(endpoint(operations)) as connection:
        await connection.send(f"{request_line} /tasks/t-1:subscribe HTTP/1.1\r\nHost: x\r\nLast-Event-ID: 3\r\n\r\n")
        assert (await connection.head())[0] == 200
        assert (await connection.chunk()).startswith(b"id: 4\ndata: ")
    assert operations.calls[0][1].id == "t-1"
    assert operations.context.last_event_id == 3


# Other things that only a socket shows.


@pytest.mark.req("SEC-03")
async def test_a_declared_oversize_body_is_refused_before_it_is_sent() -> None:
    async with connected(endpoint(max_body_bytes=1000)) as connection:
        await connection.send("POST /message:send HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n")
        status, headers = await connection.head()
        error = json.loads(await connection.body(int(headers["content-length"])))["error"]
        assert (status, error["code"]) == (413, 413)
        assert await connection.at_end()


async def test_head_over_a_socket_has_no_body_and_the_connection_goes_on() -> None:
    async with connected(endpoint()) as connection:
        await connection.send("HEAD /.well-known/agent-card.json HTTP/1.1\r\nHost: x\r\n\r\n")
        status, headers = await connection.head()
        assert (status, int(headers["content-length"]) > 100) == (200, True)
        await connection.send("GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await connection.head())[0] == 200
        assert await connection.body(15) == b'{"status":"ok"}'


async def test_a_client_that_goes_away_in_the_midst_of_its_body_leaves_no_noise(quiet: None) -> None:
    operations = RecordingOperations()
    async with served(endpoint(operations)) as (host, port):
        _, writer = await asyncio.open_connection(host, port)
        writer.write(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 500\r\n\r\n{")
        await writer.drain()
        writer.transport.abort()
        reader, writer = await asyncio.open_connection(host, port)
        writer.write(b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert b'{"status":"ok"}' in await asyncio.wait_for(reader.read(), 5)
        writer.close()
    assert operations.calls == []
