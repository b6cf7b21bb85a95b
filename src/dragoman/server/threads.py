"""Plain functions of an author, each call in a thread of its own.

Theory. A pool would let a few slow functions keep all others waiting, and the end of the process would wait for them,
however long they take. A thread cannot be interrupted: when its caller is canceled it is left behind, and what it
gives then is dropped; a daemon thread ends with the process.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from contextvars import copy_context
from typing import Any

from dragoman.ports.observing import OBSERVER


async def call_in_thread(function: Callable[..., Any], *args: Any) -> Any:
    """Call the function in a new thread, with the caller's context variables; its result, or what it raises."""
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[Any] = loop.create_future()
    context = copy_context()
    observer = OBSERVER.get()
    if observer is not None:
        observer.begun(outcome)

    def work() -> None:
        settle: Callable[[Any], None] = outcome.set_result
        given: Any
        try:
            given = context.run(function, *args)
        except BaseException as error:
            settle, given = outcome.set_exception, _carried(error)
        if observer is not None:
            observer.ended(outcome)
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(_tell, outcome, settle, given)

    threading.Thread(target=work, name="dragoman-handler", daemon=True).start()
    return await outcome


def _carried(error: BaseException) -> BaseException:
    """A future does not carry StopIteration, which would end the coroutine that awaits it."""
    if not isinstance(error, StopIteration):
        return error
    carried = RuntimeError("the function raised StopIteration")
    carried.__cause__ = error
    return carried


def _tell(outcome: asyncio.Future[Any], settle: Callable[[Any], None], given: Any) -> None:
    if not outcome.done():
        settle(given)
