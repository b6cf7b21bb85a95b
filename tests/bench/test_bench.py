"""Every part of the benchmark starts and is answered rightly, for a moment."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bench.growth.curve import SMALL
from bench.grpc_ratios import GRPC_CASES, GrpcCase, grpc_cells, run_grpc_case
from bench.load import Load, WrongAnswer, once
from bench.processes import Measured, command_for, measure, serving, wait_until_up
from bench.ratios import BINDINGS, CASES, HEADINGS, Case, Row, cells, run_case
from bench.requests import body_of, request_for, sends_of
from bench.run import curves, report
from bench.tables import as_markdown, as_text
from tests.peers.conftest import sdk_python  # noqa: F401  a fixture

SECONDS = 0.2
CURVES = ("chunks", "subscribers", "finished tasks", "ListTasks", "reading", "import")

pytestmark = pytest.mark.timeout(600)


@pytest.mark.parametrize("binding", BINDINGS)
@pytest.mark.parametrize("case", CASES, ids=[case.title for case in CASES])
async def test_each_case_is_measured_on_all_three_servers(
    case: Case,
    binding: str,
    tmp_path: Path,
    sdk_python: Path,  # noqa: F811
) -> None:
    row = await run_case(case, binding, SECONDS, tmp_path, sdk_python)

    assert all(one is not None and one.rate > 0 for one in (row.ours, row.bare, row.sdk))
    assert row.ours.memory > 1


@pytest.mark.parametrize("case", GRPC_CASES, ids=[case.title for case in GRPC_CASES])
async def test_each_grpc_case_is_measured_on_all_three_servers(
    case: GrpcCase,
    tmp_path: Path,
    sdk_python: Path,  # noqa: F811
) -> None:
    row = await run_grpc_case(case, SECONDS, tmp_path, sdk_python)

    assert all(one is not None and one.rate > 0 for one in (row.ours, row.bare, row.sdk))
    assert (row.messages > 100) == case.streams
    assert len(grpc_cells(row)) == len(HEADINGS)


@pytest.mark.parametrize("title", ["100 chunks one by one, memory", "100 chunks at once, memory"])
async def test_the_bare_app_makes_as_many_sends_as_ours(title: str, tmp_path: Path) -> None:
    case = next(case for case in CASES if case.title == title)

    row = await run_case(case, "HTTP+JSON", SECONDS, tmp_path, None)

    assert len(sends_of(body_of(row.bare.answer))) == row.sends
    assert (row.sends > 50) == (case.agent == "tokens")


async def test_without_the_sdk_its_columns_are_empty(tmp_path: Path) -> None:
    row = await run_case(CASES[0], "JSONRPC", SECONDS, tmp_path, None)

    assert row.sdk_ratio is None
    assert cells(row)[5] == "-"


@pytest.mark.parametrize("name", CURVES)
async def test_each_curve_is_measured(
    name: str,
    tmp_path: Path,
    sdk_python: Path,  # noqa: F811
) -> None:
    curve = await curves(SMALL, tmp_path, sdk_python)[name]()

    assert curve.rows
    assert {len(row) for row in curve.rows} == {len(curve.headings)}
    assert {row[0] for row in curve.rows} >= ({"dragoman", "a2a-sdk"} if name != "finished tasks" else {"20", "40"})


def test_no_curve_is_forgotten(tmp_path: Path) -> None:
    assert tuple(curves(SMALL, tmp_path, None)) == CURVES


@pytest.fixture
async def port() -> AsyncIterator[int]:
    with serving(command_for("dragoman"), "reply", "") as server:
        await wait_until_up(server.port)
        yield server.port


async def test_a_load_of_a_number_of_answers_gets_just_as_many(port: int) -> None:
    load = Load(request_for("send", "JSONRPC"), b"You said")
    await load.connect(port, 4)

    answers, _ = await load.run(answers=25)

    load.close()
    assert answers == 25


async def test_a_wrong_answer_ends_the_measurement() -> None:
    with serving(command_for("dragoman"), "reply", "") as server:
        await wait_until_up(server.port)

        with pytest.raises(WrongAnswer, match="404"):
            await measure(server, request_for("get", "HTTP+JSON", "nobody"), b"", seconds=SECONDS, connections=2)


async def test_one_answer_is_read_to_its_end_whole_or_in_chunks(port: int) -> None:
    whole = await once(port, request_for("send", "HTTP+JSON"))
    chunked = await once(port, request_for("stream", "HTTP+JSON"))

    assert whole.endswith(b"}")
    assert chunked.endswith(b"0\r\n\r\n")


def test_the_report_is_markdown_with_a_date(tmp_path: Path) -> None:
    lines = report([], [])

    assert re.match(r"Measured on \d{4}-\d\d-\d\d: Python 3\.\d+", lines[1])


def test_tables_align_text_to_the_left_and_numbers_to_the_right() -> None:
    headings, rows = ("work", "µs"), [["card", "7"], ["GetTask", "1,024!"]]

    assert as_text(headings, rows) == ["work         µs", "card          7", "GetTask  1,024!"]
    assert as_markdown(headings, rows)[1] == "| --- | ---: |"


def test_a_miss_is_marked_and_a_miss_by_a_third_twice() -> None:
    def row(cpu: float) -> Row:
        return Row(CASES[0], "JSONRPC", _measured(cpu), _measured(80), None)

    assert [cells(row(cpu))[3] for cpu in (100, 110, 200)] == ["0.80", "0.73!", "0.40!!"]


def _measured(cpu: float) -> Measured:
    return Measured(rate=1.0, cpu=cpu, memory=1.0)
