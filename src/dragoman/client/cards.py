"""Read agent cards of every version leniently, and choose the interface to use. Pure.

Spec: §8.3.2, CARD-09, CARD-11, AMB-19, AMB-54, AMB-76, AMB-78, VER-17, B143; 8.4 of the register of version 0.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

import msgspec
from msgspec.structs import replace

from dragoman.bindings.grpc.addresses import parse_address
from dragoman.client import dialects
from dragoman.errors import CardError, InvalidParamsError, OutboundUrlError
from dragoman.http.guard import literal_address, parse_target, shown
from dragoman.model import AgentCard, AgentInterface, decode_value
from dragoman.protocol.versions import parse_version

JSON_RPC = "JSONRPC"
HTTP_JSON = "HTTP+JSON"
GRPC = "GRPC"
BINDINGS = (JSON_RPC, HTTP_JSON, GRPC)

PRESENT, OLD = "1.0", "0.3"
VERSIONS = (PRESENT, OLD)
"""The versions that a client speaks; of older ones than 0.3 it makes 0.3."""


class OldCardError(CardError):
    """The agent speaks only versions that are not to be spoken here, or names no address where they are spoken."""


class NotJsonError(CardError):
    """What is there is no JSON at all, for instance a web page."""


# Ends of addresses that are not those of an interface, though cards were seen to name them.
_NOT_AN_INTERFACE = (
    "/.well-known/agent-card.json",
    "/.well-known/agent.json",
    "/v1/card",
    "/extendedAgentCard",
    "/message:send",
    "/message:stream",
)

_OLD_EXTENDED_FLAGS = ("supportsExtendedAgentCard", "supportsAuthenticatedExtendedCard")
_OLD_FLOWS = ("implicit", "password")


def read_card(body: bytes, place: str) -> AgentCard:
    """The card in a JSON text. ``place`` says where it came from, for messages, which never quote the text.

    Unknown members are ignored and missing REQUIRED ones get their defaults. A card of version 0.3 or older becomes one
    of 1.0 whose interfaces have the old version; one that serves both is read as one of 1.0. Raises CardError when the
    text is no card, and says what it seems to be instead.
    """
    value = _parse(body, place)
    if not isinstance(value, dict):
        raise CardError(f"{place} is JSON, but no agent card: it is no object", url=place)
    return card_from_value(value, place)


def card_from_value(value: dict[str, Any], place: str) -> AgentCard:
    """The card in a JSON object that is already parsed; it is not changed. Raises like :func:`read_card`."""
    native = bool(value.get("supportedInterfaces") or value.get("supported_interfaces"))
    if not native:
        _check_old(value, place)
    try:
        if not native:
            return dialects.read_card(value)
        return decode_value(AgentCard, _modernize(value), lenient_required=True)
    except InvalidParamsError as error:
        fields = ", ".join(violation.field for violation in error.violations[:5])
        raise CardError(f"{place} is no valid agent card; wrong: {fields or error.message}", url=place) from error


def _parse(body: bytes, place: str) -> Any:
    try:
        return msgspec.json.decode(body.removeprefix(b"\xef\xbb\xbf"))
    except (msgspec.DecodeError, RecursionError):
        start = body[:1024].lstrip().lower()
        kind = "a web page (HTML)" if start.startswith((b"<!doctype", b"<html")) else "not JSON"
        raise NotJsonError(f"{place} is no agent card: it is {kind}", url=place) from None


def _check_old(value: dict[str, Any], place: str) -> None:
    """Raise CardError for what names no interface, and is no card of an older version either. Spec: AMB-76, B143."""
    version = value.get("protocolVersion", value.get("protocol_version"))
    number = parse_version(version) if isinstance(version, str) else None
    url = value.get("url")
    if number is not None and number >= (1, 0):
        raise CardError(
            f"The card at {place} contradicts itself: it says that it is of version {_plain(version)}, but names no "
            "supportedInterfaces, as only older cards do",
            url=place,
        )
    if isinstance(url, str) and url:
        return
    if number is not None:
        raise OldCardError(f"The agent at {place} speaks A2A {_plain(version)}, and names no address", url=place)
    raise CardError(f"{place} is JSON, but no agent card: it names no supportedInterfaces", url=place)


def _plain(version: Any) -> str:
    return str(version).strip()[:16]


def _modernize(value: dict[str, Any]) -> dict[str, Any]:
    """A shallow copy in which old habits of cards are put right."""
    card = dict(value)
    if any(value.get(flag) is True for flag in _OLD_EXTENDED_FLAGS):
        capabilities = value.get("capabilities")
        card["capabilities"] = {"extendedAgentCard": True, **(capabilities if isinstance(capabilities, dict) else {})}
    schemes = value.get("securitySchemes")
    if isinstance(schemes, dict):
        card["securitySchemes"] = {name: _one_flow(scheme) for name, scheme in schemes.items()}
    return card


def _one_flow(scheme: Any) -> Any:
    """Of several OAuth flows in one scheme, which the proto cannot express, the first that is not deprecated."""
    oauth = scheme.get("oauth2SecurityScheme") if isinstance(scheme, dict) else None
    flows = oauth.get("flows") if isinstance(oauth, dict) else None
    if not isinstance(oauth, dict) or not isinstance(flows, dict) or len(flows) < 2:
        return scheme
    chosen = next((name for name in flows if name not in _OLD_FLOWS), next(iter(flows)))
    return {**scheme, "oauth2SecurityScheme": {**oauth, "flows": {chosen: flows[chosen]}}}


def select_interfaces(
    card: AgentCard,
    bindings: Sequence[str] = BINDINGS,
    *,
    card_url: str = "",
    versions: Sequence[str] = VERSIONS,
) -> list[AgentInterface]:
    """The interfaces that this client can use, in the card's order: the first is to be used, the others stand by.

    Of entries with the same address and binding the one with the highest version counts, where the first of them is.
    ``bindings`` and ``versions`` are those to be spoken, ``card_url`` is where the card came from. Raises CardError
    that says what the card offers when there is none, or what is wrong with the addresses; OldCardError when only the
    versions do not fit. Spec: CARD-09, CARD-12, VER-03, AMB-19; 8.4 of the register of version 0.3.
    """
    known = [entry for entry in map(_named, card.supported_interfaces) if entry.protocol_binding in bindings]
    usable = [entry for entry in known if speaks_version(entry.protocol_version, versions, entry.protocol_binding)]
    if not usable and PRESENT in versions:
        # A card lists the latest minor version of the agent, which may well take the first.
        usable = [entry for entry in known if _is_later_minor(entry.protocol_version)]
    if not usable:
        kind = OldCardError if known else CardError
        raise kind(_nothing_spoken(card, bindings, versions), url=shown(card_url))
    return _reachable(_highest_of_each(usable), card_url)


def older_interfaces(
    card: AgentCard, bindings: Sequence[str], versions: Sequence[str], *, card_url: str = ""
) -> list[AgentInterface]:
    """The interfaces of an older version, to go on with when the agent refuses the present one; none is fine."""
    if OLD not in versions or all(generation_of(i.protocol_version) != OLD for i in card.supported_interfaces):
        return []
    try:
        return select_interfaces(card, bindings, card_url=card_url, versions=(OLD,))
    except CardError:
        return []


def _reachable(entries: Sequence[AgentInterface], card_url: str) -> list[AgentInterface]:
    """Those whose address is one. Raises CardError when there is none."""
    found: list[AgentInterface] = []
    problem: CardError | None = None
    for entry in entries:
        try:
            check_interface(entry, card_url=card_url)
            found.append(entry)
        except CardError as error:
            problem = problem or error
    if problem is not None and not found:
        raise problem
    return found


def _named(entry: AgentInterface) -> AgentInterface:
    """The entry with the name of its binding as it is written here: case does not count in those that are known."""
    if entry.protocol_binding in BINDINGS or entry.protocol_binding.upper() not in BINDINGS:
        return entry
    return replace(entry, protocol_binding=entry.protocol_binding.upper())


def _highest_of_each(entries: Sequence[AgentInterface]) -> list[AgentInterface]:
    found: dict[tuple[str, str], AgentInterface] = {}
    for entry in entries:
        place = entry.url, entry.protocol_binding
        if place not in found or _rank(entry) > _rank(found[place]):
            found[place] = entry
    return list(found.values())


def _rank(entry: AgentInterface) -> tuple[int, int]:
    return parse_version(entry.protocol_version or PRESENT) or (0, 0)


def generation_of(version: str) -> str | None:
    """Which of :data:`VERSIONS` a version of a card is: a patch part does not count, an absent one is taken as 1.0, all
    below that as 0.3. None for one that is not spoken."""
    number = parse_version(version) if version.strip() else (1, 0)
    if number is None:
        return None
    return PRESENT if number == (1, 0) else OLD if number < (1, 0) else None


def speaks_version(version: str, versions: Sequence[str] = VERSIONS, binding: str = "") -> bool:
    """Whether a version of a card is one of those to be spoken; of custom bindings only the present one is."""
    found = generation_of(version)
    return found in versions and (found == PRESENT or binding in ("", *BINDINGS))


def _is_later_minor(version: str) -> bool:
    number = parse_version(version)
    return number is not None and number[0] == 1 and number[1] > 0


def check_interface(interface: AgentInterface, *, card_url: str = "") -> None:
    """Check the address of an interface. Raises CardError that says what is wrong with it."""
    if interface.protocol_binding == GRPC:
        address = parse_address(interface.url)
        _check_not_link_local(interface, address.host, address.authority(tls=True), card_url)
        return
    if interface.protocol_binding not in BINDINGS:
        _check_custom(interface, card_url)
        return
    try:
        target = parse_target(interface.url)
    except OutboundUrlError as error:
        raise CardError(f"The card names an interface that cannot be called: {error}", url=shown(card_url)) from error
    path = target.path.rstrip("/")
    for end in _NOT_AN_INTERFACE:
        if path.endswith(end):
            raise CardError(
                f"The card names {shown(interface.url)} as the {interface.protocol_binding} interface, but {end} "
                "is not the address of an interface; pass the right one as connect(…, interface=AgentInterface(…))",
                url=shown(card_url),
            )
    _check_not_link_local(interface, target.host, target.authority, card_url)


def _check_custom(interface: AgentInterface, card_url: str) -> None:
    """What can be said of the address of a binding that is not known here; the rest is the binding's to check."""
    try:
        parts = urlsplit(interface.url)
    except ValueError:
        raise CardError(f"{shown(interface.url)} is no address", url=shown(card_url)) from None
    if parts.hostname:
        _check_not_link_local(interface, parts.hostname, parts.netloc, card_url)


def _check_not_link_local(interface: AgentInterface, host: str, authority: str, card_url: str) -> None:
    address = literal_address(host)
    if address is not None and address.is_link_local and authority not in card_url:
        raise CardError(f"The card names a link-local address, {shown(interface.url)}", url=shown(card_url))


def _nothing_spoken(card: AgentCard, bindings: Sequence[str], versions: Sequence[str]) -> str:
    spoken = ", ".join(f"{binding} {version}" for version in versions for binding in bindings)
    return f"The agent {card.name!r} offers {offers(card) or 'no interface'}; this client speaks {spoken}"


def offers(card: AgentCard) -> str:
    """The interfaces of a card in words."""
    return ", ".join(f"{i.protocol_binding or '?'} {i.protocol_version or '?'}" for i in card.supported_interfaces)
