"""``fields.py``: facts of all fields, by type."""

from __future__ import annotations

from tools.generate.facts import SEVERAL_ALLOWED, FieldFact, Generation, MessageFact, Protocol, generated


def render(protocol: Protocol, generation: Generation) -> str:
    """The text of the module."""
    return _head(protocol, generation) + "".join(_message(message) for message in protocol.messages) + "}\n"


def _head(protocol: Protocol, generation: Generation) -> str:
    package, _, module = generation.types.rpartition(".")
    return f'''# {generated(protocol.source)}
"""Facts of all fields, in the order of the proto."""

from typing import Final

from {package} import {module} as t
from dragoman.model.field import Field
from dragoman.model.wire import WireMessage

FIELDS: Final[dict[type[WireMessage], tuple[Field, ...]]] = {{
    t.Empty: (),
'''


def _message(message: MessageFact) -> str:
    fields = "".join(f"{_field(field, message)}," for field in message.fields)
    return f"t.{message.name}: ({fields}),\n"


def _field(field: FieldFact, message: MessageFact) -> str:
    facts = [
        f'name="{field.name}"',
        f'json_name="{field.json_name}"',
        f"number={field.number}",
        f'kind="{field.kind}"',
    ]
    if field.shape != "single":
        facts.append(f'shape="{field.shape}"')
    if field.type:
        facts.append(f"{field.kind}=t.{field.type}")
    facts += [f"{name}=True" for name in ("required", "presence") if getattr(field, name)]
    if field.oneof and (message.name, field.oneof) not in SEVERAL_ALLOWED:
        facts.append(f'oneof="{field.oneof}"')
    return f"Field({', '.join(facts)})"
