"""Which interface of a card is used, and why not the others. Pure.

Spec: A2ACLI_TX_001, A2ACLI_TX_002, A2ACLI_VER_001, D-04; section 13 of the register of the command line.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from dragoman.cli.failures import NoTransportError
from dragoman.client.cards import BINDINGS, PRESENT, VERSIONS, check_interface, generation_of, offers
from dragoman.errors import VersionNotSupportedError
from dragoman.model import AgentCard, AgentInterface
from dragoman.protocol.versions import parse_version


class Choice(msgspec.Struct, frozen=True):
    """The interface to use, whether the preference decided, and what was passed over for which reason."""

    interface: AgentInterface
    preferred: bool
    skipped: tuple[tuple[AgentInterface, str], ...] = ()


def choose_interface(card: AgentCard, transports: Sequence[str] = (), version: str = "") -> Choice:
    """The interface by the order of preference, else by that of the card; of one binding the highest version.

    ``version`` insists on one; without it, none below 1.0 is used. Raises VersionNotSupportedError or NoTransportError
    when none is left, CardError when the chosen address is no good.
    """
    skipped = [(entry, why) for entry in card.supported_interfaces if (why := _why_not(entry, version))]
    usable = [entry for entry in card.supported_interfaces if not _why_not(entry, version)]
    if not usable:
        raise _nothing_left(card, version)
    binding = next((wanted for wanted in transports if any(e.protocol_binding == wanted for e in usable)), "")
    chosen = _highest([e for e in usable if e.protocol_binding == (binding or usable[0].protocol_binding)])
    check_interface(chosen)
    others = [(entry, "another comes first") for entry in usable if entry is not chosen]
    return Choice(chosen, bool(binding) or not transports, (*skipped, *others))


def _why_not(entry: AgentInterface, version: str) -> str:
    if entry.protocol_binding not in BINDINGS:
        return f"the binding {entry.protocol_binding or 'without a name'} is not spoken here"
    found = generation_of(entry.protocol_version)
    if found is None:
        return f"version {entry.protocol_version} is not spoken here"
    if version:
        return "" if found == generation_of(version) else f"it is not of version {version}"
    return "" if found == PRESENT else f"version {entry.protocol_version} is used with --a2a-version {found} only"


def _highest(entries: Sequence[AgentInterface]) -> AgentInterface:
    return max(entries, key=lambda entry: parse_version(entry.protocol_version) or (0, 0))


def _nothing_left(card: AgentCard, version: str) -> Exception:
    spoken = f"{', '.join(BINDINGS)} in version {version or PRESENT}"
    others = [] if version else [other for other in VERSIONS if other != PRESENT]
    more = "".join(f", and {other} with --a2a-version {other}" for other in others)
    text = f"the agent offers {offers(card) or 'no interface'}, and this program speaks {spoken}{more}"
    if any(entry.protocol_binding in BINDINGS for entry in card.supported_interfaces):
        return VersionNotSupportedError(text)
    return NoTransportError(text)
