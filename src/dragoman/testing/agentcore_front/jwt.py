"""The front of a runtime that takes bearer tokens.

Spec: AC-F-08, agentcore 8.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from dragoman.testing.agentcore_front.incoming import Incoming
from dragoman.testing.agentcore_front.refusals import Fault, Refusal
from dragoman.testing.agentcore_front.sigv4 import ALGORITHM
from dragoman.testing.agentcore_front.tokens import MalformedTokenError, WrongSignatureError, mint, read_token

METADATA_PATH = "/.well-known/oauth-protected-resource"
LIFETIME = 3_600


class Jwt:
    """Takes bearer tokens of one issuer.

    * ``issuer``: its address; ``secret``: what it signs with, default a new one;
    * ``audiences``, ``clients``: which of them a token must be for (``aud``, ``client_id``); empty: any;
    * ``scopes``: all that a token must have, told to callers as well;
    * ``servers``: the authorization servers that the metadata names, default the issuer.
    """

    name = "JWT"

    def __init__(
        self,
        issuer: str,
        *,
        secret: str = "",
        audiences: Sequence[str] = (),
        clients: Sequence[str] = (),
        scopes: Sequence[str] = (),
        servers: Sequence[str] = (),
    ) -> None:
        self.issuer = issuer
        self.scopes = tuple(scopes)
        self.servers = tuple(servers) or (issuer,)
        self._secret = secret or secrets.token_urlsafe(32)
        self._audiences = tuple(audiences)
        self._clients = tuple(clients)

    def mint(self, now: float, *, lifetime: float = LIFETIME, **claims: Any) -> str:
        """A token that is taken from ``now`` on, in seconds since the epoch, unless ``claims`` say otherwise."""
        usual: dict[str, Any] = {
            "iss": self.issuer,
            "sub": "rehearsal-user",
            "iat": int(now),
            "exp": int(now + lifetime),
            "scope": " ".join(self.scopes),
        }
        if self._audiences:
            usual["aud"] = self._audiences[0]
        if self._clients:
            usual["client_id"] = self._clients[0]
        return mint({**usual, **claims}, self._secret)

    def check(self, request: Incoming) -> str:
        """The subject of the token. Raises Refusal: 401 with a challenge, or 403 for what is no token at all."""
        given = request.headers.get("authorization", "")
        if not given:
            raise self._challenge(request)
        kind, _, token = given.partition(" ")
        if kind == ALGORITHM:
            raise Refusal(
                Fault.ACCESS_DENIED, "Authorization method mismatch: this runtime takes bearer tokens, not SigV4"
            )
        if kind.lower() != "bearer":
            raise self._challenge(request)
        try:
            claims = read_token(token.strip(), self._secret)
        except MalformedTokenError:
            raise Refusal(Fault.ACCESS_DENIED, "OAuth authorization failed: Failed to parse token") from None
        except WrongSignatureError:
            raise self._challenge(request, "Invalid signature") from None
        fault = self._fault(claims, request.now)
        if fault:
            raise self._challenge(request, fault)
        return str(claims.get("sub", ""))

    def _fault(self, claims: Mapping[str, Any], now: float) -> str:
        audience = claims.get("aud", [])
        audiences = [audience] if isinstance(audience, str) else audience
        if claims.get("iss") != self.issuer:
            return "Claim 'iss' value mismatch with configuration"
        if self._audiences and not set(self._audiences) & set(audiences):
            return "Claim 'aud' value mismatch with configuration"
        if self._clients and claims.get("client_id") not in self._clients:
            return "Claim 'client_id' value mismatch with configuration"
        if not isinstance(claims.get("exp"), int) or claims["exp"] <= now:
            return "Token has expired"
        if not set(self.scopes) <= set(str(claims.get("scope", "")).split()):
            return "Claim 'scope' value mismatch with configuration"
        return ""

    def _challenge(self, request: Incoming, fault: str = "") -> Refusal:
        place = metadata_url(request)
        challenge = f'Bearer resource_metadata="{place}"'
        if self.scopes:
            challenge += f', scope="{" ".join(self.scopes)}"'
        if fault:
            challenge += f', error="invalid_token", error_description="{fault}"'
        return Refusal(Fault.MISSING_TOKEN, fault, headers={"www-authenticate": challenge})

    def metadata(self, request: Incoming) -> dict[str, Any]:
        """The document of the protected resource."""
        base = _base(request)
        found = {"resource": f"{base}?qualifier={request.qualifier}", "authorization_servers": list(self.servers)}
        return {**found, "scopes_supported": list(self.scopes)} if self.scopes else found


def metadata_url(request: Incoming) -> str:
    """Where the document of the protected resource is."""
    return f"{_base(request)}{METADATA_PATH}?qualifier={request.qualifier}"


def _base(request: Incoming) -> str:
    """The address of the invocations that a request is about, without a slash at the end."""
    path = request.target.partition("?")[0]
    runtime = "/".join(path.split("/", 3)[:3])
    return f"{request.origin}{runtime}/invocations"
