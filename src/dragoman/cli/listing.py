"""Pages of tasks, shown. Spec: A2ACLI_TASK_LIST_001; section 14.5 of the register of the command line."""

from __future__ import annotations

from typing import TypedDict

from msgspec.structs import replace

from dragoman.cli import text
from dragoman.cli.reaching import Agent
from dragoman.cli.session import Session
from dragoman.errors import InvalidAgentResponseError
from dragoman.model import ListTasksResponse, Task, TaskState, Timestamp


class Filters(TypedDict):
    """Arguments of ``Client.list_tasks`` that stay the same from page to page."""

    context_id: str
    status: TaskState
    page_size: int | None
    history_length: int | None
    status_timestamp_after: Timestamp | None
    include_artifacts: bool | None


async def list_page(session: Session, agent: Agent, filters: Filters, token: str) -> None:
    """One page."""
    page = await agent.client.list_tasks(page_token=token, **filters)
    if session.output.json and not session.stream:
        session.output.struct(page)
        return
    for task in page.tasks:
        _show(session, task, filters)
    if page.next_page_token and not session.output.json:
        record = text.Record()
        record.field("Next page", page.next_page_token)
        session.output.record(record)


async def list_all(session: Session, agent: Agent, filters: Filters, limit: int | None) -> None:
    """All pages, or as many as hold ``limit`` tasks; as one document, or each task as its page comes."""
    merged: list[Task] = []
    token, page = "", None
    while limit is None or len(merged) < limit:
        page = await agent.client.list_tasks(page_token=token, **filters)
        tasks = page.tasks if limit is None else page.tasks[: limit - len(merged)]
        merged += tasks
        if not session.output.json or session.stream:
            for task in tasks:
                _show(session, task, filters)
        if page.next_page_token and page.next_page_token == token:
            raise InvalidAgentResponseError("ListTasks leads back to the same page")
        token = page.next_page_token
        if not token:
            break
    if session.output.json and not session.stream:
        page = page or ListTasksResponse(tasks=[], next_page_token="", page_size=0, total_size=0)
        session.output.struct(replace(page, tasks=merged, next_page_token="", page_size=len(merged)))


def _show(session: Session, task: Task, filters: Filters) -> None:
    if session.output.json:
        session.output.struct(task)
    else:
        history = filters["history_length"] is not None
        session.output.record(text.task_record(task, history=history, verbose=session.verbose))
