"""Waiting for a call, as long as there is somebody to be told the outcome.

A blocking SendMessage may take hours. The connection is looked at only when a call takes long, so that quick calls
pay for one timer and nothing else.

Spec: §3.5.2, SEND-08.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, TypeVar

from dragoman.http.asgi import ClientGoneError, Receive, until_disconnected

T = TypeVar("T")

_log = logging.getLogger("dragoman.bindings")


async def while_connected(receive: Receive, pending: Coroutine[Any, Any, T], *, patience: float) -> T:
    """Await ``pending``; when the client disconnects, cancel it and raise ClientGoneError.

    The request's body must have been read. ``patience``: seconds until the connection is watched.
    """
    return await _Watch(receive).over(pending, patience)


class _Watch:
    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._gone = False
        self._watcher: asyncio.Task[None] | None = None

    async def over(self, pending: Coroutine[Any, Any, T], patience: float) -> T:
        task = asyncio.current_task()
        assert task is not None
        timer = asyncio.get_running_loop().call_later(patience, self._begin, task)
        try:
            return await pending
        except asyncio.CancelledError:
            if self._gone and not task.uncancel():
                raise ClientGoneError from None
            raise
        finally:
            timer.cancel()
            if self._watcher is not None:
                self._watcher.cancel()
                await asyncio.wait((self._watcher,))

    def _begin(self, task: asyncio.Task[Any]) -> None:
        self._watcher = asyncio.create_task(self._watch(task))

    async def _watch(self, task: asyncio.Task[Any]) -> None:
        try:
            await until_disconnected(self._receive)
        except Exception:
            # Without a connection to look at the call is waited for all the same.
            _log.exception("the server's receive failed")
            return
        self._gone = True
        task.cancel()
