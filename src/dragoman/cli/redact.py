"""Keeping secrets out of everything that is said. Pure.

Two nets: headers and members that hold secrets by their name, and the secrets of this run wherever they turn up, also
in what an agent sends back.

Spec: A2ACLI_AUTH_004; section 12.4 of the register of the command line.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable
from urllib.parse import quote, quote_plus

REDACTED = "<redacted>"

_SECRET_HEADERS = frozenset(
    {"authorization", "proxy-authorization", "cookie", "set-cookie", "x-api-key", "api-key", "x-a2a-notification-token"}
)
_PLAIN_PARAMETERS = frozenset({"traceparent", "tracestate", "x-request-id", "user-agent"})
_MEMBERS = re.compile(
    r'("(?:token|credentials|access_token|refresh_token|id_token|device_code|client_secret)"\s*:\s*)"(?:[^"\\]|\\.)*"'
)
_FORM = re.compile(
    r"((?:^|[?&\s])(?:access_token|refresh_token|device_code|client_secret|client_assertion|code|code_verifier)=)[^&\s]+"
)
_USER_INFO = re.compile(r"(\w[\w+.-]*://)[^/\s@]*@")


class Redactor:
    """Knows the secrets of this run."""

    def __init__(self, secrets: Iterable[str] = (), headers: Iterable[str] = ()) -> None:
        self._secrets: list[str] = []
        self._headers = set(_SECRET_HEADERS)
        self.learn(secrets, headers)

    def learn(self, secrets: Iterable[str] = (), headers: Iterable[str] = ()) -> None:
        """Take further secrets, and names of headers that hold some."""
        spellings = {spelling for secret in secrets if secret for spelling in _spellings(secret)}
        self._secrets = sorted({*self._secrets, *spellings}, key=len, reverse=True)
        self._headers.update(name.lower() for name in headers)

    def header(self, name: str, value: str) -> str:
        """The value of a header, or what stands for it."""
        return REDACTED if name.lower() in self._headers else self.line(value)

    def line(self, text: str) -> str:
        """Text without secrets."""
        for secret in self._secrets:
            text = text.replace(secret, REDACTED)
        text = _FORM.sub(rf"\1{REDACTED}", text)
        return _USER_INFO.sub(rf"\1{REDACTED}@", _MEMBERS.sub(rf'\1"{REDACTED}"', text))


def is_plain_parameter(name: str) -> bool:
    """Whether the value of a service parameter may be shown."""
    return name.lower().startswith("a2a-") or name.lower() in _PLAIN_PARAMETERS


def _spellings(secret: str) -> Iterable[str]:
    """How a secret may be written in a header, a URL, JSON, or HTTP Basic."""
    yield secret
    yield json.dumps(secret)[1:-1]
    yield json.dumps(secret, ensure_ascii=False)[1:-1]
    yield quote(secret, safe="")
    yield quote_plus(secret)
    yield base64.b64encode(secret.encode("utf-8", "surrogateescape")).decode()
