"""An agent on a runtime that is broken on purpose: it publishes, then persists. The harness has to find that out."""

from __future__ import annotations

from dragoman.ports.store import Append, Record
from dragoman.runtime.live import LiveTask
from tests.faults.agents import once

_take, _show = LiveTask.take_append, LiveTask._show


def _take_and_show(live: LiveTask) -> Append | None:
    append = _take(live)
    if append is not None:
        _show(live, list(append.records))
    return append


def _show_nothing(live: LiveTask, records: list[Record]) -> None:
    """Everything was shown before."""


LiveTask.take_append = _take_and_show  # type: ignore[method-assign]
LiveTask._show = _show_nothing  # type: ignore[method-assign]

__all__ = ["once"]
