"""What an author declares, and the mistakes that are found before anything is served."""

from __future__ import annotations

import pytest

import dragoman
from dragoman import Agent, AgentSkill, App, MemoryStore, TaskState, TaskStatus, TaskStatusUpdateEvent
from dragoman.errors import ConfigurationError
from dragoman.model import AgentExtension, AgentProvider
from dragoman.ports.agent import Handler


def test_a_handler_is_a_skill() -> None:
    agent = Agent("Weather")

    @agent.task(tags=("weather", "city"), examples=["Rome"])
    async def tell_weather(ctx):
        """Tells the weather
        of a city.

        Not of villages.
        """

    (skill,) = agent.facts.skills
    assert (skill.id, skill.name, skill.tags, skill.examples) == (
        "tell_weather",
        "Tell weather",
        ["weather", "city"],
        ["Rome"],
    )
    assert skill.description == "Tells the weather of a city."
    assert agent.facts.description == "Tells the weather of a city."


@pytest.mark.parametrize("verb", ["task", "reply", "message"])
def test_every_decorator_works_bare_and_called_and_gives_the_function_back(verb: str) -> None:
    async def work(ctx):
        """Works."""

    for decorate in (getattr(Agent("A"), verb), getattr(Agent("A"), verb)(id="other")):
        assert decorate(work) is work


def test_what_is_declared_is_on_the_card() -> None:
    skill = AgentSkill(id="s", name="S", description="d", tags=["t"])
    agent = Agent(
        "Full",
        description="Everything.",
        version="2.1",
        skills=[skill],
        input_modes=["text/plain", "image/png"],
        output_modes=["application/json"],
        streaming=False,
        extensions=["urn:a", AgentExtension(uri="urn:b", required=True)],
        provider=AgentProvider(organization="O", url="https://o.example"),
        documentation_url="https://d.example",
        icon_url="https://i.example",
    )
    agent.reply(_work)

    card = App(agent).card("https://agent.example/base")

    assert (card.name, card.version, card.skills) == ("Full", "2.1", [skill])
    assert card.default_input_modes == ["text/plain", "image/png"]
    assert card.capabilities.streaming is False
    assert [(e.uri, e.required) for e in card.capabilities.extensions] == [("urn:a", False), ("urn:b", True)]
    assert (card.provider.organization, card.documentation_url, card.icon_url) == (
        "O",
        "https://d.example",
        "https://i.example",
    )
    assert all(i.url.startswith("https://agent.example/base") for i in card.supported_interfaces)


async def _work(ctx):
    """Works."""


def test_an_agent_has_one_handler() -> None:
    agent = Agent("One", description="d")
    agent.task(_work)

    with pytest.raises(ConfigurationError, match="has a handler already"):
        agent.reply(_work)


def test_an_agent_without_a_handler_is_not_served() -> None:
    with pytest.raises(ConfigurationError, match="decorate a function"):
        App(Agent("None", description="d", skills=[AgentSkill(id="s", name="S", description="d", tags=["t"])]))


def test_a_skill_with_an_unknown_fact_names_what_is_allowed() -> None:
    with pytest.raises(ConfigurationError, match=r"no colour; it takes .*examples"):
        Agent("Bad", description="d").task(colour="red")(_work)


@pytest.mark.parametrize("function", [lambda ctx: None, _work], ids=["function", "coroutine function"])
def test_events_are_yielded(function) -> None:
    with pytest.raises(ConfigurationError, match="async generator"):
        Agent("Bad", description="d").events(function)


@pytest.mark.req("B109")
def test_a_store_that_lacks_a_method_is_found_when_the_app_is_made() -> None:
    class Half(MemoryStore):
        purge = None  # type: ignore[assignment]

    agent = Agent("A", description="d")
    agent.task(_work)

    with pytest.raises(ConfigurationError, match="purge"):
        App(agent, store=Half())


def test_a_store_that_is_unknown_is_named() -> None:
    agent = Agent("A", description="d")
    agent.task(_work)

    with pytest.raises(ConfigurationError, match="mysql"):
        App(agent, store="mysql://user:secret@host/db")


async def test_a_handler_of_ones_own_is_served_as_well() -> None:
    class Own:
        opening = "task"
        resident = True
        rerun = False

        async def run(self, turn):
            done = TaskStatus(state=TaskState.COMPLETED)
            turn.publish(TaskStatusUpdateEvent(task_id=turn.task_id, context_id=turn.context_id, status=done))

    agent = Agent("Own", description="d", skills=[AgentSkill(id="s", name="S", description="d", tags=["t"])])
    handler: Handler = Own()
    agent._handler = handler
    async with dragoman.connect(agent) as client:
        assert (await client.send("go")).status.state is TaskState.COMPLETED
