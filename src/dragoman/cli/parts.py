"""From the words of a command line to the parts of a message, in their order.

Spec: A2ACLI_SEND_005, A2ACLI_SEND_006, P-13; section 14.2 of the register of the command line.
"""

from __future__ import annotations

import json
import mimetypes
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import unquote, urlsplit

import msgspec

from dragoman.cli.clean import size
from dragoman.cli.failures import FileError, UsageError
from dragoman.model import Part

TEXT, FILE, DATA, MEDIA_TYPE = "text", "file", "data", "media_type"
LARGE = 10 * 1024 * 1024

# The table of the standard library alone, so that every machine guesses the same.
_TYPES = mimetypes.MimeTypes()
_OF_TEXT, _OF_DATA, _OF_BYTES = "text/plain", "application/json", "application/octet-stream"


class Given(msgspec.Struct):
    """One part as it was written; ``media_type`` is empty when it is to be guessed."""

    kind: str
    value: str
    media_type: str = ""


def arrange(occurrences: Sequence[tuple[str, str]]) -> list[Given]:
    """The parts, each with the media type that stands right behind it. Raises UsageError."""
    found: list[Given] = []
    for kind, value in occurrences:
        if kind != MEDIA_TYPE:
            found.append(Given(kind, value))
        elif not found:
            raise UsageError("--media-type belongs behind the part that it is for")
        elif found[-1].media_type:
            raise UsageError("a part has one --media-type")
        else:
            found[-1].media_type = value
    return found


class PartReader:
    """Makes the parts. ``stdin`` is read at most once; ``warn`` is told of large files."""

    def __init__(self, stdin: Callable[[], bytes], warn: Callable[[str], None]) -> None:
        self._stdin = stdin
        self._warn = warn
        self._was_read = False

    def read(self, given: Given) -> Part:
        """The part that was meant. Raises UsageError or FileError."""
        if given.kind == TEXT:
            return Part(text=self._text(given.value), media_type=given.media_type or _OF_TEXT)
        if given.kind == DATA:
            return Part(data=self._data(given.value), media_type=given.media_type or _OF_DATA)
        return self._file(given)

    def standard_input(self) -> bytes:
        """All of standard input. Raises UsageError the second time."""
        if self._was_read:
            raise UsageError("standard input can be used once")
        self._was_read = True
        return self._stdin()

    def _text(self, value: str) -> str:
        if value != "-":
            return value
        try:
            return self.standard_input().decode()
        except UnicodeDecodeError:
            raise UsageError("the text on standard input is not UTF-8") from None

    def _data(self, value: str) -> Any:
        if value == "-":
            return parse_json(self.standard_input(), "standard input")
        path = Path(value.removeprefix("@"))
        if value.startswith("@") or (value[:1] not in ("{", "[", '"') and path.is_file()):
            return parse_json(read_file(path), str(path))
        return parse_json(value.encode("utf-8", "surrogateescape"), f"--data-part {value[:40]}")

    def _file(self, given: Given) -> Part:
        if "://" in given.value and not given.value.lower().startswith("file:"):
            name = unquote(urlsplit(given.value).path.rpartition("/")[2])
            return Part(url=given.value, filename=name, media_type=given.media_type or guess(name))
        path = Path(given.value)
        raw = read_file(path)
        if len(raw) > LARGE:
            self._warn(f"{path.name} is sent inline, {size(len(raw))}; an address is better for large files")
        return Part(raw=raw, filename=path.name, media_type=given.media_type or guess(path.name))


def guess(name: str) -> str:
    """The media type by the end of a file's name."""
    return _TYPES.guess_type(name, strict=True)[0] or _OF_BYTES


def read_file(path: Path) -> bytes:
    """A file of the user. Raises FileError."""
    try:
        return path.expanduser().read_bytes()
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror or type(error).__name__}") from None


def parse_json(data: bytes, place: str) -> Any:
    """Any JSON value. Raises UsageError."""
    try:
        return json.loads(data.decode("utf-8-sig"), parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise UsageError(f"there is no JSON in {place}") from None


def _refuse(name: str) -> NoReturn:
    raise ValueError(name)
