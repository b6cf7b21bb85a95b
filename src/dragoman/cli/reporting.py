"""Telling of a failure: JSON on standard output, text on standard error. Spec: A2ACLI_OUT_004, D-02."""

from __future__ import annotations

import traceback

import msgspec

from dragoman.cli.classify import Failure
from dragoman.cli.clean import json_text
from dragoman.cli.output import Screen
from dragoman.cli.redact import Redactor
from dragoman.cli.resume import Hint
from dragoman.cli.text import Record


def report(
    failure: Failure, screen: Screen, redactor: Redactor, *, json: bool, indent: bool = True, more: list[Hint]
) -> None:
    """Report a failure; ``more`` are the lines that say how to go on, on standard error in every format."""
    steps = Record()
    for label, value in more:
        steps.field(label, value)
    if json:
        screen.tell(redactor.line(str(steps)))
        data = msgspec.json.encode(failure.envelope())
        screen.write(redactor.line(json_text(data, indent=indent)) + "\n")
        return
    record = Record()
    record.field("Error", failure.code)
    record.field("Message", failure.message)
    record.field("Hint", "" if more else failure.hint)
    record.field("Code", "" if failure.a2a_code is None else str(failure.a2a_code))
    screen.tell(redactor.line(f"{record}{steps}"))


def trace(error: BaseException, redactor: Redactor) -> str:
    """Where an unexpected error came from, for ``--debug``."""
    lines = "".join(traceback.format_exception(error)).splitlines()
    return "".join(f"* {redactor.line(line)}\n" for line in lines)
