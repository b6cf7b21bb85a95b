"""The logins of this user: where they lie, which one is for an agent, and a source of tokens out of it.

Spec: A2ACLI_AUTH_007; sections 12.3 and 12.6 of the register of the command line.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from dragoman.auth.metadata import AuthorizationServer, Discovery
from dragoman.auth.sessions import Login
from dragoman.auth.token_endpoint import OAuthClient, TokenSet, request_tokens
from dragoman.auth.token_store import StoredLogin, TokenStore, TokenStoreError
from dragoman.cli.config import config_folder
from dragoman.cli.failures import FileError, OriginError, UsageError
from dragoman.cli.resume import quoted
from dragoman.cli.session import Session
from dragoman.client.card_cache import FetchedCard
from dragoman.client.origins import origin_of
from dragoman.http.client import HttpClient, HttpxClient
from dragoman.http.guard import parse_target, shown

PLACE = "DRAGOMAN_TOKEN_STORE"
SECRET = "DRAGOMAN_CLIENT_SECRET"
_KINDS = ("file", "none")


def open_store(environment: Mapping[str, str]) -> TokenStore | None:
    """The store of this user, None when there is to be none. Raises UsageError."""
    kind = environment.get(PLACE) or "file"
    if kind not in _KINDS:
        raise UsageError(f"{PLACE} is {kind!r}; it may be {' or '.join(_KINDS)}")
    return None if kind == "none" else TokenStore(config_folder(environment) / "dragoman" / "credentials.json")


@contextmanager
def told_plainly() -> Iterator[None]:
    """Has what is wrong with the store reported as what it is: a file of the user's. Raises FileError."""
    try:
        yield
    except TokenStoreError as error:
        raise FileError(str(error), hint=error.hint) from error


def agent_of(fetched: FetchedCard) -> str:
    """What logins for the agent of a card are kept under: the origin of the card, of a file that of the agent."""
    interfaces = fetched.card.supported_interfaces
    return written_origin(fetched.url or (interfaces[0].url if interfaces else ""))


def written_origin(url: str) -> str:
    """The origin of an address as a URL."""
    target = parse_target(f"http{url[2:]}" if url[:2].lower() == "ws" else url)
    return f"{target.scheme}://{target.authority}"


def logins_for(session: Session, fetched: FetchedCard) -> dict[str, StoredLogin]:
    """The logins for an agent by the names of schemes; of several for one scheme, the last."""
    if session["no_stored_token"] or session.credentials().bearer:
        return {}
    store = open_store(os.environ)
    if store is None:
        return {}
    with told_plainly():
        return {login.scheme: login for login in store.logins(agent_of(fetched))}


def source_of(session: Session, login: StoredLogin, url: str, http: HttpxClient | None = None) -> Login:
    """A source of tokens for the interface at an address. Raises OriginError when the login is not for it."""
    if not _may_go(login, url):
        hint = quoted(["dragoman", "auth", "login", "-a", session.card_reference])
        raise OriginError(
            f"the agent's card names {shown(url)} now, and the login is for {', '.join(login.origins)}", hint=hint
        )
    store = open_store(os.environ)
    assert store is not None
    secret = read_secret(login.secret_from)
    session.redactor.learn([secret])
    client = OAuthClient(login.client_id, secret)

    def learn(tokens: TokenSet) -> None:
        session.redactor.learn([tokens.access_token, tokens.refresh_token])

    async def find(http: HttpClient, discovery: Discovery | None) -> AuthorizationServer:
        return AuthorizationServer(
            issuer=login.issuer, token_endpoint=login.token_url, refresh_endpoint=login.refresh_url
        )

    async def grant(http: HttpClient, server: AuthorizationServer, scopes: tuple[str, ...]) -> TokenSet:
        form = {"grant_type": "client_credentials", "scope": " ".join(scopes), "audience": login.audience}
        asked = {name: value for name, value in form.items() if value}
        return await request_tokens(http, server, client, asked, session.now())

    anew = grant if login.flow == "client-credentials" and secret else None
    return Login(client, find, anew, scopes=login.scopes, keeper=store.keeper(login, learn), http=http, now=session.now)


def read_secret(place: str) -> str:
    """The secret of a client, from where it was said to be; empty when it is not there."""
    kind, _, name = place.partition(":")
    if kind == "env":
        return os.environ.get(name, "")
    if kind != "file":
        return ""
    try:
        return Path(name).expanduser().read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise FileError(f"the client's secret in {name} cannot be read: {why}") from error


def _may_go(login: StoredLogin, url: str) -> bool:
    return origin_of(url) in [origin_of(known) for known in login.origins]
