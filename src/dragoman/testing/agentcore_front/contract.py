"""The contract watcher: keeps what containers did that they must not do.

Spec: AC-F-13.
"""

from __future__ import annotations

import re
from collections import deque
from typing import Any

import msgspec

from dragoman.testing.agentcore_front.pings import Violation
from dragoman.testing.agentcore_front.refusals import OWN_CODES

KEPT = 1_000
_HINT = re.compile(rb'"code"\s*:\s*-3205')


class _Answer(msgspec.Struct):
    error: dict[str, Any] | None = None


class Contract:
    """Violations, oldest first; a test asserts that there are none."""

    def __init__(self) -> None:
        self.violations: deque[Violation] = deque(maxlen=KEPT)
        self._tokens: deque[str] = deque(maxlen=KEPT)

    def add(self, *violations: Violation) -> None:
        """Keep what was found elsewhere."""
        self.violations.extend(violations)

    def note_token(self, token: str) -> None:
        """A value that must not turn up in the output of a container."""
        if token and token not in self._tokens:
            self._tokens.append(token)

    def read_output(self, line: str) -> None:
        """A line that a container wrote."""
        if any(token in line for token in self._tokens):
            self.add(Violation("token-in-output", "a token stands in what the container wrote"))

    def check_status(self, status: int) -> None:
        """The HTTP status of an answer to ``POST /``."""
        if status != 200:
            self.add(Violation("status", f"{status} on POST /"))

    def check_body(self, body: bytes) -> None:
        """An answer of JSON-RPC."""
        if not _HINT.search(body):
            return
        try:
            error = msgspec.json.decode(body, type=_Answer).error
        except msgspec.MsgspecError:
            return
        if error is not None and error.get("code") in OWN_CODES:
            self.add(Violation("own-code", f"the container answered {error['code']}"))

    def check_event(self, event: bytes) -> None:
        """One event of a stream."""
        if _HINT.search(event):
            lines = re.split(rb"[\r\n]+", event)
            self.check_body(b"\n".join(line[5:] for line in lines if line.startswith(b"data:")))
