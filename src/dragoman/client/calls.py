"""How every call of a client is made: what goes beside it, how long it may take, whether the card offers it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from dragoman.card import SignatureReport
from dragoman.client.line import LateCloser, Line
from dragoman.client.progress import Progress
from dragoman.client.settings import CallOptions, ClientSettings, merge_parameters
from dragoman.client.streams import ClientStream
from dragoman.errors import (
    A2AError,
    InvalidAgentResponseError,
    PushNotificationNotSupportedError,
    UnsupportedOperationError,
)
from dragoman.model import (
    GET_TASK,
    SUBSCRIBE_TO_TASK,
    AgentCard,
    GetTaskRequest,
    Operation,
    SubscribeToTaskRequest,
    Task,
    TaskState,
)
from dragoman.ports.operations import CallContext, EventStream, Operations
from dragoman.protocol.extensions import RESUMABLE_STREAMS

R = TypeVar("R", bound=msgspec.Struct)

_REFUSALS: dict[str, tuple[type[A2AError], str]] = {
    "streaming": (UnsupportedOperationError, "stream"),
    "push_notifications": (PushNotificationNotSupportedError, "send push notifications"),
    "extended_agent_card": (UnsupportedOperationError, "have an extended card"),
}


class Calls:
    """Calls over some Operations, by the settings of a client and the card of its agent.

    ``card`` may be replaced while calls are made; ``signatures`` is what was found of those on the first one.
    """

    def __init__(
        self,
        operations: Operations,
        card: AgentCard,
        settings: ClientSettings,
        signatures: SignatureReport | None = None,
    ) -> None:
        self.operations = operations
        self.card = card
        self.settings = settings
        self.signatures = signatures or SignatureReport()
        self._later = LateCloser()

    @property
    def declared(self) -> frozenset[str]:
        """The extensions that the card declares."""
        return frozenset(extension.uri for extension in self.card.capabilities.extensions)

    def offers(self, capability: str) -> bool:
        """Whether the agent offers a capability, as far as it is known. Absent counts as false (Spec: CARD-25)."""
        if not self.settings.check_capabilities:
            return True
        return not capability or getattr(self.card.capabilities, capability) is True

    def check(self, capability: str, op: str) -> None:
        """Raise the error that the agent would answer, if it does not offer a capability. Spec: CARD-13, ERR-23."""
        if not self.offers(capability):
            error, what = _REFUSALS[capability]
            raise error(f"The agent does not {what}: its card says so", metadata={"operation": op})

    async def call(
        self,
        op: Operation,
        kind: type[R],
        request: msgspec.Struct,
        options: CallOptions,
        *,
        timeout: float | UnsetType | None = UNSET,
    ) -> R:
        """Make a unary call. ``timeout`` is the default for this call, where it is not that of the client."""
        self.check(op.capability, op.name)
        default = self.settings.timeout if timeout is UNSET else timeout
        response = await self.operations.call(op, request, self._context(options, options.get("timeout", default)))
        if not isinstance(response, kind):
            raise InvalidAgentResponseError(f"{op.name} was answered with {type(response).__name__}")
        return response

    async def open(
        self, op: Operation, request: msgspec.Struct, options: CallOptions, last_event_id: int | None = None
    ) -> EventStream:
        """Open a stream."""
        timeout = options.get("timeout", self.settings.idle_timeout)
        context = self._context(options, timeout, streaming=True)
        context.last_event_id = last_event_id
        return await self.operations.stream(op, request, context)

    def stream(
        self,
        op: Operation,
        request: msgspec.Struct,
        options: CallOptions,
        progress: Progress,
        *,
        until: frozenset[TaskState] = frozenset(),
    ) -> ClientStream:
        """A stream that begins with this request, comes back by subscribing, and ends in the states ``until``."""
        self.check(op.capability, op.name)
        return ClientStream(
            self._line(options),
            lambda: self.open(op, request, options, progress.number),
            progress,
            until=until,
        )

    def get_task(self, options: CallOptions) -> Callable[[str], Awaitable[Task]]:
        """GetTask for the following of a task: with these headers and extensions, and the client's own timeout."""
        quiet = without_timeout(options)
        return lambda task_id: self.call(GET_TASK, Task, GetTaskRequest(id=task_id), quiet)

    async def aclose(self) -> None:
        """Wait for what is still being closed."""
        await self._later.aclose()

    def _line(self, options: CallOptions) -> Line:
        quiet = without_timeout(options)
        return Line(
            subscribe=lambda task_id, number: self.open(
                SUBSCRIBE_TO_TASK, SubscribeToTaskRequest(id=task_id), quiet, number
            ),
            get_task=self.get_task(options),
            reconnect=self.settings.reconnect,
            resumable=self._resumable(),
            later=self._later,
        )

    def _context(self, options: CallOptions, timeout: float | None, *, streaming: bool = False) -> CallContext:
        more = (RESUMABLE_STREAMS,) if streaming and self._resumable() else ()
        beside = merge_parameters(self.settings, options, more)
        return CallContext(extensions=beside.extensions, parameters=beside.headers, timeout=timeout)

    def _resumable(self) -> bool:
        return RESUMABLE_STREAMS in self.declared


def without_timeout(options: CallOptions) -> CallOptions:
    """The same options for an inner call, whose time the outer one bounds."""
    inner = CallOptions()
    if "headers" in options:
        inner["headers"] = options["headers"]
    if "extensions" in options:
        inner["extensions"] = options["extensions"]
    return inner
