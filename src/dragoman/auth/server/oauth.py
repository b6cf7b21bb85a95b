"""OAuth 2 and OpenID Connect on the card; behind both are bearer tokens. Spec: DATA-32, DATA-33, AUTH-05."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dragoman.auth.server.bearer import BearerScheme, JwtBearer
from dragoman.errors import ConfigurationError
from dragoman.model import (
    AuthorizationCodeOAuthFlow,
    ClientCredentialsOAuthFlow,
    DeviceCodeOAuthFlow,
    OAuth2SecurityScheme,
    OAuthFlows,
    OpenIdConnectSecurityScheme,
    SecurityScheme,
)
from dragoman.ports.operations import Caller

Flow = AuthorizationCodeOAuthFlow | ClientCredentialsOAuthFlow | DeviceCodeOAuthFlow

_MEMBERS: dict[type[Any], str] = {
    AuthorizationCodeOAuthFlow: "authorization_code",
    ClientCredentialsOAuthFlow: "client_credentials",
    DeviceCodeOAuthFlow: "device_code",
}


class OAuth2(BearerScheme):
    """OAuth 2: how callers get a token, and what verifies it.

    * ``flow``: one of the model's flows that are not deprecated, with its addresses and scopes;
    * ``tokens``: a :class:`JwtBearer` or an :class:`Introspection`;
    * ``metadata_url``: where the authorization server's metadata is (RFC 8414), for the card.

    Raises ConfigurationError.
    """

    kind = "oauth2"

    def __init__(self, flow: Flow, tokens: BearerScheme, *, metadata_url: str = "", description: str = "") -> None:
        if type(flow) not in _MEMBERS:
            raise ConfigurationError("OAuth2: flow must be for an authorization code, client credentials or a device")
        if not isinstance(tokens, BearerScheme):
            raise ConfigurationError("OAuth2: tokens must be a JwtBearer or an Introspection")
        self._flow = flow
        self._tokens = tokens
        self._metadata_url = metadata_url
        self._description = description

    def declare(self) -> SecurityScheme:
        """See :class:`Scheme`."""
        members: dict[str, Any] = {_MEMBERS[type(self._flow)]: self._flow}
        flows = OAuthFlows(**members)
        found = OAuth2SecurityScheme(description=self._description, flows=flows, oauth2_metadata_url=self._metadata_url)
        return SecurityScheme(oauth2_security_scheme=found)

    @property
    def issuers(self) -> tuple[str, ...]:
        """See :class:`Scheme`."""
        return self._tokens.issuers

    @property
    def scopes(self) -> tuple[str, ...]:
        """See :class:`Scheme`."""
        return tuple(self._flow.scopes)

    async def verify(self, credential: str) -> Caller:
        """See :class:`Scheme`."""
        return await self._tokens.verify(credential)


class OpenIdConnect(JwtBearer):
    """OpenID Connect: JWTs of an issuer that shows its configuration.

    Takes what :class:`JwtBearer` takes; ``scopes`` are those that callers may ask for.
    """

    kind = "openIdConnect"

    def __init__(
        self, issuer: str, audience: str | Sequence[str], *, scopes: Sequence[str] = (), **settings: Any
    ) -> None:
        super().__init__(issuer, audience, **settings)
        self._known_scopes = tuple(scopes)

    def declare(self) -> SecurityScheme:
        """See :class:`Scheme`."""
        url = f"{self.rules.issuer.rstrip('/')}/.well-known/openid-configuration"
        found = OpenIdConnectSecurityScheme(description=self._description, open_id_connect_url=url)
        return SecurityScheme(open_id_connect_security_scheme=found)

    @property
    def scopes(self) -> tuple[str, ...]:
        """See :class:`Scheme`."""
        return self._known_scopes
