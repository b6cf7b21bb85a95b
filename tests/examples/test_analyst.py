"""The analyst example, as a process."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from dragoman.client import Client
from dragoman.model import Artifact, Part, TaskArtifactUpdateEvent, TaskState, TaskStatusUpdateEvent
from examples.analyst import make_data

AGENT = "examples.analyst.agent:agent"
GAUGES = Path(make_data.__file__).with_name("gauges.csv")


def csv_part(raw: bytes) -> Part:
    return Part(raw=raw, media_type="text/csv", filename="table.csv")


def by_name(artifacts: list[Artifact]) -> dict[str, Artifact]:
    return {artifact.name: artifact for artifact in artifacts}


def test_the_shipped_table_is_what_its_generator_makes() -> None:
    assert GAUGES.read_text(encoding="utf-8") == make_data.make_csv()


@pytest.mark.req("DATA-18", "DATA-22", "DATA-24")
async def test_a_csv_file_becomes_statistics_a_summary_and_a_plot(client: Client) -> None:
    result = await client.run(["What is in it?", csv_part(GAUGES.read_bytes())])

    assert result.state is TaskState.COMPLETED
    artifacts = by_name(result.artifacts)
    assert set(artifacts) == {"statistics", "summary", "plot"}
    statistics = artifacts["statistics"].parts[0].data
    assert statistics["rows"] == 4380
    assert [column["kind"] for column in statistics["columns"]].count("number") == 5
    assert "## water_c" in "".join(part.text or "" for part in artifacts["summary"].parts)
    plot = artifacts["plot"].parts[0]
    assert (plot.media_type, plot.filename) == ("image/svg+xml", "plot.svg")
    assert ElementTree.fromstring(plot.raw or b"").tag.endswith("svg")


@pytest.mark.req("STREAM-01", "STREAM-07", "DATA-26")
async def test_progress_and_summary_are_streamed_piece_by_piece(client: Client) -> None:
    events = [event async for event in client.stream(csv_part(GAUGES.read_bytes()))]

    updates = [event.status for event in events if isinstance(event, TaskStatusUpdateEvent)]
    said = [update.message.parts[0].text for update in updates if update.message]
    pieces = [e for e in events if isinstance(e, TaskArtifactUpdateEvent) and e.artifact.artifact_id == "summary"]
    assert said[0] == "Column 1 of 7: date"
    assert len(said) >= 7
    assert len(pieces) >= 8
    assert pieces[0].append is False
    assert all(piece.append for piece in pieces[1:])
    assert updates[-1].state is TaskState.COMPLETED


@pytest.mark.parametrize(
    "data",
    [
        [{"city": "Rome", "heat": 31}, {"city": "Oslo", "heat": 17.5}, {"city": "Lima"}],
        {"columns": ["city", "heat"], "rows": [["Rome", 31], ["Oslo", 17.5], ["Lima", None]]},
    ],
    ids=["list of objects", "columns and rows"],
)
async def test_a_data_part_is_a_table_too(client: Client, data: object) -> None:
    result = await client.run(Part(data=data))

    columns = by_name(result.artifacts)["statistics"].parts[0].data["columns"]
    # The members of an object have no order that every binding keeps.
    city, heat = sorted(columns, key=lambda column: str(column["name"]))
    assert (city["kind"], city["distinct"]) == ("text", 3)
    assert (heat["max"], heat["missing"]) == (31, 1)


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"a,b\n1,2\n3\n", "line 3: 1 cells, but the header has 2."),
        (b"a,b\n1,2\n\nmany,4\n", "line 4: 'many' in column 'a' is not a number."),
        (b'a,b\n1,"two\nlines"\n3,4,5\n', "line 4: 3 cells, but the header has 2."),
        (b"a,b\n1,2\n3,\xff\n", "line 3: the file is not UTF-8 text."),
        (b'a,b\n1,"2\n', "line 2: unexpected end of data."),
    ],
)
async def test_a_bad_table_fails_the_task_and_the_message_names_the_line(
    client: Client, raw: bytes, words: str
) -> None:
    result = await client.run(csv_part(raw))

    assert result.state is TaskState.FAILED
    assert result.task is not None
    assert result.task.status.message is not None
    assert result.task.status.message.parts[0].text == f"The table cannot be read. {words}"


async def test_a_message_without_a_table_is_asked_for_one(client: Client) -> None:
    asked = await client.run("Please analyze my table")
    assert asked.state is TaskState.INPUT_REQUIRED

    result = await client.run(csv_part(b"x\n1\n2\n3\n"), task=asked.task)

    assert result.state is TaskState.COMPLETED
    assert json.dumps(by_name(result.artifacts)["statistics"].parts[0].data).count('"mean": 2') == 1
