"""``dragoman card diff``: what has changed between two cards. Spec: section 20.4 of the register."""

from __future__ import annotations

from dragoman.card.diff import Difference, diff_cards
from dragoman.cli import text
from dragoman.cli.options import Leaf, Run, argument
from dragoman.cli.program import run_client
from dragoman.cli.reaching import read_cards
from dragoman.cli.session import Session

_LABELS = {"added": "Added", "removed": "Removed", "changed": "Changed"}


def _diff(run: Run, before: str, after: str) -> int:
    async def body(session: Session) -> int:
        one, other = await read_cards(session, (before, after))
        found = diff_cards(one.card, other.card)
        _show(session, found)
        return 1 if found else 0

    return run_client(run, body)


def _show(session: Session, found: list[Difference]) -> None:
    if session.output.json:
        session.output.document({"differences": found})
        return
    record = text.Record()
    for difference in found:
        record.field(_LABELS[difference.change], str(difference))
    record.field("Differences", str(len(found)))
    session.output.record(record)


DIFF = Leaf(
    "diff",
    _diff,
    "Show how two cards differ in interfaces, capabilities, skills, security and identity; exits 1 if they do.",
    [argument("before", "A", required=True), argument("after", "B", required=True)],
    examples=("dragoman card diff cards/pricing.lock.json https://pricing.example.com",),
)
