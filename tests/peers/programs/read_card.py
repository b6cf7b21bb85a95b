"""Tells what the official SDK reads in a card: JSON on standard input, what was read as JSON on standard output.

Runs under the interpreter of either line of the SDK.
"""

from __future__ import annotations

import json
import sys
from typing import Any

KINDS = {
    "api_key_security_scheme": "apiKey",
    "http_auth_security_scheme": "http",
    "oauth2_security_scheme": "oauth2",
    "open_id_connect_security_scheme": "openIdConnect",
    "mtls_security_scheme": "mutualTLS",
}


def read_v03(value: dict[str, Any]) -> dict[str, Any]:
    from a2a.types import AgentCard

    card = AgentCard.model_validate(value)
    main = (card.url, card.preferred_transport)
    others = [(other.url, other.transport) for other in card.additional_interfaces or []]
    return {
        "name": card.name,
        "interfaces": [[url, binding, card.protocol_version] for url, binding in dict.fromkeys([main, *others])],
        "extended": bool(card.supports_authenticated_extended_card),
        "schemes": {name: scheme.root.type for name, scheme in (card.security_schemes or {}).items()},
        "security": card.security or [],
        "skill_security": [skill.security or [] for skill in card.skills],
    }


def read_current(value: dict[str, Any]) -> dict[str, Any]:
    from a2a.client.card_resolver import parse_agent_card

    card = parse_agent_card(value)
    return {
        "name": card.name,
        "interfaces": [[i.url, i.protocol_binding, i.protocol_version] for i in card.supported_interfaces],
        "extended": card.capabilities.extended_agent_card,
        "schemes": {name: KINDS[scheme.WhichOneof("scheme")] for name, scheme in card.security_schemes.items()},
        "security": _requirements(card.security_requirements),
        "skill_security": [_requirements(skill.security_requirements) for skill in card.skills],
    }


def _requirements(found: Any) -> list[dict[str, list[str]]]:
    return [{name: list(scopes.list) for name, scopes in each.schemes.items()} for each in found]


def main() -> None:
    import a2a.types

    read = read_v03 if hasattr(a2a.types, "JSONRPCErrorResponse") else read_current
    print(json.dumps(read(json.load(sys.stdin))))


if __name__ == "__main__":
    main()
