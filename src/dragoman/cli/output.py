"""Standard output holds the payload and nothing else; standard error holds what is said about it.

Both are UTF-8 with ``\\n`` on every platform, whatever the locale, and are flushed after every record.

Spec: A2ACLI_OUT_001 to A2ACLI_OUT_003, P-24; section 9.1 of the register of the command line.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from typing import Any, BinaryIO, Protocol, TextIO

import msgspec

from dragoman.cli.clean import json_text, one_line
from dragoman.cli.redact import Redactor
from dragoman.cli.text import Record
from dragoman.errors import DragomanError
from dragoman.model import encode_json


class ClosedOutputError(DragomanError):
    """Whoever read standard output has gone: there is nobody to write for."""


class Line(Protocol):
    """A line on the terminal that is repainted, such as that of progress."""

    def hide(self) -> None:
        """Take it away, since something is going to be written."""
        ...


class Screen:
    """The two streams of the program, and the line that has to go before anything is written."""

    def __init__(self, out: BinaryIO, err: BinaryIO) -> None:
        self._out = out
        self._err = err
        self.line: Line | None = None

    @classmethod
    def standard(cls) -> Screen:
        """Those of this process."""
        return cls(_bytes_of(sys.stdout), _bytes_of(sys.stderr))

    def write(self, text: str) -> None:
        """Write payload. Raises ClosedOutputError."""
        self.write_bytes(text.encode("utf-8", "backslashreplace"))

    def write_bytes(self, data: bytes) -> None:
        """Write payload as it is. Raises ClosedOutputError."""
        self._hide()
        try:
            self._out.write(data)
            self._out.flush()
        except BrokenPipeError:
            raise ClosedOutputError("standard output is closed") from None

    def tell(self, text: str) -> None:
        """Write about the payload; when nobody reads it, nobody is told."""
        self._hide()
        try:
            self._err.write(text.encode("utf-8", "backslashreplace"))
            self._err.flush()
        except (BrokenPipeError, ValueError):
            return

    def _hide(self) -> None:
        if self.line is not None:
            self.line.hide()


def _bytes_of(stream: TextIO | None) -> BinaryIO:
    """The bytes below a stream of this process; nowhere for one that was closed by whoever started it."""
    return io.BytesIO() if stream is None else stream.buffer


class Notes:
    """What is said on standard error, one line each, without secrets and without anything a terminal would act upon."""

    def __init__(self, screen: Screen, redactor: Redactor, *, debug: bool = False) -> None:
        self._screen = screen
        self._redact = redactor
        self.debugging = debug

    def warn(self, text: str) -> None:
        """A warning."""
        self.say("Warning", text)

    def note(self, text: str) -> None:
        """Something worth knowing."""
        self.say("Note", text)

    def say(self, label: str, text: str) -> None:
        """A line with a label."""
        self._screen.tell(f"{label}: {one_line(self._redact.line(text))}\n")

    def debug(self, text: str | Callable[[], str]) -> None:
        """A line for ``--debug``."""
        if self.debugging:
            line = text if isinstance(text, str) else text()
            self._screen.tell(f"{one_line(self._redact.line(line))}\n")


class Output:
    """Writes results in the format that was asked for.

    ``lines``: JSON on one line, one object after the other, as ``--stream`` wants.
    """

    def __init__(self, screen: Screen, *, json: bool, lines: bool = False, compact: bool = False) -> None:
        self.screen = screen
        self.json = json
        self.lines = lines
        self.indent = not (lines or compact)
        self._needs_gap = False

    def struct(self, message: msgspec.Struct) -> None:
        """Write a message of the protocol as JSON."""
        self.encoded(encode_json(message))

    def document(self, value: Any) -> None:
        """Write a small document of our own as JSON."""
        self.encoded(msgspec.json.encode(value))

    def encoded(self, data: bytes) -> None:
        """Write JSON."""
        self.screen.write(json_text(data, indent=self.indent) + "\n")

    def record(self, record: Record) -> None:
        """Write a record as text, with an empty line between it and the one before."""
        gap = "\n" if self._needs_gap else ""
        self._needs_gap = not record.has_blocks
        self.screen.write(f"{gap}{record}")
