"""Reading the values of options, out of whatever place they come from. Pure; ValueError says what is allowed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from dragoman.model import TaskState, Timestamp
from dragoman.protocol.versions import parse_version

TRUE = frozenset({"1", "true", "yes", "on"})
FALSE = frozenset({"0", "false", "no", "off"})

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION = re.compile(r"(?:(?:\d+(?:\.\d+)?)(?:ms|s|m|h))+", re.ASCII)
_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)", re.ASCII)
_NUMBER = re.compile(r"\d+(?:\.\d+)?", re.ASCII)

_BINDINGS = {
    "jsonrpc": "JSONRPC",
    "rest": "HTTP+JSON",
    "http": "HTTP+JSON",
    "http+json": "HTTP+JSON",
    "http_json": "HTTP+JSON",
    "grpc": "GRPC",
}
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", re.ASCII)
_MEDIA_TYPE = re.compile(r"[A-Za-z0-9!#$&^_.+-]+/[A-Za-z0-9!#$&^_.+*-]+(?:\s*;.*)?", re.ASCII)
LEAST_POLL = 0.1


def read_flag(text: str) -> bool:
    """A flag as an environment writes it."""
    word = text.strip().lower()
    if word in TRUE or word in FALSE:
        return word in TRUE
    raise ValueError("must be one of 1, true, yes, on, 0, false, no, off")


def read_duration(text: str) -> float:
    """Seconds: a bare number, or numbers with ms, s, m, h (``1m30s``)."""
    text = text.strip()
    if _NUMBER.fullmatch(text):
        return float(text)
    if not _DURATION.fullmatch(text):
        raise ValueError("must be a duration such as 500ms, 30s, 1m30s or 2h; a bare number is seconds")
    return sum(float(number) * _UNITS[unit] for number, unit in _DURATION_PART.findall(text))


def read_limit(text: str) -> float | None:
    """A duration that may be 0 for no limit, which gives None."""
    return read_duration(text) or None


def read_poll_interval(text: str) -> float:
    """A duration that keeps a poll from being a busy loop."""
    seconds = read_duration(text)
    if seconds < LEAST_POLL:
        raise ValueError("must be 100ms or more")
    return seconds


def show_duration(seconds: float) -> str:
    """The shortest way to write a duration of at least a millisecond."""
    if seconds < 1:
        return f"{seconds * 1000:.0f}ms"
    whole, found = int(seconds), ""
    for unit, size in (("h", 3600), ("m", 60)):
        count, whole = divmod(whole, size)
        found += f"{count}{unit}" if count else ""
    rest = whole + seconds % 1
    return found + (f"{rest:g}s" if rest or not found else "")


def read_binding(text: str) -> str:
    """The name of a binding as cards write it; a custom binding by its URI."""
    word = text.strip()
    known = _BINDINGS.get(word.lower())
    if known is None and "://" not in word:
        raise ValueError("must be JSONRPC, HTTP+JSON or GRPC, or the URI of a custom binding")
    return known or word


def read_state(text: str) -> TaskState:
    """A task state: ``input-required``, ``INPUT_REQUIRED``, ``TASK_STATE_INPUT_REQUIRED``, in any case."""
    word = text.strip().upper().replace("-", "_").removeprefix("TASK_STATE_")
    try:
        return TaskState[word]
    except KeyError:
        names = ", ".join(state.name.lower().replace("_", "-") for state in TaskState)
        raise ValueError(f"must be one of {names}") from None


def read_header(text: str) -> tuple[str, str]:
    """``name:value``, or ``name=value`` when no colon comes first."""
    at = min((i for i in (text.find(":"), text.find("=")) if i >= 0), default=-1)
    name, value = text[:at].strip(), text[at + 1 :].strip()
    if at < 0 or not _TOKEN.fullmatch(name):
        raise ValueError("must be name:value, the name a token of HTTP")
    if any(c < " " or c == "\x7f" for c in value) or not value.isascii():
        raise ValueError("must have a value of printable ASCII")
    return name, value


def read_service_parameter(text: str) -> tuple[str, str]:
    """A header that is no matter of the protocol's own."""
    name, value = read_header(text)
    if name.lower() == "a2a-version":
        raise ValueError("must not set A2A-Version: use --a2a-version")
    return name, value


def read_header_name(text: str) -> str:
    """The name of a header."""
    if not _TOKEN.fullmatch(text):
        raise ValueError("must be the name of an HTTP header")
    return text


def read_object(text: str) -> dict[str, Any]:
    """A JSON object."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError("must be a JSON object, and is no JSON") from None
    if not isinstance(value, dict):
        raise ValueError('must be a JSON object, such as {"key": "value"}')
    return value


def read_version(text: str) -> str:
    """``major.minor``."""
    numbers = parse_version(text)
    if numbers is None:
        raise ValueError("must be a version such as 1.0")
    return f"{numbers[0]}.{numbers[1]}"


def read_media_type(text: str) -> str:
    """A media type."""
    if not _MEDIA_TYPE.fullmatch(text):
        raise ValueError("must be a media type such as application/pdf")
    return text


def one_of(*words: str) -> Callable[[str], str]:
    """A reader of one of these words."""

    def read(text: str) -> str:
        if text not in words:
            raise ValueError(f"must be {', '.join(words[:-1])} or {words[-1]}")
        return text

    return read


def read_count(text: str) -> int:
    """A whole number, 0 or more."""
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise ValueError("must be a whole number, 0 or more")
    return int(text)


def read_page_size(text: str) -> int:
    """A whole number from 1 to 100."""
    size = read_count(text)
    if not 1 <= size <= 100:
        raise ValueError("must be from 1 to 100")
    return size


def read_moment(text: str, now: datetime) -> Timestamp:
    """RFC 3339 text, or a duration back from ``now``."""
    try:
        return Timestamp.parse(text)
    except ValueError:
        pass
    try:
        return Timestamp.of((now - timedelta(seconds=read_duration(text))).astimezone(UTC))
    except (ValueError, OverflowError):
        raise ValueError(
            "must be a time such as 2026-03-04T09:00:00Z, or a duration back from now such as 2h"
        ) from None


def read_text(text: str) -> str:
    """Any text that can be sent."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("must be valid UTF-8") from None
    return text


def read_list(text: str) -> list[str]:
    """Several values in one variable: separated by commas, or a JSON array of strings."""
    if not text.lstrip().startswith("["):
        return [item.strip() for item in text.split(",") if item.strip()]
    try:
        items = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError("must be a list with commas or a JSON array of strings") from None
    if not all(isinstance(item, str) for item in items):
        raise ValueError("must be a list with commas or a JSON array of strings")
    return list(items)
