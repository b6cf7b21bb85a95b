"""Trace context: the W3C's ``traceparent`` and ``tracestate``, from a call to what an agent calls for it.

Theory. This package records no spans. It reads what came, has it in the context of the handler, and passes it on as it
is, which W3C Trace Context allows to whoever does not record. Who does record, with a tracer of their own, says by
``source`` what is to be passed on. What cannot be read is dropped, and starts no trace.

Spec: EXT-12, EXT-17; W3C Trace Context, sections 3.2 and 3.3.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

import msgspec

from dragoman.errors import ConfigurationError
from dragoman.extensions.calling import ClientExtension
from dragoman.extensions.hooks import Hooks
from dragoman.extensions.serving import ServerExtension
from dragoman.model import Operation
from dragoman.ports.operations import CallContext, EventStream, Operations
from dragoman.protocol.extensions import TRACE_CONTEXT

_PARENT = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-[!-~]*)?", re.ASCII)
_MEMBER = re.compile(r"[a-z0-9][a-z0-9_*/@-]{0,255}=[ -+\--<>-~]{0,255}[!-+\--<>-~]", re.ASCII)
_MOST_MEMBERS = 32
_LONGEST_PARENT = 256
_LONGEST_STATE = 8192


class Trace(msgspec.Struct, frozen=True):
    """A place in a trace: ``trace_id`` (32 hex digits), ``span_id`` (16) of what called, ``flags`` and ``state``."""

    trace_id: str
    span_id: str
    flags: int = 0
    state: str = ""

    @property
    def sampled(self) -> bool:
        """Whether the caller may have recorded it."""
        return bool(self.flags & 1)

    @property
    def traceparent(self) -> str:
        """As it is written."""
        return f"00-{self.trace_id}-{self.span_id}-{self.flags:02x}"

    @classmethod
    def read(cls, traceparent: str, tracestate: str = "") -> Trace | None:
        """The trace of the two headers; None for a ``traceparent`` that is none. A ``tracestate`` that is none is
        dropped."""
        found = _PARENT.fullmatch(traceparent.strip()) if len(traceparent) <= _LONGEST_PARENT else None
        if found is None:
            return None
        version, trace_id, span_id, flags, more = found.groups()
        if (
            version == "ff"
            or (version == "00" and more is not None)
            or not trace_id.strip("0")
            or not span_id.strip("0")
        ):
            return None
        # Of a later version only what this one knows may be passed on.
        return cls(trace_id, span_id, int(flags, 16) & 1, _state(tracestate))


def _state(text: str) -> str:
    members = [member for part in text.split(",") if (member := part.strip(" \t"))]
    keys = {member.partition("=")[0] for member in members}
    sound = len(members) == len(keys) <= _MOST_MEMBERS and all(map(_MEMBER.fullmatch, members))
    return ",".join(members) if sound and len(text) <= _LONGEST_STATE else ""


_CURRENT: ContextVar[Trace | None] = ContextVar("dragoman.trace", default=None)


def current_trace() -> Trace | None:
    """The trace that the running code belongs to: in a handler that of its call; None when there is none."""
    return _CURRENT.get()


@contextmanager
def tracing(trace: Trace | str | None) -> Iterator[Trace | None]:
    """Have the code inside belong to a trace; a ``traceparent`` will do. None: to none.

    Raises ConfigurationError for a text that is no ``traceparent``.
    """
    if isinstance(trace, str):
        trace = _read(trace)
    token = _CURRENT.set(trace)
    try:
        yield trace
    finally:
        _CURRENT.reset(token)


def _read(text: str) -> Trace:
    trace = Trace.read(text)
    if trace is None:
        raise ConfigurationError("the text is no traceparent of W3C Trace Context")
    return trace


def trace_of(context: CallContext) -> Trace | None:
    """The trace that a call belongs to, if the extension is active for it."""
    if TRACE_CONTEXT not in context.activated:
        return None
    parameters = context.parameters
    return Trace.read(parameters.get("traceparent", ""), parameters.get("tracestate", ""))


def trace_headers(parameters: Mapping[str, str]) -> dict[str, str]:
    """The headers of the trace that is in these, and nothing else of them: what whoever passes calls on adds."""
    trace = Trace.read(parameters.get("traceparent", ""), parameters.get("tracestate", ""))
    return {} if trace is None else _headers(trace)


Source = Callable[[], Trace | str | None]


class TraceContext(ServerExtension, ClientExtension):
    """Trace context, on the server and on the client.

    On the server: ``ctx.trace``, and :func:`current_trace` in handlers. On the client: each call tells the trace that
    its code belongs to, or the one that ``source`` gives (a :class:`Trace`, a ``traceparent``, or None), unless the
    call has a ``traceparent`` header of its own.
    """

    uri = TRACE_CONTEXT
    description = "W3C trace context is read and passed on."

    def __init__(self, source: Source = current_trace) -> None:
        self._source = source

    def calling(self) -> Hooks:
        """See :class:`~dragoman.extensions.ClientExtension`."""
        return _Teller(self._source)


class _Teller(Hooks):
    uri = TRACE_CONTEXT

    def __init__(self, source: Source) -> None:
        self._source = source

    async def call(
        self, op: Operation, request: msgspec.Struct, context: CallContext, inner: Operations
    ) -> msgspec.Struct:
        self._tell(context)
        return await inner.call(op, request, context)

    async def stream(
        self, op: Operation, request: msgspec.Struct, context: CallContext, inner: Operations
    ) -> EventStream:
        self._tell(context)
        return await inner.stream(op, request, context)

    def _tell(self, context: CallContext) -> None:
        trace = self._source()
        if trace is not None and "traceparent" not in context.parameters:
            context.parameters = {**context.parameters, **_headers(_read(trace) if isinstance(trace, str) else trace)}


def _headers(trace: Trace) -> dict[str, str]:
    headers = {"traceparent": trace.traceparent}
    if trace.state:
        headers["tracestate"] = trace.state
    return headers
