"""Headers of a caller's own that reach the agent, and what the service refuses. Pure.

The service passes on only what the runtime's request-header configuration lists, at most twenty names, and the prefix
for custom headers is the one that may always be listed.

Spec: AC-C-26, AC-C-33; section 3.1 of the register.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping

from dragoman.agentcore.headers import CUSTOM, SESSION_ID
from dragoman.agentcore.sessions import check_session_id
from dragoman.errors import ConfigurationError

logger = logging.getLogger("dragoman.agentcore")

MAX_NAMES = 20
MAX_VALUE_BYTES = 4096
TRACE_LIMITS = {"x-amzn-trace-id": 128, "traceparent": 128, "tracestate": 512, "baggage": 8192}

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*", re.ASCII)
_REFUSED = frozenset(
    {
        "accept",
        "accept-encoding",
        "connection",
        "content-encoding",
        "content-length",
        "content-type",
        "cookie",
        "expect",
        "host",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "set-cookie",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
_REFUSED_BEGINNINGS = (
    "x-amz-",
    "x-amzn-",
    "x-forwarded-",
    "sec-websocket-",
    "access-control-",
    "content-",
)


def custom_headers(values: Mapping[str, str]) -> dict[str, str]:
    """Headers with the prefix for custom ones, ready for ``headers=`` of a call: ``{"Tenant": "a"}``.

    The agent reads them as ``agentcore.of(ctx).custom["tenant"]`` once the runtime lists them. Raises
    ConfigurationError for what the service would refuse.
    """
    found = {
        name if name.lower().startswith(CUSTOM) else f"X-Amzn-Bedrock-AgentCore-Runtime-Custom-{name}": value
        for name, value in values.items()
    }
    check_headers(found)
    return found


def check_headers(headers: Mapping[str, str]) -> None:
    """Refuse names that cannot be on a runtime's list, values that are too long, and more than twenty of them.

    Raises ConfigurationError.
    """
    if len(headers) > MAX_NAMES:
        raise ConfigurationError(f"{len(headers)} headers are too many: {MAX_NAMES} can be listed")
    for name, value in headers.items():
        reason = _why_refused(name.lower()) or _why_bad(value)
        if reason:
            raise ConfigurationError(f"the header {name[:100]!r} would not reach the agent: {reason}")


def _why_refused(name: str) -> str:
    if name.startswith(CUSTOM):
        name = name.removeprefix(CUSTOM)
        return "" if _NAME.fullmatch(name) else "after the prefix comes a letter, then letters, digits, '-' and '_'"
    if not _NAME.fullmatch(name):
        return "a name begins with a letter and has letters, digits, '-' and '_'"
    refused = name in _REFUSED or name.startswith(_REFUSED_BEGINNINGS)
    return "the service does not pass it on" if refused else ""


def _why_bad(value: str) -> str:
    if not value.isascii() or not (value.isprintable() or "\t" in value):
        return "its value must be printable ASCII"
    return f"its value is longer than {MAX_VALUE_BYTES} bytes" if len(value) > MAX_VALUE_BYTES else ""


def in_session(session_id: str) -> dict[str, str]:
    """Headers that have one call go to this session: ``client.send("…", headers=in_session(id))``."""
    return {SESSION_ID: check_session_id(session_id)}


def without_long_traces(headers: Mapping[str, str]) -> dict[str, str]:
    """Headers less those for tracing that the service would refuse for their length. Spec: AC-C-26."""
    kept = {}
    for name, value in headers.items():
        limit = TRACE_LIMITS.get(name)
        if limit is not None and len(value) > limit:
            logger.warning("the header %s is left out: %d characters, %d are allowed", name, len(value), limit)
        else:
            kept[name] = value
    return kept
