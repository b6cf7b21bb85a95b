"""The compliance report is complete, and claims nothing that was not shown."""

from __future__ import annotations

import datetime
import json

from tests.cli import report
from tests.requirements import register

DATE = datetime.date(2026, 12, 1)


def test_every_identifier_is_there_with_words_and_the_totals_are_right() -> None:
    built = report.build({}, DATE)

    assert len(built["requirements"]) == 66
    assert list(report.titles()) == list(built["requirements"])
    assert [built["summary"][f"tier_{tier}"]["total"] for tier in (1, 2, 3)] == [39, 15, 12]
    assert set(built["default_001_breakdown"]) == set(report.DEFAULTS)
    assert len(built["error_codes"]) == 8


def test_what_was_not_measured_or_failed_is_no_pass() -> None:
    nothing = report.build({}, DATE)
    ids = [id for id, row in report.identifiers().items() if report.tier_of(row) == 1]
    all_passed = {id: report.Outcome(passed=("test_it",)) for id in ids}
    one_failed = all_passed | {ids[0]: report.Outcome(passed=("test_it",), failed=("test_other",))}

    assert nothing["report"]["tier_claimed"] == 0
    assert report.build(all_passed, DATE)["report"]["tier_claimed"] == 1
    broken = report.build(one_failed, DATE)
    assert broken["report"]["tier_claimed"] == 0
    assert broken["requirements"][ids[0]]["status"] == "fail"


def test_what_has_no_test_says_what_it_comes_with() -> None:
    rows = report.build({}, DATE)["requirements"]

    assert rows["A2ACLI_CHAT_001"]["note"] == "comes with chat"
    waiting = {id for id, row in report.identifiers().items() if register.comes_with(row)}
    assert all(row["tier"] > 1 for id, row in rows.items() if id in waiting)


def test_it_is_written_as_yaml_that_reads_back_line_by_line() -> None:
    built = report.build({}, DATE)

    text = report.to_yaml(built)

    assert text.startswith('report:\n  tool: "dragoman"\n')
    assert '  A2ACLI_CHAT_001:\n    tier: 3\n    area: "CHAT"\n' in text
    for line in text.splitlines():
        key, _, value = line.strip().partition(":")
        assert key
        assert not value or json.loads(value) is not ...
