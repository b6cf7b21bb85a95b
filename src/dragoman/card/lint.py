"""What is wrong with a card, and what is unwise about it: rules with names that stay. Pure.

A rule is a function that looks at one :class:`Subject`. Unknown members are never a finding.

Spec: CARD-04 to CARD-08, CARD-14 to CARD-20, VER-01, EXT-03, SIGN-01, AMB-77, AMB-81; section 20.4 of the register of
the command line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, Literal
from urllib.parse import urlsplit

import msgspec

from dragoman.card.canonical import Json, ambiguities
from dragoman.card.faults import GRPC, find_faults
from dragoman.card.verifying import SignatureReport
from dragoman.http.guard import is_loopback_host, is_public, literal_address
from dragoman.model import AgentCard
from dragoman.protocol.extensions import RESUMABLE_STREAMS
from dragoman.protocol.versions import parse_version

Severity = Literal["error", "warning", "note"]

RULES: Final[dict[str, tuple[Severity, str]]] = {
    "schema": ("error", "the specification does not allow it"),
    "media-type": ("error", "modes are media types (CARD-16)"),
    "duplicate-skill": ("error", "a skill is named by its id"),
    "undeclared-scheme": ("error", "nobody can meet a requirement whose scheme is not declared"),
    "credentials-in-url": ("error", "a card is public (CARD-14)"),
    "signature": ("error", "clients that verify signatures refuse the card (SIGN-16)"),
    "private-address": ("warning", "callers elsewhere cannot reach it (CARD-06)"),
    "unreachable": ("error", "callers cannot use it (CARD-06)"),
    "unresolved-endpoint": ("error", "no token can be had there"),
    "old-shape": ("warning", "clients of 1.0 may not read a card of an older version"),
    "old-path": ("warning", "the card belongs to /.well-known/agent-card.json (CARD-02)"),
    "plain-http": ("warning", "what is sent can be read by others on the way; https is for production (CARD-08)"),
    "grpc-address": ("warning", "a gRPC address is hostname:port (AMB-77)"),
    "patch-version": ("warning", "protocolVersion is Major.Minor (CARD-08)"),
    "interface-order": ("warning", "clients take the first entry that they can speak (CARD-05)"),
    "duplicate-interface": ("warning", "an entry that is repeated says nothing"),
    "no-examples": ("note", "examples help whoever chooses a skill"),
    "no-security": ("warning", "anybody can call the agent"),
    "required-extension": ("warning", "clients that do not know the extension cannot call the agent (EXT-03)"),
    "no-caching": ("warning", "clients fetch the card again and again (CARD-19, CARD-20)"),
    "ambiguous": ("warning", "verifiers differ about the signed form of such a card (AMB-81)"),
    "unsigned": ("note", "nobody can tell who wrote the card (SIGN-01)"),
    "unverifiable": ("note", "the key of the signature is not known here; --trust names one"),
}
"""Every rule: how severe a finding is, and why it matters."""

_KNOWN_EXTENSIONS = frozenset({RESUMABLE_STREAMS})


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One finding: the rule, the field (``skills[0].id``, empty for the whole card), and what there is."""

    rule: str
    path: str = ""
    text: str

    @property
    def severity(self) -> Severity:
        """How severe it is."""
        return RULES[self.rule][0]

    @property
    def why(self) -> str:
        """Why it matters."""
        return RULES[self.rule][1]


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """A card to look at.

    ``json`` is what was received, ``card`` what was read of it; ``url`` where it came from, empty for a file;
    ``headers`` those of the answer, names in lower case, None when they are not known; ``report`` what was found of its
    signatures; ``violations`` what the strict reader refused, path and text.
    """

    json: Json
    card: AgentCard
    url: str = ""
    headers: Mapping[str, str] | None = None
    report: SignatureReport = SignatureReport()
    violations: tuple[tuple[str, str], ...] = ()


Findings = Iterator[Finding]


def lint(subject: Subject) -> list[Finding]:
    """All findings, the severest first, in the order of the rules."""
    found = [finding for rule in _CHECKS for finding in rule(subject)]
    severities = ("error", "warning", "note")
    return sorted(found, key=lambda finding: severities.index(finding.severity))


def _faults(subject: Subject) -> Findings:
    paths = set()
    for path, text in subject.violations:
        paths.add(path)
        yield Finding(rule="schema", path=path, text=f"{path}: {text}")
    if _is_old(subject):
        return  # of a card that was translated, paths would be wrong
    for fault in find_faults(subject.card):
        if fault.path not in paths:
            yield Finding(rule=_rule_of(fault.path), path=fault.path, text=fault.text)


def _rule_of(path: str) -> str:
    if "Modes[" in path:
        return "media-type"
    if "ecurityRequirements[" in path:
        return "undeclared-scheme"
    return "duplicate-skill" if path == "skills" else "schema"


def _age(subject: Subject) -> Findings:
    if _is_old(subject):
        yield Finding(rule="old-shape", path="supportedInterfaces", text="it is a card of version 0.3 or older")
    if urlsplit(subject.url).path.endswith("/.well-known/agent.json"):
        yield Finding(rule="old-path", text=f"it is served at {urlsplit(subject.url).path}")


def _is_old(subject: Subject) -> bool:
    return not (subject.json.get("supportedInterfaces") or subject.json.get("supported_interfaces"))


def _addresses(subject: Subject) -> Findings:
    at_home = bool(subject.url) and not _is_open(_host(subject.url))
    for path, url in _urls(subject.card):
        parts = urlsplit(url if "://" in url else f"//{url}")
        if parts.username or parts.password:
            yield Finding(rule="credentials-in-url", path=path, text=f"{path} holds a user name or a password")
        host = (parts.hostname or "").lower()
        if not host or at_home:
            continue
        if not _is_open(host):
            yield Finding(rule="private-address", path=path, text=f"{path} names {host}, which is not on the internet")
        elif parts.scheme in ("http", "ws", "grpc"):
            yield Finding(rule="plain-http", path=path, text=f"{path} is not encrypted ({parts.scheme})")


def _urls(card: AgentCard) -> Iterator[tuple[str, str]]:
    for number, interface in enumerate(card.supported_interfaces):
        if interface.url:
            yield f"supportedInterfaces[{number}].url", interface.url
    yield from endpoints(card)


def endpoints(card: AgentCard) -> Iterator[tuple[str, str]]:
    """The addresses that clients get tokens at, with the paths of their fields."""
    for name, scheme in card.security_schemes.items():
        if scheme.open_id_connect_security_scheme is not None:
            path = f"securitySchemes.{name}.openIdConnectSecurityScheme.openIdConnectUrl"
            yield path, scheme.open_id_connect_security_scheme.open_id_connect_url
        if scheme.oauth2_security_scheme is not None:
            flows = scheme.oauth2_security_scheme.flows
            for field in flows.__struct_fields__:
                flow = getattr(flows, field)
                for member in ("authorization_url", "token_url", "device_authorization_url", "refresh_url"):
                    url = getattr(flow, member, "")
                    if url:
                        yield f"securitySchemes.{name}.oauth2SecurityScheme.flows.{field}.{member}", url


def _host(url: str) -> str:
    return (urlsplit(url).hostname or "").lower()


def _is_open(host: str) -> bool:
    """Whether a host may be one of the internet: no address of a private range, no name without a dot."""
    address = literal_address(host)
    if address is not None:
        return is_public(address)
    local = (".local", ".internal", ".localdomain", ".lan", ".home.arpa")
    return "." in host and not is_loopback_host(host) and not host.endswith(local)


def _interfaces(subject: Subject) -> Findings:
    seen: set[tuple[str, ...]] = set()
    lowest: tuple[int, int] | None = None
    if _is_old(subject):
        return
    for number, interface in enumerate(subject.card.supported_interfaces):
        path, version = f"supportedInterfaces[{number}]", interface.protocol_version
        entry = (interface.url, interface.protocol_binding, version, interface.tenant)
        if entry in seen:
            yield Finding(rule="duplicate-interface", path=path, text=f"{path} repeats an entry before it")
        seen.add(entry)
        if version.count(".") > 1:
            field = f"{path}.protocolVersion"
            yield Finding(rule="patch-version", path=field, text=f"{field} is {version}")
        if interface.protocol_binding == GRPC and "://" in interface.url:
            yield Finding(rule="grpc-address", path=f"{path}.url", text=f"{path}.url has a scheme")
        parsed = parse_version(version)
        if parsed is not None and lowest is not None and parsed[0] > lowest[0]:
            yield Finding(rule="interface-order", path=path, text=f"{path} is of a later version than one before it")
        lowest = min(filter(None, (parsed, lowest)), default=None)


def _skills(subject: Subject) -> Findings:
    for number, skill in enumerate(subject.card.skills):
        if not skill.examples:
            yield Finding(rule="no-examples", path=f"skills[{number}].examples", text=f"skill {skill.id} has none")


def _security(subject: Subject) -> Findings:
    card = subject.card
    hosts = [_host(i.url if "://" in i.url else f"//{i.url}") for i in card.supported_interfaces if i.url]
    needed = bool(card.security_requirements) or all(skill.security_requirements for skill in card.skills)
    if any(map(_is_open, hosts)) and not (needed and card.security_schemes):
        yield Finding(rule="no-security", path="securityRequirements", text="it requires no credentials")


def _extensions(subject: Subject) -> Findings:
    for number, extension in enumerate(subject.card.capabilities.extensions):
        if extension.required and extension.uri not in _KNOWN_EXTENSIONS:
            path = f"capabilities.extensions[{number}]"
            yield Finding(rule="required-extension", path=path, text=f"{extension.uri} is required")


def _caching(subject: Subject) -> Findings:
    if subject.headers is None:
        return
    missing = [name for name in ("Cache-Control", "ETag") if not subject.headers.get(name.lower())]
    if missing:
        yield Finding(rule="no-caching", text=f"it is served without {' and '.join(missing)}")


def _signatures(subject: Subject) -> Findings:
    if subject.report.outcome is None:
        yield Finding(rule="unsigned", path="signatures", text="it has no signature")
        return
    for number, check in enumerate(subject.report.checks):
        if check.outcome != "verified":
            rule = "signature" if check.outcome == "invalid" else "unverifiable"
            yield Finding(rule=rule, path=f"signatures[{number}]", text=str(check))
    for pointer in ambiguities(subject.json):
        yield Finding(rule="ambiguous", path=pointer, text=f"{pointer} is empty, a default, or unknown")


_CHECKS: tuple[Callable[[Subject], Findings], ...] = (
    _faults,
    _age,
    _addresses,
    _interfaces,
    _skills,
    _security,
    _extensions,
    _caching,
    _signatures,
)
