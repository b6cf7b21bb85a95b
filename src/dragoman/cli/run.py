"""``dragoman run module:agent``: serve an agent."""

from __future__ import annotations

import contextlib
import logging
import socket
import traceback
from collections.abc import Sequence

import click

from dragoman.cli.loading import load
from dragoman.cli.options import Leaf, Run, option
from dragoman.cli.reloading import restart_on_change
from dragoman.errors import DragomanError
from dragoman.model import AgentCard
from dragoman.runtime import Limits
from dragoman.server import App
from dragoman.server.serving import base_url, listen, run_app

LEVELS = ("debug", "info", "warning", "error")


def _run(
    run: Run,
    target: str,
    host: str,
    port: int,
    store: str,
    public_url: str | None,
    grace: float,
    lease: float,
    cors: Sequence[str],
    log_level: str,
    reload: bool,
) -> int:
    logging.basicConfig(level=log_level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    if reload and restart_on_change():
        return 0
    try:
        agent = load(target)
    except DragomanError:
        raise
    except Exception:
        # A fault in the author's own code: the author has to see where.
        traceback.print_exc()
        return 1
    listening = listen(host, port)
    address = public_url or base_url(listening)
    if isinstance(agent, App):
        app = agent
    else:
        limits = Limits(shutdown_grace=grace, lease=lease)
        app = App(agent, store=store, public_url=address, cors=cors, limits=limits, infer_version=reload)
    _serve(app, listening, address, None if isinstance(agent, App) else store)
    return 0


def _serve(app: App, listening: socket.socket, address: str, store: str | None) -> None:
    warning = exposure(listening, address)

    def announce() -> None:
        _announce(app.card(app.public_url or address), store, warning)

    with contextlib.suppress(KeyboardInterrupt):
        run_app(app, listening, on_ready=announce)


def exposure(listening: socket.socket, address: str) -> str:
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


LISTENING = (
    option("--host", metavar="HOST", help="Address to listen on.", envvar="DRAGOMAN_HOST", default="127.0.0.1"),
    option(
        "--store",
        metavar="PLACE",
        help="Where tasks live: memory, or the file or URL of SQLite.",
        envvar="DRAGOMAN_STORE",
        default="memory",
    ),
    option(
        "--public-url",
        metavar="URL",
        help="The address that clients use, if it is another.",
        envvar="DRAGOMAN_PUBLIC_URL",
    ),
    option(
        "--grace",
        metavar="SECONDS",
        type=click.FloatRange(min=0),
        default=10.0,
        help="Seconds that running work has at shutdown.",
    ),
)
"""Options of everything that serves."""

RUN = Leaf(
    "run",
    _run,
    "Serve an agent over JSON-RPC and HTTP+JSON until Ctrl-C or SIGTERM. MODULE:AGENT says where it is, "
    "e.g. echo:agent.",
    [
        click.Argument(["target"], metavar="MODULE:AGENT"),
        *LISTENING,
        option(
            "--port",
            metavar="PORT",
            type=int,
            help="Port to listen on; 0: any free one.",
            envvar="DRAGOMAN_PORT",
            default=8000,
        ),
        option(
            "--lease",
            metavar="SECONDS",
            type=click.FloatRange(min=0.1),
            default=10.0,
            help="Seconds after which the work of a lost process is taken over.",
        ),
        option("--cors", metavar="ORIGIN", multiple=True, help="Origin whose pages may call; repeatable."),
        option(
            "--log-level",
            metavar="LEVEL",
            type=click.Choice(LEVELS),
            default="warning",
            help="debug, info, warning or error.",
        ),
        option(
            "--reload",
            is_flag=True,
            help="For development: restart when a file changes; A2A-Version may be missing.",
        ),
    ],
    calls_agents=False,
    examples=("dragoman run echo:agent --store tasks.db",),
)
