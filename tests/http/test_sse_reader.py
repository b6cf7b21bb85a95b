"""The reader of event streams: every legal form, at every border."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import InvalidAgentResponseError
from dragoman.http.sse_reader import SseEvent, SseReader


def read(text: bytes, step: int = 0, reader: SseReader | None = None) -> list[SseEvent]:
    """All complete events of some bytes, fed whole or in steps of so many bytes."""
    reader = reader or SseReader()
    step = step or len(text)
    return [event for start in range(0, len(text), step) for event in reader.feed(text[start : start + step])]


@pytest.mark.req("B053", "AMB-97")
@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"], ids=["LF", "CR", "CRLF"])
@pytest.mark.parametrize("step", [0, 1, 2, 3, 7])
def test_every_legal_form_is_read_with_every_line_end_and_chunk_border(end: bytes, step: int) -> None:
    lines = [
        b": ping",
        b"",
        b"data: one",
        b"",
        b"id: 7",
        b"data: two",
        b"",
        b"retry: 1500",
        b"event: update",
        b"id:8",
        b"data:three",
        b"data: more",
        b"unknown: x",
        b"",
        b"data",
        b"",
        b"",
        b"event: nothing to dispatch",
        b"",
    ]

    events = read(b"\xef\xbb\xbf" + end.join(lines) + end, step)

    assert events == [
        SseEvent(b"one"),
        SseEvent(b"two", b"7"),
        SseEvent(b"three\nmore", b"8", b"update"),
        SseEvent(b""),
    ]


@pytest.mark.req("B055", "B007")
@pytest.mark.parametrize("step", [0, 1, 2])
def test_only_cr_and_lf_end_lines_and_characters_survive_any_split(step: int) -> None:
    text = '{"text": "a\u0085b\u2028c\u2029d\u000be\x0cf\x1cg 漢字 🚀 é"}'

    events = read(f"data: {text}\n\n".encode(), step)

    assert [event.data.decode() for event in events] == [text]


def test_an_event_is_given_out_as_soon_as_a_lone_cr_ends_it() -> None:
    reader = SseReader()

    assert reader.feed(b"data: a\r\r") == [SseEvent(b"a")]
    assert reader.feed(b"\ndata: b\r\n\r\n") == [SseEvent(b"b")]


def test_an_unfinished_event_is_told_apart_from_an_orderly_end() -> None:
    done, inside, comment = SseReader(), SseReader(), SseReader()
    done.feed(b"data: a\n\n")
    inside.feed(b'data: a\n\ndata: {"half')
    comment.feed(b"data: a\n\n: pi")

    assert (done.pending, inside.pending, comment.pending) == (False, True, False)
    assert (done.close(), inside.close(), comment.close()) == (None, SseEvent(b'{"half'), None)


def test_the_reconnection_time_is_kept() -> None:
    reader = SseReader()

    reader.feed(b"retry: 2500\n\nretry: soon\n\n")

    assert reader.retry == 2500


@pytest.mark.parametrize("step", [0, 1, 10])
def test_an_event_beyond_the_limit_is_an_error(step: int) -> None:
    text = b"data: small\n\n" + b"data: " + b"x" * 100 + b"\n\n"

    with pytest.raises(InvalidAgentResponseError):
        read(text, step, SseReader(max_event_bytes=50))


def test_a_comment_without_end_is_bounded_too() -> None:
    with pytest.raises(InvalidAgentResponseError):
        read(b": endless" * 100, 9, SseReader(max_event_bytes=50))


LINES = st.lists(
    st.sampled_from(
        [b"data: x", b"data:y", b"data", b"id: 3", b"id", b": c", b"", b"", b"event: e", b"junk", b"data: \xe6\xbc"]
    ),
    max_size=20,
)


@given(lines=LINES, ends=st.lists(st.sampled_from([b"\n", b"\r", b"\r\n"]), min_size=20, max_size=20), data=st.data())
def test_what_is_read_does_not_depend_on_how_the_bytes_are_cut(
    lines: list[bytes], ends: list[bytes], data: st.DataObject
) -> None:
    text = b""
    for line, end in zip(lines, ends, strict=False):
        # CR and then LF would be one line end.
        text += line + (b"\r" if end == b"\n" and not line and text.endswith(b"\r") else end)
    borders = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=8)))
    reader = SseReader()

    pieces = [text[a:b] for a, b in zip([0, *borders], [*borders, len(text)], strict=True)]
    events = [event for piece in pieces for event in reader.feed(piece)]

    assert events == _by_the_book(lines)


def _by_the_book(lines: list[bytes]) -> list[SseEvent]:
    """The standard's own algorithm, line by line."""
    events, data, event_id, kind = [], [], None, b""
    for line in lines:
        if not line:
            if data:
                events.append(SseEvent(b"\n".join(data), event_id, kind))
            data, event_id, kind = [], None, b""
            continue
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            data.append(value)
        elif name == b"id":
            event_id = value
        elif name == b"event":
            kind = value
    return events
