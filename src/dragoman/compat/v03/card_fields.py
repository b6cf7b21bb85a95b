"""What the two ways of a card have in common: the parts that have the same fields in 0.3 and 1.0. Pure."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from dragoman.model import (
    APIKeySecurityScheme,
    AuthorizationCodeOAuthFlow,
    ClientCredentialsOAuthFlow,
    HTTPAuthSecurityScheme,
    ImplicitOAuthFlow,
    MutualTlsSecurityScheme,
    OpenIdConnectSecurityScheme,
    PasswordOAuthFlow,
)

SCHEMES: Final[dict[str, type[msgspec.Struct]]] = {
    "api_key_security_scheme": APIKeySecurityScheme,
    "http_auth_security_scheme": HTTPAuthSecurityScheme,
    "open_id_connect_security_scheme": OpenIdConnectSecurityScheme,
    "mtls_security_scheme": MutualTlsSecurityScheme,
}
"""Schemes that have the same fields in both; the fifth is OAuth."""

FLOWS: Final[dict[str, type[msgspec.Struct]]] = {
    "authorization_code": AuthorizationCodeOAuthFlow,
    "client_credentials": ClientCredentialsOAuthFlow,
    "implicit": ImplicitOAuthFlow,
    "password": PasswordOAuthFlow,
}


def copy_fields(kind: type[Any], source: msgspec.Struct) -> Any:
    """A message of type ``kind`` with what it has in common with ``source``."""
    return kind(**{name: getattr(source, name) for name in kind.__struct_fields__ if hasattr(source, name)})
