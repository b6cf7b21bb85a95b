"""Write agent cards as kind-JSON: security schemes are flat and have a ``type``.

Spec: v0.3 §5.2, §8.2.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dragoman.compat.v03 import types as t
from dragoman.compat.v03.card_forms import SCHEMES

Object = dict[str, Any]


def with_members(value: Object, **optional: Any) -> Object:
    """The object with those further members that are not empty."""
    for name, item in optional.items():
        if item:
            value[name] = item
    return value


def write_card(card: t.AgentCard) -> Object:
    value = {
        "protocolVersion": card.protocol_version or "0.3.0",
        "name": card.name,
        "description": card.description,
        "url": card.url,
        "preferredTransport": card.preferred_transport or "JSONRPC",
        "version": card.version,
        "capabilities": _capabilities(card.capabilities or t.AgentCapabilities()),
        "defaultInputModes": card.default_input_modes,
        "defaultOutputModes": card.default_output_modes,
        "skills": [_skill(skill) for skill in card.skills],
    }
    if card.provider is not None:
        value["provider"] = {"organization": card.provider.organization, "url": card.provider.url}
    return with_members(
        value,
        additionalInterfaces=[{"url": entry.url, "transport": entry.transport} for entry in card.additional_interfaces],
        iconUrl=card.icon_url,
        documentationUrl=card.documentation_url,
        securitySchemes={name: write_scheme(scheme) for name, scheme in card.security_schemes.items()},
        security=write_requirements(card.security),
        supportsAuthenticatedExtendedCard=card.supports_authenticated_extended_card,
        signatures=[_signature(signature) for signature in card.signatures],
    )


def _capabilities(capabilities: t.AgentCapabilities) -> Object:
    value: Object = {}
    if capabilities.streaming is not None:
        value["streaming"] = capabilities.streaming
    if capabilities.push_notifications is not None:
        value["pushNotifications"] = capabilities.push_notifications
    return with_members(
        value,
        stateTransitionHistory=capabilities.state_transition_history,
        extensions=[_extension(extension) for extension in capabilities.extensions],
    )


def _extension(extension: t.AgentExtension) -> Object:
    return with_members(
        {"uri": extension.uri},
        description=extension.description,
        required=extension.required,
        params=extension.params,
    )


def _skill(skill: t.AgentSkill) -> Object:
    return with_members(
        {"id": skill.id, "name": skill.name, "description": skill.description, "tags": skill.tags},
        examples=skill.examples,
        inputModes=skill.input_modes,
        outputModes=skill.output_modes,
        security=write_requirements(skill.security),
    )


def _signature(signature: t.AgentCardSignature) -> Object:
    return with_members({"protected": signature.protected, "signature": signature.signature}, header=signature.header)


def write_requirements(requirements: list[t.Security]) -> list[Object]:
    """``security``: scopes by the name of the scheme."""
    return [{name: scopes.list for name, scopes in needed.schemes.items()} for needed in requirements]


def write_scheme(scheme: t.SecurityScheme) -> Object:
    """A security scheme, flat, with ``type`` first. Spec: v0.3 §5.2, §8.2."""
    for label, (field, _, _) in SCHEMES.items():
        held = getattr(scheme, field)
        if held is not None:
            return {"type": label, **_SCHEME_WRITERS[label](held)}
    return {}


def _api_key(scheme: t.APIKeySecurityScheme) -> Object:
    return with_members({"in": scheme.location, "name": scheme.name}, description=scheme.description)


def _http(scheme: t.HTTPAuthSecurityScheme) -> Object:
    return with_members({"scheme": scheme.scheme}, bearerFormat=scheme.bearer_format, description=scheme.description)


def _oauth2(scheme: t.OAuth2SecurityScheme) -> Object:
    return with_members(
        {"flows": _flows(scheme.flows or t.OAuthFlows())},
        oauth2MetadataUrl=scheme.oauth2_metadata_url,
        description=scheme.description,
    )


def _flows(flows: t.OAuthFlows) -> Object:
    held = {
        "authorizationCode": flows.authorization_code,
        "clientCredentials": flows.client_credentials,
        "implicit": flows.implicit,
        "password": flows.password,
    }
    return {name: _flow(flow) for name, flow in held.items() if flow is not None}


def _flow(flow: Any) -> Object:
    addresses = {
        "authorizationUrl": getattr(flow, "authorization_url", ""),
        "tokenUrl": getattr(flow, "token_url", ""),
        "refreshUrl": flow.refresh_url,
    }
    return {**with_members({}, **addresses), "scopes": flow.scopes}


def _open_id(scheme: t.OpenIdConnectSecurityScheme) -> Object:
    return with_members({"openIdConnectUrl": scheme.open_id_connect_url}, description=scheme.description)


def _mtls(scheme: t.MutualTlsSecurityScheme) -> Object:
    return with_members({}, description=scheme.description)


_SCHEME_WRITERS: dict[str, Callable[[Any], Object]] = {
    "apiKey": _api_key,
    "http": _http,
    "oauth2": _oauth2,
    "openIdConnect": _open_id,
    "mutualTLS": _mtls,
}
