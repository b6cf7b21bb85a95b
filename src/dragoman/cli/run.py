"""``dragoman run module:agent``: serve an agent."""

from __future__ import annotations

import logging
import socket
from typing import Annotated

import typer

from dragoman.cli.loading import load
from dragoman.cli.reloading import restart_on_change
from dragoman.errors import ConfigurationError
from dragoman.model import AgentCard
from dragoman.runtime import Limits
from dragoman.server import App
from dragoman.server.serving import base_url, listen, run_app

LEVELS = ("debug", "info", "warning", "error")


def run(
    target: Annotated[str, typer.Argument(metavar="MODULE:AGENT", help="Where the agent is, e.g. echo:agent.")],
    host: Annotated[str, typer.Option(help="Address to listen on.", envvar="DRAGOMAN_HOST")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0: any free one.", envvar="DRAGOMAN_PORT")] = 8000,
    store: Annotated[
        str, typer.Option(help="Where tasks live: memory, or the file or URL of SQLite.", envvar="DRAGOMAN_STORE")
    ] = "memory",
    public_url: Annotated[
        str | None,
        typer.Option(help="The address that clients use, if it is another.", envvar="DRAGOMAN_PUBLIC_URL"),
    ] = None,
    grace: Annotated[float, typer.Option(help="Seconds that running work has at shutdown.", min=0)] = 10.0,
    lease: Annotated[
        float, typer.Option(help="Seconds after which the work of a lost process is taken over.", min=0.1)
    ] = 10.0,
    cors: Annotated[list[str] | None, typer.Option(help="Origin whose pages may call; repeatable.")] = None,
    log_level: Annotated[str, typer.Option(help="debug, info, warning or error.")] = "warning",
    reload: Annotated[
        bool, typer.Option(help="For development: restart when a file changes; A2A-Version may be missing.")
    ] = False,
) -> None:
    """Serve an agent over JSON-RPC and HTTP+JSON until Ctrl-C or SIGTERM."""
    if log_level not in LEVELS:
        raise ConfigurationError(f"--log-level must be one of {', '.join(LEVELS)}")
    logging.basicConfig(level=log_level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    if reload and restart_on_change():
        return
    agent = load(target)
    listening = listen(host, port)
    address = public_url or base_url(listening)
    if isinstance(agent, App):
        app = agent
    else:
        limits = Limits(shutdown_grace=grace, lease=lease)
        app = App(agent, store=store, public_url=address, cors=cors or (), limits=limits, infer_version=reload)
    _serve(app, listening, address, None if isinstance(agent, App) else store)


def _serve(app: App, listening: socket.socket, address: str, store: str | None) -> None:
    warning = _exposure(listening, address)

    def announce() -> None:
        _announce(app.card(app.public_url or address), store, warning)

    try:
        run_app(app, listening, on_ready=announce)
    except KeyboardInterrupt:
        raise typer.Exit(0) from None


def _exposure(listening: socket.socket, address: str) -> str:
    """What to tell someone who listens on every interface without saying by which address clients come."""
    host = listening.getsockname()[0]
    if host in ("0.0.0.0", "::") and address == base_url(listening):
        return f"listening on {host}, but the card says {address}; set --public-url to what clients use"
    return ""


def _announce(card: AgentCard, store: str | None, warning: str) -> None:
    url = card.supported_interfaces[0].url
    bindings = ", ".join(interface.protocol_binding for interface in card.supported_interfaces)
    print(f"{card.name} {card.version} serves A2A 1.0 over {bindings}")
    print(f"  card   {url.rstrip('/')}/.well-known/agent-card.json")
    print(f"  url    {url}")
    if store is not None:
        print(f"  store  {_without_password(store)}")
    if warning:
        print(f"  note   {warning}")
    print("  stop   Ctrl-C", flush=True)


def _without_password(store: str) -> str:
    scheme, separator, rest = store.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}" if separator else store
