"""Where a hosted agent listens, and by which address it is called.

Spec: AC-S-01 to AC-S-05, AC-S-30, AC-S-33.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit

from dragoman.errors import ConfigurationError

HOST = "0.0.0.0"
PORT = 9000
PORT_VARIABLE = "A2A_PORT"
URL_VARIABLE = "AGENTCORE_RUNTIME_URL"

FIRST_PORT, LAST_PORT = 8000, 12_000
NOT_A_PORT = 8443


def choose_port(argument: int | None, environment: Mapping[str, str]) -> int:
    """The port: the argument, else ``A2A_PORT``, else 9000. ``PORT`` is not looked at. Spec: AC-S-03, AC-S-04.

    Raises ConfigurationError for a variable that is no port.
    """
    if argument is not None:
        return argument
    text = environment.get(PORT_VARIABLE, "").strip()
    if not text:
        return PORT
    if not (text.isascii() and text.isdigit() and int(text[:6]) <= 65_535):
        raise ConfigurationError(f"{PORT_VARIABLE} is {text!r}, which is no port")
    return int(text)


def check_port(host: str, port: int) -> str:
    """A warning about a port that has to be named at deployment, or an empty text. Spec: AC-S-05.

    Raises ConfigurationError for one that AgentCore does not take, unless only this machine can reach it.
    """
    if port == PORT or is_loopback(host):
        return ""
    if port == NOT_A_PORT or not FIRST_PORT <= port <= LAST_PORT:
        taken = f"{FIRST_PORT} to {LAST_PORT} except {NOT_A_PORT}"
        raise ConfigurationError(f"AgentCore takes ports {taken}, not {port}; the usual one is {PORT}")
    return f"the port is {port}: name it as the container port in the runtime's protocol settings (default {PORT})"


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def choose_address(argument: str | None, environment: Mapping[str, str]) -> str | None:
    """The public address: the argument, else ``AGENTCORE_RUNTIME_URL``; None when neither says one. Spec: AC-S-30.

    Raises ConfigurationError for one that is no http or https URL.
    """
    found = argument or environment.get(URL_VARIABLE, "").strip()
    return public_address(found) if found else None


def public_address(url: str) -> str:
    """A URL as the card names it: its path ends with exactly one slash, all else is left as it is. Spec: AC-S-33."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise ConfigurationError("the public address must be an absolute http or https URL")
    base, question, query = url.partition("?")
    return f"{base.rstrip('/')}/{question}{query}"
