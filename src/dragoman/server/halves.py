"""The custom bindings of an application, as one.

Spec: §12, BIND-02, BIND-10, BIND-14.
"""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.bindings.settings import EndpointSettings
from dragoman.errors import ConfigurationError
from dragoman.http.asgi import Scope, relative_path
from dragoman.model import AgentInterface
from dragoman.ports.binding import Binding, ServerEdge, ServerHalf
from dragoman.ports.operations import Operations

_OWN_NAMES = ("JSONRPC", "HTTP+JSON", "GRPC")


class ServerHalves:
    """The server halves of some bindings, in the order in which the card names them.

    Raises ConfigurationError for two bindings of one URI, or of one path and scope, and for the name of a standard one.
    """

    def __init__(self, bindings: Sequence[Binding], operations: Operations, settings: EndpointSettings) -> None:
        _check_names([binding.uri for binding in bindings])
        edge = ServerEdge(
            operations=operations,
            identify=settings.identify,
            check_version=settings.check_version,
            public_url=settings.public_url,
            max_message_bytes=settings.max_body_bytes,
            heartbeat=settings.heartbeat,
            stall_timeout=settings.stall_timeout,
            origins=settings.cors,
            methods=settings.methods,
        )
        self._halves = tuple(binding.server(edge) for binding in bindings)
        self._places: dict[tuple[str, str], ServerHalf] = {}
        for half in self._halves:
            self._place(half)
        self._started: list[ServerHalf] = []

    @property
    def scopes(self) -> frozenset[str]:
        """The types of scope that one of them takes."""
        return frozenset(kind for kind, _ in self._places)

    def interfaces(self, base_url: str) -> list[AgentInterface]:
        """Their entries on the card at this address. Spec: BIND-10."""
        entries = (half.interface(base_url.rstrip("/")) for half in self._halves)
        return [entry for entry in entries if entry is not None]

    def find(self, scope: Scope) -> ServerHalf | None:
        """The one whose endpoint a scope is for."""
        return self._places.get((scope["type"], relative_path(scope))) if self._places else None

    async def start(self) -> None:
        """Start all, or none."""
        try:
            for half in self._halves:
                await half.start()
                self._started.append(half)
        except BaseException:
            await self.stop()
            raise

    def begin_stop(self) -> None:
        """No new work from here on."""
        for half in self._started:
            half.begin_stop()

    async def stop(self) -> None:
        """Stop those that were started, the last one first. Safe to call twice."""
        while self._started:
            await self._started.pop().stop()

    def _place(self, half: ServerHalf) -> None:
        for kind in half.scopes:
            if not half.path.startswith("/"):
                raise ConfigurationError(f"bindings: the path {half.path!r} of an endpoint must begin with a slash")
            if self._places.setdefault((kind, half.path), half) is not half:
                raise ConfigurationError(f"bindings: two of them want {half.path} for {kind}")


def _check_names(uris: Sequence[str]) -> None:
    for uri in uris:
        if uri in _OWN_NAMES or ":" not in uri:
            raise ConfigurationError(f"bindings: {uri!r} is no URI of a custom binding")
        if uris.count(uri) > 1:
            raise ConfigurationError(f"bindings: {uri} is given twice")
