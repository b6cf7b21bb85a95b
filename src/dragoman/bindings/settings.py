"""What an endpoint can be told."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from urllib.parse import urlsplit

import msgspec

from dragoman.errors import ConfigurationError
from dragoman.http.asgi import Scope
from dragoman.model import Operation
from dragoman.ports.operations import Caller

MIB = 1024 * 1024

Document = bytes | Callable[[str], bytes]
"""The JSON text of a document, or what makes it for the address of the app."""


class EndpointSettings(msgspec.Struct, kw_only=True, frozen=True):
    """Settings of an :class:`~dragoman.bindings.endpoint.Endpoint`.

    * ``public_url``: the address that clients use, with path; None: the server's own (Spec: CARD-06);
    * ``identify``: authenticates a request by its ASGI scope. Raises UnauthenticatedError (a challenge in
      ``metadata["challenge"]``) or PermissionDeniedError. None: every caller is anonymous (Spec: AUTH-05);
    * ``check_version``: is given the ``A2A-Version`` of a request (``""`` when absent) before anything else of
      it is looked at, and raises VersionNotSupportedError. None: left to the operations (Spec: VER-07);
    * ``healthy``: False makes ``/health`` answer 503;
    * ``max_body_bytes``: largest request body, 10 MiB (Spec: SEC-03);
    * ``heartbeat``: seconds without a byte on a stream until a comment is sent, 15; 0: never;
    * ``stall_timeout``: seconds that a client may leave a stream unread until it is closed, 60;
    * ``card_max_age``: seconds that the card may be cached, 300 (Spec: CARD-19);
    * ``cors``: origins whose pages may call, ``("*",)`` for all; none by default;
    * ``documents``: further public JSON documents, by their paths; or functions that make one for the address of the
      app;
    * ``credential_headers``: names of headers in which callers send credentials, besides ``Authorization``: pages that
      may call may send them;
    * ``methods``: operations that extensions add, by their names (Spec: EXT-13);
    * ``hsts``: send Strict-Transport-Security; None: when ``public_url`` is https (Spec: SEC-01).

    Raises ConfigurationError for a value out of range.
    """

    public_url: str | None = None
    identify: Callable[[Scope], Awaitable[Caller]] | None = None
    check_version: Callable[[str], None] | None = None
    healthy: Callable[[], bool] | None = None
    max_body_bytes: int = 10 * MIB
    heartbeat: float = 15.0
    stall_timeout: float = 60.0
    card_max_age: int = 300
    cors: tuple[str, ...] = ()
    hsts: bool | None = None
    documents: Mapping[str, Document] = {}
    credential_headers: tuple[str, ...] = ()
    methods: Mapping[str, Operation] = {}

    def __post_init__(self) -> None:
        if self.public_url is not None and not _is_http_url(self.public_url):
            raise ConfigurationError("public_url must be an absolute http or https URL without query")
        if isinstance(self.cors, str):
            raise ConfigurationError("cors must be a tuple of origins, not a string")
        for name, least in (("max_body_bytes", 1), ("heartbeat", 0), ("card_max_age", 0)):
            if getattr(self, name) < least:
                raise ConfigurationError(f"{name} must be at least {least}")
        if self.stall_timeout <= 0:
            raise ConfigurationError("stall_timeout must be more than 0 seconds")

    @property
    def sends_hsts(self) -> bool:
        """Whether Strict-Transport-Security is sent."""
        if self.hsts is not None:
            return self.hsts
        return self.public_url is not None and self.public_url.lower().startswith("https:")


def _is_http_url(text: str) -> bool:
    try:
        url = urlsplit(text)
        return url.scheme in ("http", "https") and bool(url.hostname) and not url.query and not url.fragment
    except ValueError:
        return False
