"""Sessions: who is there, in which state, and the container of each.

Theory. none → creating → active → stopping → none. A session that is creating or stopping refuses everything with the
conflict that is to be retried; one that ended can come back under its id, on a fresh container.

Spec: AC-F-02, AC-F-03, AC-F-04, AC-F-12.
"""

from __future__ import annotations

import asyncio
import enum
import logging
import secrets
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec

from dragoman.http.client import HttpClient
from dragoman.testing.agentcore_front.asking import can_answer_card
from dragoman.testing.agentcore_front.contract import Contract
from dragoman.testing.agentcore_front.headers import Workload
from dragoman.testing.agentcore_front.pings import Life, Violation
from dragoman.testing.agentcore_front.refusals import Fault, Refusal
from dragoman.testing.agentcore_front.settings import FrontSettings
from dragoman.testing.agentcore_front.upstreams import Instance, InstanceFailedError, Upstream

logger = logging.getLogger("dragoman.testing.agentcore_front")

CALLBACK_URL = "https://callback.rehearsal.example/oauth2"
KEPT_ENDS = 1_000


class State(enum.StrEnum):
    """Where a session is in its life."""

    CREATING = "creating"
    ACTIVE = "active"
    STOPPING = "stopping"


class Session:
    """One session. ``calls`` counts those that were let in."""

    def __init__(self, session_id: str, now: float) -> None:
        self.id = session_id
        self.state = State.CREATING
        self.life = Life(created=now, last_invocation=now)
        self.workload = Workload(session_id=session_id, token=secrets.token_urlsafe(24), callback_url=CALLBACK_URL)
        self.instance: Instance | None = None
        self.calls = 0


class Ending(msgspec.Struct, frozen=True):
    """How a session ended: ``stopped``, ``idle``, ``lifetime``, ``failed``, ``crashed`` or ``closed``; when, and the
    exit status of its process, None for a shared server."""

    session: str
    why: str
    at: float
    exit_status: int | None = None


class Sessions:
    """All sessions of a front. ``output`` is told the session id and each line that its container writes."""

    def __init__(
        self,
        upstream: Upstream,
        settings: FrontSettings,
        contract: Contract,
        http: HttpClient,
        now: Callable[[], float],
        output: Callable[[str, str], None] | None = None,
    ) -> None:
        self._upstream = upstream
        self._settings = settings
        self._contract = contract
        self._http = http
        self._now = now
        self._output = output
        self.known: dict[str, Session] = {}
        self.ends: deque[Ending] = deque(maxlen=KEPT_ENDS)
        self._creating: set[asyncio.Task[Session]] = set()
        self.started = 0

    def active(self) -> list[Session]:
        """Those that have a container and are neither coming nor going."""
        return [session for session in self.known.values() if session.state is State.ACTIVE]

    async def enter(self, session_id: str, public_url: str) -> tuple[Session, bool]:
        """The session of a call, and whether it is new. Raises Refusal: BUSY, or AGENT_FAILED when it cannot begin."""
        session = self.known.get(session_id)
        if session is not None and session.state is not State.ACTIVE:
            raise Refusal(Fault.BUSY)
        if session is not None and session.instance is not None and not session.instance.is_running:
            await self.end(session, "crashed")
            session = self.known.get(session_id)  # another call may have been quicker
            if session is not None:
                raise Refusal(Fault.BUSY)
        if session is None:
            return await self._begin(session_id, public_url), True
        return session, False

    async def _begin(self, session_id: str, public_url: str) -> Session:
        """Make a session. It is made to the end also when its first caller goes away."""
        session = self.known[session_id] = Session(session_id, self._now())
        self._contract.note_token(session.workload.token)
        creating = asyncio.create_task(self._create(session, public_url))
        self._creating.add(creating)
        creating.add_done_callback(self._created)
        return await asyncio.shield(creating)

    def _created(self, creating: asyncio.Task[Session]) -> None:
        self._creating.discard(creating)
        if not creating.cancelled():
            creating.exception()  # the caller was told, if it is still there

    async def _create(self, session: Session, public_url: str) -> Session:
        try:
            await asyncio.sleep(self._settings.lifecycle.create_s * self._settings.time_scale)
            session.instance = await self._start(session, public_url)
        except BaseException as error:
            del self.known[session.id]
            if isinstance(error, InstanceFailedError):
                logger.warning("The container of a session could not begin: %s", error)
                raise Refusal(Fault.AGENT_FAILED) from error
            raise
        session.state = State.ACTIVE
        return session

    async def _start(self, session: Session, public_url: str) -> Instance:
        def output(line: str) -> None:
            self._contract.read_output(line)
            if self._output is not None:
                self._output(session.id, line)

        limit = self._settings.limits.init_s * self._settings.time_scale
        instance = await self._upstream.open(public_url, self._http, limit, output)
        self.started += 1
        if instance.last_ping is None and not await can_answer_card(self._http, instance.url):
            self._contract.add(Violation("early-ping", "a healthy ping before the card could be read"))
        return instance

    @contextmanager
    def call(self, session: Session) -> Iterator[Instance]:
        """Keep a session alive while a call is in it."""
        instance = session.instance
        assert instance is not None
        session.calls += 1
        session.life.in_flight += 1
        instance.in_flight += 1
        instance.calls += 1
        try:
            yield instance
        finally:
            session.life.in_flight -= 1
            session.life.last_invocation = self._now()
            instance.in_flight -= 1
            instance.calls += 1

    async def end(self, session: Session, why: str) -> None:
        """Stop a session's container; the id is free afterwards. Does nothing to a session that is on its way out."""
        if session.state is State.STOPPING or session.instance is None:
            return
        session.state = State.STOPPING
        limit = self._settings.lifecycle.stop_s * self._settings.time_scale
        try:
            status = await session.instance.stop(limit)
        finally:
            del self.known[session.id]
        self.ends.append(Ending(session.id, why, self._now(), status))

    async def close(self) -> None:
        """End all."""
        for creating in self._creating:
            creating.cancel()
        await asyncio.gather(*self._creating, return_exceptions=True)
        await asyncio.gather(*(self.end(session, "closed") for session in self.active()))
