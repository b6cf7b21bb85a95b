"""Whose tasks a request is about."""

from __future__ import annotations

from typing import Any

from dragoman.ports.operations import CallContext
from dragoman.ports.store import Scope


def scope_of(request: Any, context: CallContext) -> Scope:
    """The scope of a call: the tenant that the edge or the request names, and the caller. Spec: AUTH-08, TEN-05."""
    return Scope(tenant=context.tenant or request.tenant, owner=context.caller.id)
