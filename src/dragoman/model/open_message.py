"""OpenMessage: a message whose members the protocol does not know."""

from __future__ import annotations

from typing import Any

import msgspec

from dragoman.model.wire import WireMessage


class OpenMessage(WireMessage):
    """A JSON object that an extension has defined, as request or answer of a method of its own.

    ``members`` are all of the object. ``tenant`` is the member of that name, as every request has one; what is set
    here is written over the member. Spec: EXT-13, TEN-02.
    """

    tenant: str = ""
    members: dict[str, Any] = msgspec.field(default_factory=dict)

    def data(self) -> dict[str, Any]:
        """The object as it is written."""
        return {**self.members, "tenant": self.tenant} if self.tenant else self.members

    @classmethod
    def of(cls, value: Any) -> OpenMessage:
        """The message of an object that was parsed. Raises ValueError for anything else."""
        if not isinstance(value, dict):
            raise ValueError("must be an object")
        tenant = value.get("tenant", "")
        return cls(tenant=tenant if isinstance(tenant, str) else "", members=value)
