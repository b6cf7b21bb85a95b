"""The door to the library ``websockets``: opening a socket, and its failures in the words of this package."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from dragoman.bindings.remote_error import Answer, bare_error
from dragoman.errors import ConnectError, ConnectionLostError, DragomanError, MissingExtraError, OutboundUrlError
from dragoman.http.client import resolve
from dragoman.http.guard import shown, vet
from dragoman.model import Operation

try:
    from websockets.asyncio.client import ClientConnection
    from websockets.asyncio.client import connect as _connect
    from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus, InvalidURI
    from websockets.typing import Subprotocol
except ImportError as error:
    raise MissingExtraError("The client of the WebSocket binding", "websocket") from error

__all__ = ["ClientConnection", "ConnectionClosed", "open_connection", "why_lost"]

#: Refusals of a handshake that are answers of the agent; anything else is a place where no agent answers.
_ANSWERS = (401, 403, 429, 503)


class _Connect(_connect):
    """Without redirects: the card has to name the final address."""

    def process_redirect(self, exc: Exception) -> Exception | str:
        return exc


async def open_connection(
    url: str,
    op: Operation,
    *,
    subprotocol: str,
    headers: Mapping[str, str],
    tls: ssl.SSLContext | None,
    connect_timeout: float,
    heartbeat: float | None,
    max_bytes: int,
    allow_private: bool,
) -> ClientConnection:
    """Open a socket. ``op`` is the call that needs it, for its errors.

    Raises ConnectError, OutboundUrlError, and the A2AError of a handshake that was refused with 401, 403, 429 or 503.
    """
    place = shown(url)
    pinned: dict[str, Any] = {}
    try:
        if not allow_private:
            target, address = await vet("http" + url[2:], resolve)
            pinned = {"host": str(address), "port": target.port, "proxy": None}
        connection = await _Connect(
            url,
            subprotocols=[Subprotocol(subprotocol)],
            additional_headers=dict(headers),
            user_agent_header=headers.get("user-agent", "dragoman"),
            compression=None,  # messages hold secrets of one side beside text of the other; and it costs memory
            open_timeout=connect_timeout,
            ping_interval=heartbeat,
            ping_timeout=heartbeat,
            close_timeout=2.0,
            max_size=max_bytes,
            ssl=tls,
            **pinned,
        )
    except InvalidStatus as error:
        raise _refused(error, op, url) from error
    except InvalidURI as error:
        raise OutboundUrlError(f"The address {place} cannot be called", url=place) from error
    except TimeoutError as error:
        raise ConnectError(f"Cannot connect to {place}: no connection in time", url=place) from error
    except (OSError, InvalidHandshake, EOFError, ImportError) as error:
        raise ConnectError(f"Cannot connect to {place}: {_words(error)}", url=place) from error
    if connection.subprotocol != subprotocol:
        await connection.close()
        raise ConnectError(f"Cannot connect to {place}: it does not speak {subprotocol}", url=place)
    return connection


def _refused(error: InvalidStatus, op: Operation, url: str) -> DragomanError:
    response, place = error.response, shown(url)
    if response.status_code not in _ANSWERS:
        name = HTTPStatus(response.status_code).phrase if response.status_code in list(HTTPStatus) else ""
        text = f"Cannot connect to {place}: the handshake was answered with HTTP {response.status_code} {name}".rstrip()
        return ConnectError(text, url=place)
    headers = {name.lower(): value for name, value in response.headers.raw_items()}
    return bare_error(
        Answer(op=op, status=response.status_code, headers=headers, body=bytes(response.body or b""), url=place)
    )


def why_lost(error: ConnectionClosed, url: str) -> ConnectionLostError:
    """The error for a socket that was closed."""
    closed = error.rcvd or error.sent
    why = (
        "without a word"
        if closed is None
        else f"with code {closed.code}" + (f" ({closed.reason})" * bool(closed.reason))
    )
    return ConnectionLostError(f"The connection to {shown(url)} was closed {why}", url=shown(url))


def _words(error: BaseException) -> str:
    if isinstance(error, ssl.SSLError):
        return f"TLS failed: {getattr(error, 'verify_message', '') or error.reason or 'handshake'}"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__
