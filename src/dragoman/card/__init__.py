"""Agent cards: building and checking them."""

from dragoman.card.build import CardFacts, build_card, check_card

__all__ = ["CardFacts", "build_card", "check_card"]
