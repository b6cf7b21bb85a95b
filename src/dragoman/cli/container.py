"""The files that make a container of an agent, for Amazon Bedrock AgentCore Runtime. Pure, but for what is installed.

The pins are what is installed where the command runs: what its author has tried. A requirement that another platform
has, and this one lacks, is left out.

Spec: AC-S-06, AC-S-07.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Iterator, Mapping
from importlib import metadata
from importlib.resources import files
from string import Template

PINS, OWN = "requirements-agentcore.txt", "requirements.txt"
EXTRAS = ("cli", "sql")
_NAME = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[([^\]]*)\])?")
_EXTRA = re.compile(r"""extra\s*==\s*["']([^"']+)["']""")


def make_files(agent: str, *, extras: tuple[str, ...] = EXTRAS, own_requirements: bool = False) -> Mapping[str, str]:
    """The files by name: Dockerfile, .dockerignore, DEPLOY.md, the pinned requirements, and a folder for wheels.

    ``agent`` is MODULE:AGENT; ``own_requirements``: whether the folder has a ``requirements.txt`` to install as well.
    Raises importlib.metadata.PackageNotFoundError where dragoman itself is not installed.
    """
    names = [PINS, OWN] if own_requirements else [PINS]
    known = {
        "agent": agent,
        "name": re.sub(r"[^a-z0-9]+", "-", agent.partition(":")[0].removesuffix(".py").lower()).strip("-") or "agent",
        "python": platform.python_version(),
        "requirements": " ".join(names),
        "install": "".join(f" --requirement {name}" for name in names),
        "pins": "\n".join(pins(extras)),
    }
    places = {
        "Dockerfile": "Dockerfile.txt",
        ".dockerignore": "dockerignore.txt",
        "DEPLOY.md": "DEPLOY.md",
        PINS: "requirements.txt",
        "wheels/README.txt": "wheels.txt",
    }
    return {name: _fill(template, known) for name, template in places.items()}


def _fill(template: str, known: Mapping[str, str]) -> str:
    text = files("dragoman.cli").joinpath("recipe", template).read_text(encoding="utf-8")
    return Template(text).substitute(known)


def pins(extras: tuple[str, ...] = EXTRAS) -> list[str]:
    """``name==version`` of dragoman and of everything that it needs, by name, dragoman first."""
    found: dict[str, str] = {}
    waiting = [("dragoman", frozenset(extras))]
    seen: set[tuple[str, frozenset[str]]] = set()
    while waiting:
        wanted = waiting.pop()
        if wanted in seen:
            continue
        seen.add(wanted)
        try:
            package = metadata.distribution(wanted[0])
        except metadata.PackageNotFoundError:
            if wanted[0] == "dragoman":
                raise
            continue  # what only another platform needs
        found[_normal(wanted[0])] = package.version
        waiting += _needs(package, wanted[1])
    own = found.pop("dragoman")
    head = f"dragoman[{','.join(sorted(extras))}]=={own}" if extras else f"dragoman=={own}"
    return [head, *(f"{name}=={version}" for name, version in sorted(found.items()))]


def _needs(package: metadata.Distribution, extras: frozenset[str]) -> Iterator[tuple[str, frozenset[str]]]:
    for requirement in package.requires or ():
        text, _, marker = requirement.partition(";")
        named = _EXTRA.findall(marker)
        matched = _NAME.match(text.strip())
        if matched is None or (named and not extras & set(named)):
            continue
        own = frozenset(word.strip() for word in (matched[2] or "").split(",") if word.strip())
        yield matched[1], own


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
