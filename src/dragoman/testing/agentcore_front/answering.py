"""One request of a front, from its line to its answer.

Theory. A request is routed, read, authenticated, and given its session before anything else is looked at; then comes
the fault that was ordered for it, if there is one, and only then the container. So an injected conflict has the
signature of its request checked like any other, and leaves no container behind.

Spec: AC-F-01, AC-F-03, AC-F-05, AC-F-07, AC-F-08, AC-F-10, AC-F-14.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from email.utils import formatdate
from typing import Any

import msgspec

from dragoman.errors import ClientError, PayloadTooLargeError
from dragoman.http.asgi import ClientGoneError, Headers, Message, Receive, Scope, Send, read_body, until_disconnected
from dragoman.ports.clock import Clock
from dragoman.testing.agentcore_front.admission import Admission
from dragoman.testing.agentcore_front.contract import Contract
from dragoman.testing.agentcore_front.faults import AnyFault, Delay, FaultQueue, Truncate
from dragoman.testing.agentcore_front.forwarding import Forwarding, Passed
from dragoman.testing.agentcore_front.headers import SESSION_ID, forwarded
from dragoman.testing.agentcore_front.incoming import Authorizer, Incoming, raw_target
from dragoman.testing.agentcore_front.jwt import Jwt
from dragoman.testing.agentcore_front.recording import Recorded
from dragoman.testing.agentcore_front.refusals import Fault, Refusal
from dragoman.testing.agentcore_front.routes import Kind, Route, find_route, runtime_path
from dragoman.testing.agentcore_front.serving import CutError, answer, cut
from dragoman.testing.agentcore_front.sessions import Session, Sessions, State
from dragoman.testing.agentcore_front.settings import FrontSettings

KEPT_REQUESTS = 10_000


class Answering:
    """Answers the requests of a front, and keeps the last 10,000 in ``requests``."""

    def __init__(
        self,
        auth: Authorizer,
        settings: FrontSettings,
        clock: Clock,
        now: Callable[[], float],
        contract: Contract,
    ) -> None:
        self.requests: deque[Recorded] = deque(maxlen=KEPT_REQUESTS)
        self.faults = FaultQueue()
        self._auth = auth
        self._settings = settings
        self._clock = clock
        self._now = now
        self._contract = contract
        self._admission = Admission(settings, clock, now, takes_users=not isinstance(auth, Jwt))

    async def answer(self, scope: Scope, receive: Receive, send: Send, sessions: Sessions, on: Forwarding) -> None:
        """Answer one request; what is admitted is passed ``on``."""
        record = Recorded(
            method=scope["method"],
            target=raw_target(scope),
            raw_headers=scope["headers"],
            headers=Headers(scope["headers"]),
        )
        self.requests.append(record)
        exchange = _Exchange(record, receive, self._noting(record, send))
        try:
            await self._serve(scope, exchange, sessions, on)
        except Refusal as refusal:
            session = {SESSION_ID: record.session} if record.session else {}
            body = refusal.body(record.rpc_id, self._settings.error_id)
            await answer(exchange.send, refusal.row.status, body, {**session, **refusal.headers})
        except (CutError, ClientGoneError):
            return

    def _noting(self, record: Recorded, send: Send) -> Send:
        async def noting(message: Message) -> None:
            if message["type"] == "http.response.start":
                record.status = message["status"]
                date = formatdate(self._now(), usegmt=True)
                message["headers"] = [*message["headers"], (b"date", date.encode())]
            await send(message)

        return noting

    async def _serve(self, scope: Scope, exchange: _Exchange, sessions: Sessions, on: Forwarding) -> None:
        record = exchange.record
        raw_path = scope.get("raw_path") or scope["path"].encode()
        route = find_route(record.method, raw_path, scope.get("query_string", b""), self._settings)
        request = await self._read(route, exchange)
        if route.kind is Kind.METADATA:
            await self._fault(exchange)
            await self._answer_metadata(request, exchange)
            return
        self._auth.check(request)
        record.session = self._admission.admit(route.kind, record)
        fault = await self._fault(exchange)
        if route.kind is Kind.STOP:
            await _stop(exchange, sessions)
            return
        await _while_connected(exchange.receive, self._pass_on(route, request, exchange, fault, sessions, on))

    async def _read(self, route: Route, exchange: _Exchange) -> Incoming:
        record, limit = exchange.record, self._settings.limits.body_bytes
        try:
            body = await read_body(exchange.receive, limit, record.headers.get("content-length", "").encode())
        except PayloadTooLargeError:
            raise Refusal(Fault.VALIDATION) from None
        record.take_body(body)
        return Incoming(
            method=record.method,
            target=record.target,
            raw_headers=record.raw_headers,
            headers=record.headers,
            body=body,
            now=self._now(),
            region=self._settings.region,
            qualifier=route.qualifier,
        )

    async def _answer_metadata(self, request: Incoming, exchange: _Exchange) -> None:
        if not isinstance(self._auth, Jwt):
            raise Refusal(Fault.NOT_FOUND)
        await answer(exchange.send, 200, msgspec.json.encode(self._auth.metadata(request)), {})

    async def _fault(self, exchange: _Exchange) -> AnyFault | None:
        """Do what was ordered for this call. Returns what is left to be done on the way back."""
        record = exchange.record
        fault = self.faults.take(method=record.rpc_method, session=record.session, target=record.target)
        if isinstance(fault, Delay):
            await asyncio.sleep(fault.seconds * self._settings.time_scale)
        elif fault is Fault.DROP:
            await cut(exchange.receive)
        elif fault is Fault.HTML_502:
            page = b"<html><body><h1>502 Bad Gateway</h1></body></html>"
            await answer(exchange.send, 502, page, {"content-type": "text/html"})
            raise CutError
        elif fault is Fault.EMPTY_500:
            await answer(exchange.send, 500, b"", {})
            raise CutError
        elif isinstance(fault, Fault):
            raise Refusal(fault)
        return fault

    async def _pass_on(
        self,
        route: Route,
        request: Incoming,
        exchange: _Exchange,
        fault: AnyFault | None,
        sessions: Sessions,
        on: Forwarding,
    ) -> None:
        record = exchange.record
        public_url = f"{request.origin}{runtime_path(self._settings.arn)}/invocations/"
        session, is_new = await sessions.enter(record.session, public_url)
        call = Passed(
            kind=route.kind,
            headers=self._headers(record, session),
            body=request.body,
            back={SESSION_ID: session.id},
            is_new=is_new,
            truncate=fault if isinstance(fault, Truncate) else None,
            send=exchange.send,
            receive=exchange.receive,
        )
        with sessions.call(session) as instance:
            record.forwarded = on.request(instance, call)
            try:
                await on.pass_on(record.forwarded, call)
            except Refusal as refusal:
                if isinstance(refusal.__cause__, ClientError):
                    await instance.settle()
                raise

    def _headers(self, record: Recorded, session: Session) -> dict[str, str]:
        """What passes; Authorization only where the runtime takes tokens, and when it is allow-listed."""
        allowed = self._admission.allowed
        if not isinstance(self._auth, Jwt):
            allowed -= {"authorization"}
        headers = forwarded(record.headers, allowed, session.workload, self._clock.new_id())
        self._contract.note_token(headers.get("authorization", "").partition(" ")[2])
        return headers


class _Exchange(msgspec.Struct, frozen=True):
    """A request on record, and the two ends of its connection."""

    record: Recorded
    receive: Receive
    send: Send


async def _stop(exchange: _Exchange, sessions: Sessions) -> None:
    session = sessions.known.get(exchange.record.session)
    if session is None:
        raise Refusal(Fault.NOT_FOUND, names_exception=True)
    if session.state is not State.ACTIVE:
        raise Refusal(Fault.BUSY, names_exception=True)
    await sessions.end(session, "stopped")
    await answer(exchange.send, 200, b"{}", {SESSION_ID: session.id})


async def _while_connected(receive: Receive, work: Coroutine[Any, Any, None]) -> None:
    """Do the work, unless the caller goes away before it is done."""
    working = asyncio.create_task(work)
    gone = asyncio.create_task(until_disconnected(receive))
    try:
        await asyncio.wait({working, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientGoneError
        working.result()
    finally:
        for task in (working, gone):
            task.cancel()
        await asyncio.gather(working, gone, return_exceptions=True)
