"""From a refused request to the authorization servers that can help.

Nothing here carries a credential, and no redirect is followed.

Spec: RFC 9728 §5, AC-C-90 to AC-C-93, AC-C-96.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from dragoman.auth.challenges import Challenge, bearer_challenge
from dragoman.auth.metadata import (
    MAX_BYTES,
    AuthorizationServer,
    Discovery,
    MetadataError,
    ProtectedResource,
    check_metadata_url,
    read_resource,
    read_server,
    server_urls,
)
from dragoman.errors import DragomanError
from dragoman.http.client import HttpClient
from dragoman.http.fetching import Fetcher
from dragoman.http.guard import shown

TIMEOUT = 10.0
"""Seconds that one document may take."""

MAX_ISSUERS = 5


async def discover(http: HttpClient, url: str, headers: Mapping[str, str], resources: Sequence[str] = ()) -> Discovery:
    """What the answer 401 of ``url`` leads to. ``headers`` are those of the answer, ``http`` carries no credentials.

    ``resources`` are the identifiers that the resource may have, where it is more than the address called. Never raises
    for what is missing or wrong on the way: ``problem`` says it.
    """
    challenge = bearer_challenge([headers.get("www-authenticate", "")])
    if challenge is None:
        return Discovery(problem="the answer has no challenge for a bearer token")
    told = Discovery(
        metadata_url=challenge.parameters.get("resource_metadata", ""),
        scopes=_scopes(challenge),
        error=challenge.parameters.get("error", ""),
        error_description=challenge.parameters.get("error_description", ""),
    )
    if not told.metadata_url:
        return replace(told, problem="the challenge names no resource metadata")
    try:
        resource = await _fetch_resource(http, told.metadata_url, url, resources or (url,))
    except DragomanError as error:
        return replace(told, problem=str(error))
    servers, problem = await _fetch_servers(http, resource.authorization_servers)
    return replace(
        told,
        resource=resource.resource,
        issuers=resource.authorization_servers,
        servers=servers,
        scopes=told.scopes or resource.scopes_supported,
        problem=problem,
    )


async def fetch_server(http: Fetcher, issuer: str) -> AuthorizationServer:
    """The metadata of an authorization server. Raises MetadataError, and what HttpClient raises. Spec: AC-C-93."""
    failure: DragomanError | None = None
    for url in server_urls(issuer):
        try:
            return read_server(await _get(http, url), url, issuer)
        except DragomanError as error:
            failure = error if failure is None or isinstance(failure, _NotThereError) else failure
    assert failure is not None
    raise failure


async def _fetch_resource(http: HttpClient, url: str, called: str, resources: Sequence[str]) -> ProtectedResource:
    check_metadata_url(url, called)
    return read_resource(await _get(http, url), url, *resources)


async def _fetch_servers(http: HttpClient, issuers: tuple[str, ...]) -> tuple[list[AuthorizationServer], str]:
    found, problem = [], "" if issuers else "the resource metadata names no authorization server"
    for issuer in issuers[:MAX_ISSUERS]:
        try:
            found.append(await fetch_server(http, issuer))
        except DragomanError as error:
            problem = problem or str(error)
    return found, "" if found else problem


class _NotThereError(MetadataError):
    """There is no document at an address."""


async def _get(http: Fetcher, url: str) -> bytes:
    headers = {"accept": "application/json"}
    answer = await http.fetch("GET", url, headers=headers, timeout=TIMEOUT, max_bytes=MAX_BYTES)
    if answer.status != 200:
        raise _NotThereError(f"No metadata at {shown(url)}: HTTP {answer.status}", url=shown(url))
    return answer.body


def _scopes(challenge: Challenge) -> tuple[str, ...]:
    return tuple(challenge.parameters.get("scope", "").split())
