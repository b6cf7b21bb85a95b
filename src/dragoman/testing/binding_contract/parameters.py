"""Service parameters: version, extensions, and others."""

from __future__ import annotations

from dragoman.errors import ExtensionSupportRequiredError, VersionNotSupportedError
from dragoman.model import GET_TASK, AgentExtension, GetTaskRequest, Task, TaskState, TaskStatus
from dragoman.ports.operations import CallContext
from dragoman.server import Agent
from dragoman.testing.binding_contract.operations import echo
from dragoman.testing.binding_contract.reaching import Reach, proves, refusal
from dragoman.testing.binding_contract.scripted import Scripted

ONE, TWO = "https://example.com/ext/one", "https://example.com/ext/two"

GET = GetTaskRequest(id="t-1")
TASK = Task(id="t-1", context_id="c-1", status=TaskStatus(state=TaskState.WORKING))


class ParameterContract:
    """What travels beside requests and answers."""

    @proves("BIND-05", "VER-07")
    async def test_a_version_that_is_not_served_is_refused(self, reach: Reach) -> None:
        """Also none at all, which means 0.3; and one call says nothing of the next."""
        operations = (await reach(echo(), interceptors=[], store=None)).operations

        for version in ("9.9", "0.3", ""):
            error = await refusal(operations.call(GET_TASK, GET, CallContext(version=version)))
            assert isinstance(error, VersionNotSupportedError), version
            assert error.metadata["supportedVersions"] == "1.0"

        assert not isinstance(await refusal(operations.call(GET_TASK, GET, CallContext())), VersionNotSupportedError)

    @proves("BIND-05", "EXT-02")
    async def test_extensions_travel_in_order_and_only_with_their_call(self, reach: Reach) -> None:
        """They arrive as URIs."""
        scripted = Scripted({"GetTask": TASK})
        operations = (await reach(echo(), interceptors=[scripted])).operations

        await operations.call(GET_TASK, GET, CallContext(extensions=(TWO, ONE)))
        await operations.call(GET_TASK, GET, CallContext())

        assert [context.extensions for _, _, context in scripted.seen] == [(TWO, ONE), ()]

    @proves("BIND-05", "EXT-09")
    async def test_the_caller_is_told_which_extensions_are_active(self, reach: Reach) -> None:
        """Beside the answer."""
        operations = (await reach(echo(), interceptors=[Scripted({"GetTask": TASK}, activate=(ONE, TWO))])).operations
        context = CallContext(extensions=(ONE, TWO))

        await operations.call(GET_TASK, GET, context)

        assert context.activated == (ONE, TWO)

    @proves("BIND-05", "EXT-03")
    async def test_an_extension_that_the_agent_requires_must_be_asked_for(self, reach: Reach) -> None:
        """By an error of its own."""
        required = AgentExtension(uri=ONE, required=True)
        agent = Agent("Strict", description="Wants an extension", extensions=[required])

        @agent.task
        async def answer(ctx: object) -> str:
            return "done"

        client = (await reach(agent)).client

        error = await refusal(client.send("hello"))
        result = await client.run("hello", extensions=[ONE])

        assert isinstance(error, ExtensionSupportRequiredError)
        assert result.text == "done"

    @proves("BIND-05", "PARAM-01")
    async def test_further_parameters_travel_with_their_call(self, reach: Reach) -> None:
        """Whatever the case of their names; those of the client go with every call."""
        scripted = Scripted({"GetTask": TASK})
        reached = await reach(echo(), interceptors=[scripted], client_settings={"headers": {"X-Client": "c-1"}})

        await reached.client.get_task("t-1", headers={"X-Trace": "a b/c=d"})
        await reached.client.get_task("t-1")

        first, second = (context.parameters for _, _, context in scripted.seen)
        assert (first["x-trace"], first["x-client"]) == ("a b/c=d", "c-1")
        assert (second.get("x-trace"), second["x-client"]) == (None, "c-1")
