"""Which interface of a card is used, and why not the others. Pure.

Spec: A2ACLI_TX_001, A2ACLI_TX_002, A2ACLI_VER_001, D-04; section 13 of the register of the command line.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from dragoman.cli.failures import NoTransportError
from dragoman.client.cards import BINDINGS, check_interface, speaks_version
from dragoman.errors import VersionNotSupportedError
from dragoman.model import AgentCard, AgentInterface
from dragoman.protocol.versions import SUPPORTED, parse_version


class Choice(msgspec.Struct, frozen=True):
    """The interface to use, whether the preference decided, and what was passed over for which reason."""

    interface: AgentInterface
    preferred: bool
    skipped: tuple[tuple[AgentInterface, str], ...] = ()


def choose_interface(card: AgentCard, transports: Sequence[str] = (), version: str = "") -> Choice:
    """The interface by the order of preference, else by that of the card; of one binding the highest version.

    ``version`` insists on one. Raises VersionNotSupportedError or NoTransportError when none is left, CardError when
    the chosen address is no good.
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
    if not speaks_version(entry.protocol_version):
        return f"version {entry.protocol_version} is not spoken here"
    if version and parse_version(entry.protocol_version or SUPPORTED[0]) != parse_version(version):
        return f"it is not of version {version}"
    return ""


def _highest(entries: Sequence[AgentInterface]) -> AgentInterface:
    return max(entries, key=lambda entry: parse_version(entry.protocol_version) or (0, 0))


def _nothing_left(card: AgentCard, version: str) -> Exception:
    offered = ", ".join(f"{e.protocol_binding or '?'} {e.protocol_version or '?'}" for e in card.supported_interfaces)
    spoken = f"{', '.join(BINDINGS)} in version {version or ', '.join(SUPPORTED)}"
    text = f"the agent offers {offered or 'no interface'}, and this program speaks {spoken}"
    if any(entry.protocol_binding in BINDINGS for entry in card.supported_interfaces):
        return VersionNotSupportedError(text)
    return NoTransportError(text)
