"""A container by script, a clock to be moved by hand, and requests that are signed as botocore signs them."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import httpx2
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from dragoman.http.asgi import Headers, Receive, Scope, Send, read_body
from dragoman.testing.agentcore_front import REHEARSAL_KEY, AwsKey, Front, Shared
from dragoman.testing.agentcore_front.headers import SESSION_ID
from dragoman.testing.agentcore_front.serving import Serving, answer

START = 1_781_229_000.0
"""The second at which the clocks of these tests begin."""

SESSION = "harbour-7c0d9f1e-2b64-4f0e-8a55-90d1c3b7e2aa"
OTHER = "harbour-00000000-2b64-4f0e-8a55-90d1c3b7e2ab"
BUSY_TEXT = "Session operation in progress, please retry"


class ManualClock:
    """Stands still until it is moved."""

    def __init__(self, now: float = START) -> None:
        self.now = now

    def now_ms(self) -> int:
        return round(self.now * 1_000)

    def new_id(self) -> str:
        return str(uuid.uuid4())

    def advance(self, seconds: float) -> None:
        self.now += seconds


def rpc(method: str = "SendMessage", request_id: Any = "q-1", **params: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}).encode()


def result(value: Any = "ok") -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": "q-1", "result": value}).encode()


Answerer = Callable[[bytes, Receive, Send], Awaitable[None]]


class Container:
    """Answers as it is told: ``answers`` is called for each POST; ``ping`` and ``card`` are what the others give."""

    def __init__(self) -> None:
        self.ping: tuple[int, Any] = (200, {"status": "Healthy", "time_of_last_update": int(START) - 100})
        self.card = 200
        self.posts: list[tuple[Headers, bytes]] = []
        self.pings = 0
        self.gone = asyncio.Event()
        self.answers: Answerer = self.say()
        self._serving = Serving(self)

    @property
    def url(self) -> str:
        return self._serving.url

    async def __aenter__(self) -> Container:
        await self._serving.start()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._serving.stop()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = await read_body(receive, 200_000_000)
        if scope["path"] == "/ping":
            self.pings += 1
            await answer(send, self.ping[0], json.dumps(self.ping[1]).encode(), {})
        elif scope["method"] == "GET":
            await answer(send, self.card, b'{"name":"tide-desk"}', {"etag": '"1"'})
        else:
            self.posts.append((Headers(scope["headers"]), body))
            await self.answers(body, receive, send)

    def say(self, body: bytes = b"", status: int = 200, **headers: str) -> Answerer:
        async def answers(asked: bytes, receive: Receive, send: Send) -> None:
            await answer(send, status, body or result(), {**headers, "x-own": "1"})

        return answers

    def stream(self, *events: bytes | asyncio.Event, forever: bool = False) -> Answerer:
        """Events one after the other; an asyncio.Event among them is waited for."""

        async def answers(asked: bytes, receive: Receive, send: Send) -> None:
            head = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-cache")]
            await send({"type": "http.response.start", "status": 200, "headers": head})
            for event in events:
                if isinstance(event, asyncio.Event):
                    await event.wait()
                else:
                    await send({"type": "http.response.body", "body": event, "more_body": True})
            if forever:
                while (await receive())["type"] != "http.disconnect":
                    pass
                self.gone.set()
                return
            await send({"type": "http.response.body", "body": b""})

        return answers


def event(number: int) -> bytes:
    return b"data: " + result(number) + b"\n\n"


def signed_headers(
    method: str,
    url: str,
    body: bytes = b"",
    headers: Mapping[str, str] | None = None,
    *,
    key: AwsKey = REHEARSAL_KEY,
    at: float | None = None,
    region: str = "eu-west-1",
    service: str = "bedrock-agentcore",
) -> dict[str, str]:
    """The headers of a request, with those of its signature. ``at``: seconds since the epoch, default now."""
    request = AWSRequest(method, url, data=body, headers=dict(headers or {}))
    signer = _DatedAuth(Credentials(key.key_id, key.secret, key.token), service, region)
    signer.date = datetime.fromtimestamp(at, UTC) if at is not None else datetime.now(UTC)
    signer.add_auth(request)
    return {name.lower(): str(value) for name, value in request.headers.items()}


class _DatedAuth(SigV4Auth):  # type: ignore[misc]
    """Signs with the date that it is given."""

    date: datetime

    def add_auth(self, request: AWSRequest) -> None:
        request.context["timestamp"] = self.date.strftime("%Y%m%dT%H%M%SZ")
        self._modify_request_before_signing(request)
        to_sign = self.string_to_sign(request, self.canonical_request(request))
        self._inject_signature_to_request(request, self.signature(to_sign, request))


class Caller:
    """Calls a front, with one session id unless it is told otherwise."""

    def __init__(self, front: Front, client: httpx2.AsyncClient) -> None:
        self.front = front
        self.client = client

    async def post(
        self, body: bytes = b"", *, session: str | None = SESSION, url: str = "", **headers: str
    ) -> httpx2.Response:
        return await self.client.post(
            url or self.front.invocation_url, content=body or rpc(), headers=self.headers(session, headers)
        )

    async def get(self, url: str, *, session: str | None = SESSION, **headers: str) -> httpx2.Response:
        return await self.client.get(url, headers=self.headers(session, headers))

    async def card(self, **more: Any) -> httpx2.Response:
        return await self.get(f"{self.front.invocation_url}.well-known/agent-card.json", **more)

    async def stop(self, session: str | None = SESSION) -> httpx2.Response:
        url = self.front.invocation_url.replace("invocations/", "stopruntimesession")
        return await self.client.post(url, content=b"{}", headers=self.headers(session, {}))

    def stream(self, body: bytes = b"", *, session: str = SESSION):
        content = body or rpc("SendStreamingMessage")
        return self.client.stream("POST", self.front.invocation_url, content=content, headers=self.headers(session, {}))

    @staticmethod
    def headers(session: str | None, more: Mapping[str, str]) -> dict[str, str]:
        named = {name.replace("_", "-"): value for name, value in more.items()}
        own = {SESSION_ID: session} if session is not None else {}
        return {"content-type": "application/json", **own, **named}


async def until(condition: Callable[[], bool], timeout: float = 5.0) -> None:
    """Wait for something that nobody announces."""
    async with asyncio.timeout(timeout):
        while True:
            if condition():
                return
            await asyncio.sleep(0.005)


@asynccontextmanager
async def rehearsal(container: Container | str, **options: Any) -> AsyncIterator[Caller]:
    """A front before a container (or the server at a URL), and somebody who calls it."""
    url = container if isinstance(container, str) else container.url
    options.setdefault("watch", False)
    async with (
        Front(options.pop("upstream", None) or Shared(url), **options) as front,
        httpx2.AsyncClient(trust_env=False, timeout=20) as client,
    ):
        yield Caller(front, client)
