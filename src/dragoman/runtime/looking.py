"""Looking at tasks: GetTask and ListTasks.

Spec: GET-01 to GET-05, LIST-01 to LIST-15, AMB-50 to AMB-53.
"""

from __future__ import annotations

from typing import Any

from dragoman.model import GetTaskRequest, ListTasksRequest, ListTasksResponse, Task, TaskState
from dragoman.ports.clock import Clock
from dragoman.ports.operations import CallContext
from dragoman.ports.store import TaskQuery, TaskStore
from dragoman.protocol.lifecycle import with_history
from dragoman.protocol.paging import decode_page_token, encode_page_token
from dragoman.protocol.validation import DEFAULT_PAGE_SIZE
from dragoman.runtime.recent import RecentTasks
from dragoman.runtime.registry import Registry, not_found


class Looking:
    """Reads tasks: live ones as they are published, others from the store."""

    def __init__(self, registry: Registry, store: TaskStore, clock: Clock, recent: RecentTasks) -> None:
        self._registry = registry
        self._store = store
        self._clock = clock
        self._recent = recent
        self._page_key = b""

    async def start(self) -> None:
        """Fetch the key of page tokens."""
        self._page_key = await self._store.secret("page-token")

    async def get_task(self, request: GetTaskRequest, context: CallContext) -> Task:
        """The task as it stands. Raises TaskNotFoundError."""
        scope = context.scope
        live = self._registry.find(request.id, scope)
        if live is not None:
            return with_history(live.task, request.history_length)
        now_ms = self._clock.now_ms()
        task = self._recent.find(request.id, scope, now_ms)
        if task is None:
            stored = await self._store.task(request.id, scope)
            if stored is None:
                raise not_found(request.id)
            self._recent.keep(stored, now_ms)
            task = stored.task
        return with_history(task, request.history_length)

    async def list_tasks(self, request: ListTasksRequest, context: CallContext) -> ListTasksResponse:
        """A page of the caller's tasks. Raises InvalidParamsError for a page token that is not of this listing."""
        query, selection = self._query(request, context)
        page = await self._store.page(query)
        length = request.history_length or 0
        return ListTasksResponse(
            tasks=[with_history(task, length) for task in page.tasks],
            next_page_token="" if page.next is None else encode_page_token(self._page_key, page.next, **selection),
            page_size=query.page_size,
            total_size=page.total,
        )

    def _query(self, request: ListTasksRequest, context: CallContext) -> tuple[TaskQuery, dict[str, Any]]:
        """What to ask the store, and what a page token of this listing is sealed with."""
        scope = context.scope
        since = request.status_timestamp_after
        filters: dict[str, Any] = {
            "context_id": request.context_id,
            "state": _state_filter(request.status),
            "since_ms": None if since is None else since.ms,
        }
        selection = {"agent": scope.agent, "tenant": scope.tenant, "owner": scope.owner, **filters}
        token = request.page_token
        query = TaskQuery(
            scope=scope,
            page_size=DEFAULT_PAGE_SIZE if request.page_size is None else request.page_size,
            after=decode_page_token(self._page_key, token, **selection) if token else None,
            with_artifacts=bool(request.include_artifacts),
            with_history=bool(request.history_length),
            **filters,
        )
        return query, selection


def _state_filter(status: TaskState | int) -> TaskState | None:
    return status if isinstance(status, TaskState) and status is not TaskState.UNSPECIFIED else None
