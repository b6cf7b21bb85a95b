"""What the command line makes of signatures on cards. Spec: A2ACLI_CARD_GET_004, SIGN-15, SIGN-16, AMB-86, AMB-87."""

from __future__ import annotations

from collections.abc import Sequence

import click

from dragoman.card import SignatureCheck, SignaturePolicy, SignatureReport, TrustStore, check_policy, verify_card
from dragoman.cli.options import option
from dragoman.cli.session import Session
from dragoman.client.card_cache import FetchedCard
from dragoman.client.cards import card_from_value
from dragoman.http.client import HttpxClient
from dragoman.http.guard import shown
from dragoman.model import AgentCard


def key_options() -> list[click.Parameter]:
    """Where keys come from."""
    return [
        option(
            "--trust",
            multiple=True,
            metavar="JWKS",
            help="Keys to verify signatures with: a JWK set (file or https URL) or the PEM file of a public key.",
        ),
        option(
            "--allow-jku",
            multiple=True,
            metavar="ORIGIN",
            help="Take keys that a signature names from this origin, too, not only from that of the card.",
        ),
    ]


def read_policy(trust: Sequence[str], allow_jku: Sequence[str]) -> SignaturePolicy:
    """The policy of these options. Every place that keys come from is one that the user named, private or not.

    Raises ConfigurationError.
    """
    origins = [origin if "://" in origin else f"https://{origin}" for origin in allow_jku]
    return SignaturePolicy(trust=TrustStore(*trust), jku_origins=origins, allow_private=True)


async def find_signatures(
    session: Session, fetched: FetchedCard, policy: SignaturePolicy, client: HttpxClient
) -> SignatureReport:
    """What is found of the signatures of a card. Over a connection that is not verified no key is taken."""
    http = None if session["insecure"] else client
    return await verify_card(fetched.json, policy, url=fetched.url, http=http)


async def take_signed(session: Session, fetched: FetchedCard, client: HttpxClient) -> FetchedCard:
    """A card to call an agent by: as it was signed, if it was verified. Raises CardSignatureError for a bad one."""
    if b'"signatures"' not in fetched.json:
        return fetched
    policy = SignaturePolicy(allow_private=True)
    report = await find_signatures(session, fetched, policy, client)
    check_policy(report, policy, shown(fetched.url) or "hand")
    for check in report.checks:
        session.notes.debug(f"* signature: {check}")
    return FetchedCard(card=signed_card(fetched, report), url=fetched.url, json=fetched.json)


def signed_card(fetched: FetchedCard, report: SignatureReport) -> AgentCard:
    """What may be used of a card: what was signed, if that was verified. Spec: AMB-81."""
    return fetched.card if report.content is None else card_from_value(report.content, shown(fetched.url) or "the card")


def outcome_lines(report: SignatureReport) -> list[str]:
    """The outcomes as ``card get`` says them: verified, unverifiable or absent."""
    return [_line(check) for check in report.checks] or ["absent"]


def _line(check: SignatureCheck) -> str:
    return str(check) if check.outcome == "verified" else f"unverifiable ({check.reason})"
