"""An agent in this process whose answers a test sets, for clients without sockets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from dragoman.model import AgentCard, Operation, StreamResponse, decode_value
from dragoman.ports.operations import CallContext, Event, EventStream
from tests.client.words import card


class FixedStream(EventStream):
    """Given batches, then the end, or an error."""

    def __init__(self, *batches: list[Event], failure: Exception | None = None) -> None:
        self._batches = list(batches)
        self._failure = failure
        self.closed = False

    async def next_batch(self) -> list[Event]:
        if self._batches:
            return self._batches.pop(0)
        if self._failure is not None:
            raise self._failure
        return []

    async def aclose(self) -> None:
        self.closed = True


def events(*values: dict[str, Any]) -> list[Event]:
    """One batch, numbered from 1."""
    return [Event(decode_value(StreamResponse, value), number=n) for n, value in enumerate(values, 1)]


class FixedOperations:
    """Answers each operation by what a test has set: a Struct, a stream, an error, or a function of the request."""

    def __init__(self, **answers: Any) -> None:
        self.answers = answers
        self.seen: list[tuple[str, msgspec.Struct, CallContext]] = []

    async def call(self, op: Operation, request: msgspec.Struct, context: CallContext) -> msgspec.Struct:
        found = self._answer(op, request, context)
        assert isinstance(found, msgspec.Struct)
        return found

    async def stream(self, op: Operation, request: msgspec.Struct, context: CallContext) -> EventStream:
        found = self._answer(op, request, context)
        assert isinstance(found, EventStream)
        return found

    def _answer(self, op: Operation, request: msgspec.Struct, context: CallContext) -> Any:
        self.seen.append((op.name, request, context))
        answer = self.answers[op.name]
        if isinstance(answer, list):
            answer = answer.pop(0)
        if isinstance(answer, Exception):
            raise answer
        is_function = isinstance(answer, Callable) and not isinstance(answer, msgspec.Struct)  # type: ignore[arg-type]
        return answer(request) if is_function else answer


class FixedAgent:
    """A LocalAgent around FixedOperations."""

    def __init__(self, operations: FixedOperations, **more: Any) -> None:
        self._operations = operations
        self._card = decode_value(AgentCard, card("http://local/", **more))
        self.running = 0

    @property
    def operations(self) -> FixedOperations:
        if not self.running:
            raise RuntimeError("not started")
        return self._operations

    async def start(self) -> AgentCard:
        self.running += 1
        return self._card

    async def stop(self) -> None:
        self.running = 0


class Served:
    """Something that has a local agent."""

    def __init__(self, agent: FixedAgent) -> None:
        self.agent = agent

    def local_agent(self) -> FixedAgent:
        return self.agent
