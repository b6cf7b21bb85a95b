"""Extensions of an agent: what is declared of them, their layers over the runtime, and the methods that they add.

Spec: §3.3.4, §4.6, EXT-01, EXT-12 to EXT-15.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from dragoman.errors import ConfigurationError, FieldViolation, InvalidAgentResponseError, InvalidParamsError
from dragoman.extensions.hooks import Hooks, check_uri, layered
from dragoman.extensions.metadata import check_metadata
from dragoman.model import OPERATIONS, AgentExtension, OpenMessage, Operation
from dragoman.ports.extending import ExtensionMethod
from dragoman.ports.operations import CallContext, EventStream, Operations

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.]*(?:/[A-Za-z0-9_.]+)*", re.ASCII)
_PATH = re.compile(r"(?:/[A-Za-z0-9_.~-]+(?::[A-Za-z0-9_-]+)?)+", re.ASCII)
_CORE_SEGMENTS = frozenset(op.http_path.split("/")[1] for op in OPERATIONS.values())

logger = logging.getLogger("dragoman.extensions")


class Method(msgspec.Struct, frozen=True, kw_only=True):
    """A method that an extension adds to an agent: unary, an object in and an object out.

    * ``name``: of the JSON-RPC method, and elsewhere of the operation; letters, digits, ``_``, ``.``, ``/`` between;
    * ``function``: does the work: takes the params and the :class:`~dragoman.ports.operations.CallContext`. What it
      returns is an object in JSON; it may raise A2AError;
    * ``params``: the type that the params are read as, strictly: a msgspec Struct, a TypedDict, a dataclass; default
      any object;
    * ``path``: of HTTP+JSON, with POST; default ``/extensions/`` and the name.

    A call is identified, checked and limited as one of the protocol's own, and it is refused when the caller did not
    activate the extension (Spec: EXT-13).
    """

    name: str
    function: Callable[[Any, CallContext], Awaitable[Any]]
    params: Any = dict[str, Any]
    path: str = ""

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name) or self.name.lower() in {name.lower() for name in OPERATIONS}:
            raise ConfigurationError(f"extensions: a method cannot be called {self.name!r}")
        path = self.http_path
        if not _PATH.fullmatch(path) or path.split("/")[1] in _CORE_SEGMENTS:
            raise ConfigurationError(f"extensions: the path {path!r} of {self.name} is not one of its own")

    @property
    def http_path(self) -> str:
        """Where HTTP+JSON has it."""
        return self.path or f"/extensions/{self.name}"

    def operation(self) -> Operation:
        """The operation that the bindings carry."""
        return method_operation(self.name, self.http_path)

    async def run(self, request: OpenMessage, context: CallContext) -> OpenMessage:
        """Read the params, do the work, write what it gave."""
        members = {key: value for key, value in request.members.items() if key != "tenant"}
        try:
            params = msgspec.convert(members, self.params, strict=True)
        except (msgspec.ValidationError, RecursionError) as error:
            raise InvalidParamsError(violations=[FieldViolation("params", str(error)[:300])]) from None
        return _answer(self.name, await self.function(params, context))


@lru_cache(maxsize=256)
def method_operation(name: str, path: str) -> Operation:
    """An operation with an open request and response; the same one each time."""
    return Operation(
        name=name,
        request=OpenMessage,
        response=OpenMessage,
        streaming=False,
        http_method="POST",
        http_path=path,
        path_fields=(),
        body="*",
        capability="",
    )


def _answer(name: str, value: Any) -> OpenMessage:
    try:
        return OpenMessage.of({} if value is None else msgspec.to_builtins(value, str_keys=True))
    except (ValueError, TypeError) as error:
        logger.error("The method %s gave what is no JSON object", name, exc_info=error)
        raise InvalidAgentResponseError("A method of an extension gave what is no JSON object") from error


class ServerExtension(Hooks):
    """An extension that an agent has. Give it to ``Agent(extensions=[…])``; set what is known of it on the class.

    * ``description``, ``required``, ``params``: as on the card. An extension that only adds data should not be
      required (Spec: EXT-14);
    * ``keys``: the keys of metadata that it defines, with the type of each (what msgspec reads). Requests with another
      key of the extension, or a value of another type, are refused while it is active; None, the default, leaves that
      to its code (Spec: EXT-12);
    * ``methods``: those that it adds.

    Its hooks see the calls that are admitted: the caller is identified, the version is known, what is required is
    there, the fields are valid.
    """

    description: str = ""
    required: bool = False
    params: Mapping[str, Any] | None = None
    keys: Mapping[str, Any] | None = None

    @property
    def methods(self) -> Sequence[Method]:
        """The methods that it adds; none by default."""
        return ()

    def serving(self, agent: str) -> Hooks:
        """What sees the calls of one agent, which has this name; by default the extension itself.

        An extension that keeps something between calls gives an object of its own to each agent.
        """
        return self

    def declaration(self) -> AgentExtension:
        """Its entry on the card. Spec: EXT-01."""
        params = None if self.params is None else dict(self.params)
        return AgentExtension(uri=self.uri, description=self.description, required=self.required, params=params)


class ServerExtensions:
    """All extensions of one agent; see :class:`~dragoman.ports.extending.Extending`.

    ``declared`` are the URIs on its card, some of which may have no code; ``agent`` is its name.

    Raises ConfigurationError for a URI that is none, one that is there twice, a dependency that is not declared, and
    methods with one name or path.
    """

    def __init__(self, extensions: Sequence[ServerExtension], declared: Sequence[str], agent: str = "") -> None:
        for uri in declared:
            check_uri(uri)
        self._hooks = [(each.keys, each.serving(agent)) for each in extensions]
        needs = {each.uri: tuple(each.depends) for each in extensions if each.depends}
        self.depends: Mapping[str, Sequence[str]] = needs
        for uri, needed in self.depends.items():
            missing = [other for other in needed if other not in declared]
            if missing:
                raise ConfigurationError(f"extensions: {uri} depends on {missing[0]}, which the agent does not have")
        self.methods: Sequence[ExtensionMethod] = [
            ExtensionMethod(method.operation(), each.uri, method.run) for each in extensions for method in each.methods
        ]
        _check_methods([method.op for method in self.methods])

    def over(self, operations: Operations) -> Operations:
        """See :class:`~dragoman.ports.extending.Extending`."""
        hooks: list[Hooks] = []
        for keys, seeing in self._hooks:
            if keys is not None:
                hooks.append(_Check(seeing.uri, keys))
            hooks.append(seeing)
        return layered(operations, hooks, lambda uri, context: uri in context.activated)


class _Check(Hooks):
    """The check of an extension's data, before its code sees any."""

    def __init__(self, uri: str, keys: Mapping[str, Any]) -> None:
        self.uri = uri
        self._keys = keys

    async def call(
        self, op: Operation, request: msgspec.Struct, context: CallContext, inner: Operations
    ) -> msgspec.Struct:
        check_metadata(self.uri, self._keys, request)
        return await inner.call(op, request, context)

    async def stream(
        self, op: Operation, request: msgspec.Struct, context: CallContext, inner: Operations
    ) -> EventStream:
        check_metadata(self.uri, self._keys, request)
        return await inner.stream(op, request, context)


def _check_methods(ops: Sequence[Operation]) -> None:
    for what, values in (("name", [op.name.lower() for op in ops]), ("path", [op.http_path for op in ops])):
        for value in values:
            if values.count(value) > 1:
                raise ConfigurationError(f"extensions: two methods have the {what} {value}")
