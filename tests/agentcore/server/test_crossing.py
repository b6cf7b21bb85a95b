"""A connection that crosses between two loops: order, back-pressure, failures and cancellation cross with it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest

from dragoman.agentcore.crossing import HIGH
from dragoman.agentcore.worker import WorkerThread
from dragoman.http.asgi import Message
from tests.agentcore.server.hosts import until

SCOPE = {"type": "http", "method": "POST", "path": "/", "headers": []}


class Client:
    """The server's side of one connection: what it sent and got."""

    def __init__(self, *sent: bytes) -> None:
        self.coming: asyncio.Queue[Message | Exception] = asyncio.Queue()
        self.got: list[Message] = []
        self.reading = asyncio.Event()
        self.reading.set()
        self.fails: Exception | None = None
        for number, piece in enumerate(sent, 1):
            self.coming.put_nowait({"type": "http.request", "body": piece, "more_body": number < len(sent)})

    def leave(self) -> None:
        self.coming.put_nowait({"type": "http.disconnect"})

    async def receive(self) -> Message:
        message = await self.coming.get()
        if isinstance(message, Exception):
            raise message
        return message

    async def send(self, message: Message) -> None:
        await self.reading.wait()
        if self.fails is not None:
            raise self.fails
        self.got.append(message)


@pytest.fixture
async def worker():
    """A loop in another thread."""
    worker = WorkerThread()
    await worker.start()
    yield worker
    await worker.stop(1)


async def cross(worker: WorkerThread, app: Callable, client: Client) -> None:
    async with asyncio.timeout(10):
        await worker.serve(app, dict(SCOPE), client.receive, client.send)


@pytest.mark.req("AC-S-64")
async def test_messages_cross_in_order_in_both_directions(worker: WorkerThread):
    pieces, threads = [b"%d" % number for number in range(500)], set()

    async def app(scope, receive, send):
        threads.add(threading.current_thread().name)
        more = True
        while more:
            message = await receive()
            more = message["more_body"]
            await send({"type": "http.response.body", "body": message["body"], "more_body": more})

    client = Client(*pieces)
    await cross(worker, app, client)
    assert [message["body"] for message in client.got] == pieces
    assert threads == {"dragoman-agent"}


@pytest.mark.req("AC-S-50", "AC-S-64")
async def test_a_message_leaves_while_the_application_goes_on(worker: WorkerThread):
    go_on = threading.Event()

    async def app(scope, receive, send):
        await send({"type": "http.response.body", "body": b"first", "more_body": True})
        await until(go_on.is_set)
        await send({"type": "http.response.body", "body": b"second"})

    client = Client(b"")
    serving = asyncio.create_task(cross(worker, app, client))
    await until(lambda: len(client.got) == 1)
    go_on.set()
    await serving
    assert [message["body"] for message in client.got] == [b"first", b"second"]


async def test_an_application_whose_client_does_not_read_waits(worker: WorkerThread):
    sent: list[int] = []

    async def app(scope, receive, send):
        for number in range(100):
            await send({"type": "http.response.body", "body": bytes(50_000), "more_body": number < 99})
            sent.append(number)

    client = Client(b"")
    client.reading.clear()
    serving = asyncio.create_task(cross(worker, app, client))
    await until(lambda: len(sent) >= HIGH // 50_000)
    await asyncio.sleep(0.05)  # so that it could go on, if it did not wait
    assert len(sent) <= HIGH // 50_000 + 1
    client.reading.set()
    await serving
    assert len(client.got) == 100


async def test_a_disconnection_crosses_to_a_waiting_application(worker: WorkerThread):
    seen: list[str] = []

    async def app(scope, receive, send):
        seen.append((await receive())["type"])
        seen.append((await receive())["type"])

    client = Client(b"")
    serving = asyncio.create_task(cross(worker, app, client))
    await until(lambda: len(seen) == 1)
    client.leave()
    await serving
    assert seen == ["http.request", "http.disconnect"]


async def test_an_interrupted_receive_loses_no_message(worker: WorkerThread):
    async def app(scope, receive, send):
        await receive()
        waiting = asyncio.ensure_future(receive())
        await asyncio.sleep(0.01)
        waiting.cancel()
        await asyncio.wait({waiting})
        await send({"type": "http.response.body", "body": b"", "more_body": True})
        message = await receive()
        await send({"type": "http.response.body", "body": message["type"].encode()})

    client = Client(b"")
    serving = asyncio.create_task(cross(worker, app, client))
    await until(lambda: client.got)
    client.leave()
    await serving
    assert client.got[1]["body"] == b"http.disconnect"


async def test_a_failed_send_is_the_failure_of_the_next_one(worker: WorkerThread):
    failures: list[Exception] = []

    async def app(scope, receive, send):
        try:
            while True:
                await send({"type": "http.response.body", "body": bytes(50_000), "more_body": True})
        except OSError as error:
            failures.append(error)

    client = Client(b"")
    client.fails = ConnectionResetError("gone")
    await cross(worker, app, client)
    assert [type(error) for error in failures] == [ConnectionResetError]


async def test_what_the_application_raises_is_raised_at_home(worker: WorkerThread):
    async def app(scope, receive, send):
        await send({"type": "http.response.body", "body": b"x", "more_body": True})
        raise LookupError("inside")

    client = Client(b"")
    with pytest.raises(LookupError, match="inside"):
        await cross(worker, app, client)
    assert len(client.got) == 1


async def test_what_receive_raises_is_raised_over_there(worker: WorkerThread):
    async def app(scope, receive, send):
        await receive()
        with pytest.raises(OSError, match="cut"):
            await receive()
        await send({"type": "http.response.body", "body": b"seen"})

    client = Client(b"")
    client.coming.put_nowait(OSError("cut"))
    await cross(worker, app, client)
    assert client.got[0]["body"] == b"seen"


async def test_a_cancellation_at_home_reaches_the_application_and_waits_for_it(worker: WorkerThread):
    events: list[str] = []

    async def app(scope, receive, send):
        events.append("begun")
        try:
            await asyncio.sleep(60)
        finally:
            events.append("ended")

    serving = asyncio.create_task(cross(worker, app, Client(b"")))
    await until(lambda: events)
    serving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await serving
    assert events == ["begun", "ended"]


async def test_connections_that_are_left_at_the_end_are_cut():
    worker, begun = WorkerThread(), threading.Event()
    await worker.start()

    async def app(scope, receive, send):
        begun.set()
        await asyncio.sleep(60)

    serving = asyncio.create_task(cross(worker, app, Client(b"")))
    await until(begun.is_set)
    await worker.stop(0.05)
    with pytest.raises(ConnectionAbortedError):
        await serving


async def test_two_hundred_connections_at_once_do_not_mix(worker: WorkerThread):
    async def app(scope, receive, send):
        body = (await receive())["body"]
        await asyncio.sleep(0.01)
        await send({"type": "http.response.body", "body": body})

    clients = [Client(b"%d" % number) for number in range(200)]
    await asyncio.gather(*(cross(worker, app, client) for client in clients))
    assert [client.got[0]["body"] for client in clients] == [b"%d" % number for number in range(200)]
