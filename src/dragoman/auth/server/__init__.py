"""The server's side of authentication: schemes that are declared and enforced by one object."""

from dragoman.auth.server.api_keys import ApiKeys
from dragoman.auth.server.bearer import JwtBearer
from dragoman.auth.server.certificates import Certificate
from dragoman.auth.server.guard import RESOURCE_PATH, Guard
from dragoman.auth.server.introspection import Introspection
from dragoman.auth.server.mutual_tls import MutualTls
from dragoman.auth.server.oauth import OAuth2, OpenIdConnect
from dragoman.auth.server.passwords import Passwords
from dragoman.auth.server.presented import Presented, RefusedError
from dragoman.auth.server.scheme import Scheme
from dragoman.auth.server.security import Security, SecuritySetting, as_security
from dragoman.auth.server.throttle import Throttle

__all__ = [
    "RESOURCE_PATH",
    "ApiKeys",
    "Certificate",
    "Guard",
    "Introspection",
    "JwtBearer",
    "MutualTls",
    "OAuth2",
    "OpenIdConnect",
    "Passwords",
    "Presented",
    "RefusedError",
    "Scheme",
    "Security",
    "SecuritySetting",
    "Throttle",
    "as_security",
]
