"""What a traveller wants, and how it is read from what they say."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from .places import BY_NAME, NAMES, City

MOST_NIGHTS, MOST_PEOPLE = 30, 9


class Unclear(Exception):
    """An answer that cannot be used; the text says what would do."""


def read_city(text: str) -> City:
    """The city that the text names."""
    words = text.casefold()
    for name, city in BY_NAME.items():
        if re.search(rf"\b{name}\b", words):
            return city
    raise Unclear(f"I know {NAMES}.")


def read_date(text: str) -> date:
    """A date as 2026-05-03."""
    found = re.search(r"\b\d{4}-\d\d-\d\d\b", text)
    try:
        return date.fromisoformat(found[0] if found else "")
    except ValueError:
        raise Unclear("A date looks like 2026-05-03.") from None


def read_count(most: int) -> Callable[[str], int]:
    """A reader of a whole number from 1 to ``most``."""

    def read(text: str) -> int:
        found = re.search(r"(?<![\d-])\d{1,4}(?![\d-])", text)
        if found is None or not 1 <= int(found[0]) <= most:
            raise Unclear(f"A number from 1 to {most} is needed.")
        return int(found[0])

    return read


@dataclass(frozen=True)
class Wish:
    """One thing to know: how to ask for it, how to read the answer, and how it shows up in a longer sentence."""

    name: str
    question: str
    read: Callable[[str], Any]
    hint: re.Pattern[str]


WISHES = (
    Wish("origin", "Where do you start?", read_city, re.compile(r"\bfrom ([a-z]+)", re.I)),
    Wish("destination", "Where do you want to go?", read_city, re.compile(r"\b(?:to|in|visit) ([a-z]+)", re.I)),
    Wish("departure", "When do you leave? (year-month-day)", read_date, re.compile(r"\b(\d{4}-\d\d-\d\d)\b")),
    Wish("nights", "For how many nights?", read_count(MOST_NIGHTS), re.compile(r"\b(\d+) nights?\b", re.I)),
    Wish(
        "people", "How many people travel?", read_count(MOST_PEOPLE), re.compile(r"\b(\d+) (?:people|persons?)\b", re.I)
    ),
)


def read_first_message(text: str, data: Any) -> dict[str, Any]:
    """What the opening message says, in a data part (``{"nights": 3}``) or in words; the unclear is left out."""
    given = data if isinstance(data, Mapping) else {}
    known = {}
    for wish in WISHES:
        said = [str(given[wish.name])] if wish.name in given else wish.hint.findall(text)
        if (value := _first_readable(wish, said)) is not None:
            known[wish.name] = value
    return known


def _first_readable(wish: Wish, said: list[str]) -> Any:
    for words in said:
        try:
            return wish.read(words)
        except Unclear:
            continue
    return None
