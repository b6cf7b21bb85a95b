"""How the tests of the contract talk to a store."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import msgspec

from dragoman.errors import StoreError
from dragoman.model import TaskState
from dragoman.ports.store import Append, Scope, StoredTask, TaskPage, TaskQuery, TaskStore

Test = TypeVar("Test", bound=Callable[..., Awaitable[None]])

ANYBODY = Scope()
DONE, WORKING, WAITING = TaskState.COMPLETED, TaskState.WORKING, TaskState.INPUT_REQUIRED


def proves(*requirements: str) -> Callable[[Test], Test]:
    """Name the rows of the register that a test proves."""

    def mark(test: Test) -> Test:
        test.__dict__["requirements"] = requirements
        return test

    return mark


async def put(store: TaskStore, *appends: Append) -> None:
    """Append, and insist that nothing is refused."""
    outcomes = await store.append(appends)
    assert list(outcomes) == [None] * len(appends), outcomes


async def get(store: TaskStore, task_id: str) -> StoredTask:
    """A task that must be there."""
    stored = await store.task(task_id, None)
    assert stored is not None, f"{task_id} is missing"
    return stored


async def refusal(store: TaskStore, append: Append) -> StoreError | None:
    """The outcome of one append."""
    (outcome,) = await store.append([append])
    return outcome


async def raised(call: Awaitable[Any]) -> Exception | None:
    """What a call raises, or None."""
    try:
        await call
    except Exception as error:
        return error
    return None


async def every_page(store: TaskStore, query: TaskQuery) -> list[TaskPage]:
    """All pages of a listing, in order."""
    pages = [await store.page(query)]
    while pages[-1].next is not None:
        pages.append(await store.page(msgspec.structs.replace(query, after=pages[-1].next)))
    return pages


async def listed_ids(store: TaskStore, query: TaskQuery) -> list[str]:
    """The ids of a whole listing, in order."""
    return [task.id for page in await every_page(store, query) for task in page.tasks]
