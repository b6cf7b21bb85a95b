"""Agent: what an author writes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, overload

from dragoman.auth.server import SecuritySetting, as_security
from dragoman.card import CardFacts, CardSigner
from dragoman.card.signing import checked_signers
from dragoman.errors import ConfigurationError
from dragoman.extensions import ServerExtension
from dragoman.model import AgentExtension, AgentProvider, AgentSkill, decode_value
from dragoman.ports.agent import Handler
from dragoman.ports.operations import LocalAgent
from dragoman.push import PushSettings
from dragoman.server.app import App
from dragoman.server.extended_card import ExtendCard
from dragoman.server.extending import declaration_of, with_code
from dragoman.server.handlers import EventsHandler, Function, FunctionHandler
from dragoman.server.pushing import push_settings

F = TypeVar("F", bound=Callable[..., Any])


class Agent:
    """An agent: who it is, and one handler that does its work.

    * ``name``, ``description``, ``version``: as on the card; the description defaults to the handler's docstring;
    * ``skills``: what it can do; by default one skill, made from the handler;
    * ``input_modes``, ``output_modes``: media types that it takes and makes, default ``text/plain``. A part of another
      type is refused with ContentTypeNotSupportedError (Spec: SEND-05);
    * ``streaming``: whether the streaming operations are offered, default True;
    * ``push``: whether tasks are told to webhooks; True, or settings (see :class:`~dragoman.push.PushSettings`), which
      those of the App go before. Default False;
    * ``extensions``: :class:`~dragoman.extensions.ServerExtension`; for those that the handler itself deals with,
      URIs, or AgentExtension for more. Off unless named here (Spec: EXT-17);
    * ``security``: what callers have to show: a scheme such as :class:`~dragoman.auth.ApiKeys`, several of which any
      will do, or a :class:`~dragoman.auth.Security`. The card says it, and it is enforced on every binding. Default:
      everybody may call (Spec: AUTH-05);
    * ``extended_card``: the function that makes the extended card, as ``@agent.extended_card`` names it, too. True
      declares one, and answers that none is configured (Spec: XCARD-04). Default False;
    * ``provider``, ``documentation_url``, ``icon_url``: as on the card;
    * ``card_signer``: signs the card, or several that do (Spec: SIGN-01).

    Nothing is checked against the network; the card is checked when the agent is served.
    """

    def __init__(
        self,
        name: str,
        *,
        description: str = "",
        version: str = "1.0.0",
        skills: Sequence[AgentSkill] = (),
        input_modes: Sequence[str] = ("text/plain",),
        output_modes: Sequence[str] = ("text/plain",),
        streaming: bool = True,
        push: bool | PushSettings = False,
        extensions: Sequence[str | AgentExtension | ServerExtension] = (),
        security: SecuritySetting | None = None,
        extended_card: bool | ExtendCard = False,
        provider: AgentProvider | None = None,
        documentation_url: str | None = None,
        icon_url: str | None = None,
        card_signer: CardSigner | Sequence[CardSigner] | None = None,
    ) -> None:
        self.name = name
        self._description = description
        self._version = version
        self._skills = tuple(skills)
        self._input_modes = tuple(input_modes)
        self._output_modes = tuple(output_modes)
        self._streaming = streaming
        self.push = push_settings(push)
        self._extensions = tuple(declaration_of(extension) for extension in extensions)
        self.extensions = with_code(extensions)
        self.security = as_security(security)
        self._has_extended_card = bool(extended_card)
        self.extend_card: ExtendCard | None = extended_card if callable(extended_card) else None
        self._provider = provider
        self._documentation_url = documentation_url
        self._icon_url = icon_url
        self._signers = checked_signers(card_signer)
        self._handler: Handler | None = None
        self._skill: AgentSkill | None = None

    # The four ways to give it a handler.

    @overload
    def task(self, function: F) -> F: ...
    @overload
    def task(self, *, rerun: bool = False, **skill: Any) -> Callable[[F], F]: ...
    def task(self, function: F | None = None, *, rerun: bool = False, **skill: Any) -> F | Callable[[F], F]:
        """The handler works on a task. Every message opens one, WORKING from the first moment.

        The function takes a :class:`Context`. What it returns becomes an artifact and completes the task; what it
        yields is streamed. ``rerun=True`` says that it may be started again when its process was lost; otherwise such a
        task becomes FAILED. ``id``, ``name``, ``description``, ``tags`` and ``examples`` describe the skill.
        """
        return self._decorator(function, lambda given: FunctionHandler(given, "task", rerun=rerun), skill)

    @overload
    def reply(self, function: F) -> F: ...
    @overload
    def reply(self, **skill: Any) -> Callable[[F], F]: ...
    def reply(self, function: F | None = None, **skill: Any) -> F | Callable[[F], F]:
        """The handler answers with a direct message and never opens a task. Spec: SEND-02."""
        return self._decorator(function, lambda given: FunctionHandler(given, "reply"), skill)

    @overload
    def message(self, function: F) -> F: ...
    @overload
    def message(self, *, rerun: bool = False, **skill: Any) -> Callable[[F], F]: ...
    def message(self, function: F | None = None, *, rerun: bool = False, **skill: Any) -> F | Callable[[F], F]:
        """The handler decides by what it does first: a returned :class:`Reply` is a direct message, any other verb
        opens the task at that moment. Spec: SEND-02, STREAM-06."""
        return self._decorator(function, lambda given: FunctionHandler(given, "decide", rerun=rerun), skill)

    @overload
    def events(self, function: F) -> F: ...
    @overload
    def events(self, *, rerun: bool = False, **skill: Any) -> Callable[[F], F]: ...
    def events(self, function: F | None = None, *, rerun: bool = False, **skill: Any) -> F | Callable[[F], F]:
        """The handler is an async generator that yields the protocol's own events, run once for each message."""
        return self._decorator(function, lambda given: EventsHandler(given, rerun=rerun), skill)

    def _decorator(
        self, function: F | None, make: Callable[[Function], Handler], skill: dict[str, Any]
    ) -> F | Callable[[F], F]:
        def decorate(given: F) -> F:
            if self._handler is not None:
                raise ConfigurationError(f"the agent {self.name!r} has a handler already; an agent has one")
            self._handler = make(given)
            self._skill = _skill_of(given, skill)
            return given

        return decorate if function is None else decorate(function)

    # The extended card.

    def extended_card(self, function: ExtendCard) -> ExtendCard:
        """The function makes the extended card, for each caller that is authenticated.

        It takes the :class:`Caller` and a copy of the public card, and returns the card for this caller, or None when
        there is none for it. It may be async. Spec: XCARD-05 to XCARD-08.
        """
        if self.extend_card is not None:
            raise ConfigurationError(f"the agent {self.name!r} has an extended card already")
        self.extend_card = function
        self._has_extended_card = True
        return function

    # What a server asks of it.

    @property
    def handler(self) -> Handler:
        """The handler. Raises ConfigurationError when there is none."""
        if self._handler is None:
            raise ConfigurationError(f"the agent {self.name!r} has no handler: decorate a function with @agent.task")
        return self._handler

    @property
    def facts(self) -> CardFacts:
        """What the card says of it."""
        skills = self._skills or ((self._skill,) if self._skill is not None else ())
        description = self._description or (skills[0].description if skills else "") or self.name
        return CardFacts(
            name=self.name,
            description=description,
            version=self._version,
            skills=skills,
            input_modes=self._input_modes,
            output_modes=self._output_modes,
            streaming=self._streaming,
            push=self.push is not None,
            extended_card=self._has_extended_card,
            extensions=self._extensions,
            provider=self._provider,
            documentation_url=self._documentation_url,
            icon_url=self._icon_url,
            signers=self._signers,
        )

    def local_agent(self) -> LocalAgent:
        """This agent served in this process, on a store in memory: what ``connect(agent)`` uses."""
        return App(self)


def _skill_of(function: Callable[..., Any], given: dict[str, Any]) -> AgentSkill:
    """The skill that a handler stands for, from what was said of it, its name and its docstring."""
    name = function.__name__
    description = (function.__doc__ or "").strip().partition("\n\n")[0].replace("\n", " ")
    facts: dict[str, Any] = {"id": name, "name": name.replace("_", " ").capitalize(), "tags": [name], **given}
    facts.setdefault("description", " ".join(description.split()) or facts["name"])
    unknown = set(facts) - set(AgentSkill.__struct_fields__)
    if unknown:
        allowed = ", ".join(AgentSkill.__struct_fields__)
        raise ConfigurationError(f"a skill has no {', '.join(sorted(unknown))}; it takes {allowed}")
    return decode_value(AgentSkill, {key: list(v) if isinstance(v, tuple) else v for key, v in facts.items()})
