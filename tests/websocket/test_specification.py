"""The binding's specification says what the code does."""

from __future__ import annotations

import inspect

import pytest

from dragoman.bindings.websocket import WebSocketBinding, frames, parameters, session
from tests.docs.tables import DOCS, names_in, read_table

PAGE = "websocket.md"
CLIENT = (frames.CallFrame, frames.CreditFrame, frames.CancelFrame)
SERVER = (
    frames.ResultFrame,
    frames.OpenFrame,
    frames.EventsFrame,
    frames.EndFrame,
    frames.ErrorFrame,
    frames.DrainFrame,
)
BOTH = (frames.Ping, frames.Pong)


@pytest.mark.req("BIND-03", "BIND-04", "BIND-07")
def test_the_messages_are_those_of_the_code() -> None:
    shown = {kind: (side, set(names_in(members)) - {""}) for kind, side, members in read_table(PAGE, "type", "from")}

    sides = (("client", CLIENT), ("server", SERVER), ("both", BOTH))
    assert shown == {
        str(kind.__struct_config__.tag): (side, set(kind.__struct_fields__)) for side, kinds in sides for kind in kinds
    }


@pytest.mark.req("BIND-07")
def test_the_close_codes_are_those_of_the_code() -> None:
    codes = {int(code) for code, _ in read_table(PAGE, "code", "closed because")}

    ours = {session.NORMAL, session.GOING, session.PROTOCOL, session.UNSUPPORTED, session.INTERNAL, session.UNATTENDED}
    assert codes == ours | {1007, 1009}  # which the WebSocket libraries send


@pytest.mark.req("BIND-14", "BIND-12")
def test_the_arguments_are_those_of_the_code() -> None:
    shown = {name for name, *_ in read_table(PAGE, "argument", "meaning")}

    assert shown == set(inspect.signature(WebSocketBinding).parameters)


@pytest.mark.req("BIND-05", "BIND-06", "BIND-09", "BIND-11", "BIND-13")
def test_the_names_of_the_specification_are_those_of_the_code() -> None:
    text = (DOCS / PAGE).read_text(encoding="utf-8")

    assert all(f"`{name}`" in text for name in parameters.CREDENTIALS)
    assert {WebSocketBinding.uri, frames.SUBPROTOCOL} <= set(text.replace("`", " ").split())
    headings = {line.removeprefix("## ") for line in text.splitlines() if line.startswith("## ")}
    assert headings >= {
        "Data",
        "Service parameters",
        "Errors",
        "Streams",
        "Authentication",
        "Security",
        "Name and versions",
    }
