"""``dragoman auth login``, ``status`` and ``logout``. No question is asked, and no token is ever shown.

Spec: A2ACLI_AUTH_005 to A2ACLI_AUTH_007, A2ACLI_AUTH_010, P-04; sections 12.5 and 14.9 of the register.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import Any

import msgspec

from dragoman.auth.device import DevicePrompt
from dragoman.auth.logins import AuthorizationCode, DeviceCode, open_browser
from dragoman.auth.metadata import AuthorizationServer
from dragoman.auth.schemes import (
    FLOWS,
    Flow,
    SchemeUse,
    fetch_metadata,
    find_server,
    metadata_url,
    offered_flows,
    takes_tokens,
)
from dragoman.auth.sessions import InMemory, Login
from dragoman.auth.token_endpoint import OAuthClient, TokenSet, request_tokens
from dragoman.auth.token_store import StoredLogin, TokenStore
from dragoman.cli import text, values
from dragoman.cli.failures import UsageError
from dragoman.cli.options import Leaf, Run, option
from dragoman.cli.program import run_client
from dragoman.cli.reaching import http_url, open_client, read_card
from dragoman.cli.session import Session
from dragoman.cli.stored import PLACE, SECRET, agent_of, open_store, read_secret, told_plainly, written_origin
from dragoman.client.card_cache import FetchedCard
from dragoman.client.cards import BINDINGS
from dragoman.client.discovery import as_file, card_urls
from dragoman.errors import DragomanError
from dragoman.http.client import HttpClient, HttpxClient
from dragoman.model import AgentCard


class _Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What the command was told."""

    flow: Flow | None
    client: OAuthClient
    secret_from: str
    scopes: tuple[str, ...]
    audience: str
    opens: bool


def _login(
    run: Run,
    flow: Flow | None,
    client_id: str | None,
    client_secret_env: str | None,
    client_secret_file: str | None,
    scope: tuple[str, ...],
    audience: str | None,
    open: bool,
) -> int:
    async def body(session: Session) -> int:
        if not client_id:
            raise UsageError("a login needs the id of a client", hint="dragoman auth login --client-id ID")
        place = _secret_place(client_secret_env, client_secret_file)
        secret = read_secret(place)
        session.redactor.learn([secret])
        wanted = _Wanted(
            flow=flow,
            client=OAuthClient(client_id, secret),
            secret_from=place if secret else "",
            scopes=tuple(word for given in scope for word in given.split()),
            audience=audience or "",
            opens=open,
        )
        with told_plainly():
            await _log_in(session, wanted, _store())
        return 0

    return run_client(run, body)


def _secret_place(variable: str | None, file: str | None) -> str:
    if variable and file:
        raise UsageError("--client-secret-env and --client-secret-file exclude each other")
    if variable and not os.environ.get(variable):
        raise UsageError(f"the variable {variable} is empty")
    return f"file:{os.path.abspath(os.path.expanduser(file))}" if file else f"env:{variable or SECRET}"


def _store() -> TokenStore:
    store = open_store(os.environ)
    if store is None:
        raise UsageError(f"{PLACE} is none: there is nowhere to keep a login")
    return store


async def _log_in(session: Session, wanted: _Wanted, store: TokenStore) -> None:
    fetched = await read_card(session)
    store.logins()  # one that cannot be used is told before anybody has to do anything
    use = _choose_scheme(fetched.card, session["scheme"] or "", wanted.scopes)
    async with open_client(session) as client:
        flow, server = await _choose_flow(client, use, wanted)
        tokens = await _obtain(session, client, use, flow, server, wanted)
    login = StoredLogin(
        agent=agent_of(fetched),
        scheme=use.name,
        client_id=wanted.client.id,
        flow=flow,
        access_token=tokens.access_token,
        refresh_token=tokens.refresh_token,
        expires_at=tokens.expires_at,
        scopes=tokens.scopes or use.scopes,
        token_url=server.token_endpoint,
        refresh_url=server.refresh_endpoint,
        issuer=server.issuer,
        audience=wanted.audience,
        secret_from=wanted.secret_from,
        origins=_origins(fetched),
        logged_in_at=session.now(),
    )
    store.put(login)
    _show(session, login)


def _choose_scheme(card: AgentCard, name: str, scopes: tuple[str, ...]) -> SchemeUse:
    """The scheme that was named, else the first for tokens of the first alternative that has one."""
    required = [(n, tuple(s.list)) for r in card.security_requirements for n, s in r.schemes.items()]
    declared = [(n, ()) for n in card.security_schemes]
    for found, asked in [*required, *declared]:
        scheme = card.security_schemes.get(found)
        if scheme is not None and takes_tokens(scheme) and name in ("", found):
            return SchemeUse(found, scheme, scopes or asked)
    known = ", ".join(n for n, scheme in card.security_schemes.items() if takes_tokens(scheme)) or "none"
    what = f"no scheme {name!r}" if name else "no scheme"
    raise UsageError(f"the card has {what} of OAuth 2 or OpenID Connect to log in by; it has: {known}")


async def _choose_flow(client: HttpxClient, use: SchemeUse, wanted: _Wanted) -> tuple[Flow, AuthorizationServer]:
    http, place = HttpClient(client), metadata_url(use.scheme)
    known = await fetch_metadata(http, place) if place else None
    offered = offered_flows(use.scheme, known)
    usable = [flow for flow in offered if flow != "client-credentials" or wanted.client.secret]
    flow = wanted.flow or next(iter(usable), None)
    if flow is None:
        why = f"it offers {', '.join(offered)}, which needs a secret" if offered else "it offers none that is used here"
        hint = f"export {SECRET}=..." if offered else ""
        raise UsageError(f"the scheme {use.name} has no flow to log in by: {why}", hint=hint)
    if flow == "client-credentials" and not wanted.client.secret:
        raise UsageError("client credentials need a secret", hint=f"export {SECRET}=...")
    return flow, await find_server(http, use, flow)


async def _obtain(
    session: Session, client: HttpxClient, use: SchemeUse, flow: Flow, server: AuthorizationServer, wanted: _Wanted
) -> TokenSet:
    if flow == "client-credentials":
        form = {"grant_type": "client_credentials", "scope": " ".join(use.scopes), "audience": wanted.audience}
        asked = {name: value for name, value in form.items() if value}
        return await request_tokens(HttpClient(client), server, wanted.client, asked, session.now())
    keeper = InMemory()
    more: dict[str, Any] = {
        "client_secret": wanted.client.secret,
        "scopes": wanted.scopes,
        "audience": wanted.audience,
        "keeper": keeper,
        "http": client,
    }
    source = (
        DeviceCode(wanted.client.id, lambda prompt: _show_code(session, wanted, prompt), **more)
        if flow == "device"
        else AuthorizationCode(
            wanted.client.id, open_url=lambda url: _show_url(session, wanted, url), timeout=86_400.0, **more
        )
    )
    login = source.for_scheme(use)
    assert isinstance(login, Login)
    await login.fetch(None)
    found = await keeper.load()
    assert found is not None
    return found


def _show_code(session: Session, wanted: _Wanted, prompt: DevicePrompt) -> None:
    session.notes.say("Verification URL", prompt.url)
    if prompt.complete_url:
        session.notes.say("Complete URL", prompt.complete_url)
    session.notes.say("User code", prompt.code)
    session.notes.say("Expires", _time(prompt.expires_at))
    if wanted.opens:
        open_browser(prompt.complete_url or prompt.url)


def _show_url(session: Session, wanted: _Wanted, url: str) -> None:
    session.notes.say("Login URL", url)
    if wanted.opens:
        open_browser(url)


def _origins(fetched: FetchedCard) -> tuple[str, ...]:
    """Where the token may go: to the card's origin, and to the interfaces that the card names today."""
    places = [fetched.url] if fetched.url else []
    for entry in fetched.card.supported_interfaces:
        if entry.protocol_binding in BINDINGS:
            try:
                places.append(http_url(entry))
            except DragomanError:
                continue
    return tuple(dict.fromkeys(map(written_origin, places)))


def _time(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _document(login: StoredLogin) -> dict[str, Any]:
    return {
        "agent": login.agent,
        "scheme": login.scheme,
        "flow": login.flow,
        "scopes": list(login.scopes),
        "expiresAt": _time(login.expires_at) or None,
        "store": "file",
    }


def _record(login: StoredLogin) -> text.Record:
    record = text.Record()
    record.field("Agent", login.agent)
    record.field("Scheme", login.scheme)
    record.field("Flow", login.flow)
    record.field("Scopes", " ".join(login.scopes))
    record.field("Expires", _time(login.expires_at))
    record.field("Stored", "file")
    return record


def _show(session: Session, login: StoredLogin) -> None:
    if session.output.json:
        session.output.document(_document(login))
    else:
        session.output.record(_record(login))


def _agent(session: Session) -> str:
    """The origin of the agent that is named, empty when none is."""
    reference = session["agent_card"] or ""
    if not reference:
        return ""
    if as_file(reference) is not None:
        raise UsageError("name the agent by its host or URL")
    return written_origin(card_urls(reference)[0])


def _status(run: Run) -> int:
    async def body(session: Session) -> int:
        with told_plainly():
            store = open_store(os.environ)
            logins = store.logins(_agent(session)) if store is not None else []
        if session.output.json:
            more = [{"clientId": login.client_id, "origins": list(login.origins)} for login in logins]
            session.output.document([_document(one) | rest for one, rest in zip(logins, more, strict=True)])
            return 0
        for login in logins:
            record = _record(login)
            record.field("Client", login.client_id)
            session.output.record(record)
        if not logins:
            session.notes.note("there is no login")
        return 0

    return run_client(run, body)


def _logout(run: Run, all: bool) -> int:
    async def body(session: Session) -> int:
        agent = "" if all else _agent(session)
        if not agent and not all:
            raise UsageError("name the agent with --agent-card, or all with --all")
        with told_plainly():
            store = open_store(os.environ)
            count = store.remove(agent) if store is not None else 0
        if session.output.json:
            session.output.document({"removed": count})
        else:
            session.screen.write(f"Removed: {count}\n")
        return 0

    return run_client(run, body)


LOGIN = Leaf(
    "login",
    _login,
    "Log in to an agent by a scheme of its card, and keep the token for later commands. The token is never shown.",
    [
        option(
            "--flow",
            metavar="|".join(FLOWS),
            read=values.one_of(*FLOWS),
            words=tuple(FLOWS),
            help="How to log in. [default: the first of these that the agent offers]",
        ),
        option("--client-id", metavar="ID", envvar="DRAGOMAN_CLIENT_ID", help="The id of this client."),
        option(
            "--client-secret-env",
            metavar="VAR",
            help=f"The variable that holds the client's secret. [default: {SECRET}]",
        ),
        option("--client-secret-file", metavar="PATH", help="The file that holds the client's secret."),
        option("--scope", metavar="SCOPE", multiple=True, help="Scope to ask for, in place of those of the card."),
        option("--audience", metavar="A", help="What the token is for, where the server wants to know."),
        option("--open", is_flag=True, help="Open the address in a browser."),
    ],
    examples=(
        "dragoman auth login -a agent.example.com --client-id desk-cli",
        "DRAGOMAN_CLIENT_SECRET=... dragoman auth login -a agent.example.com --flow client-credentials --client-id bot",
    ),
)
STATUS = Leaf(
    "status",
    _status,
    "Show the logins that are kept, for one agent or all, without the tokens.",
    examples=("dragoman auth status -o json",),
)
LOGOUT = Leaf(
    "logout",
    _logout,
    "Forget the logins for an agent, or all. The server is not told.",
    [option("--all", is_flag=True, help="Forget every login.")],
    examples=("dragoman auth logout -a agent.example.com", "dragoman auth logout --all"),
)
