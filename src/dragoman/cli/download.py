"""``dragoman task download``: the artifacts of a task as files, in one folder and nowhere else.

What an agent calls its files is not trusted: a name is cut down to its last component and to characters that mean
nothing to any system, nothing is followed, and nothing is overwritten unless that is wanted.

Spec: A2ACLI_DOWNLOAD_001; section 14.7 of the register of the command line.
"""

from __future__ import annotations

import mimetypes
import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec import UNSET

from dragoman.cli import text, values
from dragoman.cli.clean import json_text, size
from dragoman.cli.failures import FileError, UsageError
from dragoman.cli.options import Leaf, Run, argument, option
from dragoman.cli.parts_shown import describe_file
from dragoman.cli.program import run_client
from dragoman.cli.reaching import reach
from dragoman.cli.session import Session
from dragoman.cli.task_ids import task_id_of
from dragoman.model import Artifact, Part, Task

KINDS = ("text", "data", "file")
DEFAULT_KINDS = ("data", "file")
_LONGEST_NAME = 200
_BAD = re.compile(r'[\x00-\x1f\x7f-\x9f<>:"|?*\u202a-\u202e\u2066-\u2069]')
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)", re.IGNORECASE)


class Piece(msgspec.Struct, frozen=True):
    """One file to be: what is in it, and how it is called."""

    name: str
    content: bytes


def pieces(artifact: Artifact, kinds: Sequence[str], part: int | None = None) -> Iterator[Piece]:
    """The files that an artifact stands for. Pieces of one file that came one after the other are put together."""
    named: dict[str, int] = {}
    found: list[Piece] = []
    for index, item in enumerate(artifact.parts):
        if (part is not None and index != part) or kind_of(item) not in kinds:
            continue
        content = content_of(item)
        if content is None:
            continue
        if item.filename and item.raw is not None and item.filename in named:
            at = named[item.filename]
            found[at] = Piece(found[at].name, found[at].content + content)
            continue
        if item.filename:
            named[item.filename] = len(found)
        found.append(Piece(file_name(artifact, index, item), content))
    yield from found


def kind_of(part: Part) -> str:
    """``text``, ``data`` or ``file``."""
    return "text" if part.text is not None else "data" if part.data is not UNSET else "file"


def content_of(part: Part) -> bytes | None:
    """The bytes of a part, None for an address."""
    if part.raw is not None:
        return part.raw
    if part.text is not None:
        return part.text.encode("utf-8", "surrogatepass")
    return json_text(msgspec.json.encode(part.data), indent=True).encode() + b"\n" if part.data is not UNSET else None


def file_name(artifact: Artifact, index: int, part: Part) -> str:
    """A name that stays in its folder on every system."""
    ends = {"text": ".txt", "data": ".json"}
    end = ends.get(kind_of(part)) or mimetypes.guess_extension(part.media_type.partition(";")[0]) or ".bin"
    return safe_name(part.filename) or safe_name(f"{artifact.artifact_id}-{index}{end}") or f"artifact-{index}{end}"


def safe_name(name: str) -> str:
    """The last component of a name, without what systems take amiss; empty when nothing is left."""
    last = re.split(r"[/\\]", name.encode("utf-8", "replace").decode())[-1]
    clean = _BAD.sub("_", last).strip(" .")
    while len(clean.encode()) > _LONGEST_NAME:
        stem, dot, end = clean.rpartition(".")
        clean = f"{stem[:-1]}{dot}{end}" if stem and len(end) < 20 else clean[:-1]
    return f"_{clean}" if _RESERVED.match(clean) else clean


def write(folder: Path, piece: Piece, *, overwrite: bool = False, skip: bool = False) -> Path | None:
    """Write a file as a whole or not at all; gives its path, None when it was there and is left alone.

    Raises FileError.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / piece.name
        if skip and os.path.lexists(path):
            return None
        path = path if overwrite else _free(path)
        handle, name = tempfile.mkstemp(dir=folder, prefix=".dragoman-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(piece.content)
            os.chmod(name, 0o666 & ~_umask())
            os.replace(name, path)
        except BaseException:
            os.unlink(name)
            raise
    except OSError as error:
        raise FileError(f"{folder / piece.name} cannot be written: {error.strerror or type(error).__name__}") from None
    return path


def _free(path: Path) -> Path:
    number, found = 1, path
    while os.path.lexists(found):
        number += 1
        found = path.with_name(f"{path.stem} ({number}){path.suffix}")
    return found


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def save_on_the_way(session: Session, task: Task, folder: str) -> None:
    """``--save``: the files and data of a task, with a line on standard error for each."""
    for path in _save(task, Path(folder)):
        session.notes.say("Saved", path)


def _save(task: Task, folder: Path, **how: bool) -> Iterator[str]:
    for artifact in task.artifacts:
        for piece in pieces(artifact, DEFAULT_KINDS):
            path = write(folder, piece, **how)
            if path is not None:
                yield f"{path} ({size(len(piece.content))})"


def _download(
    run: Run,
    task: str | None,
    dir: str,
    artifact: Sequence[str],
    part: int | None,
    include: list[str] | None,
    overwrite: bool,
    skip_existing: bool,
    stdout: bool,
) -> int:
    if overwrite and skip_existing:
        raise UsageError("--overwrite and --skip-existing exclude each other")
    wanted = task_id_of(run, task)
    kinds = include or DEFAULT_KINDS
    if unknown := set(kinds) - set(KINDS):
        raise UsageError(f"--include takes {', '.join(KINDS)}, not {', '.join(sorted(unknown))}")

    async def body(session: Session) -> int:
        session.named_task = wanted
        async with reach(session) as agent:
            there = await agent.client.get_task(wanted)
        found = list(_chosen(there, artifact, kinds, part))
        if stdout:
            _to_stdout(session, found)
            return 0
        saved = [(write(Path(dir), piece, overwrite=overwrite, skip=skip_existing), piece) for piece in found]
        _tell(session, there, [f"{path} ({size(len(piece.content))})" for path, piece in saved if path is not None])
        return 0

    return run_client(run, body)


def _chosen(task: Task, ids: Sequence[str], kinds: Sequence[str], part: int | None) -> Iterator[Piece]:
    known = {artifact.artifact_id for artifact in task.artifacts}
    if missing := [name for name in ids if name not in known]:
        raise UsageError(f"the task has no artifact {', '.join(missing)}; it has: {', '.join(sorted(known)) or 'none'}")
    for artifact in task.artifacts:
        if not ids or artifact.artifact_id in ids:
            yield from pieces(artifact, KINDS if part is not None else kinds, part)


def _to_stdout(session: Session, found: Sequence[Piece]) -> None:
    if len(found) != 1:
        raise UsageError(f"--stdout writes one file, and this would be {len(found)}; see --artifact and --part")
    session.screen.write_bytes(found[0].content)


def _tell(session: Session, task: Task, saved: list[str]) -> None:
    if session.output.json:
        for line in saved:
            session.notes.say("Saved", line)
        session.output.struct(task)
        return
    record = text.Record()
    record.field("Task", task.id)
    record.field("Context", task.context_id)
    record.field("State", text.state_name(task.status.state))
    for artifact in task.artifacts:
        for item in artifact.parts:
            if item.url is not None:
                record.field("File", describe_file(item))
    for line in saved:
        record.field("Saved", line)
    session.output.record(record)


DOWNLOAD = Leaf(
    "download",
    _download,
    "Save the artifacts of a task as files. What is behind an address is listed and not fetched.",
    [
        argument("task", "[TASK-ID]"),
        option("--dir", metavar="DIR", default=".", help="Folder to write to; it is made if missing. [default: .]"),
        option("--artifact", metavar="ID", multiple=True, help="Only this artifact; repeatable."),
        option("--part", read=values.read_count, metavar="N", help="Only the part of this number, from 0."),
        option(
            "--include",
            read=values.read_list,
            metavar="KINDS",
            help="Kinds of parts, of text, data, file. [default: data,file]",
        ),
        option("--overwrite", is_flag=True, help="Replace files of the same name. [default: a number is added]"),
        option("--skip-existing", is_flag=True, help="Leave files of the same name as they are."),
        option("--stdout", is_flag=True, help="Write the only file to standard output."),
    ],
    examples=("dragoman task download 6f0f5a0e -a agent.example.com --dir quotes",),
)
