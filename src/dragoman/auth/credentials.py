"""What a client may have to show who it is.

Spec: AUTH-04, SEC-05; section 12.2 of the register of the command line.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence

import msgspec

from dragoman.auth.tokens import Bearer, TokenSource, as_source
from dragoman.errors import ConfigurationError
from dragoman.http.pem import Pem


class ApiKey(msgspec.Struct, frozen=True):
    """An API key, sent where the card says. ``header``: where it goes when no card says it. Never shown."""

    key: str
    header: str = ""

    def __post_init__(self) -> None:
        if not self.key or not self.key.isascii() or not self.key.isprintable():
            raise ConfigurationError("an API key must be printable ASCII")

    def __repr__(self) -> str:
        return "ApiKey(<hidden>)"


class Basic(msgspec.Struct, frozen=True):
    """User and password of HTTP Basic. Never shown."""

    user: str
    password: str

    def __post_init__(self) -> None:
        if ":" in self.user or not (self.user + self.password).isprintable():
            raise ConfigurationError("user and password must be printable, and the user without a colon")

    def __repr__(self) -> str:
        return "Basic(<hidden>)"

    @property
    def header(self) -> str:
        """The value of ``Authorization``. Spec: RFC 7617."""
        return f"Basic {base64.b64encode(f'{self.user}:{self.password}'.encode()).decode()}"


class ClientCertificate(msgspec.Struct, frozen=True, kw_only=True):
    """What the client shows of itself in TLS (mutual TLS), on every binding.

    * ``certificate``, with the chain behind it, and ``key``: PEM, or the files that hold it; ``password`` of the key;
    * ``roots``: the authorities to trust; None: the usual ones.
    """

    certificate: Pem
    key: Pem
    password: str = ""
    roots: Pem | None = None

    def __repr__(self) -> str:
        return "ClientCertificate(<hidden>)"


Credential = Bearer | ApiKey | Basic | ClientCertificate
"""One credential: a bearer token (text, function or source), an API key, user and password, a certificate."""

Credentials = Credential | Sequence[Credential] | Mapping[str, Credential]
"""One credential, several, or those for the schemes of the card by their names."""

Known = TokenSource | ApiKey | Basic | ClientCertificate


class Held(msgspec.Struct, frozen=True):
    """One credential of a client; ``scheme`` is the name of the card's scheme that it is for, empty for any."""

    credential: Known
    scheme: str = ""


def hold(given: Credentials) -> tuple[Held, ...]:
    """What a user gave, each by itself. Raises ConfigurationError for what is no credential."""
    if isinstance(given, Mapping):
        return tuple(Held(_known(one), name) for name, one in given.items())
    if isinstance(given, list | tuple):
        return tuple(Held(_known(one)) for one in given)
    return (Held(_known(given)),)  # type: ignore[arg-type]


def _known(given: Credential) -> Known:
    return given if isinstance(given, ApiKey | Basic | ClientCertificate) else as_source(given)
