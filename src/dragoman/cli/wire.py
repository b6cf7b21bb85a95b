"""``--debug``: what goes over the wire, on standard error, without secrets. Spec: A2ACLI_OUT_007, A2ACLI_AUTH_004."""

from __future__ import annotations

import time
from collections.abc import Mapping

from dragoman.cli.clean import one_line
from dragoman.cli.output import Screen
from dragoman.cli.redact import Redactor

# A line that never ends is shown in pieces of this many bytes; a secret may be cut by their border only beyond it.
_LONGEST_LINE = 1 << 20


class Dump:
    """A tap that writes down requests and answers; lines of a body as they are complete, so that secrets stay whole."""

    def __init__(self, screen: Screen, redactor: Redactor, started: float) -> None:
        self._screen = screen
        self._redactor = redactor
        self._started = started
        self._rest = b""
        self._encoded = False

    def request(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> None:
        """See :class:`~dragoman.http.tap.Tap`."""
        self._write(f"* {time.monotonic() - self._started:.3f} s")
        self._write(f"> {method} {url}")
        for name, value in headers.items():
            self._write(f"> {name}: {self._redactor.header(name, value)}")
        for line in body.splitlines():
            self._write("> " + line.decode("utf-8", "backslashreplace"))

    def response(self, status: int, headers: Mapping[str, str]) -> None:
        """See :class:`~dragoman.http.tap.Tap`."""
        self._flush()
        self._encoded = "content-encoding" in headers
        self._write(f"* {time.monotonic() - self._started:.3f} s")
        self._write(f"< {status}")
        for name, value in headers.items():
            self._write(f"< {name}: {self._redactor.header(name, value)}")

    def chunk(self, data: bytes) -> None:
        """See :class:`~dragoman.http.tap.Tap`."""
        if self._encoded:
            self._write(f"< ({len(data)} bytes, encoded)")
            return
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._write("< " + line.decode("utf-8", "backslashreplace").rstrip("\r"))
        if len(self._rest) > _LONGEST_LINE:
            self._flush()

    def end(self) -> None:
        """See :class:`~dragoman.http.tap.Tap`."""
        self._flush()

    def _flush(self) -> None:
        rest, self._rest = self._rest, b""
        if rest:
            self._write("< " + rest.decode("utf-8", "backslashreplace"))

    def _write(self, line: str) -> None:
        self._screen.tell(one_line(self._redactor.line(line)) + "\n")
