"""The application behind the profile: an App with the profile's card, and what stands in for it when it cannot serve.

Spec: AC-S-30 to AC-S-38, AC-S-70, AC-S-72.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import msgspec
from msgspec.structs import replace

from dragoman.agentcore.address import choose_address
from dragoman.agentcore.cards import present_card
from dragoman.agentcore.clock import SnapshotClock
from dragoman.agentcore.current import HostedHandler
from dragoman.agentcore.identity import Identify
from dragoman.agentcore.operations import CallSettings, HostedOperations
from dragoman.agentcore.profile import Profile
from dragoman.auth import Security
from dragoman.bindings.endpoint import Endpoint
from dragoman.card import CardFacts, check_card, sign_card
from dragoman.errors import UnavailableError
from dragoman.model import AgentCard, Operation
from dragoman.ports.agent import Handler
from dragoman.ports.observing import WorkObserver
from dragoman.ports.operations import CallContext, EventStream
from dragoman.push import PushSettings
from dragoman.server.app import IN_PROCESS_URL, App, Served
from dragoman.server.pushing import choose_push


class HostedAgent:
    """An agent whose runs know their call."""

    def __init__(self, agent: Served) -> None:
        self.facts: CardFacts = agent.facts
        self.handler: Handler = HostedHandler(agent.handler)
        self.push: PushSettings | None = getattr(agent, "push", None)
        self.security: Security | None = getattr(agent, "security", None)


class HostedApp(App):
    """The App in the agent's loop. ``observer`` is told of turns."""

    def __init__(self, agent: Served, profile: Profile, observer: WorkObserver) -> None:
        self._given = profile.card
        self._present = partial(
            present_card,
            address=choose_address(profile.public_url, profile.environment),
            versions=profile.versions,
            auth=profile.auth,
        )
        if self._given is not None:
            check_card(self._present(self._given, own_address=IN_PROCESS_URL))
        calls = CallSettings(
            extensions=tuple(profile.assume_extensions),
            context_from_session=profile.context_from_session,
            most_event_bytes=profile.max_event_bytes,
            most_stream_seconds=profile.stream_seconds,
            present=lambda card: self._for_others(card, IN_PROCESS_URL),
        )
        super().__init__(
            HostedAgent(agent),
            store=profile.store,
            limits=profile.limits,
            max_body_bytes=profile.max_body_bytes,
            heartbeat=profile.heartbeat,
            stall_timeout=profile.stall_timeout,
            card_max_age=profile.card_max_age,
            identify=Identify(profile.identify, profile.verify, trusts_front=profile.front_verifies),
            infer_version=True,
            known_contexts_only=profile.known_contexts_only,
            interceptors=[partial(HostedOperations, settings=calls), *profile.interceptors],
            versions=profile.versions,
            v03=profile.v03,
            clock=SnapshotClock(),
            observer=observer,
            card_signer=profile.card_signer,
            push=profile.push,
        )
        pushing = choose_push(agent, profile.push)
        self.push_wait = 0.0 if pushing is None else pushing.close_wait

    def refusing(self, why: Callable[[], str]) -> Endpoint:
        """An endpoint that serves the card, and refuses calls in the form of whoever makes them."""
        return self._make_endpoint(Refusing(why), replace(self.settings, identify=None))

    def whole_card(self, base_url: str) -> AgentCard:
        """The card with all that is served at this address, whether or not it passes the front."""
        made = super().card(base_url)
        if self._given is None:
            return made
        # What is sent depends on what was configured here, not on what an author wrote. Spec: AC-S-55.
        push = made.capabilities.push_notifications
        capabilities = replace(self._given.capabilities, push_notifications=push)
        return replace(self._given, capabilities=capabilities)

    def card(self, base_url: str) -> AgentCard:
        """The card for others."""
        return self._for_others(self.whole_card(base_url), base_url)

    def _for_others(self, whole: AgentCard, own_address: str) -> AgentCard:
        """A signature holds for what was signed only: what is shown is signed again."""
        shown = self._present(whole, own_address=own_address)
        return shown if shown == whole else sign_card(replace(shown, signatures=[]), self.signers)


class Refusing:
    """Operations that are not there; implements :class:`~dragoman.ports.operations.Operations`."""

    def __init__(self, why: Callable[[], str]) -> None:
        self._why = why

    async def call(self, op: Operation, request: msgspec.Struct, context: CallContext) -> msgspec.Struct:
        """Raises UnavailableError."""
        raise UnavailableError(self._why(), retry_after=1)

    async def stream(self, op: Operation, request: msgspec.Struct, context: CallContext) -> EventStream:
        """Raises UnavailableError."""
        raise UnavailableError(self._why(), retry_after=1)
