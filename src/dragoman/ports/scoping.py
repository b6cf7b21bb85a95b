"""Whose tasks a call may reach.

Theory. Every look-up on behalf of a caller carries a :class:`Scope`, live and stored tasks alike; what lies beyond it
does not exist for that caller. Without more a caller reaches what is its own. An ``authorize`` of the application may
let it reach further, or refuse an operation as a whole; it is asked for every operation.

Spec: §13.1, AUTH-08 to AUTH-10, AMB-36, TEN-03, LIST-04.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import msgspec

from dragoman.errors import ConfigurationError

if TYPE_CHECKING:
    from dragoman.ports.operations import Caller


class Scope(msgspec.Struct, frozen=True):
    """Whose tasks: all that is asked for on behalf of a caller is narrowed to this. Spec: AUTH-08, LIST-04, TEN-03.

    A task belongs to one ``owner`` of one ``tenant`` of one ``agent``; several agents may share a store. Asking may
    reach further than one owner: to ``others`` as well, or to ``everybody`` of the tenant.
    """

    tenant: str = ""
    owner: str = ""
    agent: str = ""
    others: frozenset[str] = frozenset()
    everybody: bool = False

    @property
    def is_wide(self) -> bool:
        """Whether it reaches further than one owner."""
        return self.everybody or bool(self.others)

    @property
    def own(self) -> Scope:
        """The part that is the owner's: where new things of a caller belong."""
        return Scope(self.tenant, self.owner, self.agent) if self.is_wide else self

    def covers(self, scope: Scope) -> bool:
        """Whether a task of ``scope`` is within this one."""
        if self == scope:
            return True
        if self.tenant != scope.tenant or self.agent != scope.agent:
            return False
        return self.everybody or scope.owner == self.owner or scope.owner in self.others


class Reach(msgspec.Struct, frozen=True):
    """How far a caller reaches beyond what is its own, always within its tenant.

    ``owners``: ids of callers whose tasks it may reach as well; ``everybody``: those of all callers. Raises
    ConfigurationError for owners that are a single text.
    """

    owners: frozenset[str] = frozenset()
    everybody: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.owners, str):
            raise ConfigurationError("owners of a Reach must be a set of ids, not one text")


OWN = Reach()
EVERYBODY = Reach(everybody=True)

Authorize = Callable[["Caller", str, str], "Reach | Awaitable[Reach | None] | None"]
"""``authorize(caller, operation, tenant)``: how far the caller reaches in an operation, such as ``"CancelTask"``.

A plain or an async function. None is the same as ``OWN``. It raises PermissionDeniedError to refuse the operation as a
whole. Spec: AUTH-09, AMB-36.
"""
