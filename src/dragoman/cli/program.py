"""Running one command that talks to an agent: its event loop, its time, its signals, its failures.

Spec: A2ACLI_TASK_POLL_002, P-23, D-05, D-19; section 10.2 of the register of the command line.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable

from dragoman.cli.classify import AUTH_FAILED, Failure, classify
from dragoman.cli.failures import CommandError, SignalError, TimeLimitError
from dragoman.cli.hints import hint_for
from dragoman.cli.options import Run
from dragoman.cli.output import ClosedOutputError, Screen
from dragoman.cli.reporting import report, trace
from dragoman.cli.resume import Hint, quoted
from dragoman.cli.session import Session
from dragoman.cli.values import show_duration

Body = Callable[[Session], Awaitable[int]]


def run_client(run: Run, body: Body, *, stream: bool = False, sending: bool = False) -> int:
    """Run a command; returns its exit status, whatever happened.

    ``sending`` tells the hints that a message goes to a task. Raises UsageError for bad settings only.
    """
    configuration = run.configuration()
    configuration.check()
    session = Session(configuration, Screen.standard(), stream=stream)
    try:
        with asyncio.Runner() as runner:
            return runner.run(_watched(session, body))
    except ClosedOutputError:
        raise
    except KeyboardInterrupt:
        # Where signals are not the event loop's, and for the second one.
        number = signal.SIGINT
        return _fail(session, SignalError(number, f"interrupted by {number.name}{_whereabouts(session)}"), sending)
    except Exception as error:
        return _fail(session, error, sending)


async def _watched(session: Session, body: Body) -> int:
    """Run the body within its time; a signal ends it in order, a second one at once."""
    task = asyncio.current_task()
    assert task is not None
    loop, caught = asyncio.get_running_loop(), []

    def stop(number: signal.Signals) -> None:
        caught.append(number)
        loop.remove_signal_handler(number)
        task.cancel()

    for number in (signal.SIGINT, signal.SIGTERM):
        if sys.platform != "win32":
            loop.add_signal_handler(number, stop, number)
    try:
        return await _within(session, body)
    except asyncio.CancelledError:
        if not caught:
            raise
        raise SignalError(caught[0], f"interrupted by {caught[0].name}{_whereabouts(session)}") from None


async def _within(session: Session, body: Body) -> int:
    limit = asyncio.timeout(session["timeout"])
    try:
        async with limit:
            return await body(session)
    except TimeoutError:
        if not limit.expired():
            raise
        after = show_duration(session["timeout"])
        if session.task_id:
            state = f"still {session.state}" if session.state else "not over"
            raise TimeLimitError(f"task {session.task_id} is {state} after {after}") from None
        raise TimeLimitError(f"no answer within {after}") from None


def _whereabouts(session: Session) -> str:
    return f"; task {session.task_id} goes on" if session.task_id else ""


def _fail(session: Session, error: Exception, sending: bool) -> int:
    failure = classify(error, with_credential=session.attached.any)
    more: list[Hint] = []
    if isinstance(error, SignalError | TimeLimitError) and session.task_id:
        wait, cancel = session.words.wait(session.task_id), session.words.cancel(session.task_id)
        more, hint = [("Resume", wait), ("Cancel", cancel)], wait
    else:
        hint = failure.hint or _hint(session, failure, sending)
    if failure.code == "A2ACLI_ERR_INTERNAL" and not isinstance(error, CommandError) and session.notes.debugging:
        session.screen.tell(trace(error, session.redactor))
    output = session.output
    told = Failure(
        code=failure.code,
        message=failure.message,
        hint=hint,
        a2a_code=failure.a2a_code,
        exit_status=failure.exit_status,
    )
    report(told, session.screen, session.redactor, json=output.json, indent=output.indent, more=more)
    return 128 + error.number if isinstance(error, SignalError) else failure.exit_status


def _hint(session: Session, failure: Failure, sending: bool) -> str:
    if session.login is not None and failure.code == AUTH_FAILED:
        where = ["-a", session.card_reference, "--client-id", session.login.client_id]
        return quoted(["dragoman", "auth", "login", *where])
    return hint_for(
        failure.code, session.words, reference=session.card_reference, task_id=session.named_task, sending=sending
    )
