"""Authentication of calls: challenges, the metadata behind them, and tokens. Nothing here belongs to one host."""

from dragoman.auth.challenges import Challenge, bearer_challenge, parse_challenges
from dragoman.auth.choosing import CredentialsMissingError
from dragoman.auth.client_credentials import ClientCredentials
from dragoman.auth.credentials import ApiKey, Basic, ClientCertificate, Credential, Credentials
from dragoman.auth.device import DevicePrompt
from dragoman.auth.discovery import discover, fetch_server
from dragoman.auth.httpx import as_httpx_auth
from dragoman.auth.logins import AuthorizationCode, DeviceCode
from dragoman.auth.metadata import AuthorizationServer, Discovery, MetadataError, ProtectedResource
from dragoman.auth.server import (
    ApiKeys,
    Certificate,
    Introspection,
    JwtBearer,
    MutualTls,
    OAuth2,
    OpenIdConnect,
    Passwords,
    RefusedError,
    Scheme,
    Security,
    Throttle,
)
from dragoman.auth.tokens import Bearer, BearerToken, TokenCache, TokenError, TokenSource, as_source

__all__ = [
    "ApiKey",
    "ApiKeys",
    "AuthorizationCode",
    "AuthorizationServer",
    "Basic",
    "Bearer",
    "BearerToken",
    "Certificate",
    "Challenge",
    "ClientCertificate",
    "ClientCredentials",
    "Credential",
    "Credentials",
    "CredentialsMissingError",
    "DeviceCode",
    "DevicePrompt",
    "Discovery",
    "Introspection",
    "JwtBearer",
    "MetadataError",
    "MutualTls",
    "OAuth2",
    "OpenIdConnect",
    "Passwords",
    "ProtectedResource",
    "RefusedError",
    "Scheme",
    "Security",
    "Throttle",
    "TokenCache",
    "TokenError",
    "TokenSource",
    "as_httpx_auth",
    "as_source",
    "bearer_challenge",
    "discover",
    "fetch_server",
    "parse_challenges",
]
