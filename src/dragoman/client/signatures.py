"""What a client makes of the signatures of the card that it was given.

Spec: §8.4.3, SIGN-16, AMB-81, AMB-87.
"""

from __future__ import annotations

import logging

from dragoman.card import SignaturePolicy, SignatureReport, check_policy, verify_card
from dragoman.client.card_cache import FetchedCard
from dragoman.client.cards import card_from_value
from dragoman.client.targets import HttpSettings
from dragoman.http.guard import shown
from dragoman.model import AgentCard, encode_json
from dragoman.ports.operations import CURRENT_VERSION

logger = logging.getLogger("dragoman.client")

_USUAL = SignaturePolicy()
"""Of connections that name no policy; its cache of keys is theirs together, unless they have an HTTP client of their
own, whose notion of a good certificate may be another."""


async def verify_fetched(fetched: FetchedCard, settings: HttpSettings) -> tuple[FetchedCard, SignatureReport]:
    """Verify a card, and take it only as the policy allows: as it was signed, when it was verified.

    Raises CardSignatureError.
    """
    policy = settings.signatures or (_USUAL if settings.client is None else SignaturePolicy())
    if policy.mode == "off" or (policy.mode == "if-present" and b'"signatures"' not in fetched.json):
        return fetched, SignatureReport()
    report = await verify_card(fetched.json, policy, url=fetched.url, http=settings.client)
    place = shown(fetched.url) or "hand"
    check_policy(report, policy, place)
    for check in report.failures:
        logger.warning("A signature of the card at %s is %s", place, check)
    if report.content is None:
        return fetched, report
    return FetchedCard(card=card_from_value(report.content, place), url=fetched.url, json=fetched.json), report


async def check_again(card: AgentCard, version: str, *, settings: HttpSettings, url: str) -> None:
    """Verify a further card of an agent, such as the extended one, which came in an answer. Raises CardSignatureError.

    Signatures that are not demanded are looked at in the current version only: a card of an older one was translated
    on its way, and what was signed is not here any more.
    """
    required = settings.signatures is not None and settings.signatures.mode == "required"
    if required or version == CURRENT_VERSION:
        await verify_fetched(FetchedCard(card=card, url=url, json=encode_json(card)), settings)
