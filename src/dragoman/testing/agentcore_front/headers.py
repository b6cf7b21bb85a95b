"""Which headers pass the front: the rules of the allow-list, and what goes on to the container. Pure.

Spec: agentcore 3.1, AC-F-05.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from dragoman.errors import ConfigurationError

_OWN = "x-amzn-bedrock-agentcore-runtime-"
SESSION_ID = f"{_OWN}session-id"
REQUEST_ID = f"{_OWN}request-id"
USER_ID = f"{_OWN}user-id"
CUSTOM = f"{_OWN}custom-"
"""Headers below this prefix may be allow-listed, though they begin with ``x-amzn-``."""

WORKLOAD_TOKEN = "workloadaccesstoken"
IDENTITY_TOKEN = "x-amz-bedrock-agentcore-identity-wat"
CALLBACK_URL = "oauth2callbackurl"
ERROR_TYPE = "x-amzn-errortype"

TRACES: Mapping[str, int] = {"x-amzn-trace-id": 128, "traceparent": 128, "tracestate": 512, "baggage": 8_192}
"""Trace headers, which always pass, and how many bytes each may have."""

ALWAYS = ("content-type", "accept")
MOST_NAMES, LONGEST_NAME, LONGEST_VALUE = 20, 256, 4_096

_HOP_BY_HOP = "connection keep-alive proxy-authenticate proxy-authorization te trailer transfer-encoding upgrade"
_REFUSED = frozenset([*_HOP_BY_HOP.split(" "), "expect", "host", "cookie", "set-cookie", "origin"])
_REFUSED_PREFIXES = (
    "content-",
    "access-control-",
    "x-forwarded-",
    "sec-websocket-",
    "x-amz-",
    "x-amzn-",
)


class Workload(msgspec.Struct, frozen=True, kw_only=True):
    """What the platform adds to each call of a session. Its ``repr`` shows no token."""

    session_id: str
    token: str
    callback_url: str

    def __repr__(self) -> str:
        return f"Workload(session_id={self.session_id!r})"


def check_allow_list(names: Iterable[str]) -> frozenset[str]:
    """The names of an allow-list in lower case. Raises ConfigurationError that says which rule a name breaks.

    An empty list is none; otherwise there are 1 to 20 names.
    """
    checked = [_check(name) for name in names]
    if len(checked) > MOST_NAMES:
        raise ConfigurationError(f"an allow-list has at most {MOST_NAMES} headers, not {len(checked)}")
    return frozenset(checked)


def _check(name: str) -> str:
    lower = name.lower()
    letters = lower.replace("-", "").replace("_", "")
    if not lower.isascii() or not letters.isalnum() or not lower[:1].isalpha() or len(lower) > LONGEST_NAME:
        raise ConfigurationError(f"{name!r} cannot be allow-listed: letters, digits, - and _ behind a letter")
    if lower in _REFUSED or (lower.startswith(_REFUSED_PREFIXES) and not _is_custom(lower)):
        raise ConfigurationError(f"{name!r} cannot be allow-listed: the service refuses it")
    return lower


def _is_custom(name: str) -> bool:
    return name.startswith(CUSTOM) and len(name) > len(CUSTOM)


def too_long(headers: Mapping[str, str], allowed: frozenset[str]) -> str:
    """The first allow-listed header whose value is longer than the service takes, or nothing."""
    return next((name for name in sorted(allowed) if len(headers.get(name, "")) > LONGEST_VALUE), "")


def forwarded(
    headers: Mapping[str, str], allowed: frozenset[str], workload: Workload, request_id: str
) -> dict[str, str]:
    """The headers that the container gets: what may pass, and what the platform adds. Keys in lower case.

    Trace headers beyond their length are left out.
    """
    passed = {name: headers[name] for name in (*ALWAYS, *sorted(allowed)) if name in headers}
    traces = {name: headers[name] for name, limit in TRACES.items() if len(headers.get(name, "x" * 9_999)) <= limit}
    added = {
        SESSION_ID: workload.session_id,
        REQUEST_ID: request_id,
        WORKLOAD_TOKEN: workload.token,
        IDENTITY_TOKEN: workload.token,
        CALLBACK_URL: workload.callback_url,
    }
    return {**passed, **traces, **added}
