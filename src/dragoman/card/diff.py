"""How two cards differ in what they mean. Pure.

Skills are matched by their ids, schemes by their names, extensions by their URIs; the order of tags does not matter,
that of interfaces does. Signatures are left out: a new signature changes nothing of what a card says.

Spec: section 20.4 of the register of the command line.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import msgspec

from dragoman.card.canonical import Json, signed_content
from dragoman.model import AgentCard, encode_json


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """``area`` is one of interfaces, capabilities, skills, security, identity; ``before`` and ``after`` are JSON."""

    area: str
    change: Literal["added", "removed", "changed"]
    path: str
    before: Any = None
    after: Any = None

    def __str__(self) -> str:
        if self.change == "changed":
            return f"{self.path}: {_text(self.before)} -> {_text(self.after)}"
        value = self.after if self.change == "added" else self.before
        return self.path if value in ({}, None) else f"{self.path}: {_text(value)}"


_AREAS = {
    "supportedInterfaces": "interfaces",
    "capabilities": "capabilities",
    "skills": "skills",
    "securitySchemes": "security",
    "securityRequirements": "security",
}


def diff_cards(before: AgentCard, after: AgentCard) -> list[Difference]:
    """The differences between two cards, in the order of their fields; none for cards that say the same."""
    return list(_differences(_meaning(before), _meaning(after), ""))


def _meaning(card: AgentCard) -> Json:
    content = signed_content(msgspec.json.decode(encode_json(card)))
    content["skills"] = {skill.get("id", ""): skill for skill in content.get("skills", [])}
    order = [_interface(entry) for entry in content.get("supportedInterfaces", [])]
    content["supportedInterfaces"] = {entry: {} for entry in order}
    content["preferredInterface"] = order[0] if order else ""
    for skill in content["skills"].values():
        skill["tags"] = sorted(skill.get("tags", []))
        skill["securityRequirements"] = {_requirement(each): {} for each in skill.get("securityRequirements", [])}
    requirements = content.get("securityRequirements", [])
    content["securityRequirements"] = {_requirement(each): {} for each in requirements}
    capabilities = content["capabilities"] = dict(content.get("capabilities", {}))
    capabilities["extensions"] = {each.get("uri", ""): each for each in capabilities.get("extensions", [])}
    for name in ("streaming", "pushNotifications", "extendedAgentCard"):
        capabilities.setdefault(name, False)  # absent counts as false (CARD-25)
    return content


def _interface(entry: Json) -> str:
    tenant = f" (tenant {entry['tenant']})" if entry.get("tenant") else ""
    return f"{entry.get('protocolBinding', '')} {entry.get('protocolVersion', '')} {entry.get('url', '')}{tenant}"


def _requirement(requirement: Json) -> str:
    schemes = requirement.get("schemes", {})
    words = (f"{name} [{' '.join(sorted(scopes.get('list', [])))}]" for name, scopes in sorted(schemes.items()))
    return " and ".join(word.removesuffix(" []") for word in words) or "none"


def _differences(before: Json, after: Json, path: str) -> Iterator[Difference]:
    for name in [*before, *(name for name in after if name not in before)]:
        place = f"{path}/{name.replace('~', '~0').replace('/', '~1')}"
        area = _AREAS.get(place.split("/")[1], "identity")
        if place == "/preferredInterface":
            area = "interfaces"
        one, other = before.get(name), after.get(name)
        if name not in after:
            yield Difference(area=area, change="removed", path=place, before=one)
        elif name not in before:
            yield Difference(area=area, change="added", path=place, after=other)
        elif isinstance(one, dict) and isinstance(other, dict):
            yield from _differences(one, other, place)
        elif one != other:
            yield Difference(area=area, change="changed", path=place, before=one, after=other)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
