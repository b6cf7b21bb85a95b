"""The receiver as an ASGI app: by itself, in frameworks, and against senders that do not behave."""

from __future__ import annotations

import asyncio
from typing import Any

import fastapi
import httpx2
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount, Route

from dragoman.webhook import Notification, Receiver, ReceiverSettings
from tests.bindings.parts import served
from tests.webhook.deliveries import TOKEN, headers, status, text

BODY = text(status())


class Taken(list[Notification]):
    """What a receiver took; ``receiver`` takes it."""

    def __init__(self, **settings: Any) -> None:
        super().__init__()
        self.receiver = Receiver(self.append, **{"token": TOKEN, "tasks": "any", **settings})


async def post(app: Any, path: str = "/", body: Any = BODY, sent: Any = None, method: str = "POST") -> httpx2.Response:
    async with served(app) as (host, port), httpx2.AsyncClient(timeout=10) as http:
        return await http.request(method, f"http://{host}:{port}{path}", content=body, headers=sent or headers())


def starlette_route(receiver: Receiver) -> Any:
    return Starlette(routes=[Route("/in/hook", receiver, methods=["POST"])])


def starlette_mount(receiver: Receiver) -> Any:
    return Starlette(routes=[Mount("/in/hook", receiver)])


def fastapi_mount(receiver: Receiver) -> Any:
    app = fastapi.FastAPI()
    app.mount("/in/hook", receiver)
    return app


def fastapi_route(receiver: Receiver) -> Any:
    app = fastapi.FastAPI()
    app.add_route("/in/hook", receiver, methods=["POST"])
    return app


@pytest.mark.req("PUSH-11")
@pytest.mark.parametrize("path", ["/", "/anything"])
async def test_by_itself_it_is_a_webhook_at_every_path(path: str) -> None:
    taken = Taken()

    answer = await post(taken.receiver, path)

    assert (answer.status_code, answer.content) == (204, b"")
    assert len(taken) == 1


@pytest.mark.parametrize(
    ("path", "expected"), [("/a/b", 204), ("/a/b?secret=1", 204), ("/a", 404), ("/a/b/", 404), ("/", 404)]
)
async def test_or_at_one(path: str, expected: int) -> None:
    assert (await post(Taken(path="/a/b").receiver, path)).status_code == expected


@pytest.mark.req("PUSH-11", "PUSH-14")
@pytest.mark.parametrize("make", [starlette_route, starlette_mount, fastapi_mount, fastapi_route])
async def test_it_works_within_other_apps(make: Any) -> None:
    taken = Taken()
    path = "/in/hook/" if "mount" in make.__name__ else "/in/hook"

    answers = [(await post(make(taken.receiver), path, sent=sent)).status_code for sent in (headers(), headers("no"))]

    assert answers == [204, 401]
    assert len(taken) == 1


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "HEAD", "OPTIONS"])
async def test_other_verbs_are_not_allowed(method: str) -> None:
    answer = await post(Taken().receiver, method=method)

    assert answer.status_code == 405
    assert answer.headers["allow"] == "POST"


@pytest.mark.req("SEC-03")
@pytest.mark.parametrize("declared", [True, False])
async def test_a_body_above_the_limit_is_too_large(declared: bool) -> None:
    taken = Taken(settings=ReceiverSettings(max_body_bytes=1_000))

    async def pieces() -> Any:
        for _ in range(20):
            yield b" " * 100

    answer = await post(taken.receiver, body=b" " * 2_000 if declared else pieces())

    assert answer.status_code == 413
    assert not taken


@pytest.mark.req("SEC-03")
async def test_as_a_function_it_has_the_same_limit() -> None:
    receiver = Taken(settings=ReceiverSettings(max_body_bytes=1_000)).receiver

    assert (await receiver.receive(headers().items(), b" " * 1_001)).status == 413


@pytest.mark.req("PUSH-14")
async def test_of_a_stranger_no_body_is_read() -> None:
    received: list[Any] = []

    async def receive() -> Any:
        raise AssertionError("the body is read")

    async def send(message: Any) -> None:
        received.append(message)

    sent = [(name.lower().encode(), value.encode()) for name, value in headers("wrong").items()]
    scope = {"type": "http", "method": "POST", "path": "/", "headers": sent, "client": ("192.0.2.1", 1)}
    await Taken().receiver(scope, receive, send)

    assert received[0]["status"] == 401


@pytest.mark.req("PUSH-15")
async def test_too_many_requests_of_one_address_are_told_to_slow_down() -> None:
    receiver = Taken(settings=ReceiverSettings(rate=0.5, burst=3)).receiver

    answers = [await receiver.receive(headers("wrong"), BODY, "192.0.2.1") for _ in range(4)]
    other = await receiver.receive(headers(), BODY, "192.0.2.2")

    assert [answer.status for answer in answers] == [401, 401, 401, 429]
    assert dict(answers[-1].headers)["Retry-After"] == "2"
    assert other.status == 204


@pytest.mark.req("PUSH-15")
async def test_beyond_the_calls_that_may_run_the_sender_is_to_come_again() -> None:
    begun, go = asyncio.Event(), asyncio.Event()

    async def handle(notification: Notification) -> None:
        begun.set()
        await go.wait()

    receiver = Receiver(handle, token=TOKEN, tasks="any", settings=ReceiverSettings(running=1))
    first = asyncio.create_task(receiver.receive(headers(Id="a"), BODY))
    async with asyncio.timeout(5):
        await begun.wait()
        second = await receiver.receive(headers(Id="b"), BODY)
        go.set()

        assert (second.status, (await first).status) == (503, 204)
        assert (await receiver.receive(headers(Id="b"), BODY)).status == 204


async def test_a_body_that_does_not_come_is_not_waited_for() -> None:
    receiver = Taken(settings=ReceiverSettings(read_timeout=0.05)).receiver
    async with served(receiver) as (host, port), asyncio.timeout(5):
        reader, writer = await asyncio.open_connection(host, port)
        head = "".join(f"{name}: {value}\r\n" for name, value in headers().items())
        writer.write(f"POST / HTTP/1.1\r\nHost: h\r\n{head}Content-Length: 100\r\n\r\n".encode())

        assert (await reader.readline()).startswith(b"HTTP/1.1 408")
        writer.close()


async def test_a_sender_that_leaves_on_the_way_leaves_nothing_behind() -> None:
    taken = Taken()
    async with served(taken.receiver) as (host, port), asyncio.timeout(5):
        _, writer = await asyncio.open_connection(host, port)
        head = "".join(f"{name}: {value}\r\n" for name, value in headers().items())
        writer.write(f"POST / HTTP/1.1\r\nHost: h\r\n{head}Content-Length: {len(BODY)}\r\n\r\n".encode() + BODY[:5])
        await writer.drain()
        writer.close()
        await writer.wait_closed()
        async with httpx2.AsyncClient() as http:
            answer = await http.post(f"http://{host}:{port}/", content=BODY, headers=headers())

    assert answer.status_code == 204
    assert len(taken) == 1


async def test_it_takes_part_in_the_life_of_its_server() -> None:
    messages = iter([{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}])
    sent: list[str] = []

    async def receive() -> Any:
        return next(messages)

    async def send(message: Any) -> None:
        sent.append(message["type"])

    await Taken().receiver({"type": "lifespan"}, receive, send)

    assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
