"""Extensions of a client: what it asks for, and the layers over its calls.

Spec: EXT-02, EXT-15, AMB-25.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from dragoman.extensions.hooks import Hooks, check_uri, layered
from dragoman.ports.operations import CallContext, Operations


class ClientExtension(Hooks):
    """An extension that a client knows. Give it to ``connect(extensions=[…])``.

    It is asked for with every call, together with those that it depends on. Its hooks see a call when the agent's card
    declares it and the call asks for it; whether it became active is in ``context.activated`` then, where the agent
    tells, and nothing should depend on that (Spec: AMB-25).
    """

    def calling(self) -> Hooks:
        """What sees the calls of one client; by default the extension itself."""
        return self


def asked_uris(extensions: Sequence[str | ClientExtension]) -> tuple[str, ...]:
    """The URIs to ask for, each once, dependencies behind what needs them. Spec: EXT-15."""
    found: dict[str, None] = {}
    for extension in extensions:
        if isinstance(extension, ClientExtension):
            found.update(dict.fromkeys((check_uri(extension.uri), *map(check_uri, extension.depends))))
        else:
            found[extension] = None
    return tuple(found)


Declared = Callable[[], Collection[str]]
"""The URIs that the agent's card declares at the moment."""


def over_client(operations: Operations, extensions: Sequence[str | ClientExtension], declared: Declared) -> Operations:
    """The client's operations below the layers of its extensions."""

    def is_active(uri: str, context: CallContext) -> bool:
        return uri in context.extensions and uri in declared()

    hooks = [extension.calling() for extension in extensions if isinstance(extension, ClientExtension)]
    return layered(operations, hooks, is_active) if hooks else operations
