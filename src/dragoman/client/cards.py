"""Read agent cards leniently, and choose the interface to use. Pure.

Spec: §8.3.2, CARD-09, CARD-11, AMB-54, AMB-76, AMB-78, VER-17.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

import msgspec

from dragoman.bindings.grpc.addresses import parse_address
from dragoman.errors import CardError, InvalidParamsError, OutboundUrlError
from dragoman.http.guard import literal_address, parse_target, shown
from dragoman.model import AgentCard, AgentInterface, decode_value
from dragoman.protocol.versions import SUPPORTED, parse_version

JSON_RPC = "JSONRPC"
HTTP_JSON = "HTTP+JSON"
GRPC = "GRPC"
BINDINGS = (JSON_RPC, HTTP_JSON, GRPC)


class OldCardError(CardError):
    """The card is one of a protocol version that is not spoken here."""


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

    Unknown members are ignored and missing REQUIRED ones get their defaults. Raises CardError when the text is no
    card of version 1.0, and says what it seems to be instead.
    """
    value = _parse(body, place)
    if not isinstance(value, dict):
        raise CardError(f"{place} is JSON, but no agent card: it is no object", url=place)
    return card_from_value(value, place)


def card_from_value(value: dict[str, Any], place: str) -> AgentCard:
    """The card in a JSON object that is already parsed; it is not changed. Raises like :func:`read_card`."""
    if not (value.get("supportedInterfaces") or value.get("supported_interfaces")):
        raise _without_interfaces(value, place)
    try:
        return decode_value(AgentCard, _modernize(value), lenient_required=True)
    except InvalidParamsError as error:
        fields = ", ".join(violation.field for violation in error.violations[:5])
        raise CardError(f"{place} is no valid agent card; wrong: {fields}", url=place) from error


def _parse(body: bytes, place: str) -> Any:
    try:
        return msgspec.json.decode(body.removeprefix(b"\xef\xbb\xbf"))
    except (msgspec.DecodeError, RecursionError):
        start = body[:1024].lstrip().lower()
        kind = "a web page (HTML)" if start.startswith((b"<!doctype", b"<html")) else "not JSON"
        raise NotJsonError(f"{place} is no agent card: it is {kind}", url=place) from None


def _without_interfaces(value: dict[str, Any], place: str) -> CardError:
    version = value.get("protocolVersion")
    if isinstance(value.get("url"), str) or isinstance(version, str):
        named = version if isinstance(version, str) and parse_version(version) else "0.3 or older"
        return OldCardError(f"The agent at {place} speaks A2A {named}, which this version cannot", url=place)
    return CardError(f"{place} is JSON, but no agent card: it names no supportedInterfaces", url=place)


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
    card: AgentCard, bindings: Sequence[str] = BINDINGS, *, card_url: str = ""
) -> list[AgentInterface]:
    """The interfaces that this client can use, in the card's order: the first is to be used, the others stand by.

    ``bindings`` are those to be spoken, ``card_url`` is where the card came from. Raises CardError that says what
    the card offers when there is none, or what is wrong with the addresses. Spec: CARD-09, CARD-12, VER-03, AMB-19.
    """
    spoken = [entry for entry in card.supported_interfaces if entry.protocol_binding in bindings]
    usable = [entry for entry in spoken if speaks_version(entry.protocol_version)]
    if not usable:
        raise CardError(_nothing_spoken(card, bindings), url=shown(card_url))
    found: list[AgentInterface] = []
    problem: CardError | None = None
    for entry in usable:
        try:
            check_interface(entry, card_url=card_url)
            found.append(entry)
        except CardError as error:
            problem = problem or error
    if problem is not None and not found:
        raise problem
    return found


def speaks_version(version: str) -> bool:
    """Whether a version of a card is spoken here; a patch part does not count, an absent one is taken as 1.0."""
    return not version.strip() or parse_version(version) in [parse_version(known) for known in SUPPORTED]


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


def _nothing_spoken(card: AgentCard, bindings: Sequence[str]) -> str:
    offered = ", ".join(f"{i.protocol_binding or '?'} {i.protocol_version or '?'}" for i in card.supported_interfaces)
    spoken = ", ".join(f"{binding} {version}" for binding in bindings for version in SUPPORTED)
    return f"The agent {card.name!r} offers {offered or 'no interface'}; this client speaks {spoken}"
