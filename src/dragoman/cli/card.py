"""``dragoman card get``. Spec: A2ACLI_CARD_GET_001 to A2ACLI_CARD_GET_004; section 14.1 of the register."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.card import SignaturePolicy, SignatureReport, faults
from dragoman.cli import text
from dragoman.cli.card_files import InvalidCardError
from dragoman.cli.credentials import describe_scheme
from dragoman.cli.failures import CredentialsMissingError
from dragoman.cli.findings import pointer
from dragoman.cli.interfaces import Choice, choose_interface
from dragoman.cli.options import Leaf, Run, argument, option
from dragoman.cli.program import run_client
from dragoman.cli.reaching import open_client, reach, read_card
from dragoman.cli.session import Session
from dragoman.cli.signatures import find_signatures, key_options, outcome_lines, read_policy, signed_card
from dragoman.client.card_cache import FetchedCard
from dragoman.errors import DragomanError, InvalidParamsError
from dragoman.model import AgentCard, AgentSkill, SecurityRequirement, decode_json, encode_json


def _get(
    run: Run,
    ref: str | None,
    validate: bool,
    extended: bool,
    raw: bool,
    trust: Sequence[str],
    allow_jku: Sequence[str],
    stream: bool,
) -> int:
    async def body(session: Session) -> int:
        policy = read_policy(trust, allow_jku)
        fetched = await read_card(session, ref)
        findings = find_faults(fetched) if validate else []
        for finding in findings:
            session.notes.say("Finding", finding)
        if extended:
            card = await _extended(session, ref)
            fetched = FetchedCard(card=card, url=fetched.url, json=encode_json(card))
        report = await _report(session, fetched, policy)
        if raw:
            session.screen.write_bytes(fetched.json.rstrip(b"\n") + b"\n")
        elif not (findings and session.output.json):
            _show(session, signed_card(fetched, report), report)
        if findings:
            raise InvalidCardError(f"the card has {len(findings)} fault(s): {findings[0]}")
        return 0

    return run_client(run, body, stream=stream)


async def _report(session: Session, fetched: FetchedCard, policy: SignaturePolicy) -> SignatureReport:
    """What is found of the signatures, with a warning for one that does not hold. Spec: A2ACLI_CARD_GET_004."""
    async with open_client(session) as client:
        report = await find_signatures(session, fetched, policy, client)
    for check in report.checks:
        if check.outcome == "invalid":
            session.notes.warn(f"a signature of the card does not hold: {check.reason}")
    if session.output.json:
        for line in outcome_lines(report):
            session.notes.say("Signature", line)
    return report


async def _extended(session: Session, ref: str | None) -> AgentCard:
    """The extended card, which is fetched only with a scheme that the public card advertises."""
    async with reach(session, ref) as agent:
        if not session.attached.declared:
            raise CredentialsMissingError("the extended card needs a credential for a scheme that the card declares")
        return await agent.client.get_extended_card()


def _show(session: Session, card: AgentCard, report: SignatureReport) -> None:
    if session.output.json:
        session.output.struct(card)
        return
    choice: Choice | None = None
    try:
        choice = choose_interface(card, session["transport"], session["a2a_version"] or "")
    except DragomanError as error:
        session.notes.warn(str(error))
    session.output.record(card_record(card, choice, report, verbose=session.verbose))


def card_record(
    card: AgentCard, choice: Choice | None, report: SignatureReport, *, verbose: bool = False
) -> text.Record:
    """A card as text."""
    record = text.Record()
    record.field("Name", card.name)
    record.field("Description", card.description)
    record.field("Version", card.version)
    if card.provider is not None:
        record.field("Provider", f"{card.provider.organization} {card.provider.url}".strip())
    record.field("Documentation", card.documentation_url)
    for entry in card.supported_interfaces:
        tenant = f" (tenant {entry.tenant})" if entry.tenant else ""
        record.field("Interface", f"{entry.protocol_binding} {entry.protocol_version} {entry.url}{tenant}")
    _show_capabilities(record, card)
    _show_security(record, card)
    for skill in card.skills:
        record.field("Skill", f"{skill.id} ({skill.name})")
    for line in outcome_lines(report):
        record.field("Signature", line)
    if choice is not None:
        used = choice.interface
        record.field("Selected interface", f"{used.protocol_binding} {used.protocol_version} {used.url}")
    if verbose:
        for entry, why in choice.skipped if choice is not None else ():
            record.field("Not used", f"{entry.protocol_binding} {entry.protocol_version} {entry.url}: {why}")
        for skill in card.skills:
            record.block("Skill details", _details(skill))
    return record


def _show_capabilities(record: text.Record, card: AgentCard) -> None:
    offered = card.capabilities
    for label, value in (
        ("Streaming", offered.streaming),
        ("Push notifications", offered.push_notifications),
        ("Extended card", offered.extended_agent_card),
    ):
        record.field(label, "yes" if value else "no")
    for extension in offered.extensions:
        record.field("Extension", f"{extension.uri}{' (required)' if extension.required else ''}")


def _show_security(record: text.Record, card: AgentCard) -> None:
    for name, scheme in card.security_schemes.items():
        record.field("Security scheme", f"{name} ({describe_scheme(scheme)})")
    for requirement in card.security_requirements:
        record.field("Security requirement", _requirement(requirement))


def _requirement(requirement: SecurityRequirement) -> str:
    names = (
        f"{name} [{' '.join(scopes.list)}]" if scopes.list else name for name, scopes in requirement.schemes.items()
    )
    return " and ".join(names) or "none"


def _details(skill: AgentSkill) -> str:
    facts = [
        ("", f"{skill.id}: {skill.name}"),
        ("  ", skill.description.strip().replace("\n", "\n  ")),
        ("  Tags: ", ", ".join(skill.tags)),
        ("  Examples: ", " | ".join(skill.examples)),
        ("  Takes: ", ", ".join(skill.input_modes)),
        ("  Makes: ", ", ".join(skill.output_modes)),
        ("  Needs: ", " or ".join(map(_requirement, skill.security_requirements))),
    ]
    return "\n".join(label + value for label, value in facts if value)


def find_faults(fetched: FetchedCard) -> list[str]:
    """What is wrong with a card, each with a JSON pointer. Unknown members are no fault. Spec: A2ACLI_CARD_GET_002."""
    try:
        card = decode_json(AgentCard, fetched.json.removeprefix(b"\xef\xbb\xbf"))
    except InvalidParamsError as error:
        return [f"{pointer(fault.field)}: {fault.description}" for fault in error.violations]
    return [f"{pointer(fault.path)}: {fault.text}" for fault in faults.find_faults(card)]


GET = Leaf(
    "get",
    _get,
    "Fetch the card of an agent and show who it is, how it is reached and what it can do.",
    [
        argument("ref", "[REF]"),
        option("--validate", is_flag=True, help="Check the card against the schema; a fault exits 1."),
        option("--extended", is_flag=True, help="Fetch the extended card, with a credential."),
        option("--raw", is_flag=True, help="Print the card as it was served."),
        *key_options(),
        option("--stream", is_flag=True, help="With -o json: the card on one line."),
    ],
    examples=("dragoman card get agent.example.com", "dragoman card get ./card.json --validate -o json"),
)
