"""What is wrong with a card: every fault, with the path of its field. Pure; nothing is looked up in the network.

Faults are what the specification forbids; what is only unwise is said by :mod:`dragoman.card.lint`.

Spec: CARD-04 to CARD-08, CARD-16, DATA-12, DATA-14, AMB-41, AMB-42, AMB-54, AMB-77.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple
from urllib.parse import urlsplit

from dragoman.model import (
    AgentCard,
    AgentCardSignature,
    AgentExtension,
    AgentInterface,
    AgentProvider,
    AgentSkill,
    APIKeySecurityScheme,
    HTTPAuthSecurityScheme,
    OAuth2SecurityScheme,
    OpenIdConnectSecurityScheme,
    SecurityRequirement,
    SecurityScheme,
)
from dragoman.model.wire import WireMessage

HTTP_BINDINGS = ("JSONRPC", "HTTP+JSON")
GRPC = "GRPC"
_VERSION = re.compile(r"\d{1,4}\.\d{1,4}(?:\.\d{1,4})?")
_MEDIA_TYPE = re.compile(r"[^\s/;,]+/[^\s/;,]+(?:\s*;.*)?")
_NOT_BASES = ("/.well-known/agent-card.json", "/message:send", "/message:stream")
_LOCATIONS = ("header", "query", "cookie")
_SCHEMES = (
    "api_key_security_scheme",
    "http_auth_security_scheme",
    "oauth2_security_scheme",
    "open_id_connect_security_scheme",
    "mtls_security_scheme",
)
_FLOW_URLS = {
    "authorization_code": ("authorization_url", "token_url"),
    "client_credentials": ("token_url",),
    "implicit": ("authorization_url",),
    "password": ("token_url",),
    "device_code": ("device_authorization_url", "token_url"),
}


class Fault(NamedTuple):
    """``path`` is that of the field, such as ``skills[0].id``; ``text`` names it and says what is wrong."""

    path: str
    text: str


Faults = Iterator[Fault]


def find_faults(card: AgentCard) -> list[Fault]:
    """Everything that is wrong with a card, in the order of its fields."""
    return [*_texts(card), *_interfaces(card), *_parts(card), *_security(card), *_modes_of(card), *_skills(card)]


def _texts(card: AgentCard) -> Faults:
    lists = ("supported_interfaces", "default_input_modes", "default_output_modes", "skills")
    yield from _missing("", card, "name", "description", "version", *lists)


def _parts(card: AgentCard) -> Faults:
    if card.provider is not None:
        yield from _provider(card.provider)
    yield from _address("documentationUrl", card.documentation_url or "")
    icon = card.icon_url or ""
    yield from _address("iconUrl", "" if icon.startswith("data:") else icon)
    for number, extension in enumerate(card.capabilities.extensions):
        yield from _extension(f"capabilities.extensions[{number}]", extension)
    uris = [extension.uri for extension in card.capabilities.extensions]
    for uri in _repeated(uris):
        yield Fault("capabilities.extensions", f"capabilities.extensions of the agent card names {uri!r} twice")
    for number, signature in enumerate(card.signatures):
        yield from _signature(f"signatures[{number}]", signature)


def _provider(provider: AgentProvider) -> Faults:
    yield from _missing("provider", provider, "organization", "url")
    yield from _address("provider.url", provider.url)


def _extension(path: str, extension: AgentExtension) -> Faults:
    yield from _missing(path, extension, "uri")


def _signature(path: str, signature: AgentCardSignature) -> Faults:
    yield from _missing(path, signature, "protected", "signature")


def _interfaces(card: AgentCard) -> Faults:
    for number, interface in enumerate(card.supported_interfaces):
        yield from _interface(f"supportedInterfaces[{number}]", interface)


def _interface(path: str, interface: AgentInterface) -> Faults:
    version, binding, url = interface.protocol_version, interface.protocol_binding, interface.url
    if not binding or not version:
        yield Fault(f"{path}.protocolBinding", f"the agent card lacks {path}.protocolBinding or .protocolVersion")
    if version and not _VERSION.fullmatch(version):
        text = f"{path}.protocolVersion of the agent card must be Major.Minor, such as 1.0"
        yield Fault(f"{path}.protocolVersion", text)
    if not url:
        yield Fault(f"{path}.url", f"the agent card lacks {path}.url")
        return
    if binding in HTTP_BINDINGS and not _is_http(url):
        yield Fault(f"{path}.url", f"{path}.url of the agent card must be an absolute http or https URL")
    if binding == GRPC and not _is_grpc(url):
        yield Fault(f"{path}.url", f"{path}.url of the agent card must be hostname:port")
    if urlsplit_path(url).endswith(_NOT_BASES):
        text = f"{path}.url of the agent card must be the interface's base, not one of its paths"
        yield Fault(f"{path}.url", text)


def _security(card: AgentCard) -> Faults:
    for name, scheme in card.security_schemes.items():
        yield from _scheme(f"securitySchemes.{name}", scheme)
    yield from _requirements("securityRequirements", card.security_requirements, card.security_schemes)


def _requirements(
    path: str, requirements: Sequence[SecurityRequirement], schemes: Mapping[str, SecurityScheme]
) -> Faults:
    for number, requirement in enumerate(requirements):
        for name in requirement.schemes:
            if name not in schemes:
                text = f"{path}[{number}] of the agent card names the scheme {name!r}, which securitySchemes lacks"
                yield Fault(f"{path}[{number}].schemes.{name}", text)


def _scheme(path: str, scheme: SecurityScheme) -> Faults:
    chosen = [name for name in _SCHEMES if getattr(scheme, name) is not None]
    if len(chosen) != 1:
        yield Fault(path, f"{path} of the agent card must hold one kind of scheme, not {len(chosen)}")
    for name in chosen:
        check = _SCHEME_CHECKS.get(name)
        if check is not None:
            yield from check(path, scheme)


def _api_key(path: str, scheme: SecurityScheme) -> Faults:
    found, path = scheme.api_key_security_scheme, f"{path}.apiKeySecurityScheme"
    assert isinstance(found, APIKeySecurityScheme)
    yield from _missing(path, found, "location", "name")
    if found.location and found.location not in _LOCATIONS:
        yield Fault(f"{path}.location", f"{path}.location of the agent card must be one of {', '.join(_LOCATIONS)}")


def _http_auth(path: str, scheme: SecurityScheme) -> Faults:
    found = scheme.http_auth_security_scheme
    assert isinstance(found, HTTPAuthSecurityScheme)
    yield from _missing(f"{path}.httpAuthSecurityScheme", found, "scheme")


def _open_id(path: str, scheme: SecurityScheme) -> Faults:
    found, path = scheme.open_id_connect_security_scheme, f"{path}.openIdConnectSecurityScheme"
    assert isinstance(found, OpenIdConnectSecurityScheme)
    yield from _missing(path, found, "open_id_connect_url")
    yield from _address(f"{path}.openIdConnectUrl", found.open_id_connect_url)


def _oauth2(path: str, scheme: SecurityScheme) -> Faults:
    found, path = scheme.oauth2_security_scheme, f"{path}.oauth2SecurityScheme"
    assert isinstance(found, OAuth2SecurityScheme)
    yield from _address(f"{path}.oauth2MetadataUrl", found.oauth2_metadata_url)
    flows = [name for name in _FLOW_URLS if getattr(found.flows, name) is not None]
    if len(flows) != 1:
        yield Fault(f"{path}.flows", f"{path}.flows of the agent card must hold one flow, not {len(flows)}")
    for name in flows:
        flow, place = getattr(found.flows, name), f"{path}.flows.{_camel(name)}"
        yield from _missing(place, flow, *_FLOW_URLS[name])
        for field in (*_FLOW_URLS[name], "refresh_url"):
            yield from _address(f"{place}.{_camel(field)}", getattr(flow, field))


_SCHEME_CHECKS: dict[str, Callable[[str, SecurityScheme], Faults]] = {
    "api_key_security_scheme": _api_key,
    "http_auth_security_scheme": _http_auth,
    "oauth2_security_scheme": _oauth2,
    "open_id_connect_security_scheme": _open_id,
}


def _modes_of(card: AgentCard) -> Faults:
    yield from _modes("defaultInputModes", card.default_input_modes)
    yield from _modes("defaultOutputModes", card.default_output_modes)


def _modes(path: str, modes: Sequence[str]) -> Faults:
    for number, mode in enumerate(modes):
        if not _MEDIA_TYPE.fullmatch(mode):
            yield Fault(f"{path}[{number}]", f"{path} of the agent card holds {mode!r}, which is no media type")


def _skills(card: AgentCard) -> Faults:
    for number, skill in enumerate(card.skills):
        yield from _skill(f"skills[{number}]", skill, card)
    for skill_id in _repeated([skill.id for skill in card.skills]):
        yield Fault("skills", f"the agent card has several skills with the id {skill_id!r}")


def _skill(path: str, skill: AgentSkill, card: AgentCard) -> Faults:
    yield from _missing(path, skill, "id", "name", "description", "tags")
    yield from _modes(f"{path}.inputModes", skill.input_modes)
    yield from _modes(f"{path}.outputModes", skill.output_modes)
    yield from _requirements(f"{path}.securityRequirements", skill.security_requirements, card.security_schemes)


def _missing(path: str, message: WireMessage, *fields: str) -> Faults:
    for field in fields:
        if not getattr(message, field):
            place = f"{path}.{_camel(field)}" if path else _camel(field)
            yield Fault(place, f"the agent card lacks {place}")


def _address(path: str, url: str) -> Faults:
    if url and not _is_http(url):
        yield Fault(path, f"{path} of the agent card must be an absolute http or https URL")


def _is_http(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        return False


def _is_grpc(url: str) -> bool:
    """``hostname:port``; a scheme before it is unwise, but was the rule of a revision (AMB-77)."""
    try:
        parts = urlsplit(url if "://" in url else f"//{url}")
        return bool(parts.hostname) and (parts.port is not None or "://" in url)
    except ValueError:
        return False


def urlsplit_path(url: str) -> str:
    """The path of an address, empty for what is none."""
    try:
        return urlsplit(url).path
    except ValueError:
        return ""


def _repeated(values: Sequence[str]) -> list[str]:
    return [value for value in dict.fromkeys(values) if values.count(value) > 1]


def _camel(name: str) -> str:
    first, *more = name.split("_")
    return first + "".join(word.capitalize() for word in more)
