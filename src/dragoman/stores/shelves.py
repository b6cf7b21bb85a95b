"""Sorted keys for listings, settled when somebody looks.

Theory. Tasks move often (each change of status is a new sort key) and are listed rarely. So a move only notes the
item, and the sorted lists are brought up to date when they are read, or when enough moves have come together that
one pass over them is cheap for each. Every item stands on three shelves: that of all, that of its state and that of
its context; a page and a count are two binary searches on one of them. A state within a context is picked out of the
context's shelf, which is short.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from heapq import merge

from dragoman.model import TaskState

Key = tuple[int, str]
ShelfName = str | TaskState

_ALL: ShelfName = ""
_SETTLE_AT = 1024
_EMPTY: list[Key] = []


class Shelved:
    """What can stand on shelves: ``key`` and ``state`` as they are now, and as they were when last settled."""

    __slots__ = ("context_id", "gone", "key", "settled_key", "settled_state", "state")

    def __init__(self, context_id: str, key: Key, state: TaskState) -> None:
        self.context_id = context_id
        self.key = key
        self.state = state
        self.settled_key: Key | None = None
        self.settled_state: TaskState | None = None
        self.gone = False


class Shelves:
    """The sorted keys of one scope. ``size`` counts the items."""

    __slots__ = ("_moved", "_shelves", "size")

    def __init__(self) -> None:
        self.size = 0
        self._shelves: dict[ShelfName, list[Key]] = {}
        self._moved: set[Shelved] = set()

    def add(self, item: Shelved) -> None:
        """Put up a new item."""
        self.size += 1
        self.note(item)

    def remove(self, item: Shelved) -> None:
        """Take an item down for good."""
        self.size -= 1
        item.gone = True
        self.note(item)

    def note(self, item: Shelved) -> None:
        """The key or state of an item changed."""
        self._moved.add(item)
        if len(self._moved) >= _SETTLE_AT:
            self._settle()

    def shelf(self, name: ShelfName) -> list[Key]:
        """The keys of a context (``""``: of all) or of a state, in ascending order. Read only."""
        if self._moved:
            self._settle()
        return self._shelves.get(name, _EMPTY)

    def _settle(self) -> None:
        moved, self._moved = self._moved, set()
        shelves = self._shelves
        for name, (removed, added) in _changes(moved).items():
            known = shelves.get(name)
            if known is None and len(added) == 1:  # a new context, as most are
                shelves[name] = added
            elif shelf := _changed(known or [], removed, added):
                shelves[name] = shelf
            else:
                shelves.pop(name, None)


def _changes(moved: set[Shelved]) -> dict[ShelfName, tuple[list[Key], list[Key]]]:
    changes: dict[ShelfName, tuple[list[Key], list[Key]]] = {}

    def note(side: int, item: Shelved, key: Key, state: TaskState) -> None:
        for name in {_ALL, state, item.context_id}:
            changes.setdefault(name, ([], []))[side].append(key)

    for item in moved:
        if item.settled_key is not None and item.settled_state is not None:
            note(0, item, item.settled_key, item.settled_state)
        item.settled_key, item.settled_state = (None, None) if item.gone else (item.key, item.state)
        if not item.gone:
            note(1, item, item.key, item.state)
    return changes


def _changed(shelf: list[Key], removed: list[Key], added: list[Key]) -> list[Key]:
    if not removed:
        added.sort()
        if not shelf or shelf[-1] <= added[0]:  # what is new comes last, unless a clock went back
            shelf += added
            return shelf
    if len(removed) + len(added) > len(shelf) // 32:
        return _rebuilt(shelf, removed, added)
    for key in removed:
        del shelf[bisect_left(shelf, key)]
    for key in added:
        insort(shelf, key)
    return shelf


def _rebuilt(shelf: list[Key], removed: list[Key], added: list[Key]) -> list[Key]:
    gone = set(removed)
    shelf = [key for key in shelf if key not in gone] if gone else list(shelf)
    shelf += added
    shelf.sort()  # nearly in order already, which this sort makes use of
    return shelf


def merge_pages(found: Sequence[tuple[list[Key], int, bool]], page_size: int) -> tuple[list[Key], int, bool]:
    """One page out of those of several scopes."""
    keys = list(merge(*(page for page, _, _ in found), reverse=True))
    more = len(keys) > page_size or any(more for _, _, more in found)
    return keys[:page_size], sum(total for _, total, _ in found), more


def find_page(shelf: list[Key], page_size: int, since_ms: int | None, after: Key | None) -> tuple[list[Key], int, bool]:
    """The keys of a page in descending order, how many match in all, and whether more follow."""
    low = 0 if since_ms is None else bisect_left(shelf, (since_ms, ""))
    high = len(shelf) if after is None else max(low, bisect_left(shelf, after))
    start = max(low, high - page_size)
    return shelf[start:high][::-1], len(shelf) - low, start > low
