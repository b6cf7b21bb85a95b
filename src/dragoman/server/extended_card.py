"""The extended card: for callers who are known, and made for each.

Spec: §3.1.11, §13.3, XCARD-02 to XCARD-12, AMB-39, AMB-40, B133.
"""

from __future__ import annotations

import hashlib
import inspect
import logging
from collections.abc import Awaitable, Callable

from dragoman.card import check_card
from dragoman.errors import (
    ConfigurationError,
    ExtendedAgentCardNotConfiguredError,
    InvalidAgentResponseError,
    UnauthenticatedError,
)
from dragoman.model import AgentCapabilities, AgentCard, decode_json, encode_json
from dragoman.ports.operations import CallContext, Caller

logger = logging.getLogger("dragoman.server")

ExtendCard = Callable[[Caller, AgentCard], "AgentCard | Awaitable[AgentCard | None] | None"]
"""``extend(caller, card)``: the card for this caller, made of a copy of the public one; None: there is none for it.

A plain or an async function.
"""


class ExtendedCard:
    """Answers GetExtendedAgentCard.

    ``public`` makes the public card for an address, without signatures; ``address`` is the app's, for callers whose
    edge does not know it; ``sign`` puts the signatures on; ``offered`` is what the server does.
    """

    def __init__(
        self,
        extend: ExtendCard | None,
        *,
        public: Callable[[str], AgentCard],
        address: Callable[[], str],
        sign: Callable[[AgentCard], AgentCard],
        offered: AgentCapabilities,
    ) -> None:
        self._extend = extend
        self._public = public
        self._address = address
        self._sign = sign
        self._offered = offered

    async def __call__(self, request: object, context: CallContext) -> AgentCard:
        """The card for a caller.

        Raises UnauthenticatedError for an anonymous one, ExtendedAgentCardNotConfiguredError, and
        InvalidAgentResponseError when what the author made is no card.
        """
        if context.caller.is_anonymous:
            raise UnauthenticatedError("The extended card is for callers who authenticate themselves")
        card = await self._make(context)
        if card is None:
            raise ExtendedAgentCardNotConfiguredError
        try:
            check_card(card, offered=self._offered)
        except ConfigurationError as error:
            logger.error("The extended card is refused: %s", error)
            raise InvalidAgentResponseError("The agent made an extended card that is not valid") from error
        context.etag = hashlib.sha256(encode_json(card)).hexdigest()[:32]
        return self._sign(card)

    async def _make(self, context: CallContext) -> AgentCard | None:
        if self._extend is None:
            return None
        public = encode_json(self._public(context.base_url or self._address()))
        made = self._extend(context.caller, decode_json(AgentCard, public))  # a copy: nothing of it is shared
        card = await made if inspect.isawaitable(made) else made
        if card is not None and not isinstance(card, AgentCard):
            raise TypeError(f"the function of the extended card returned {type(card).__name__}, not an AgentCard")
        return card
