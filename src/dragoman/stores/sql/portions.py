"""Long lists of ids, for statements that take a bounded number of parameters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

_IDS_AT_ONCE = 500


def portions(ids: Iterable[str]) -> Iterator[list[str]]:
    """The ids in lists that are short enough for the parameters of one statement."""
    rest = iter(ids)
    while some := list(islice(rest, _IDS_AT_ONCE)):
        yield some
