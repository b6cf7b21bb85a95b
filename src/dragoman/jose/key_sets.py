"""Sets of public keys at addresses, fetched with limits and kept for a while.

A set is fetched once, then used as long as its headers say, between a minute and an hour. A key that it does not hold
has it fetched again, since keys are rotated, but not more often than once in ten seconds. A fetch that failed is not
repeated for as long. Redirects are not followed.

Spec: SIGN-12, SIGN-15, SIGN-17, SEC-15, AMB-71, AMB-86; RFC 7517 §5.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable

import msgspec

from dragoman.errors import ClientError, InvalidAgentResponseError
from dragoman.http.client import Answer
from dragoman.http.fetching import Fetcher
from dragoman.http.guard import is_loopback_host, parse_target, shown
from dragoman.jose.keys import BadKeyError, PublicKey, read_keys

MAX_BYTES = 256 * 1024
TIMEOUT = 5.0
MAX_SETS = 64
_SHORTEST, _USUAL, _LONGEST = 60.0, 300.0, 3600.0
_AGAIN = 10.0
_MAX_AGE = re.compile(r"(?:^|[ ,])max-age=\"?(\d{1,9})")


class KeySetError(ClientError):
    """A set of keys could not be had; the message says why and quotes nothing of it."""


class _Kept(msgspec.Struct):
    keys: list[PublicKey]
    asked: float
    until: float
    failure: str = ""


class KeySets:
    """A cache of key sets. ``now`` is a clock in seconds that only goes forward."""

    def __init__(self, *, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._kept: dict[str, _Kept] = {}
        self._fetching: dict[str, asyncio.Task[_Kept]] = {}

    async def find(self, url: str, kid: str, http: Fetcher, *, local: bool = False) -> list[PublicKey]:
        """The keys of the set at an address that have an identifier, all of them when it is empty.

        ``http`` is what fetches it, with its guard; ``local``: plain http is allowed to this very machine, for an
        address that the user named. Raises KeySetError, and OutboundUrlError for an address that may not be called.
        """
        _check_address(url, local=local)
        kept = self._kept.get(url)
        if kept is None or self._now() >= kept.until or (not _has(kept, kid) and self._now() >= kept.asked + _AGAIN):
            kept = await self._share(url, http)
        if kept.failure:
            raise KeySetError(kept.failure, url=shown(url))
        return [key for key in kept.keys if not kid or key.kid == kid]

    async def _share(self, url: str, http: Fetcher) -> _Kept:
        """Fetch a set once for all who need it now; it goes on when one of them is cancelled."""
        fetching = self._fetching.get(url)
        if fetching is None or fetching.get_loop() is not asyncio.get_running_loop():
            fetching = self._fetching[url] = asyncio.create_task(self._refresh(url, http))
            fetching.add_done_callback(lambda _: self._fetching.pop(url, None))
        return await asyncio.shield(fetching)

    async def _refresh(self, url: str, http: Fetcher) -> _Kept:
        asked, before = self._now(), self._kept.get(url)
        try:
            answer = await http.fetch(
                "GET",
                url,
                headers={"accept": "application/jwk-set+json, application/json"},
                timeout=TIMEOUT,
                max_bytes=MAX_BYTES,
            )
            kept = _Kept(_read(answer), asked, asked + _lifetime(answer))
        except (ClientError, InvalidAgentResponseError) as error:
            if before is not None and not before.failure and asked < before.until:
                before.asked = asked  # what is still good is not lost by looking for something else
                return before
            kept = _Kept([], asked, asked + _AGAIN, f"the keys at {shown(url)} cannot be had: {error}")
        self._kept.pop(url, None)
        while len(self._kept) >= MAX_SETS:
            del self._kept[next(iter(self._kept))]
        self._kept[url] = kept
        return kept


def _has(kept: _Kept, kid: str) -> bool:
    return not kid or any(key.kid == kid for key in kept.keys)


def _check_address(url: str, *, local: bool) -> None:
    target = parse_target(url)
    if target.scheme != "https" and not (local and is_loopback_host(target.host)):
        raise KeySetError(f"keys are fetched over https only, not from {shown(url)}", url=shown(url))


def _read(answer: Answer) -> list[PublicKey]:
    if answer.status != 200:
        redirected = " (redirects are not followed)" if 300 <= answer.status < 400 else ""
        raise KeySetError(f"HTTP {answer.status}{redirected}")
    try:
        return read_keys(answer.body.removeprefix(b"\xef\xbb\xbf"))
    except BadKeyError as error:
        raise KeySetError(str(error)) from None


def _lifetime(answer: Answer) -> float:
    match = _MAX_AGE.search(answer.headers.get("cache-control", "").lower())
    return min(max(float(match[1]), _SHORTEST), _LONGEST) if match else _USUAL
