"""Agent cards: building and checking, signing and verifying them."""

from dragoman.card.build import CardFacts, build_card, check_card
from dragoman.card.entries import SignatureCheck
from dragoman.card.signing import CardSigner, sign_card, sign_encoded
from dragoman.card.trust import SignaturePolicy, TrustStore
from dragoman.card.verifying import SignatureReport, check_policy, verify_card

__all__ = [
    "CardFacts",
    "CardSigner",
    "SignatureCheck",
    "SignaturePolicy",
    "SignatureReport",
    "TrustStore",
    "build_card",
    "check_card",
    "check_policy",
    "sign_card",
    "sign_encoded",
    "verify_card",
]
