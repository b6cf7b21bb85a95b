"""Operations that stand in for those of an agent, in part."""

from __future__ import annotations

from typing import Any

from dragoman.errors import TaskNotFoundError
from dragoman.model import (
    CREATE_TASK_PUSH_NOTIFICATION_CONFIG,
    DELETE_TASK_PUSH_NOTIFICATION_CONFIG,
    GET_EXTENDED_AGENT_CARD,
    GET_TASK_PUSH_NOTIFICATION_CONFIG,
    LIST_TASK_PUSH_NOTIFICATION_CONFIGS,
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    Empty,
    ListTaskPushNotificationConfigsResponse,
    Operation,
    TaskPushNotificationConfig,
)
from dragoman.ports.operations import CallContext

CARD = AgentCard(
    name="Tide Desk",
    description="Tide tables",
    version="2",
    supported_interfaces=[AgentInterface(url="tides.example:443", protocol_binding="GRPC", protocol_version="0.3")],
    capabilities=AgentCapabilities(streaming=True, extended_agent_card=True),
    default_input_modes=["text/plain"],
    default_output_modes=["text/plain"],
    skills=[],
)


class Failing:
    """Fails in the same way, whatever is asked."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    async def call(self, op: Any, request: Any, context: CallContext) -> Any:
        raise self._error

    stream = call


class Watching:
    """Keeps the contexts of calls."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.seen: list[CallContext] = []

    async def call(self, op: Operation, request: Any, context: CallContext) -> Any:
        self.seen.append(context)
        return await self._inner.call(op, request, context)

    async def stream(self, op: Operation, request: Any, context: CallContext) -> Any:
        self.seen.append(context)
        return await self._inner.stream(op, request, context)


class Keeping:
    """Keeps webhooks, and has an extended card."""

    def __init__(self, inner: Any) -> None:
        self.stream = inner.stream
        self._inner = inner
        self.configs: dict[tuple[str, str], TaskPushNotificationConfig] = {}

    async def call(self, op: Operation, request: Any, context: CallContext) -> Any:
        if op is GET_EXTENDED_AGENT_CARD:
            return CARD
        if op is CREATE_TASK_PUSH_NOTIFICATION_CONFIG:
            self.configs[request.task_id, request.id] = request
            return request
        if op is LIST_TASK_PUSH_NOTIFICATION_CONFIGS:
            return ListTaskPushNotificationConfigsResponse(configs=self._of(request.task_id))
        if op is GET_TASK_PUSH_NOTIFICATION_CONFIG:
            return self._find(request)
        if op is DELETE_TASK_PUSH_NOTIFICATION_CONFIG:
            self.configs.pop((request.task_id, request.id), None)
            return Empty()
        return await self._inner.call(op, request, context)

    def _of(self, task_id: str) -> list[TaskPushNotificationConfig]:
        return [config for (of, _), config in self.configs.items() if of == task_id]

    def _find(self, request: Any) -> TaskPushNotificationConfig:
        found = self.configs.get((request.task_id, request.id))
        if found is None:
            raise TaskNotFoundError
        return found
