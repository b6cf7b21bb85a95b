"""What the generated types are made of."""

from __future__ import annotations

import enum
from typing import Annotated, Self, TypeVar

import msgspec

INT32_MIN = -(2**31)
INT32_MAX = 2**31 - 1

Int32 = Annotated[int, msgspec.Meta(ge=INT32_MIN, le=INT32_MAX)]


class WireMessage(
    msgspec.Struct, kw_only=True, omit_defaults=True, forbid_unknown_fields=True, rename="camel", gc=False
):
    """Root of all message types of the protocol.

    Plain values, keyword arguments, names as in the proto; camelCase on the wire. Fields that are REQUIRED
    have no default and are always written, others are left out when they hold their default. Messages hold
    plain data without cycles, so the garbage collector does not track them.

    Spec: DATA-02, DATA-03.
    """


class WireEnum(enum.Enum):
    """Root of the protocol's enums: the value is the name on the wire, ``number`` the one in protobuf."""

    _value_: str
    number: int

    def __new__(cls, value: str, number: int = 0) -> Self:
        """Members are written ``NAME = "WIRE_NAME", number``; a call with the value alone finds the member."""
        member = object.__new__(cls)
        member._value_ = value
        member.number = number
        return member

    # Members are singletons, also after pickling; enum's own hash is ten times as slow and lookups are hot.
    __hash__ = object.__hash__

    @classmethod
    def from_number(cls, number: int) -> Self | int:
        """The member of this number, or the number itself when this version of the protocol has none.

        ValueError outside of 32 bits. Spec: AMB-42.
        """
        for member in cls:
            if member.number == number:
                return member
        if not INT32_MIN <= number <= INT32_MAX:
            raise ValueError("an enum number must fit in 32 bits")
        return number


EnumT = TypeVar("EnumT", bound=WireEnum)


def as_member(kind: type[EnumT], value: EnumT | int) -> EnumT | int:
    """Turn a number into the member it stands for; what is a member stays. TypeError for anything else."""
    if isinstance(value, kind):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return kind.from_number(value)
    raise TypeError(f"must be a {kind.__name__}")


def several_members(names: str) -> ValueError:
    """The error for a message that holds two members of one oneof. Spec: DATA-17, DATA-27, DATA-32."""
    return ValueError(f"must hold one of {names}, not several")
