"""Reading ``WWW-Authenticate``: which ways of authentication an answer names, and with which parameters. Pure.

The grammar has no separator of its own between challenges: a comma ends a parameter, a parameter's value, or a whole
challenge. A word that an ``=`` follows is a parameter; any other word begins a challenge.

Spec: RFC 9110 §11.6.1, RFC 6750 §3, AC-C-90.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import msgspec

_BLANKS = " \t"
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_TOKEN68 = re.compile(r"[A-Za-z0-9._~+/-]+=*(?=[ \t]*(?:,|$))")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_ESCAPED = re.compile(r"\\(.)")
_UNTIL_COMMA = re.compile(r"[^,]*")


class Challenge(msgspec.Struct, frozen=True):
    """One challenge. ``scheme`` and the names of ``parameters`` are in lower case; the first of a name counts."""

    scheme: str
    parameters: Mapping[str, str] = {}
    token68: str = ""


def parse_challenges(lines: Iterable[str]) -> list[Challenge]:
    """The challenges of one or more header lines, in order. What cannot be read is passed over; never raises."""
    return [challenge for line in lines for challenge in _Reader(line).read()]


def bearer_challenge(lines: Iterable[str]) -> Challenge | None:
    """The challenge of the scheme Bearer, the one with the most parameters when there are several."""
    found = [challenge for challenge in parse_challenges(lines) if challenge.scheme == "bearer"]
    return max(found, key=lambda challenge: len(challenge.parameters), default=None)


class _Reader:
    """Reads one line from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def read(self) -> list[Challenge]:
        found: list[Challenge] = []
        while self._skip(_BLANKS + ","):
            scheme = self._take(_TOKEN)
            if not scheme:
                self._take(_UNTIL_COMMA)
                continue
            found.append(self._challenge(scheme.lower()))
        return found

    def _challenge(self, scheme: str) -> Challenge:
        self._skip(_BLANKS)
        token68 = self._take(_TOKEN68)
        return Challenge(scheme, {}, token68) if token68 else Challenge(scheme, self._parameters())

    def _parameters(self) -> dict[str, str]:
        found: dict[str, str] = {}
        while self._skip(_BLANKS + ","):
            start = self._at
            name = self._take(_TOKEN)
            self._skip(_BLANKS)
            if not name or not self._accept("="):
                self._at = start
                break
            found.setdefault(name.lower(), self._value())
        return found

    def _value(self) -> str:
        self._skip(_BLANKS)
        quoted = _QUOTED.match(self._text, self._at)
        if quoted is None:
            return self._take(_UNTIL_COMMA).strip(_BLANKS).lstrip('"')
        self._at = quoted.end()
        return _ESCAPED.sub(r"\1", quoted[1])

    def _skip(self, characters: str) -> bool:
        """Pass over characters; whether anything is left."""
        while self._at < len(self._text) and self._text[self._at] in characters:
            self._at += 1
        return self._at < len(self._text)

    def _take(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self._text, self._at)
        if match is None:
            return ""
        self._at = match.end()
        return match[0]

    def _accept(self, character: str) -> bool:
        if not self._text.startswith(character, self._at):
            return False
        self._at += 1
        return True
