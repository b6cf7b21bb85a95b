"""Waiting for a call, as long as there is somebody to be told the outcome.

A blocking SendMessage may take hours. The connection is looked at only when a call takes long, so that quick calls
pay next to nothing.

Spec: §3.5.2, SEND-08.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, TypeVar

from dragoman.http.asgi import ClientGoneError, Receive, until_disconnected
from dragoman.ports.deadlines import Deadlines

T = TypeVar("T")

_log = logging.getLogger("dragoman.bindings")


async def while_connected(receive: Receive, pending: Coroutine[Any, Any, T], patience: Deadlines) -> T:
    """Await ``pending``; when the client disconnects, cancel it and raise ClientGoneError.

    The request's body must have been read. ``patience``: the time until the connection is watched.
    """
    task = asyncio.current_task()
    assert task is not None
    watch = _Watch(receive, task)
    patience.begin(watch, watch.begin)
    try:
        return await pending
    except asyncio.CancelledError:
        if watch.gone and not task.uncancel():
            raise ClientGoneError from None
        raise
    finally:
        patience.end(watch)
        if watch.watcher is not None:
            watch.watcher.cancel()
            await asyncio.wait((watch.watcher,))


class _Watch:
    __slots__ = ("_receive", "_task", "gone", "watcher")

    def __init__(self, receive: Receive, task: asyncio.Task[Any]) -> None:
        self._receive = receive
        self._task = task
        self.gone = False
        self.watcher: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Look at the connection from now on."""
        self.watcher = asyncio.create_task(self._watch())

    async def _watch(self) -> None:
        try:
            await until_disconnected(self._receive)
        except Exception:
            # Without a connection to look at the call is waited for all the same.
            _log.exception("the server's receive failed")
            return
        self.gone = True
        self._task.cancel()
