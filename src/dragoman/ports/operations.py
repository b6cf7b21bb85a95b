"""Operations: the one interface of layer 2.

The runtime, every client transport, the in-process transport and every interceptor implement it. It has two
verbs over the generated operation table, so nobody writes the list of eleven a second time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, Protocol, runtime_checkable

import msgspec

from dragoman.model import AgentCard, Operation, StreamResponse, decode_json, encode_json
from dragoman.ports.scoping import Scope

CURRENT_VERSION = "1.0"


class Caller(msgspec.Struct, frozen=True):
    """Who calls. The empty ``id`` is the anonymous caller. Spec: AUTH-08.

    * ``scopes``: what its credentials are good for; ``claims``: what is known of it besides;
    * ``granted``: the security schemes of the card whose credentials it showed, each with the scopes that these have;
    * ``expires_at``: seconds since the epoch at which they expire, None when nobody says;
    * ``address``: the network address that it calls from, where that was looked at.
    """

    id: str = ""
    scopes: frozenset[str] = frozenset()
    claims: dict[str, Any] = {}
    granted: Mapping[str, frozenset[str]] = {}
    expires_at: float | None = None
    address: str = ""

    @property
    def is_anonymous(self) -> bool:
        """True when no identity was established."""
        return not self.id


ANONYMOUS = Caller()
NO_PARAMETERS: Mapping[str, str] = {}
NO_SCOPE = Scope()


class SendPlan:
    """What an extension has planned for the message of a call.

    ``task_id`` is the id of the task that it will begin, if it begins one; empty: any. ``taken`` is called with the
    task's id as soon as the message is part of a task, which is before that is stored.
    """

    __slots__ = ("taken", "task_id")

    def __init__(self, task_id: str, taken: Callable[[str], None]) -> None:
        self.task_id = task_id
        self.taken = taken


class CallContext(msgspec.Struct, kw_only=True, gc=False):
    """What travels beside a request: service parameters and what the edge knows of the call.

    * ``version``: value of ``A2A-Version`` as it came, ``""`` when it was absent (Spec: PARAM-03, VER-08);
    * ``extensions``: URIs that the client asked for, in its order (Spec: EXT-02);
    * ``tenant``: set by the edge when it knows better than the request (Spec: TEN-05);
    * ``caller``: the authenticated principal;
    * ``parameters``: the other headers or metadata, keys in lower case;
    * ``last_event_id``: number of the last event that a resuming subscriber has, or None;
    * ``timeout``: seconds that the caller is willing to wait, or None (client side);
    * ``wire``: the generation of the protocol that the caller speaks, Major.Minor; what it says was translated to the
      current one, which ``version`` then names;
    * ``base_url``: the address of the application as this caller reached it, where the edge knows and it matters;
    * ``etag``: filled by the callee when this caller, and nobody else, may keep the answer: names its content
      (Spec: XCARD-11);
    * ``scope``: filled by the callee with whose tasks the call may reach (Spec: AUTH-08);
    * ``activated``: filled by the callee with the extensions that became active (Spec: EXT-09, AMB-25);
    * ``plan``: what an extension in between has planned for a message.
    """

    version: str = CURRENT_VERSION
    extensions: tuple[str, ...] = ()
    tenant: str = ""
    caller: Caller = ANONYMOUS
    parameters: Mapping[str, str] = NO_PARAMETERS
    last_event_id: int | None = None
    timeout: float | None = None
    activated: tuple[str, ...] = ()
    scope: Scope = NO_SCOPE
    base_url: str = ""
    etag: str = ""
    wire: str = CURRENT_VERSION
    plan: SendPlan | None = None


class Event:
    """One item of a stream: a response, and its number in the task's log.

    ``number`` is None for what is not in the log (a direct message, the snapshot that opens a subscription has
    the number of the last event it contains). ``json`` is encoded at most once, whoever reads it. ``binary`` is where a
    binding with another form keeps that one, for the same reason, and ``forms`` where other generations of the protocol
    keep theirs, by a name of the form.
    """

    __slots__ = ("_forms", "_json", "_response", "binary", "number")

    def __init__(
        self,
        response: StreamResponse | None = None,
        *,
        number: int | None = None,
        json: bytes | None = None,
    ) -> None:
        self._response = response
        self._json = json
        self.number = number
        self.binary: bytes | None = None
        self._forms: dict[str, bytes] | None = None

    @property
    def forms(self) -> dict[str, bytes]:
        """The event in other forms, to be read and added to."""
        if self._forms is None:
            self._forms = {}
        return self._forms

    @property
    def response(self) -> StreamResponse:
        """The event, decoded when it was given as bytes."""
        if self._response is None:
            assert self._json is not None
            self._response = decode_json(StreamResponse, self._json)
        return self._response

    @property
    def json(self) -> bytes:
        """The event in ProtoJSON, a ``StreamResponse``."""
        if self._json is None:
            assert self._response is not None
            self._json = encode_json(self._response)
        return self._json


class EventStream(ABC):
    """An open stream. Iterate it, or take batches; close it when done (``async with`` does).

    Ends by itself after the terminal event. An :class:`~dragoman.errors.A2AError` raised from
    :meth:`next_batch` is an error of the stream after it began (Spec: AMB-10). One reader only.
    """

    #: Client side: whether the peer said that this stream ends here, whatever the task's state is. That is no cut.
    concluded: bool = False

    @abstractmethod
    async def next_batch(self) -> list[Event]:
        """Wait for the next events: one or more in order, all that are ready; an empty list is the end.

        Cancellation loses no event.
        """

    @abstractmethod
    async def aclose(self) -> None:
        """Let go of the stream. The task goes on (Spec: STRM-04). Safe to call twice."""

    async def __aenter__(self) -> EventStream:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()

    async def __aiter__(self) -> AsyncIterator[Event]:
        while batch := await self.next_batch():
            for event in batch:
                yield event


class Operations(Protocol):
    """The eleven operations behind two verbs. Calls may run together without limit."""

    async def call(self, op: Operation, request: msgspec.Struct, context: CallContext) -> msgspec.Struct:
        """Run a unary operation and return its response Struct (``Empty`` for deletes).

        Raises :class:`~dragoman.errors.A2AError` for what the protocol can say, and on a client transport
        :class:`~dragoman.errors.ClientError`. The returned Struct is the caller's to
        read at once, not to change or keep: it may share parts with a live task.
        """
        ...

    async def stream(self, op: Operation, request: msgspec.Struct, context: CallContext) -> EventStream:
        """Open a streaming operation.

        Errors that are known before the first event are raised here, not from the stream (Spec: AMB-09).
        """
        ...


class LocalAgent(Protocol):
    """An agent in this process that a client can work with without a socket."""

    @property
    def operations(self) -> Operations:
        """Its operations, once started."""
        ...

    async def start(self) -> AgentCard:
        """Open what it needs and return its card. Safe to call twice."""
        ...

    async def stop(self) -> None:
        """Shut down in order. Safe to call twice."""
        ...


@runtime_checkable
class HasLocalAgent(Protocol):
    """Something that can be served, such as :class:`dragoman.Agent`."""

    def local_agent(self) -> LocalAgent:
        """A new local agent, not started."""
        ...
