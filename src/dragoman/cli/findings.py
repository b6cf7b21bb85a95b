"""Findings about a card, for people and for programs: text, JSON, SARIF, and the annotations of GitHub. Pure.

Spec: section 20.4 of the register.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from dragoman.card.lint import RULES, Finding
from dragoman.cli import text

_SARIF_LEVELS = {"error": "error", "warning": "warning", "note": "note"}
_GITHUB_LEVELS = {"error": "error", "warning": "warning", "note": "notice"}
_SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def pointer(path: str) -> str:
    """``skills[0].id`` as a JSON pointer, ``/skills/0/id``; what is one stays."""
    if path.startswith("/"):
        return path
    words = [word for word in re.split(r"[.\[\]]+", path) if word]
    return "".join(f"/{word.replace('~', '~0').replace('/', '~1')}" for word in words) or "/"


def as_record(findings: Sequence[Finding]) -> text.Record:
    """As text."""
    record = text.Record()
    for each in findings:
        record.field(each.severity.capitalize(), f"{each.rule}: {each.text} ({each.why})")
    counts = (f"{sum(each.severity == severity for each in findings)} {severity}s"
              for severity in ("error", "warning", "note"))  # fmt: skip
    record.field("Findings", ", ".join(counts))
    return record


def as_document(findings: Sequence[Finding]) -> dict[str, Any]:
    """As JSON."""
    return {
        "findings": [
            {
                "rule": each.rule,
                "severity": each.severity,
                "pointer": pointer(each.path) if each.path else None,
                "message": each.text,
                "reason": each.why,
            }
            for each in findings
        ]
    }


def as_sarif(findings: Sequence[Finding], place: str, version: str) -> dict[str, Any]:
    """As a log in SARIF 2.1.0."""
    rules = [{"id": rule, "shortDescription": {"text": why}, "defaultConfiguration": {"level": _SARIF_LEVELS[severity]}}
             for rule, (severity, why) in RULES.items()]  # fmt: skip
    results = [
        {
            "ruleId": each.rule,
            "level": _SARIF_LEVELS[each.severity],
            "message": {"text": each.text},
            "locations": [
                {
                    "physicalLocation": {"artifactLocation": {"uri": place}},
                    "logicalLocations": [{"fullyQualifiedName": pointer(each.path) if each.path else "/"}],
                }
            ],
        }
        for each in findings
    ]
    driver = {"name": "dragoman card lint", "version": version, "rules": rules}
    return {"$schema": _SARIF_SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}


def as_annotations(findings: Sequence[Finding], place: str) -> str:
    """As commands of a workflow on GitHub, one a line."""
    return "".join(
        f"::{_GITHUB_LEVELS[each.severity]} file={_property(place)},title={_property(each.rule)}::{_data(each.text)}\n"
        for each in findings
    )


def _data(value: str) -> str:
    return value.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(value: str) -> str:
    return _data(value).replace(":", "%3A").replace(",", "%2C")
