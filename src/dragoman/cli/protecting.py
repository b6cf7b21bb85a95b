"""Options of ``dragoman run`` that protect an agent.

Spec: AUTH-01, AUTH-05, SEC-05, SEC-10.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import click

from dragoman.auth import ApiKeys, JwtBearer, MutualTls, Scheme, Security
from dragoman.cli.failures import UsageError
from dragoman.cli.options import option
from dragoman.http.guard import is_loopback_host, parse_target
from dragoman.server import Agent, RateLimit, ServerTls

PROTECTING = (
    option(
        "--api-key-env",
        metavar="NAME",
        multiple=True,
        help="Environment variable with an API key that callers must send as X-API-Key; its name is the caller's. "
        "Repeatable.",
    ),
    option(
        "--jwt-issuer",
        metavar="URL",
        help="Callers must send a bearer JWT of this issuer.",
        envvar="DRAGOMAN_JWT_ISSUER",
    ),
    option(
        "--jwt-audience",
        metavar="NAME",
        multiple=True,
        help="What such a JWT must be for. Repeatable.",
        envvar="DRAGOMAN_JWT_AUDIENCE",
    ),
    option("--tls-cert", metavar="FILE", help="Certificate (PEM, with its chain): serves https."),
    option("--tls-key", metavar="FILE", help="Key of --tls-cert."),
    option("--tls-client-ca", metavar="FILE", help="Demand certificates of clients, signed by one of these."),
    option(
        "--rate-limit",
        metavar="CALLS",
        type=click.FloatRange(min=0, min_open=True),
        help="Calls that each caller may make in a minute.",
    ),
)
_OF_AGENTS = ("api_key_env", "jwt_issuer", "jwt_audience", "rate_limit")


def read_tls(given: Mapping[str, Any]) -> ServerTls | None:
    """TLS of the HTTP server, None when it is not asked for. Raises UsageError."""
    certificate, key, roots = given["tls_cert"], given["tls_key"], given["tls_client_ca"]
    if bool(certificate) != bool(key) or (roots and not key):
        raise UsageError("TLS needs --tls-cert and --tls-key")
    return ServerTls(certificate=certificate, key=key, client_roots=roots) if key else None


def read_security(given: Mapping[str, Any], agent: Agent) -> Security | None:
    """What callers have to show; None when nothing is asked for.

    It is an API key or a token, when either is asked for, and a certificate besides, when these are demanded. Raises
    UsageError, ConfigurationError.
    """
    schemes: dict[str, Scheme] = {}
    if given["api_key_env"]:
        schemes["apiKey"] = ApiKeys({name: _value_of(name) for name in given["api_key_env"]})
    if bool(given["jwt_issuer"]) != bool(given["jwt_audience"]):
        raise UsageError("tokens need --jwt-issuer and --jwt-audience")
    if given["jwt_issuer"]:
        schemes["bearer"] = JwtBearer(given["jwt_issuer"], given["jwt_audience"])
    besides: dict[str, tuple[str, ...]] = {"mutualTls": ()} if given["tls_client_ca"] else {}
    require = [{name: (), **besides} for name in schemes] or [besides]
    if besides:
        schemes["mutualTls"] = MutualTls()
    if schemes and agent.security is not None:
        raise UsageError("the agent says by itself what callers have to show; leave the options out")
    return Security(schemes, require=require) if schemes else None


def read_rate_limit(given: Mapping[str, Any]) -> RateLimit | None:
    """How many calls each caller may make."""
    return RateLimit(given["rate_limit"]) if given["rate_limit"] else None


def refuse_protection(given: Mapping[str, Any]) -> None:
    """Refuse options that an App is told itself. Raises UsageError."""
    for name in _OF_AGENTS:
        if given[name]:
            flag = f"--{name.replace('_', '-')}"
            raise UsageError(f"{flag} is for an Agent; an App is told itself: App(security=…, rate_limit=…)")


def in_the_clear(address: str, *, secured: bool) -> str:
    """What to tell someone whose callers would send their credentials unencrypted. Spec: AUTH-01."""
    target = parse_target(address)
    if not secured or target.scheme == "https" or is_loopback_host(target.host):
        return ""
    return f"credentials are sent to {address} unencrypted; set --tls-cert, or put a proxy with TLS in front"


def _value_of(name: str) -> str:
    value = os.environ.get(name, "")
    if not value:
        raise UsageError(f"--api-key-env: the environment variable {name} is empty or not set")
    return value
