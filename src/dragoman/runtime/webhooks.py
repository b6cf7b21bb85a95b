"""Webhooks of tasks: the four operations, within the caller's scope, and webhooks that come with messages.

Spec: §3.1.7 to §3.1.10, PCFG-01 to PCFG-13, AMB-60 to AMB-64, AMB-71, B117, B119.
"""

from __future__ import annotations

from typing import Any

from dragoman.errors import PushNotificationNotSupportedError, TaskNotFoundError
from dragoman.model import (
    DeleteTaskPushNotificationConfigRequest,
    Empty,
    GetTaskPushNotificationConfigRequest,
    ListTaskPushNotificationConfigsRequest,
    ListTaskPushNotificationConfigsResponse,
    SendMessageRequest,
    TaskPushNotificationConfig,
)
from dragoman.ports.operations import CallContext
from dragoman.ports.push import Push, Webhook
from dragoman.ports.store import TaskStore
from dragoman.protocol.paging import decode_page_token, encode_page_token
from dragoman.protocol.validation import DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE
from dragoman.runtime.registry import Registry, not_found

PATH = "configuration.taskPushNotificationConfig."


class Webhooks:
    """Push configurations. Without ``push`` there are none, and every use of them is refused."""

    def __init__(self, push: Push | None, registry: Registry, store: TaskStore) -> None:
        self._push = push
        self._registry = registry
        self._store = store
        self._page_key = b""

    async def start(self) -> None:
        """Fetch the key of page tokens, begin to deliver."""
        if self._push is not None:
            self._page_key = await self._store.secret("page-token")
            await self._push.open()

    async def stop(self) -> None:
        """Deliver no more."""
        if self._push is not None:
            await self._push.close()

    # With messages.

    async def check(self, request: SendMessageRequest) -> None:
        """Refuse a webhook that may not be called, before any work. Spec: AMB-15, AMB-71."""
        configuration = request.configuration
        if configuration is not None and configuration.task_push_notification_config is not None:
            await self._on().check(configuration.task_push_notification_config, PATH)

    def seal(self, request: SendMessageRequest, call: CallContext, task_id: str) -> Webhook | None:
        """The webhook that comes with a message that opens a task."""
        return None if request.configuration is None or self._push is None else self._push.seal(request, call, task_id)

    async def accept(self, request: SendMessageRequest, call: CallContext, task_id: str) -> None:
        """Keep the webhook that comes with a message to a task."""
        if request.configuration is not None and self._push is not None:
            await self._push.accept(request, call, task_id)

    # Operations.

    def _on(self) -> Push:
        if self._push is None:
            raise PushNotificationNotSupportedError("This agent does not send push notifications")
        return self._push

    async def create(self, request: TaskPushNotificationConfig, call: CallContext) -> TaskPushNotificationConfig:
        """Keep a webhook; with the id of another one it takes its place."""
        push = self._on()
        await self._check_task(request, call)
        await push.check(request)
        return await push.create(request, call)

    async def get(self, request: GetTaskPushNotificationConfigRequest, call: CallContext) -> TaskPushNotificationConfig:
        """A webhook, without its secrets."""
        push = self._on()
        await self._check_task(request, call)
        found = await push.get(request.task_id, request.id)
        if found is None:
            text = "The task has no such push notification configuration"
            raise TaskNotFoundError(text, metadata={"taskId": request.task_id[:256]})
        return found

    async def list(
        self, request: ListTaskPushNotificationConfigsRequest, call: CallContext
    ) -> ListTaskPushNotificationConfigsResponse:
        """A page of the task's webhooks. Spec: PCFG-06, PCFG-07, AMB-64."""
        push = self._on()
        await self._check_task(request, call)
        scope = call.scope
        sealed: dict[str, Any] = {
            "agent": scope.agent,
            "tenant": scope.tenant,
            "owner": scope.owner,
            "context_id": f"webhooks of {request.task_id}",
        }
        token = request.page_token
        after = decode_page_token(self._page_key, token, **sealed)[0] if token else 0
        size = min(request.page_size or DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE)
        configs, more = await push.page(request.task_id, after, size)
        next_token = "" if more is None else encode_page_token(self._page_key, (more, ""), **sealed)
        return ListTaskPushNotificationConfigsResponse(configs=configs, next_page_token=next_token)

    async def delete(self, request: DeleteTaskPushNotificationConfigRequest, call: CallContext) -> Empty:
        """Remove a webhook; that there is none is no error. Spec: PCFG-08, PCFG-09, AMB-63."""
        push = self._on()
        await self._check_task(request, call)
        await push.delete(request.task_id, request.id)
        return Empty()

    async def _check_task(
        self,
        request: (
            TaskPushNotificationConfig
            | GetTaskPushNotificationConfigRequest
            | ListTaskPushNotificationConfigsRequest
            | DeleteTaskPushNotificationConfigRequest
        ),
        call: CallContext,
    ) -> None:
        """Raise TaskNotFoundError for a task that is unknown or not the caller's. Spec: PCFG-05, PCFG-11, CANCEL-05."""
        scope = call.scope
        if self._registry.find(request.task_id, scope) is not None:
            return
        if await self._store.task(request.task_id, scope) is None:
            raise not_found(request.task_id)
