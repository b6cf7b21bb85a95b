"""``dragoman card lint``. Spec: section 20.4 of the register."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.card.canonical import UnreadableCardError, parse_card
from dragoman.card.lint import RULES, Finding, Subject, lint
from dragoman.cli.card_files import CheckFailedError, InvalidCardError
from dragoman.cli.card_live import look, read_headers
from dragoman.cli.checking import fail_check
from dragoman.cli.findings import as_annotations, as_document, as_record, as_sarif
from dragoman.cli.options import Leaf, Run, argument, option
from dragoman.cli.program import run_client
from dragoman.cli.reaching import open_client, read_card
from dragoman.cli.session import Session
from dragoman.cli.signatures import find_signatures, key_options, read_policy
from dragoman.cli.values import one_of
from dragoman.client.card_cache import FetchedCard
from dragoman.errors import InvalidParamsError
from dragoman.http.client import HttpClient
from dragoman.http.guard import shown
from dragoman.model import AgentCard, decode_json
from dragoman.ports.operations import CURRENT_VERSION

FORMATS = ("text", "json", "sarif", "github")


def _lint(
    run: Run,
    ref: str | None,
    strict: bool,
    rule: Sequence[str],
    ignore: Sequence[str],
    format: str | None,
    live: bool,
    trust: Sequence[str],
    allow_jku: Sequence[str],
) -> int:
    async def body(session: Session) -> int:
        fetched = await read_card(session, ref)
        found = [
            finding
            for finding in await _look(session, fetched, live, trust, allow_jku)
            if finding.rule not in ignore and (not rule or finding.rule in rule)
        ]
        _show(session, found, format or ("json" if session.output.json else "text"), shown(fetched.url) or str(ref))
        bad = [each for each in found if each.severity == "error" or (strict and each.severity == "warning")]
        return fail_check(session, CheckFailedError(_summary(bad))) if bad else 0

    return run_client(run, body)


def _summary(bad: Sequence[Finding]) -> str:
    return f"the card has {len(bad)} finding(s) that count: {', '.join(dict.fromkeys(each.rule for each in bad))}"


async def _look(
    session: Session, fetched: FetchedCard, live: bool, trust: Sequence[str], allow_jku: Sequence[str]
) -> list[Finding]:
    try:
        value = parse_card(fetched.json)
    except UnreadableCardError as error:
        raise InvalidCardError(f"the card is unreadable: {error}") from error
    async with open_client(session) as client:
        report = await find_signatures(session, fetched, read_policy(trust, allow_jku), client)
        http = HttpClient(client, connect_timeout=session["connect_timeout"])
        asked = {**dict(session["card_header"]), "a2a-version": CURRENT_VERSION}
        subject = Subject(
            json=value,
            card=fetched.card,
            url=fetched.url,
            headers=await read_headers(fetched, http, asked) if live else None,
            report=report,
            violations=_violations(fetched) if value.get("supportedInterfaces") else (),
        )
        found = lint(subject)
        return [*(await look(fetched.card, http)), *found] if live else found


def _violations(fetched: FetchedCard) -> tuple[tuple[str, str], ...]:
    try:
        decode_json(AgentCard, fetched.json.removeprefix(b"\xef\xbb\xbf"))
    except InvalidParamsError as error:
        return tuple((fault.field, fault.description) for fault in error.violations)
    return ()


def _show(session: Session, found: Sequence[Finding], format: str, place: str) -> None:
    if format == "text":
        session.output.record(as_record(found))
    elif format == "json":
        session.output.document(as_document(found))
    elif format == "sarif":
        from dragoman import __version__

        session.output.document(as_sarif(found, place, __version__))
    else:
        session.screen.write(as_annotations(found, place))


_read_rule = one_of(*RULES)

LINT = Leaf(
    "lint",
    _lint,
    "Look for what is wrong with a card and what is unwise about it, each finding with its reason.",
    [
        argument("ref", "[REF]"),
        option("--strict", is_flag=True, help="Warnings count as errors."),
        option("--rule", read=_read_rule, metavar="ID", words=tuple(RULES), multiple=True, help="Only this rule."),
        option("--ignore", read=_read_rule, metavar="ID", words=tuple(RULES), multiple=True, help="Not this rule."),
        option(
            "--format",
            read=one_of(*FORMATS),
            metavar="|".join(FORMATS),
            words=FORMATS,
            help="Format of the findings [default: text, or json with -o json].",
        ),
        option("--live", is_flag=True, help="Also see whether what the card names is there."),
        *key_options(),
    ],
    examples=(
        "dragoman card lint -a pricing.example.com --live --format sarif > card.sarif",
        "dragoman card lint card.json --strict --ignore no-examples",
    ),
)
