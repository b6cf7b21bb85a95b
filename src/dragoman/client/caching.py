"""How long a fetched card may be used: the part of HTTP caching (RFC 9111) that a private cache needs. Pure.

Spec: §8.6.2, CARD-22 to CARD-24.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime

import msgspec


class Freshness(msgspec.Struct, frozen=True):
    """What the head of an answer says about keeping it.

    ``storable``: whether it may be kept at all; ``seconds``: how long it may be used without asking again; ``etag`` and
    ``last_modified``: what to ask with then, or empty.
    """

    storable: bool
    seconds: float
    etag: str = ""
    last_modified: str = ""


def read_freshness(headers: Mapping[str, str], default_seconds: float) -> Freshness:
    """Read the caching headers (names in lower case). ``default_seconds`` holds where they say nothing."""
    directives = _directives(headers.get("cache-control", ""))
    storable = "no-store" not in directives and headers.get("vary", "").strip() != "*"
    return Freshness(
        storable=storable,
        seconds=_lifetime(headers, directives, default_seconds) if storable else 0.0,
        etag=headers.get("etag", ""),
        last_modified=headers.get("last-modified", ""),
    )


def _lifetime(headers: Mapping[str, str], directives: Mapping[str, str], default: float) -> float:
    if "no-cache" in directives:
        return 0.0
    age = _number(headers.get("age", "")) or 0
    if "max-age" in directives:
        return float(max((_number(directives["max-age"]) or 0) - age, 0))
    if "expires" in headers:
        expires, date = _moment(headers["expires"]), _moment(headers.get("date", ""))
        return max((expires - date).total_seconds() - age, 0.0) if expires and date else 0.0
    return default


def _directives(text: str) -> dict[str, str]:
    found = {}
    for item in text.split(","):
        name, _, value = item.strip().partition("=")
        found[name.lower()] = value.strip('"')
    return found


def _number(text: str) -> int | None:
    text = text.strip()
    return int(text[:12]) if text.isascii() and text.isdigit() else None


def _moment(text: str) -> datetime | None:
    try:
        return parsedate_to_datetime(text)
    except (ValueError, TypeError):
        return None
