"""Cards that were fetched, kept as long as HTTP caching allows. Spec: §8.6.2, CARD-18, CARD-22 to CARD-24."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import msgspec

from dragoman.client.caching import Freshness, read_freshness
from dragoman.model import AgentCard


class FetchedCard(msgspec.Struct, frozen=True, kw_only=True):
    """A card, where it came from, and the JSON text it was read from (for signatures and validation)."""

    card: AgentCard
    url: str
    json: bytes


class _Kept(msgspec.Struct, kw_only=True):
    fetched: FetchedCard
    freshness: Freshness
    until: float


class CardCache:
    """Keeps fetched cards as their HTTP headers allow, in memory; may be shared by all connections of a process.

    ``default_seconds`` is how long a card without caching headers is used (default 60), ``max_cards`` how many are
    kept (default 256, the oldest goes first). ``now`` is a clock in seconds.
    """

    def __init__(
        self, *, default_seconds: float = 60.0, max_cards: int = 256, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._default_seconds = default_seconds
        self._max_cards = max_cards
        self._now = now
        self._kept: dict[str, _Kept] = {}

    def fresh(self, key: str) -> FetchedCard | None:
        """The card under a key, if it may be used without asking."""
        kept = self._kept.get(key)
        return kept.fetched if kept is not None and self._now() < kept.until else None

    def seconds_left(self, card: AgentCard) -> float:
        """How long a card that came out of here may still be used; 0 for one that is not kept."""
        until = max((kept.until for kept in self._kept.values() if kept.fetched.card is card), default=0.0)
        return max(until - self._now(), 0.0) if until else 0.0

    def conditions(self, key: str) -> dict[str, str]:
        """Headers that ask whether the card kept under a key is still the same. Spec: CARD-23."""
        kept = self._kept.get(key)
        if kept is None:
            return {}
        if kept.freshness.etag:
            return {"if-none-match": kept.freshness.etag}
        return {"if-modified-since": kept.freshness.last_modified} if kept.freshness.last_modified else {}

    def keep(self, key: str, fetched: FetchedCard, headers: Mapping[str, str]) -> FetchedCard:
        """Keep a card as far as the headers of its answer allow."""
        freshness = read_freshness(headers, self._default_seconds)
        self._kept.pop(key, None)
        if freshness.storable:
            while len(self._kept) >= self._max_cards:
                del self._kept[next(iter(self._kept))]
            until = self._now() + freshness.seconds
            self._kept[key] = _Kept(fetched=fetched, freshness=freshness, until=until)
        return fetched

    def confirm(self, key: str, headers: Mapping[str, str]) -> FetchedCard | None:
        """Note that the card under a key is unchanged (304), and return it."""
        kept = self._kept.get(key)
        if kept is None:
            return None
        validators = {"etag": kept.freshness.etag, "last-modified": kept.freshness.last_modified}
        return self.keep(key, kept.fetched, {**{k: v for k, v in validators.items() if v}, **headers})
