"""Admission: what is decided about a call before anything is looked up.

In this order: the version, the required extensions, the capability, the fields of the request. What a caller may
see is decided later, by the scope that every look-up carries.

Spec: §3.3.4, §3.6.2, EXT-02, EXT-03, ERR-07, ERR-23, AMB-23, AMB-24, AMB-39, AMB-40.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from dragoman.errors import (
    A2AError,
    ExtensionSupportRequiredError,
    PushNotificationNotSupportedError,
    UnsupportedOperationError,
)
from dragoman.model import GET_EXTENDED_AGENT_CARD, AgentCapabilities, AgentExtension, Operation
from dragoman.protocol.validation import RequestRules, validate_request
from dragoman.protocol.versions import check_version

_CAPABILITY_ERRORS: dict[str, tuple[type[A2AError], str]] = {
    "streaming": (UnsupportedOperationError, "This agent does not stream; its card says so"),
    "push_notifications": (PushNotificationNotSupportedError, "This agent does not send push notifications"),
    "extended_agent_card": (UnsupportedOperationError, "This agent has no extended card"),
}

NO_DEPENDENCIES: Mapping[str, Sequence[str]] = {}


class Admission:
    """The rules of one agent, applied to each call.

    ``capabilities`` is what its card declares, ``rules`` how its requests are validated; ``infer_version`` takes a
    request without ``A2A-Version`` as 1.0 (for fronts that drop headers; default off, Spec: AMB-17). ``depends``
    has, by URI, the extensions without which an extension is not active (Spec: EXT-15).
    """

    def __init__(
        self,
        capabilities: AgentCapabilities,
        rules: RequestRules,
        *,
        infer_version: bool = False,
        depends: Mapping[str, Sequence[str]] = NO_DEPENDENCIES,
    ) -> None:
        self._depends = depends
        self._lacking = {name for name in _CAPABILITY_ERRORS if getattr(capabilities, name) is not True}
        self._declared = frozenset(extension.uri for extension in capabilities.extensions)
        self._required = _required_uris(capabilities.extensions, depends)
        self._rules = rules
        self._infer_version = infer_version

    def admit(self, op: Operation, request: msgspec.Struct, version: str, extensions: Sequence[str]) -> tuple[str, ...]:
        """Check a call; return the extensions that become active. Raises the A2AError that refuses it."""
        if version != "1.0":
            check_version(version, infer=self._infer_version)
        if self._required and op is not GET_EXTENDED_AGENT_CARD:
            _check_required(self._required, extensions)
        if op.capability in self._lacking:
            error, text = _CAPABILITY_ERRORS[op.capability]
            raise error(text, metadata={"operation": op.name})
        validate_request(request, self._rules)
        return self._activate(extensions) if extensions else ()

    def _activate(self, asked: Sequence[str]) -> tuple[str, ...]:
        """Those that are asked for and declared, less those that lack another. Spec: EXT-06, EXT-08."""
        active = tuple(uri for uri in asked if uri in self._declared)
        if not self._depends:
            return active
        while (whole := tuple(uri for uri in active if set(self._depends.get(uri, ())) <= set(active))) != active:
            active = whole
        return active


def _required_uris(extensions: Sequence[AgentExtension], depends: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Those that a caller has to ask for, with all that they depend on."""
    found = dict.fromkeys(extension.uri for extension in extensions if extension.required)
    waiting = list(found)
    while waiting:
        more = [uri for uri in depends.get(waiting.pop(), ()) if uri not in found]
        found.update(dict.fromkeys(more))
        waiting += more
    return tuple(found)


def _check_required(required: Sequence[str], declared: Sequence[str]) -> None:
    missing = [uri for uri in required if uri not in declared]
    if missing:
        raise ExtensionSupportRequiredError(
            f"This agent requires the extension {missing[0]}; name it in A2A-Extensions",
            metadata={"extensions": ", ".join(missing)},
        )
