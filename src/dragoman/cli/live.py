"""A line of progress at the bottom of a terminal, while a task runs.

It is on standard error, only where that is a terminal, and it is gone before anything else is written: what is written
to standard output is the same with and without it. What the agent says appears in it as one cut line of plain text,
behind a mark of ours; markup and control characters in it are shown and not obeyed.

Spec: P-04, P-24, A2ACLI_OUT_005.
"""

from __future__ import annotations

import asyncio
import time

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from dragoman.cli.clean import one_line
from dragoman.cli.text import state_name
from dragoman.client import Result, StreamEvent
from dragoman.client.result import text_of
from dragoman.model import Message, TaskArtifactUpdateEvent

PERIOD = 0.1
_QUIET = 0.25
_KEPT = 400


class Progress:
    """The line. ``async with`` shows it; :meth:`hide` takes it away until nothing was written for a moment."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live: Live | None = None
        self._painter: asyncio.Task[None] | None = None
        self._started = time.monotonic()
        self._written = self._started
        self._state = "sending"
        self._task_id = ""
        self._said = ""
        self._text = ""
        self._spinner = Spinner("dots")

    def note(self, event: StreamEvent, result: Result) -> None:
        """Take what an event tells."""
        if result.task is None:
            return
        self._state = state_name(result.task.status.state)
        self._task_id = result.task.id
        if isinstance(event, TaskArtifactUpdateEvent):
            self._text = (self._text + text_of(event.artifact.parts))[-_KEPT:]
        elif not isinstance(event, Message):
            said = event.status.message
            self._said = text_of(said.parts) if said is not None else self._said

    def hide(self) -> None:
        """Take the line away."""
        self._written = time.monotonic()
        live, self._live = self._live, None
        if live is not None:
            live.stop()

    async def __aenter__(self) -> Progress:
        self._painter = asyncio.create_task(self._paint())
        return self

    async def __aexit__(self, *exc: object) -> None:
        assert self._painter is not None
        self._painter.cancel()
        await asyncio.gather(self._painter, return_exceptions=True)
        self.hide()

    async def _paint(self) -> None:
        while True:
            if self._live is not None:
                self._live.update(self._render(), refresh=True)
            elif time.monotonic() - self._written >= _QUIET:
                self._live = Live(
                    self._render(),
                    console=self._console,
                    transient=True,
                    auto_refresh=False,
                    redirect_stdout=False,
                    redirect_stderr=False,
                )
                self._live.start(refresh=True)
            await asyncio.sleep(PERIOD)

    def _render(self) -> RenderableType:
        seconds = time.monotonic() - self._started
        head = Text(f"{self._state}  {seconds:.0f} s  {one_line(self._task_id)}", no_wrap=True, overflow="ellipsis")
        self._spinner.update(text=head)
        lines: list[RenderableType] = [self._spinner]
        for kept in (self._said, self._text):
            last = kept.rstrip().rpartition("\n")[2]
            if last:
                lines.append(Text(f"  │ {one_line(last)}", style="dim", no_wrap=True, overflow="ellipsis"))
        return Group(*lines)


def make_progress() -> Progress:
    """The line on standard error of this process."""
    return Progress(Console(stderr=True, markup=False, highlight=False, emoji=False))
