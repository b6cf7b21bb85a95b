"""Anything at all, sent to every method of 0.3."""

from __future__ import annotations

import random

import pytest

from tests.compat.grpc import oracle
from tests.compat.grpc.raw import METHODS, called_old, say
from tests.grpc.agents import make_echo
from tests.grpc.raw import Refused

ROUNDS = 40


def garbled(data: bytes, chance: random.Random) -> bytes:
    """The bytes with some of them changed, left out or doubled."""
    found = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        place = chance.randrange(len(found) + 1)
        match chance.randrange(3):
            case 0:
                found[place : place + 1] = bytes([chance.randrange(256)])
            case 1:
                del found[place : place + chance.randint(1, 3)]
            case _:
                found[place:place] = found[place : place + chance.randint(1, 8)]
    return bytes(found)


@pytest.mark.req("V03-01", "ERR-13")
@pytest.mark.parametrize("method", [name for name, (_, _, streams) in METHODS.items() if not streams])
async def test_garbled_requests_are_refused_in_order_or_answered(method: str) -> None:
    chance = random.Random(method)
    name = "tasks/t/pushNotificationConfigs/c"
    sense = {"SendMessage": say("reply", {"blocking": True}, metadata={"a": [1, {"b": None}]})}.get(method)
    if sense is None:
        fields = oracle.new(METHODS[method][0]).DESCRIPTOR.fields_by_name
        sense = {field: name for field in ("name", "parent") if field in fields}
    whole = oracle.write(METHODS[method][0], sense)
    codes: set[str] = set()

    async with called_old(make_echo()) as old:
        for _ in range(ROUNDS):
            try:
                oracle.read(METHODS[method][1], await old.send(method, garbled(whole, chance)))
            except Refused as refused:
                codes.add(refused.code)

    assert codes <= {"INVALID_ARGUMENT", "NOT_FOUND", "UNIMPLEMENTED", "FAILED_PRECONDITION"}
