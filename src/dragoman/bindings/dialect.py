"""The seam for another generation of the protocol, which is served at the same addresses as the current one.

Theory. An endpoint speaks the current version by itself and may be given one dialect: the codec of another generation,
which knows its method names, its paths, its forms of requests, answers, events, errors and cards. The endpoint asks the
dialect only when a request is not marked as one of the current version, or comes by a path of the dialect. What the
dialect reads are calls of the current operations; nothing below the endpoint knows it, but for
:attr:`CallContext.wire <dragoman.ports.operations.CallContext.wire>`. Which generation a request is of is decided here,
by the version that it names and by its method name or path; no dialect is needed for that to be tested.

Spec: §3.6, VER-07, VER-08, AMB-17, AMB-18, AMB-19.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Protocol

from dragoman.bindings.routes import match_route
from dragoman.errors import A2AError, FieldViolation, InvalidParamsError, VersionNotSupportedError
from dragoman.http.sse import SseFraming
from dragoman.model import OPERATIONS, AgentCard
from dragoman.ports.operations import CallContext, EventStream, Operations
from dragoman.protocol.versions import parse_version

Answer = tuple[int, bytes]
"""HTTP status and body; 204 goes with an empty one."""


class GuestCall(Protocol):
    """A request of another generation that was read.

    * ``streaming``: whether it is to be opened as a stream, else it is run;
    * ``framing``: what surrounds each event of its stream.
    """

    streaming: bool
    framing: SseFraming

    @abstractmethod
    async def run(self, operations: Operations, context: CallContext) -> Answer:
        """Do it, and write the answer. Raises A2AError."""

    @abstractmethod
    async def open(self, operations: Operations, context: CallContext) -> EventStream:
        """Open its stream. The ``json`` of the stream's events is in the form of the dialect. Raises A2AError."""

    @abstractmethod
    def encode_stream_error(self, error: A2AError) -> bytes:
        """The last event of a stream that broke, framed."""


class GuestRoute(Protocol):
    """Where an HTTP+JSON request of another generation goes. ``takes_body``: whether its body is read."""

    takes_body: bool

    @abstractmethod
    def read(self, query: str, body: bytes) -> GuestCall:
        """Put the request together. Raises JSONParseError or InvalidParamsError."""


class Dialect(Protocol):
    """The codec of another generation. Pure, but for what its calls do with the operations that they are given.

    * ``version``: its Major.Minor, such as ``"0.3"``; an absent version means this one (Spec: VER-08);
    * ``rpc_methods``: its JSON-RPC methods, none of them one of ours; ``streaming_methods``: those that stream;
    * ``path_prefix``: what its HTTP+JSON paths begin with, such as ``"/v1"``: no tenant can be called so;
    * ``card_paths``: where its clients look for the card, besides the usual place;
    * ``extensions_header``: the header that tells its clients of activated extensions, in lower case.
    """

    version: str
    rpc_methods: frozenset[str]
    streaming_methods: frozenset[str]
    path_prefix: str
    card_paths: tuple[str, ...]
    extensions_header: bytes

    @abstractmethod
    def read_rpc(self, method: str, request_id: bytes, params: bytes) -> GuestCall:
        """Read a JSON-RPC request, of which ``request_id`` and ``params`` are JSON text.

        Raises MethodNotFoundError or InvalidParamsError.
        """

    @abstractmethod
    def encode_rpc_error(self, request_id: bytes, error: A2AError) -> Answer:
        """HTTP status and response object for an error."""

    @abstractmethod
    def match_route(self, method: str, path: str, content_type: str = "") -> GuestRoute:
        """Find the route of a raw path.

        Raises MethodNotFoundError, MethodNotAllowedError whose ``metadata["allow"]`` lists what is allowed,
        UnsupportedOperationError for a route that is not served, or UnsupportedMediaTypeError.
        """

    @abstractmethod
    def encode_rest_error(self, error: A2AError) -> Answer:
        """HTTP status and body for an error over HTTP+JSON."""

    @abstractmethod
    def encode_card(self, card: AgentCard) -> bytes:
        """The public card for readers of both generations, as JSON."""


def speaks_current(version: str) -> bool:
    """Whether a version that was named is the current one."""
    return parse_version(version) == (1, 0)


def may_be_guest(dialect: Dialect, version: str) -> bool:
    """Whether a version is none, or that of the dialect."""
    return not version.strip() or parse_version(version) == parse_version(dialect.version)


def takes_method(dialect: Dialect, version: str, method: str) -> bool:
    """Whether a JSON-RPC request is the dialect's to answer, with an error at least.

    The method's name decides, unless the current version is named. A name of nobody is answered in the form of the
    version that is named or meant.
    """
    if method in OPERATIONS or speaks_current(version):
        return False
    return method in dialect.rpc_methods or may_be_guest(dialect, version)


def is_below(prefix: str, path: str) -> bool:
    """Whether a path is this prefix, or goes on from there with a slash."""
    return path.startswith(prefix) and path[len(prefix) :][:1] in ("", "/")


def check_path_version(dialect: Dialect, version: str, method: str, path: str) -> None:
    """Refuse a path below the dialect's prefix to who names the current version, where its first segment would be a
    tenant. Raises InvalidParamsError, or what the current version says of a path that it does not have."""
    if speaks_current(version):
        match_route(method, path)
        why = f"is reserved: paths below {dialect.path_prefix} are those of version {dialect.version}"
        raise InvalidParamsError(violations=[FieldViolation("tenant", why)])


def check_guest_version(dialect: Dialect, version: str) -> None:
    """Raise VersionNotSupportedError when a request in the style of the dialect names another version."""
    if may_be_guest(dialect, version):
        return
    shown = version if len(version) <= 32 and version.isprintable() else "that"
    raise VersionNotSupportedError(
        f"A2A version {shown} is not supported for this; supported: {dialect.version}",
        metadata={"supportedVersions": dialect.version},
    )
