"""From what names an agent to its card. Spec: A2ACLI_CARD_GET_001, A2ACLI_AUTH_008; section 13 of the register."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from dragoman.cli.failures import UsageError
from dragoman.client.card_cache import CardCache, FetchedCard
from dragoman.client.discovery import WELL_KNOWN, CardFetcher, as_file, card_urls, read_card_file
from dragoman.http.client import HttpClient


async def read_reference(
    reference: str, http: HttpClient, headers: Mapping[str, str], cache: CardCache | None = None
) -> FetchedCard:
    """The card that a host, an origin, the URL of a card, or a file stands for.

    A URL without a path gets that of well-known cards; one with a path is taken as it is. ``headers`` go with the
    request for the card. Raises UsageError, and what :func:`dragoman.fetch_card` raises.
    """
    if reference.startswith("@"):
        raise UsageError(f"names of agents such as {reference} are not known yet: give a host, a URL or a file")
    file = as_file(reference)
    if file is not None:
        return await read_card_file(Path(file))
    fetcher = CardFetcher(http, headers=headers, cache=cache)
    urls = card_urls(reference)
    if len(urls) > 1 and _has_path(reference):
        # Of several places that would do, the last is the address itself.
        return await fetcher.fetch(urls[-1])
    return await fetcher.find(reference)


def _has_path(reference: str) -> bool:
    return bool(urlsplit(reference if "://" in reference else f"//{reference}").path.strip("/"))


def well_known_below(url: str) -> str:
    """Where the card of an agent at an address with a path may be instead, or empty."""
    parts = urlsplit(url if "://" in url else f"https://{url}")
    if not parts.path.strip("/") or parts.path.endswith(".json") or "/.well-known/" in parts.path:
        return ""
    return url.partition("?")[0].rstrip("/") + WELL_KNOWN
