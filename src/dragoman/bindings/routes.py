"""The routes of HTTP+JSON, made from the operation table.

A path is matched segment by segment against a small tree. A literal segment wins over a variable one, and every
route without a tenant over the routes below ``/{tenant}``. Segments are percent-decoded after the split, so an id
may hold any character but an empty one is no id.

Spec: HTTP-01, HTTP-11, HTTP-12, AMB-88, AMB-89, AMB-90.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from urllib.parse import unquote

import msgspec

from dragoman.errors import MethodNotAllowedError, MethodNotFoundError
from dragoman.model import OPERATIONS, SUBSCRIBE_TO_TASK, Operation


class Route(msgspec.Struct, frozen=True):
    """Where a request goes: the operation, and the fields that its path holds (proto names, decoded)."""

    op: Operation
    fields: dict[str, str]


class _Node:
    """One place in the tree. ``ops`` are the operations that end here, by HTTP method."""

    __slots__ = ("literals", "ops", "variable", "verbs")

    def __init__(self) -> None:
        self.ops: dict[str, Operation] = {}
        self.literals: dict[str, _Node] = {}
        self.verbs: dict[str, _Node] = {}
        self.variable: _Node | None = None


def http_methods(op: Operation) -> tuple[str, ...]:
    """The HTTP methods an operation is served under: HEAD beside GET, and two for subscribing (Spec: AMB-88)."""
    if op is SUBSCRIBE_TO_TASK:
        return "GET", "POST"
    return ("GET", "HEAD") if op.http_method == "GET" else (op.http_method,)


def match_route(method: str, path: str) -> Route:
    """Find the route of a raw path (percent-encoded, relative to the interface).

    Raises MethodNotFoundError for an unknown path, and MethodNotAllowedError whose ``metadata["allow"]``
    lists what is allowed.
    """
    op = _EXACT.get(path, _NOWHERE).ops.get(method)
    if op is not None:
        return Route(op, {})
    allowed: set[str] = set()
    for node, values in _candidates(path):
        op = node.ops.get(method)
        if op is not None:
            return _route(op, values)
        allowed.update(node.ops)
    if not allowed:
        raise MethodNotFoundError("There is no such path")
    raise MethodNotAllowedError(metadata={"allow": ", ".join(sorted(allowed | {"OPTIONS"}))})


def match_method(methods: Mapping[str, Operation], method: str, path: str) -> Route | None:
    """The route of a method that an extension added, by its path; None when it is none of theirs.

    Raises MethodNotAllowedError. Spec: EXT-13.
    """
    op = methods.get(path)
    fields: dict[str, str] = {}
    if op is None:
        tenant, slash, rest = path[1:].partition("/")
        op = methods.get(slash + rest)
        if op is None or not tenant:
            return None
        fields["tenant"] = unquote(tenant)
    if method != "POST":
        raise MethodNotAllowedError(metadata={"allow": "OPTIONS, POST"})
    return Route(op, fields)


def _route(op: Operation, values: list[str]) -> Route:
    """``values`` are those of the path's variables in order, a tenant before the operation's own."""
    names = op.path_fields if len(values) == len(op.path_fields) else ("tenant", *op.path_fields)
    return Route(op, {name: unquote(value) for name, value in zip(names, values, strict=True)})


def _candidates(path: str) -> Iterator[tuple[_Node, list[str]]]:
    """The places that a path may mean, the preferred one first."""
    if not path.startswith("/"):
        return
    first, *rest = segments = path[1:].split("/")
    values: list[str] = []
    if (node := _walk(segments, values)) is not None:
        yield node, values
    values = [first]
    if first and (node := _walk(rest, values)) is not None:
        yield node, values


def _walk(segments: list[str], values: list[str]) -> _Node | None:
    node: _Node | None = _ROOT
    for segment in segments:
        if node is None:
            return None
        node = node.literals.get(segment) or _step_by_variable(node, segment, values)
    return node if node is not None and node.ops else None


def _step_by_variable(node: _Node, segment: str, values: list[str]) -> _Node | None:
    value, colon, verb = segment.rpartition(":")
    if colon and value and verb in node.verbs:
        values.append(value)
        return node.verbs[verb]
    if segment and node.variable is not None:
        values.append(segment)
        return node.variable
    return None


def _plant(op: Operation) -> None:
    node = _ROOT
    for segment in op.http_path[1:].split("/"):
        node = _grow(node, segment)
    node.ops.update(dict.fromkeys(http_methods(op), op))
    if not op.path_fields:
        _EXACT[op.http_path] = node


def _grow(node: _Node, segment: str) -> _Node:
    if not segment.startswith("{"):
        return node.literals.setdefault(segment, _Node())
    verb = segment.partition("}:")[2]
    if verb:
        return node.verbs.setdefault(verb, _Node())
    node.variable = node.variable or _Node()
    return node.variable


_ROOT = _Node()
_NOWHERE = _Node()
_EXACT: dict[str, _Node] = {}
for _op in OPERATIONS.values():
    _plant(_op)
