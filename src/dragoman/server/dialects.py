"""The one door of the server to other generations of the protocol: what an app is made with, by the versions that it
serves.

Spec: §3.6, AMB-17.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import msgspec

from dragoman.bindings.dialect import Dialect
from dragoman.compat.v03.server_dialect import V03Dialect
from dragoman.compat.v03.server_push import V03Notifications
from dragoman.errors import ConfigurationError
from dragoman.model import AgentInterface
from dragoman.ports.push import Encoder

if TYPE_CHECKING:
    from dragoman.bindings.grpc.form import ServerForm

CURRENT = "1.0"
V03 = "0.3"
VERSIONS = (CURRENT, V03)
"""What is served unless one says otherwise."""

RestForm = Literal["", "A", "B", "C"]


class V03ServerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How callers of protocol 0.3 are answered, where that protocol leaves it open.

    * ``rest_form``: the JSON of answers over HTTP+JSON: ``"A"``, that of the protobuf messages; ``"B"``, objects with
      ``kind`` in wrappers; ``"C"``, such objects bare. Empty, the default: B to those who write so, else A;
    * ``raw_bytes``: in form A, the content of files as base64 once, and over gRPC as it is. False, the default: in
      base64 once more, as most clients expect.
    """

    rest_form: RestForm = ""
    raw_bytes: bool = False

    def __post_init__(self) -> None:
        if self.rest_form not in ("", "A", "B", "C"):
            raise ConfigurationError(f"v03: rest_form is {self.rest_form!r}; it may be A, B, C or empty")


def checked_versions(versions: Sequence[str]) -> tuple[str, ...]:
    """The versions that an app is to serve, the current one first.

    Raises ConfigurationError for one that nobody here speaks, and when the current one is missing.
    """
    if isinstance(versions, str):
        raise ConfigurationError("versions must be a tuple of versions, not a string")
    unknown = [version for version in versions if version not in VERSIONS]
    if unknown:
        raise ConfigurationError(f"versions: {unknown[0]!r} is not spoken here; it may be {' and '.join(VERSIONS)}")
    if CURRENT not in versions:
        raise ConfigurationError(f"versions: {CURRENT} is always served; {V03} may be beside it")
    return tuple(version for version in VERSIONS if version in versions)


def http_dialect(versions: Sequence[str], settings: V03ServerSettings) -> Dialect | None:
    """What the HTTP endpoint of an app needs to serve these versions; None for the current one alone."""
    return V03Dialect(form=settings.rest_form, raw_bytes=settings.raw_bytes) if V03 in versions else None


def grpc_forms(versions: Sequence[str], settings: V03ServerSettings) -> dict[str, ServerForm]:
    """What a gRPC server speaks besides the current version: the forms of the services, by their versions.

    Raises MissingExtraError without the extra ``grpc``.
    """
    if V03 not in versions:
        return {}
    from dragoman.compat.v03.grpc.server import V03ServerForm

    return {V03: V03ServerForm(raw_bytes=settings.raw_bytes)}


def push_encoders(versions: Sequence[str]) -> dict[str, Encoder]:
    """How webhooks are told that were set by callers of versions other than the current one, by their versions."""
    return {V03: V03Notifications()} if V03 in versions else {}


def reserved_tenants(versions: Sequence[str]) -> frozenset[str]:
    """Names that no tenant can have, since paths of another generation begin with them."""
    return frozenset({V03Dialect.path_prefix.removeprefix("/")}) if V03 in versions else frozenset()


def check_tenants(interfaces: Sequence[AgentInterface], versions: Sequence[str]) -> None:
    """Raise ConfigurationError for an interface whose tenant has a reserved name."""
    reserved = reserved_tenants(versions)
    for interface in interfaces:
        if interface.tenant in reserved:
            raise ConfigurationError(
                f"the tenant of {interface.url} cannot be {interface.tenant!r}: paths of version {V03} begin so; "
                f"serve without that version, or call the tenant otherwise"
            )
