"""An endpoint that speaks 0.3 over operations that a test has made."""

from __future__ import annotations

from typing import Any

from dragoman.bindings.endpoint import Endpoint
from dragoman.bindings.settings import EndpointSettings
from dragoman.compat.v03.server_dialect import V03Dialect
from dragoman.errors import TaskNotFoundError
from dragoman.model import (
    Empty,
    ListTaskPushNotificationConfigsResponse,
    Operation,
    TaskPushNotificationConfig,
)
from tests.bindings.parts import RecordingOperations, card, usual_answer


class RecordedPush(RecordingOperations):
    """Operations that keep webhooks, and give two of them a page."""

    def __init__(self, configs: list[TaskPushNotificationConfig] | None = None) -> None:
        super().__init__(self._answer)
        self.configs = configs or []

    def _answer(self, op: Operation, request: Any, context: Any) -> Any:
        if "PushNotificationConfig" not in op.name:
            return usual_answer(op, request, context)
        if op.name.startswith("Create"):
            self.configs.append(request)
            return request
        if op.name.startswith("List"):
            start = int(request.page_token or "0")
            more = str(start + 2) if len(self.configs) > start + 2 else ""
            return ListTaskPushNotificationConfigsResponse(
                configs=self.configs[start : start + 2], next_page_token=more
            )
        found = [config for config in self.configs if config.id == request.id]
        if op.name.startswith("Delete"):
            self.configs = [config for config in self.configs if config not in found]
            return Empty()
        return found[0] if found else TaskNotFoundError()


def endpoint_over(operations: Any, *, form: str = "", raw_bytes: bool = False, **settings: Any) -> Endpoint:
    """An endpoint that speaks both generations."""
    dialect = V03Dialect(form=form, raw_bytes=raw_bytes)
    return Endpoint(operations, card=card, settings=EndpointSettings(**settings), dialect=dialect)


def pushed(task_id: str, config_id: str) -> TaskPushNotificationConfig:
    """A webhook."""
    return TaskPushNotificationConfig(task_id=task_id, id=config_id, url="https://hooks.example")
