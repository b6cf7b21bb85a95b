"""Agent cards of both generations: the hybrid card for readers of either, and the reading of any. Pure.

A card of 0.3 has one version, one main address and further ones; one of 1.0 has a list of interfaces, each with its
version. Signatures never pass from one to the other: they were made over the other form (V03-P15).

Spec: v0.3 §5, §7.8, §8.2 to §8.4, V03-05, B141, B143.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from dragoman.compat.v03 import types as v03
from dragoman.compat.v03.card_downward import down_card as down_card
from dragoman.compat.v03.card_downward import down_scheme
from dragoman.compat.v03.card_kinds import write_card, write_requirements, write_scheme
from dragoman.compat.v03.card_upward import VERSION, up_scheme
from dragoman.compat.v03.card_upward import up_card as up_card
from dragoman.compat.v03.reading import invalid, read
from dragoman.errors import InvalidParamsError
from dragoman.model import AgentCard, SecurityScheme, decode_value, encode_json
from dragoman.protocol.versions import parse_version

_DEPRECATED_FLOWS: Final = ("implicit", "password")
_OLD_EXTENDED_FLAGS: Final = ("supportsExtendedAgentCard", "supportsAuthenticatedExtendedCard")


def hybrid_card(card: AgentCard) -> dict[str, Any]:
    """One JSON object for readers of both generations; the pure card of 1.0 when it names no interface of 0.3.

    Signatures stay as they are: they are over the pure form, and 1.0 asks for one that is valid. Spec: v0.3 §8.2, §8.3.
    """
    pure: dict[str, Any] = msgspec.json.decode(encode_json(card))
    old = down_card(card)
    if old is None:
        return pure
    written = write_card(old)
    for name in ("protocolVersion", "url", "preferredTransport", "additionalInterfaces"):
        pure[name] = written[name]
    for name in ("supportsAuthenticatedExtendedCard", "security"):
        if name in written:
            pure[name] = written[name]
    for skill, old_skill in zip(pure["skills"], old.skills, strict=True):
        if old_skill.security:
            skill["security"] = write_requirements(old_skill.security)
    if "securitySchemes" in pure:
        pure["securitySchemes"] = {
            name: {**_flat(scheme, pure["securitySchemes"][name]), **pure["securitySchemes"][name]}
            for name, scheme in card.security_schemes.items()
        }
    return pure


def _flat(scheme: SecurityScheme, pure: dict[str, Any]) -> dict[str, Any]:
    """The members of 0.3 for a scheme, ``type`` first.

    Flows are those of 1.0, with what 0.3 does not know and skips: some readers of 1.0 look here. Spec: v0.3 §8.2.
    """
    if scheme.oauth2_security_scheme is not None:
        return {"type": "oauth2", **pure["oauth2SecurityScheme"]}
    old = down_scheme(scheme)
    return {} if old is None else write_scheme(old)


def read_card(value: dict[str, Any]) -> AgentCard:
    """The card in a parsed JSON object, of whichever generation, which is not changed. Interfaces keep their version.

    Interfaces of 1.0 go before the members of 0.3. Missing members get their defaults; forms of one generation's
    security are taken in the other's card, too. Raises InvalidParamsError that names what is wrong: members of the
    wrong type, neither ``supportedInterfaces`` nor ``url``, a card of 0.3 that says it is one of 1.0.
    Spec: v0.3 §5.2, §8.4, AMB-54, B143.
    """
    if value.get("supportedInterfaces") or value.get("supported_interfaces"):
        return decode_value(AgentCard, _modernize(value), lenient_required=True)
    if not (value.get("url") or value.get("additionalInterfaces") or value.get("additional_interfaces")):
        raise invalid([("supportedInterfaces", "is required, or url in a card of version 0.3")])
    _check_version(value)
    return up_card(read(v03.AgentCard, value, answer=True))


def _check_version(value: dict[str, Any]) -> None:
    name = "protocol_version" if "protocol_version" in value else "protocolVersion"
    version = value.get(name) or VERSION
    numbers = parse_version(version) if isinstance(version, str) else None
    if numbers is None:
        raise invalid([(name, "must be a version such as 0.3.0")])
    if numbers >= (1, 0):
        text = f"says {numbers[0]}.{numbers[1]}, but the card has no supportedInterfaces, which that version requires"
        raise invalid([(name, text)])


def _modernize(value: dict[str, Any]) -> dict[str, Any]:
    """A copy, as deep as needed, in which habits of 0.3 in a card of 1.0 are put right."""
    card = _with_requirements(value)
    if any(value.get(flag) is True for flag in _OLD_EXTENDED_FLAGS):
        capabilities = value.get("capabilities")
        card["capabilities"] = {"extendedAgentCard": True, **(capabilities if isinstance(capabilities, dict) else {})}
    schemes = value.get("securitySchemes")
    if isinstance(schemes, dict):
        card["securitySchemes"] = {name: _modern_scheme(scheme) for name, scheme in schemes.items()}
    skills = value.get("skills")
    if isinstance(skills, list):
        card["skills"] = [_with_requirements(skill) if isinstance(skill, dict) else skill for skill in skills]
    return card


def _with_requirements(value: dict[str, Any]) -> dict[str, Any]:
    """A copy of a card or a skill in which requirements have the form of 1.0."""
    found = value.get("securityRequirements") or value.get("security")
    if not isinstance(found, list):
        return dict(value)
    return {**value, "securityRequirements": [_modern_requirement(needed) for needed in found]}


def _modern_requirement(needed: Any) -> Any:
    if not isinstance(needed, dict) or isinstance(needed.get("schemes"), dict):
        return needed
    return {
        "schemes": {name: {"list": item} if isinstance(item, list) else item for name, item in needed.items()},
    }


def _modern_scheme(scheme: Any) -> Any:
    """A scheme with one member of the oneof, and in that one flow."""
    if not isinstance(scheme, dict):
        return scheme
    oauth2 = scheme.get("oauth2SecurityScheme")
    if isinstance(oauth2, dict):
        return {**scheme, "oauth2SecurityScheme": _one_flow(oauth2)}
    if "type" not in scheme or any(name.endswith("SecurityScheme") for name in scheme):
        return scheme
    if scheme["type"] == "oauth2":
        return {"oauth2SecurityScheme": _one_flow(scheme)}
    try:
        return msgspec.json.decode(encode_json(up_scheme(read(v03.SecurityScheme, scheme, answer=True))))
    except InvalidParamsError:
        return {}  # a reader that can do without the scheme can do with the card


def _one_flow(oauth2: dict[str, Any]) -> dict[str, Any]:
    """Of several OAuth flows in one scheme, which the proto cannot express, the first that is not deprecated."""
    flows = oauth2.get("flows")
    if not isinstance(flows, dict) or len(flows) < 2:
        return oauth2
    chosen = next((name for name in flows if name not in _DEPRECATED_FLOWS), next(iter(flows)))
    return {**oauth2, "flows": {chosen: flows[chosen]}}
