"""``dragoman card verify``. Spec: SIGN-15 to SIGN-20, AMB-81 to AMB-87; section 20.4 of the register."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dragoman.card import SignatureCheck, SignatureReport
from dragoman.cli import text
from dragoman.cli.card_files import CheckFailedError
from dragoman.cli.checking import fail_check
from dragoman.cli.options import Leaf, Run, argument, option
from dragoman.cli.program import run_client
from dragoman.cli.reaching import open_client, read_card
from dragoman.cli.session import Session
from dragoman.cli.signatures import find_signatures, key_options, read_policy


def _verify(
    run: Run, ref: str | None, trust: Sequence[str], allow_jku: Sequence[str], require: bool, kid: str | None
) -> int:
    async def body(session: Session) -> int:
        policy = read_policy(trust, allow_jku)
        fetched = await read_card(session, ref)
        async with open_client(session) as client:
            found = await find_signatures(session, fetched, policy, client)
        report = SignatureReport(checks=[check for check in found.checks if not kid or check.kid == kid])
        _show(session, fetched.card.name, report)
        if require and not report.verified:
            return fail_check(session, CheckFailedError(_why(report, kid)))
        return 0

    return run_client(run, body)


def _why(report: SignatureReport, kid: str | None) -> str:
    if report.checks:
        return "no signature of the card is verified"
    return f"the card has no signature with kid {kid}" if kid else "the card has no signature"


def _show(session: Session, name: str, report: SignatureReport) -> None:
    if session.output.json:
        signatures = list(map(_document, report.checks))
        session.output.document({"outcome": report.outcome or "absent", "signatures": signatures})
        return
    record = text.Record()
    record.field("Name", name)
    for check in report.checks:
        record.field("Signature", _line(check))
    record.field("Outcome", report.outcome or "absent")
    session.output.record(record)


def _line(check: SignatureCheck) -> str:
    if check.outcome != "verified":
        return str(check)
    source = "" if check.key_from == "trust" else f", key from {check.key_from}"
    return f"verified (kid {check.kid}, {check.algorithm}; form: {check.form}{source})"


def _document(check: SignatureCheck) -> dict[str, Any]:
    return {
        "outcome": check.outcome,
        "kid": check.kid or None,
        "algorithm": check.algorithm or None,
        "reason": check.reason or None,
        "form": check.form,
        "keyFrom": check.key_from or None,
    }


VERIFY = Leaf(
    "verify",
    _verify,
    "Verify the signatures of a card, each with its outcome and the reason.",
    [
        argument("ref", "[REF]"),
        *key_options(),
        option("--require", is_flag=True, help="Exit 1 unless a signature is verified."),
        option("--kid", metavar="ID", help="Look at signatures with this key only."),
    ],
    examples=("dragoman card verify card.signed.json --trust jwks.json --require",),
)
