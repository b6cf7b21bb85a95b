"""Direct replies: messages that are answered without a task.

Spec: SEND-02, STREAM-03, DATA-21, AMB-37, B083.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import Any

import msgspec

from dragoman.errors import A2AError, InternalError, InvalidAgentResponseError, UnavailableError
from dragoman.model import Message
from dragoman.ports.agent import Handler
from dragoman.ports.deadlines import Deadlines, OverrunError
from dragoman.ports.observing import OBSERVER, WorkObserver
from dragoman.protocol.lifecycle import check_agent_message
from dragoman.runtime.limits import Limits
from dragoman.runtime.turn import LiveTurn

logger = logging.getLogger("dragoman.runtime")


class Replying:
    """Runs handlers that never open a task, inside the call that they answer. ``observer`` is told of each."""

    def __init__(self, handler: Handler, limits: Limits, observer: WorkObserver | None = None) -> None:
        self._handler = handler
        self._observer = observer
        self._limits = limits
        self._deadlines = Deadlines(limits.reply_time)
        self._running: set[asyncio.Task[Any]] = set()
        self._idle = asyncio.Event()
        self._cut = False

    async def _run(self, turn: LiveTurn) -> Message | None:
        """The handler, counted."""
        task = asyncio.current_task()
        assert task is not None
        observer = self._observer
        token = OBSERVER.set(observer) if observer is not None else None
        self._running.add(task)
        if observer is not None:
            observer.begun(turn)
        try:
            return await self._handler.run(turn)
        finally:
            self._running.discard(task)
            if not self._running:
                self._idle.set()
            if observer is not None and token is not None:
                OBSERVER.reset(token)
                observer.ended(turn)

    async def stop(self, grace: float) -> None:
        """Let running handlers end within ``grace`` seconds, then interrupt them; their callers are told."""
        self._idle.clear()
        if not self._running:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(grace):
                await self._idle.wait()
        self._cut = True
        for task in self._running:
            task.cancel()

    async def reply(self, turn: LiveTurn) -> Message:
        """The handler's message. Raises the A2AError that the caller is told when there is none."""
        try:
            reply = await self._deadlines.bound(self._run(turn))
        except asyncio.CancelledError:
            if self._cut and (task := asyncio.current_task()) is not None and not task.uncancel():
                raise UnavailableError("The server was shut down while the agent worked on a reply") from None
            if is_cancelled():
                raise
            raise InternalError("The agent was interrupted") from None
        except OverrunError as error:
            logger.error("The agent took more than %g s for a reply", self._limits.reply_time)
            raise InternalError("The agent took too long to reply") from error
        except (Exception, SystemExit) as error:
            raise agent_failed(error) from error
        if reply is None:
            raise InvalidAgentResponseError("The agent gave no reply")
        return checked_reply(reply, turn.context_id)


def checked_reply(reply: Message, context_id: str) -> Message:
    """The reply with its context. Raises InvalidAgentResponseError when it breaks a rule."""
    if not reply.context_id:
        reply = msgspec.structs.replace(reply, context_id=context_id)
    try:
        check_agent_message(reply)
        if reply.context_id != context_id or reply.task_id:
            raise InvalidAgentResponseError("A direct reply names another context, or a task")
    except InvalidAgentResponseError as error:
        logger.error("The agent broke a rule: %s", error)
        raise
    return reply


def agent_failed(error: BaseException) -> A2AError:
    """What the caller of a direct reply is told: a protocol error as the agent raised it, anything else neutrally."""
    if isinstance(error, InvalidAgentResponseError):
        logger.error("The agent broke a rule: %s", error)
    if isinstance(error, A2AError):
        return error
    logger.error("The agent raised instead of replying", exc_info=error)
    return InternalError("The agent failed")


def is_cancelled() -> bool:
    """Whether it is the running coroutine itself that is being canceled."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
