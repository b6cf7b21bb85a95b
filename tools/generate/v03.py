"""Protocol 0.3: what its Structs have beyond its proto.

The same Structs stand for the JSON of JSON-RPC, which had a schema of its own and says things that the proto cannot.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from tools.generate.facts import FieldFact, Generation, MessageFact, Protocol
from tools.generate.proto import read_protocol

GENERATION = Generation(
    title="protocol 0.3",
    types="dragoman.compat.v03.types",
    taken=frozenset({"Empty", "Role", "TaskState"}),
    converting="dragoman.compat.v03.file_bytes",
)

# In JSON-RPC an absent value and false are not the same.
PRESENCE_IN_JSON = {
    ("SendMessageConfiguration", "blocking"),
    ("AgentCapabilities", "streaming"),
    ("AgentCapabilities", "push_notifications"),
}

# Never absent, though the proto allows it; a Struct without it would have no meaning.
NEVER_ABSENT = {("DataPart", "data")}

# The content of a file is written as text.
THROUGH = {("FilePart", "file_with_bytes"): "content"}

# Members of JSON-RPC that the proto does not have.
ONLY_IN_JSON = {
    "CancelTaskRequest": FieldFact(
        name="metadata",
        json_name="metadata",
        number=0,
        kind="struct",
        shape="single",
        type="",
        required=False,
        presence=True,
        oneof="",
        deprecated=False,
        comment="Further facts; in JSON-RPC only.",
    ),
}


def read(path: Path) -> Protocol:
    """The facts of the proto at ``path``, with those above."""
    protocol = read_protocol(path)
    return replace(protocol, messages=tuple(_message(message) for message in protocol.messages))


def _message(message: MessageFact) -> MessageFact:
    return replace(message, fields=tuple(_fields(message)))


def _fields(message: MessageFact) -> Iterator[FieldFact]:
    for field in message.fields:
        if (message.name, field.name) in PRESENCE_IN_JSON:
            yield replace(field, presence=True, presence_here=True)
        elif (message.name, field.name) in NEVER_ABSENT:
            yield replace(field, required=True)
        else:
            yield replace(field, through=THROUGH.get((message.name, field.name), ""))
    if message.name in ONLY_IN_JSON:
        yield ONLY_IN_JSON[message.name]
