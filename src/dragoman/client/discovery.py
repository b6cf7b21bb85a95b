"""Find and fetch agent cards.

Where a card may be (AMB-74): a full address is taken as it is; below an address with a path, then at the root of its
host; the names of old servers after that. A fetch has limits of time and size, follows redirects inside one origin
only (and from http to https on the same host), and its errors never quote what was fetched.

Spec: §8.2, §8.6.2, CARD-03, CARD-18, CARD-22 to CARD-24, AMB-74, AMB-75.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

from dragoman.client.card_cache import CardCache, FetchedCard
from dragoman.client.cards import NotJsonError, read_card
from dragoman.errors import (
    CardError,
    ErrorOrigin,
    InvalidAgentResponseError,
    PermissionDeniedError,
    UnauthenticatedError,
)
from dragoman.http.client import Answer, HttpClient
from dragoman.http.guard import is_loopback_host, parse_target, shown
from dragoman.ports.operations import CURRENT_VERSION

WELL_KNOWN = "/.well-known/agent-card.json"
OLD_WELL_KNOWN = "/.well-known/agent.json"
MAX_CARD_BYTES = 1024 * 1024
CARD_TIMEOUT = 30.0

_MAX_REDIRECTS = 5
_REDIRECTS = (301, 302, 303, 307, 308)
_NOT_HERE = (404, 405, 410)
_NO_HEADERS: Mapping[str, str] = {}


def card_urls(target: str) -> list[str]:
    """Where to look for the card of a target, in order. A host without a scheme gets one: https, or http for this
    machine.

    Raises OutboundUrlError for what is no http(s) address. Spec: AMB-74.
    """
    url = target if "://" in target else f"{_guess_scheme(target)}://{target}"
    parsed = parse_target(url)
    split = urlsplit(url)
    path = split.path.rstrip("/")
    if split.query or "/.well-known/" in split.path or path.endswith(".json"):
        return [url.partition("#")[0]]
    root = f"{parsed.scheme}://{parsed.authority}"
    if not path:
        return [root + WELL_KNOWN, root + OLD_WELL_KNOWN]
    base = root + path
    return [base + WELL_KNOWN, root + WELL_KNOWN, base + OLD_WELL_KNOWN, root + OLD_WELL_KNOWN, base]


def _guess_scheme(target: str) -> str:
    host = target.partition("/")[0]
    host = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
    return "http" if is_loopback_host(host.lower()) else "https"


def as_file(target: str) -> Path | None:
    """The file that a target text stands for (``file:`` address, or the path of a file), or None."""
    if target.lower().startswith("file:"):
        parts = urlsplit(target)
        if parts.netloc not in ("", "localhost"):
            raise CardError("A file: address must not name a host")
        return Path(unquote(parts.path))
    if "://" in target:
        return None
    path = Path(target)
    return path if target.startswith(("/", "./", "../", "~")) or path.is_file() else None


async def read_card_file(path: Path, *, max_bytes: int = MAX_CARD_BYTES) -> FetchedCard:
    """The card in a file. Raises CardNotFoundError when it cannot be read, CardError when it is no card."""

    def read() -> bytes:
        with path.expanduser().open("rb") as file:
            return file.read(max_bytes + 1)

    try:
        data = await asyncio.to_thread(read)
    except OSError as error:
        raise CardNotFoundError(f"The card file {path} cannot be read: {error.strerror}") from error
    if len(data) > max_bytes:
        raise CardError(f"The card file {path} is larger than {max_bytes} bytes")
    return FetchedCard(card=read_card(data, str(path)), url="", json=data)


class CardFetcher:
    """Fetches cards over HTTP with one set of limits and headers.

    ``headers`` go with every request for a card, ``timeout`` bounds each request in seconds, ``max_bytes`` the card.
    ``check`` raises for an answer that is no card, in place of the usual errors; redirects are then not followed.
    """

    def __init__(
        self,
        http: HttpClient,
        *,
        headers: Mapping[str, str] = _NO_HEADERS,
        cache: CardCache | None = None,
        timeout: float | None = CARD_TIMEOUT,
        max_bytes: int = MAX_CARD_BYTES,
        check: Callable[[Answer], None] | None = None,
    ) -> None:
        self._http = http
        self._check = check
        # A server of several versions gives its card in the form of this one; one of 0.3 does not look.
        own = {"accept": "application/json, application/*;q=0.8", "a2a-version": CURRENT_VERSION}
        self._headers = {**own, **_lower(headers)}
        self._variant = _fingerprint(headers)
        self._cache = cache or CardCache()
        self._timeout = timeout
        self._max_bytes = max_bytes

    async def find(self, target: str) -> FetchedCard:
        """The card of a target, wherever it is found first.

        Raises CardError, UnauthenticatedError or PermissionDeniedError (HTTP 401, 403), OutboundUrlError, ConnectError,
        RequestTimeoutError, ConnectionLostError.
        """
        urls = card_urls(target)
        page: NotJsonError | None = None
        status: int | None = None
        for url in urls:
            try:
                return await self.fetch(url)
            except _NotHereError as error:
                status = status or error.status
            except NotJsonError as error:
                # Many sites answer every address with a page; the card may still be at the next place.
                page = page or error
        places = " or ".join(map(shown, urls))
        raise page or CardNotFoundError(f"No agent card at {places}", url=shown(target), status=status)

    async def fetch(self, url: str) -> FetchedCard:
        """The card at exactly this address, out of the cache where that is allowed. Raises like :meth:`find`."""
        key = f"{url}\n{self._variant}"
        kept = self._cache.fresh(key)
        if kept is not None:
            return kept
        answer = await self._get(url, self._cache.conditions(key))
        if answer.status == 304:
            confirmed = self._cache.confirm(key, answer.headers)
            if confirmed is not None:
                return confirmed
        (self._check or _check_status)(answer)
        card = read_card(answer.body, shown(url))
        return self._cache.keep(key, FetchedCard(card=card, url=answer.url, json=answer.body), answer.headers)

    async def _get(self, url: str, conditions: Mapping[str, str]) -> Answer:
        headers = {**self._headers, **conditions}
        for _ in range(_MAX_REDIRECTS + 1):
            answer = await self._get_once(url, headers)
            location = answer.headers.get("location")
            if answer.status not in _REDIRECTS or location is None or self._check is not None:
                return answer
            url = _redirected(url, location)
        raise CardError(f"The card at {shown(url)} is behind more than {_MAX_REDIRECTS} redirects", url=shown(url))

    async def _get_once(self, url: str, headers: Mapping[str, str]) -> Answer:
        try:
            return await self._http.fetch("GET", url, headers=headers, timeout=self._timeout, max_bytes=self._max_bytes)
        except InvalidAgentResponseError as error:
            raise CardError(f"No agent card: {error.message}", url=shown(url)) from error


class CardNotFoundError(CardError):
    """There is no card where one was looked for; ``status`` is the HTTP status of the answer, if there was one."""

    def __init__(self, message: str, *, url: str = "", status: int | None = None) -> None:
        super().__init__(message, url=url)
        self.status = status


class _NotHereError(CardNotFoundError):
    """Nothing is at this address."""


def _check_status(answer: Answer) -> None:
    place, status = shown(answer.url), answer.status
    if 200 <= status < 300:
        return
    origin = ErrorOrigin(url=place, status=status)
    if status == 401:
        challenge = answer.headers.get("www-authenticate", "")
        text = f"The card at {place} needs credentials (pass card_headers)"
        raise UnauthenticatedError(text, metadata={"challenge": challenge} if challenge else None, origin=origin)
    if status == 403:
        raise PermissionDeniedError(f"The card at {place} is not for this caller", origin=origin)
    kind = _NotHereError if status in _NOT_HERE else CardNotFoundError
    raise kind(f"No agent card at {place}: HTTP {status}", url=place, status=status)


def _redirected(url: str, location: str) -> str:
    """Where a redirect leads, if it may be followed. Spec: AMB-71."""
    there = urljoin(url, location)
    old, new = parse_target(url), parse_target(there)
    upgraded = (old.scheme, new.scheme) == ("http", "https") and (old.host, new.port) == (new.host, 443)
    if old.origin != new.origin and not (upgraded and old.port == 80):
        text = f"The card at {shown(url)} redirects to another origin, {shown(there)}; connect there if you trust it"
        raise CardError(text, url=shown(url))
    return there


def _lower(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def _fingerprint(headers: Mapping[str, str]) -> str:
    """What tells apart cards that were fetched with different headers, without keeping these."""
    if not headers:
        return ""
    text = "\n".join(f"{name}: {value}" for name, value in sorted(_lower(headers).items()))
    return hashlib.sha256(text.encode()).hexdigest()
