"""``dragoman task download``: everything, unchanged, and nowhere else."""

from __future__ import annotations

import base64
import json

import pytest

from dragoman.cli.download import safe_name
from tests.cli.commands.peer import Peer, result, task
from tests.cli.commands.program import Dragoman


def raw(content: bytes, filename: str, **more: object) -> dict[str, object]:
    """A part with bytes."""
    return {"raw": base64.b64encode(content).decode(), "filename": filename, **more}


@pytest.mark.req("A2ACLI_DOWNLOAD_001")
def test_files_and_data_are_saved_byte_for_byte(dragoman: Dragoman, peer: Peer) -> None:
    parts = [raw(b"\x00\x01", "q.pdf"), {"data": {"total": 1}}, {"text": "hi"}, {"url": "https://x.example/f"}]
    peer.play = lambda seen: result(seen, task(artifacts=[{"artifactId": "a-1", "parts": parts}]))

    done = dragoman("task", "download", "t-1", "-a", peer.url, "--dir", "out/deep")

    folder = dragoman.folder / "out" / "deep"
    assert {path.name for path in folder.iterdir()} == {"q.pdf", "a-1-1.json"}
    assert (folder / "q.pdf").read_bytes() == b"\x00\x01"
    assert json.loads((folder / "a-1-1.json").read_text()) == {"total": 1}
    assert done.out == (
        "Task: t-1\nContext: c-1\nState: COMPLETED\nFile: unnamed (https://x.example/f)\n"
        "Saved: out/deep/q.pdf (2 bytes)\nSaved: out/deep/a-1-1.json (17 bytes)\n"
    )


@pytest.mark.req("A2ACLI_DOWNLOAD_001")
@pytest.mark.parametrize(
    "name",
    [
        "../../evil",
        "/etc/passwd",
        "..\\..\\evil.exe",
        "a\x00b\x1b[2J",
        ".bashrc",
        "CON",
        "nul.txt",
        "x" * 500,
        "..",
        "",
    ],
)
def test_a_hostile_name_stays_inside_the_folder(dragoman: Dragoman, peer: Peer, name: str) -> None:
    artifact = {"artifactId": "../../a", "parts": [raw(b"x", name)]}
    peer.play = lambda seen: result(seen, task(artifacts=[artifact]))
    before = dragoman.files()

    done = dragoman.inside("task", "download", "t-1", "-a", peer.url, "--dir", "out")

    new = dragoman.files() - before - {"out"}
    assert (done.status, len(new)) == (0, 1)
    assert new.pop().startswith("out/")
    assert "\x1b" not in done.out


@pytest.mark.req("A2ACLI_DOWNLOAD_001")
def test_nothing_is_overwritten_or_followed_unasked(dragoman: Dragoman, peer: Peer) -> None:
    peer.play = lambda seen: result(seen, task(artifacts=[{"artifactId": "a", "parts": [raw(b"new", "q.txt")]}]))
    target = dragoman.folder / "target"
    target.write_text("mine")
    (dragoman.folder / "q.txt").symlink_to(target)
    run = ("task", "download", "t-1", "-a", peer.url)

    dragoman.inside(*run)
    dragoman.inside(*run, "--skip-existing")
    dragoman.inside(*run, "--overwrite")

    assert target.read_text() == "mine"
    assert (dragoman.folder / "q (2).txt").read_bytes() == b"new"
    assert (dragoman.folder / "q.txt").read_bytes() == b"new"
    assert not (dragoman.folder / "q.txt").is_symlink()


@pytest.mark.req("A2ACLI_DOWNLOAD_001")
def test_one_part_can_go_to_standard_output(dragoman: Dragoman, peer: Peer) -> None:
    parts = [raw(b"one", "a.txt"), {"text": "two"}]
    peer.play = lambda seen: result(seen, task(artifacts=[{"artifactId": "a", "parts": parts}]))
    run = ("task", "download", "t-1", "-a", peer.url)

    assert dragoman.inside(*run, "--artifact", "a", "--part", "1", "--stdout").out == "two"
    assert dragoman.inside(*run, "--include", "text,file", "--stdout").status == 2
    assert dragoman.inside(*run, "--artifact", "b").status == 2


@pytest.mark.req("A2ACLI_DOWNLOAD_001")
def test_files_are_saved_on_the_way_too(dragoman: Dragoman, here: tuple[str, ...]) -> None:
    done = dragoman("send", *here, "--save", "out", "!file digits.bin 5000", "-o", "json")

    assert (dragoman.folder / "out" / "digits.bin").read_bytes() == b"0123456789abcdef" * 312 + b"01234567"
    assert "Saved: out/digits.bin (5000 bytes)" in done.err
    assert done.json["task"]


def test_a_name_is_cut_without_losing_its_end() -> None:
    assert safe_name("ä" * 300 + ".pdf").endswith(".pdf")
    assert len(safe_name("ä" * 300 + ".pdf").encode()) <= 200
