"""Forms of a card's security, flat as in kind-JSON or with the members of the proto's oneof.

Spec: v0.3 §5.2, §7.8, §8.2.
"""

from __future__ import annotations

from typing import Any

from dragoman.compat.v03 import types as t
from dragoman.compat.v03.members import Form, Reading, read_members, read_message, read_plain
from dragoman.model.scalars import Fault, Findings, key_step, read_object, read_string
from dragoman.model.wire import WireMessage

SCHEMES: dict[str, tuple[str, str, type[WireMessage]]] = {
    "apiKey": ("api_key_security_scheme", "apiKeySecurityScheme", t.APIKeySecurityScheme),
    "http": ("http_auth_security_scheme", "httpAuthSecurityScheme", t.HTTPAuthSecurityScheme),
    "oauth2": ("oauth2_security_scheme", "oauth2SecurityScheme", t.OAuth2SecurityScheme),
    "openIdConnect": ("open_id_connect_security_scheme", "openIdConnectSecurityScheme", t.OpenIdConnectSecurityScheme),
    "mutualTLS": ("mtls_security_scheme", "mtlsSecurityScheme", t.MutualTlsSecurityScheme),
}
"""By ``type``: field, member, and type of what it holds. The order is that of the proto."""


def read_scheme_form(value: Any, reading: Reading) -> t.SecurityScheme:
    """A security scheme. The oneof goes before ``type``; a kind that is not known is an empty scheme."""
    members = read_object(value)
    for field, member, kind in SCHEMES.values():
        for name in (member, field):
            if members.get(name) is not None:
                try:
                    return t.SecurityScheme(**{field: read_message(kind, members[name], reading)})
                except Fault as fault:
                    raise Fault(findings=fault.below(name)) from None
    label = members.get("type")
    if not isinstance(label, str) or label not in SCHEMES:
        return t.SecurityScheme()
    field, _, kind = SCHEMES[label]
    return t.SecurityScheme(**{field: read_message(kind, members, reading)})


def read_api_key_form(value: Any, reading: Reading) -> t.APIKeySecurityScheme:
    """An API key: where it goes is ``in``, or ``location``."""
    findings: Findings = []
    found = read_members(t.APIKeySecurityScheme, read_object(value), reading, findings, {"in": "location"})
    if findings:
        raise Fault(findings=findings)
    return t.APIKeySecurityScheme(**found)


def read_requirement_form(value: Any, reading: Reading) -> t.Security:
    """Schemes that are needed together: scopes by name, or the same below ``schemes``.

    A scheme may be called ``schemes``: then there is a list in that member.
    """
    members = read_object(value)
    inner = members.get("schemes")
    if isinstance(inner, dict):
        wrapped: t.Security = read_plain(t.Security, {"schemes": _as_lists(inner)}, reading)
        return wrapped
    return t.Security(schemes={name: t.StringList(list=_read_scopes(name, item)) for name, item in members.items()})


def _as_lists(schemes: dict[str, Any]) -> dict[str, Any]:
    return {name: {"list": item} if isinstance(item, list) else item for name, item in schemes.items()}


def _read_scopes(name: str, value: Any) -> list[str]:
    if not isinstance(value, list):
        raise Fault(findings=[(key_step(name), "must be an array of scopes")])
    return [read_string(item) for item in value]


CARD_FORMS: dict[type[WireMessage], Form] = {
    t.SecurityScheme: read_scheme_form,
    t.APIKeySecurityScheme: read_api_key_form,
    t.Security: read_requirement_form,
}
