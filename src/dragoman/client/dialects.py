"""The client's one door to protocol 0.3. Nothing of it is loaded before an agent of that version is met.

Spec: 8.4 of the register of version 0.3, V03-05, V03-06.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from dragoman.bindings.client_dialect import ClientDialect
from dragoman.bindings.grpc.settings import GrpcClientSettings
from dragoman.errors import ConfigurationError
from dragoman.model import AgentCard, AgentInterface
from dragoman.ports.binding import ClientTransport


class V03Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The habits of an agent of version 0.3, where its peers have several.

    * ``dialect``: which JSON is sent over HTTP+JSON. ``"A"`` (default) is the ProtoJSON that the SDKs speak, ``"B"``
      objects with ``kind`` within the same frames, ``"C"`` the same without frames, as .NET has it. All three are read;
    * ``raw_bytes``: whether the content of files travels as it is over gRPC and in dialect A, as the JavaScript SDK has
      it. Default: as base64 text, like the others;
    * ``poll_unsettled``: after a ``send`` that should have waited for its task and did not, ask for the task until it
      is settled, as often as ``poll`` of :func:`connect` says. Off by default.
    """

    dialect: Literal["A", "B", "C"] = "A"
    raw_bytes: bool = False
    poll_unsettled: bool = False

    def __post_init__(self) -> None:
        if self.dialect not in ("A", "B", "C"):
            raise ConfigurationError(f"v03: dialect is {self.dialect!r}; it may be A, B or C")


def read_card(value: dict[str, Any]) -> AgentCard:
    """The card in a JSON object of any version. Raises InvalidParamsError that names the fields that are wrong."""
    from dragoman.compat.v03.cards import read_card as read

    return read(value)


def http_codec(binding: str, settings: V03Settings) -> ClientDialect:
    """The codec of 0.3 for one peer, by JSON-RPC or HTTP+JSON."""
    if binding == "JSONRPC":
        from dragoman.compat.v03.client_rpc import RpcDialect

        return RpcDialect()
    from dragoman.compat.v03.client_rest import RestDialect

    return RestDialect(settings.dialect, raw_bytes=settings.raw_bytes)


def grpc_transport(
    interface: AgentInterface,
    grpc: GrpcClientSettings,
    settings: V03Settings,
    *,
    connect_timeout: float,
    allow_private: bool,
) -> ClientTransport:
    """Operations over a gRPC interface of 0.3. Raises like the one of the present version."""
    from dragoman.client.grpc_transport import GrpcTransport
    from dragoman.compat.v03.grpc.client import V03ClientForm

    return GrpcTransport(
        interface,
        grpc,
        form=V03ClientForm(raw_bytes=settings.raw_bytes),
        connect_timeout=connect_timeout,
        allow_private=allow_private,
    )
