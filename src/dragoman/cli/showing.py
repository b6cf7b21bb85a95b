"""Showing what came of a command: a task, a message, or the events on the way, as text or JSON.

Spec: A2ACLI_OUT_001 to A2ACLI_OUT_006, A2ACLI_EXIT_002, A2ACLI_INTERACT_004, D-25.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from dragoman.cli import text
from dragoman.cli.follow import OnEvent, outcome_warning
from dragoman.cli.resume import Hint, next_steps
from dragoman.cli.session import Session
from dragoman.cli.terminal import has_terminal
from dragoman.client import Result, StreamEvent
from dragoman.client.progress import as_response
from dragoman.model import Message, SendMessageResponse, Task, TaskState
from dragoman.protocol.lifecycle import is_settled

OUTCOMES = {
    TaskState.FAILED: 10,
    TaskState.REJECTED: 11,
    TaskState.CANCELED: 12,
    TaskState.INPUT_REQUIRED: 13,
    TaskState.AUTH_REQUIRED: 14,
}
"""What ``--exit-status`` makes of an outcome."""


def show_answer(session: Session, result: Result, *, history: bool = False) -> None:
    """The end of ``send``: a SendMessageResponse, or its text."""
    if session.output.json:
        _warn(session, result.task)
        session.output.struct(SendMessageResponse(task=result.task, message=result.message))
    elif result.task is not None:
        show_task(session, result.task, history=history)
    elif result.message is not None:
        _show_message(session, result.message)


def show_task(session: Session, task: Task, *, history: bool = False) -> None:
    """A task."""
    _warn(session, task)
    if session.output.json:
        session.output.struct(task)
    else:
        steps = next_steps(task, session.words)
        session.output.record(text.task_record(task, more=steps, history=history, verbose=session.verbose))


def _show_message(session: Session, message: Message) -> None:
    session.output.record(text.message_record(message, more=_go_on(session, message), verbose=session.verbose))


def _go_on(session: Session, message: Message) -> list[Hint]:
    return [("Continue", session.words.go_on(message.context_id))] if message.context_id else []


def _warn(session: Session, task: Task | None) -> None:
    warning = outcome_warning(task) if task is not None else ""
    if warning:
        session.notes.warn(warning)


def show_event(session: Session, event: StreamEvent, result: Result) -> None:
    """One event of a stream, as soon as it came; the one with which the task settles says how to go on."""
    settles = not isinstance(event, Message) and result.task is not None and is_settled(result.task.status.state)
    if session.output.json:
        session.output.struct(as_response(event))
    else:
        more: list[Hint] = []
        if isinstance(event, Message):
            more = _go_on(session, event)
        elif settles and result.task is not None:
            more = next_steps(result.task, session.words)
        session.output.record(text.event_record(event, more=more, verbose=session.verbose))


def warn_of_outcome(session: Session, result: Result) -> None:
    """After the last event of a stream: the warning that a document would have had before it."""
    _warn(session, result.task)


@asynccontextmanager
async def following(session: Session, *, events: bool) -> AsyncIterator[OnEvent]:
    """Progress for people, and with ``events`` each event as it comes. Gives what a Follower tells its events to."""
    if not _progress_is_wanted(session):
        yield lambda event, result: show_event(session, event, result) if events else None
        return
    from dragoman.cli.live import make_progress

    async with make_progress() as progress:
        session.screen.line = progress

        def tell(event: StreamEvent, result: Result) -> None:
            progress.note(event, result)
            if events:
                show_event(session, event, result)

        try:
            yield tell
        finally:
            session.screen.line = None


def _progress_is_wanted(session: Session) -> bool:
    return session["progress"] == "auto" and not session.notes.debugging and has_terminal()


def exit_status(result: Result, *, by_outcome: bool) -> int:
    """0, or with ``--exit-status`` what the outcome stands for."""
    state = result.state
    return OUTCOMES.get(state, 0) if by_outcome and isinstance(state, TaskState) else 0
