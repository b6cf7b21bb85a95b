"""Authentication of calls: challenges, the metadata behind them, and tokens. Nothing here belongs to one host."""

from dragoman.auth.challenges import Challenge, bearer_challenge, parse_challenges
from dragoman.auth.client_credentials import ClientCredentials
from dragoman.auth.discovery import discover, fetch_server
from dragoman.auth.metadata import AuthorizationServer, Discovery, MetadataError, ProtectedResource
from dragoman.auth.tokens import Bearer, BearerToken, TokenCache, TokenError, TokenSource, as_source

__all__ = [
    "AuthorizationServer",
    "Bearer",
    "BearerToken",
    "Challenge",
    "ClientCredentials",
    "Discovery",
    "MetadataError",
    "ProtectedResource",
    "TokenCache",
    "TokenError",
    "TokenSource",
    "as_source",
    "bearer_challenge",
    "discover",
    "fetch_server",
    "parse_challenges",
]
