"""``dragoman run module:agent``: serve an agent."""

from __future__ import annotations

import contextlib
import socket
import traceback
from collections.abc import Mapping, Sequence
from typing import Any

import click

from dragoman.agentcore import AgentCoreApp
from dragoman.bindings.grpc.addresses import parse_address
from dragoman.bindings.websocket import WEBSOCKET, WebSocketBinding
from dragoman.cli.failures import UsageError
from dragoman.cli.hosted import run_hosted
from dragoman.cli.loading import load
from dragoman.cli.logs import FORMATS, set_up_logs
from dragoman.cli.options import Leaf, Run, option
from dragoman.cli.protecting import (
    PROTECTING,
    in_the_clear,
    read_rate_limit,
    read_security,
    read_tls,
    refuse_protection,
)
from dragoman.cli.reloading import restart_on_change
from dragoman.cli.several import BY, MORE, announce_several, load_several, make_group
from dragoman.errors import ConfigurationError, DragomanError
from dragoman.model import AgentCard
from dragoman.runtime import Limits
from dragoman.server import AgentGroup, App, Application, GrpcServerSettings, ServerTls
from dragoman.server.dialects import VERSIONS, checked_versions
from dragoman.server.serving import base_url, listen, run_app

LEVELS = ("debug", "info", "warning", "error")


def _run(
    run: Run,
    target: str,
    more: Sequence[str],
    by: str,
    host: str,
    port: int,
    store: str,
    public_url: str | None,
    grace: float,
    lease: float,
    cors: Sequence[str],
    log_level: str,
    log_format: str,
    reload: bool,
    websocket: bool,
    versions: tuple[str, ...] | None,
    agentcore: bool,
    **beside: Any,
) -> int:
    set_up_logs(log_level, log_format)
    if reload and restart_on_change():
        return 0
    try:
        several = load_several((target, *more)) if more or "=" in target else None
        agent = load(target) if several is None else next(iter(several.values()))
    except DragomanError:
        raise
    except Exception:
        # A fault in the author's own code: the author has to see where.
        traceback.print_exc()
        return 1
    if agentcore and several is not None:
        raise UsageError("--agentcore serves one agent")
    if agentcore or isinstance(agent, AgentCoreApp):
        if isinstance(agent, App):
            raise UsageError("--agentcore is for an Agent, or for what agentcore.app(agent, …) makes")
        return run_hosted(agent, click.get_current_context().params, _announce_hosted)
    grpc, tls = grpc_settings(beside), read_tls(beside)
    security = None if isinstance(agent, App) or several is not None else read_security(beside, agent)
    listening = listen(host, port)
    address = public_url or base_url(listening, tls=tls is not None)
    if isinstance(agent, App):
        refuse_protection(beside)
        if websocket:
            raise UsageError("--websocket is for an Agent; an App names its bindings itself: App(bindings=[…])")
        if versions:
            raise UsageError("--versions is for an Agent; an App names its versions itself: App(versions=(…))")
        app: Application = agent
    else:
        settings: dict[str, Any] = {
            "store": store,
            "public_url": address,
            "cors": cors,
            "limits": Limits(shutdown_grace=grace, lease=lease),
            "infer_version": reload,
            "bindings": [WebSocketBinding()] if websocket else (),
            "versions": versions or VERSIONS,
            "rate_limit": read_rate_limit(beside),
        }
        if several is not None:
            app = make_group(several, beside, by, settings)
        else:
            app = App(agent, security=security, **settings)
    _serve(app, listening, address, None if isinstance(agent, App) else store, grpc, tls)
    return 0


def _serve(
    app: Application,
    listening: socket.socket,
    address: str,
    store: str | None,
    grpc: GrpcServerSettings | None,
    tls: ServerTls | None,
) -> None:
    warning = exposure(listening, address)

    def announce() -> None:
        card = app.card(app.public_url or address)
        clear = in_the_clear(app.public_url or address, secured=bool(card.security_schemes))
        if isinstance(app, AgentGroup):
            announce_several(app, app.public_url or address)
            _announce_rest(store, [note for note in (warning, clear, plaintext(card, grpc)) if note])
            return
        _announce(card, store, [note for note in (warning, clear, plaintext(card, grpc)) if note])

    with contextlib.suppress(KeyboardInterrupt):
        run_app(app, listening, grpc=grpc, tls=tls, on_ready=announce)


def grpc_settings(given: Mapping[str, Any]) -> GrpcServerSettings | None:
    """What the options say of gRPC; None when it is not asked for. Raises UsageError for options that need others."""
    port, address, roots = given["grpc_port"], given["grpc_address"], given["grpc_client_ca"]
    certificate, key = given["grpc_cert"], given["grpc_key"]
    if port is None:
        if address or certificate or key or roots:
            raise UsageError("options of gRPC need --grpc-port")
        return None
    if bool(certificate) != bool(key) or (roots and not key):
        raise UsageError("TLS of gRPC needs --grpc-cert and --grpc-key")
    tls = ServerTls(certificate=certificate, key=key, client_roots=roots) if key else None
    return GrpcServerSettings(port=port, public_address=address or "", tls=tls)


def plaintext(card: AgentCard, grpc: GrpcServerSettings | None) -> str:
    """What to tell someone whose card sends others to gRPC by TLS, which is not served here. Spec: AMB-77."""
    if grpc is None or grpc.tls is not None:
        return ""
    url = next(entry.url for entry in card.supported_interfaces if entry.protocol_binding == "GRPC")
    if not parse_address(url).with_tls(None):
        return ""
    return f"clients use TLS for gRPC at {url}, and here it is served without; put a proxy in front, or set --grpc-cert"


def exposure(listening: socket.socket, address: str) -> str:
    """What to tell someone who listens on every interface without saying by which address clients come."""
    host = listening.getsockname()[0]
    if host in ("0.0.0.0", "::") and address in (base_url(listening), base_url(listening, tls=True)):
        return f"listening on {host}, but the card says {address}; set --public-url to what clients use"
    return ""


def _announce_hosted(app: AgentCoreApp, address: str) -> None:
    card = app.card(address)
    store = app.profile.store
    note = "AGENTCORE_RUNTIME_URL is not set; the card says where this server listens"
    is_local = card.supported_interfaces[0].url.startswith(address)
    _announce(card, store if isinstance(store, str) else None, [note] if is_local else [])


def _announce(card: AgentCard, store: str | None, notes: Sequence[str]) -> None:
    url = card.supported_interfaces[0].url
    bindings = ", ".join(dict.fromkeys(interface.protocol_binding for interface in card.supported_interfaces))
    versions = " and ".join(dict.fromkeys(interface.protocol_version for interface in card.supported_interfaces))
    print(f"{card.name} {card.version} serves A2A {versions} over {bindings}")
    print(f"  card   {url.rstrip('/')}/.well-known/agent-card.json")
    print(f"  url    {url}")
    for interface in card.supported_interfaces:
        if interface.protocol_version != "1.0":
            continue
        if interface.protocol_binding == "GRPC":
            print(f"  grpc   {interface.url}")
        elif interface.protocol_binding == WEBSOCKET:
            print(f"  ws     {interface.url}")
    _announce_rest(store, notes)


def _announce_rest(store: str | None, notes: Sequence[str]) -> None:
    if store is not None:
        print(f"  store  {_without_password(store)}")
    for note in notes:
        print(f"  note   {note}")
    print("  stop   Ctrl-C", flush=True)


def _without_password(store: str) -> str:
    scheme, separator, rest = store.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}" if separator else store


def read_versions(text: str) -> tuple[str, ...]:
    """Versions of the protocol, separated by commas. Raises ValueError."""
    try:
        return checked_versions([version.strip() for version in text.split(",")])
    except ConfigurationError as error:
        raise ValueError(str(error)) from error


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
    option(
        "--grpc-port",
        metavar="PORT",
        type=click.IntRange(0, 65535),
        help="Serve gRPC, too, on this port; 0: any free one.",
        envvar="DRAGOMAN_GRPC_PORT",
    ),
    option(
        "--grpc-address",
        metavar="HOST:PORT",
        help="The address that clients use for gRPC, if it is another.",
        envvar="DRAGOMAN_GRPC_ADDRESS",
    ),
    option("--grpc-cert", metavar="FILE", help="Certificate for gRPC (PEM, with its chain): serves it by TLS."),
    option("--grpc-key", metavar="FILE", help="Key of --grpc-cert."),
    option("--grpc-client-ca", metavar="FILE", help="Demand certificates of gRPC clients, signed by one of these."),
    option(
        "--versions",
        read=read_versions,
        metavar="LIST",
        help="Versions of the protocol to serve, separated by commas: 1.0 or 1.0,0.3. [default: 1.0,0.3]",
        envvar="DRAGOMAN_VERSIONS",
    ),
)
"""Options of everything that serves."""

RUN = Leaf(
    "run",
    _run,
    "Serve an agent over JSON-RPC, HTTP+JSON and, with --grpc-port, gRPC until Ctrl-C or SIGTERM. MODULE:AGENT says "
    "where it is, e.g. echo:agent.",
    [
        click.Argument(["target"], metavar="MODULE:AGENT"),
        MORE,
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
        BY,
        option("--websocket", is_flag=True, help="Serve the WebSocket binding, too, at /ws."),
        option(
            "--agentcore",
            is_flag=True,
            help="Serve as AgentCore Runtime expects it: JSON-RPC, card and /ping on 0.0.0.0, port $A2A_PORT or 9000.",
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
            "--log-format",
            metavar="FORMAT",
            type=click.Choice(FORMATS),
            default="text",
            help="text, or json: one object a line.",
            envvar="DRAGOMAN_LOG_FORMAT",
        ),
        *PROTECTING,
        option(
            "--reload",
            is_flag=True,
            help="For development: restart when a file changes; A2A-Version may be missing.",
        ),
    ],
    calls_agents=False,
    examples=(
        "dragoman run echo:agent --store tasks.db",
        "dragoman run billing:agent travel:agent",
    ),
)
