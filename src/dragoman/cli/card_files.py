"""Files of the commands on cards: read within limits, written whole or not at all. Spec: section 20.4."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from dragoman.card.canonical import Json, UnreadableCardError, parse_card
from dragoman.cli.clean import json_text
from dragoman.cli.failures import CommandError, FileError
from dragoman.client.discovery import MAX_CARD_BYTES


class InvalidCardError(CommandError):
    """The card does not keep to the schema."""

    code = "A2ACLI_ERR_CARD_INVALID"


class CheckFailedError(CommandError):
    """What was checked is not as it should be."""

    code = "DRAGOMAN_ERR_CHECK_FAILED"


def read_bytes(path: str, limit: int = MAX_CARD_BYTES) -> bytes:
    """The content of a file. Raises FileError."""
    try:
        with Path(path).expanduser().open("rb") as file:
            data = file.read(limit + 1)
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror}") from error
    if len(data) > limit:
        raise FileError(f"{path} is larger than {limit} bytes")
    return data


def read_card_json(path: str) -> Json:
    """A card as JSON, with all its members. Raises FileError, InvalidCardError."""
    try:
        return parse_card(read_bytes(path))
    except UnreadableCardError as error:
        raise InvalidCardError(f"{path} is no card: {error}") from error


def pretty(value: Json) -> str:
    """JSON as people read it."""
    return json_text(msgspec.json.encode(value), indent=True) + "\n"


def write_text(path: str, text: str) -> None:
    """Write a file, in place of what is there. Raises FileError."""
    target = Path(path).expanduser()
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        draft.write_text(text, encoding="utf-8")
        draft.replace(target)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise FileError(f"{path} cannot be written: {error.strerror}") from error


def create_files(files: Mapping[Path, tuple[bytes, int]]) -> None:
    """Create files that must not be there yet, with their modes. Raises FileError, and then leaves none."""
    made: list[Path] = []
    try:
        for path, (data, mode) in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
            made.append(path)
            with os.fdopen(handle, "wb") as file:
                file.write(data)
    except OSError as error:
        for written in made:
            written.unlink(missing_ok=True)
        what = "is there already" if isinstance(error, FileExistsError) else f"cannot be written: {error.strerror}"
        raise FileError(f"{path} {what}") from error
