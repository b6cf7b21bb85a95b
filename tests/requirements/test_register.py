"""The register's own tables are sound, and its plugin does what it says."""

from __future__ import annotations

import pytest

from tests.requirements import register

ROOT = register.FOLDER.parent.parent
SUITE = """
import pytest

@pytest.mark.req("SEND-08")
def test_passes(): pass

@pytest.mark.req("SEND-09")
def test_fails(): assert False
"""


def test_hand_kept_tables_name_only_topics_and_rows_that_exist() -> None:
    by_topic, by_id = register._arrivals()
    topics = {row.topic for row in register.rows().values()}

    assert set(by_topic) <= topics
    assert register.unknown_ids([*by_id, *register.not_applicable()]) == []


def test_rows_that_bind_only_authors_need_no_test() -> None:
    assert register.rows()["VER-14"].who == "author"
    assert "VER-14" not in {row.id for row in register.must_rows()}


def test_a_gap_says_what_its_rows_come_with_and_due_ones_are_listed_first() -> None:
    found = register.gaps(named=set())

    assert found[0].comes_with == register.DUE_NOW
    assert next(gap for gap in found if "GRPC-01" in gap.ids).comes_with == "gRPC"
    assert next(gap for gap in found if "PARAM-06" in gap.ids).topic == "Service parameters"


def test_rows_of_agentcore_and_of_protocol_0_3_are_there_with_ids_and_strengths() -> None:
    strengths = {
        id: register.rows()[id].strength for id in ("AC-S-01", "AC-S-37", "AC-C-15", "AC-F-15", "E2E-25", "P17")
    }

    assert strengths == {
        "AC-S-01": "MUST", "AC-S-37": "MAY", "AC-C-15": "SHOULD", "AC-F-15": "MUST", "E2E-25": "MUST", "P17": "MUST"
    }  # fmt: skip
    assert {f"V03-{number:02}" for number in range(1, 9)} <= {row.id for row in register.must_rows()}
    assert register.rows()["V03-P32"].strength == "CASE"


def test_rows_of_agentcore_that_are_less_than_must_are_listed_as_such() -> None:
    lines = register.weaker_gaps(named={"AC-S-05"})

    assert [line.partition(":")[0] for line in lines] == ["AgentCore, SHOULD", "AgentCore, MAY"]
    assert "AC-S-05" not in lines[0]
    assert lines[1] == "AgentCore, MAY: AC-S-37"


def run_suite(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    pytester.makeini("[pytest]\nmarkers = req(*ids): rows\nasyncio_default_fixture_loop_scope = function")
    pytester.makeconftest(f"import sys; sys.path.insert(0, {str(ROOT)!r})\nfrom tests.conftest import *")
    return pytester.runpytest_subprocess("--requirements", "-p", "no:cacheprovider", *arguments)


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "under xdist"])
def test_only_rows_of_passed_tests_count(pytester: pytest.Pytester, workers: tuple[str, ...]) -> None:
    pytester.makepyfile(SUITE)

    result = run_suite(pytester, *workers)

    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        ["1 of * MUST rows are proven by a passed test.", "SendMessage (due now): *SEND-07 SEND-09*"]
    )


def test_an_unknown_row_fails_the_collection(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(SUITE.replace("SEND-09", "SEND-99"))

    result = run_suite(pytester)

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*test_fails names unknown rows: SEND-99"])
