"""The operations, each over the wire and with its result."""

from __future__ import annotations

import asyncio

from dragoman.errors import (
    PushNotificationNotSupportedError,
    TaskNotCancelableError,
    TaskNotFoundError,
    UnsupportedOperationError,
)
from dragoman.model import CANCEL_TASK, GET_TASK, OPERATIONS, SUBSCRIBE_TO_TASK, Message, Task, TaskState
from dragoman.ports.operations import CallContext
from dragoman.server import Agent, Context
from dragoman.testing.binding_contract.reaching import BOUND, Reach, proves, refusal
from dragoman.testing.binding_contract.scripted import Scripted, sample_request


def echo() -> Agent:
    """Says what it was told; told to wait, it works until it is cancelled."""
    agent = Agent("Echo", description="Repeats what you say")

    @agent.task
    async def answer(ctx: Context) -> str:
        if ctx.text == "wait":
            await asyncio.Event().wait()
        return f"You said: {ctx.text}"

    return agent


class OperationContract:
    """Each operation of the table does what it does anywhere else."""

    @proves("BIND-10")
    async def test_the_card_names_the_binding_and_the_address_that_is_called(self, reach: Reach) -> None:
        """By the name it registers with, and by a full address; in process there is neither."""
        reached = await reach(echo())

        entries = [entry for entry in reached.client.card.supported_interfaces if entry.protocol_version == "1.0"]
        used = [entry for entry in entries if entry.protocol_binding == reached.binding]

        assert len(used) == bool(reached.binding), entries
        assert all(entry.url for entry in used)
        assert not used or reached.client.interface == used[0]

    @proves("BIND-01", "BIND-03")
    async def test_every_operation_reaches_the_agent_with_its_request(self, reach: Reach) -> None:
        """Whatever it answers: operation and fields are the same behind the wire."""
        refused = TaskNotFoundError()
        scripted = Scripted(dict.fromkeys(OPERATIONS, refused))
        operations = (await reach(echo(), interceptors=[scripted])).operations

        for op in OPERATIONS.values():
            work = operations.stream if op.streaming else operations.call
            assert isinstance(await refusal(work(op, sample_request(op), CallContext())), TaskNotFoundError)

        seen = [(op.name, request) for op, request, _ in scripted.seen]
        assert seen == [(op.name, sample_request(op)) for op in OPERATIONS.values()]

    @proves("BIND-03")
    async def test_a_message_becomes_a_task_that_can_be_read_and_listed(self, reach: Reach) -> None:
        """SendMessage, GetTask, ListTasks."""
        client = (await reach(echo())).client

        sent = await client.send("hello")
        assert isinstance(sent, Task)
        got = await client.get_task(sent.id)
        page = await client.list_tasks(context_id=sent.context_id)

        assert sent.artifacts[0].parts[0].text == "You said: hello"
        assert (got.id, got.status.state, got.artifacts) == (sent.id, TaskState.COMPLETED, sent.artifacts)
        assert [task.id for task in page.tasks] == [sent.id]

    @proves("BIND-03")
    async def test_an_agent_may_answer_with_a_message(self, reach: Reach) -> None:
        """The other member of the response."""
        agent = Agent("Polite", description="Answers")

        @agent.reply
        async def answer(ctx: Context) -> str:
            return f"Good day, {ctx.text}"

        sent = await (await reach(agent)).client.send("Ada")

        assert isinstance(sent, Message)
        assert sent.parts[0].text == "Good day, Ada"

    @proves("BIND-03")
    async def test_a_task_is_canceled_unless_it_is_over(self, reach: Reach) -> None:
        """CancelTask, and what it says of a task that was completed."""
        client = (await reach(echo())).client
        sent = await client.send("wait", wait=False)
        assert isinstance(sent, Task)

        canceled = await client.cancel(sent.id)
        done = await client.send("hello")
        assert isinstance(done, Task)
        refused = await refusal(client.cancel(done.id))

        assert canceled.status.state is TaskState.CANCELED
        assert isinstance(refused, TaskNotCancelableError)

    @proves("BIND-01")
    async def test_what_the_agent_does_not_offer_is_refused_by_name(self, reach: Reach) -> None:
        """Push notifications and the extended card of an agent without them."""
        operations = (await reach(echo())).operations
        errors = {
            "push_notifications": PushNotificationNotSupportedError,
            "extended_agent_card": UnsupportedOperationError,
        }

        for op in OPERATIONS.values():
            if op.capability in errors:
                error = await refusal(operations.call(op, sample_request(op), CallContext()))
                assert isinstance(error, errors[op.capability]), (op.name, error)

    @proves("BIND-01")
    async def test_a_task_that_is_not_there_is_not_found_by_any_operation(self, reach: Reach) -> None:
        """GetTask, CancelTask, SubscribeToTask."""
        operations = (await reach(echo())).operations

        for op in (GET_TASK, CANCEL_TASK, SUBSCRIBE_TO_TASK):
            work = operations.stream if op.streaming else operations.call
            error = await refusal(work(op, sample_request(op), CallContext()))
            assert isinstance(error, TaskNotFoundError), (op.name, error)

    @proves("BIND-12")
    async def test_many_calls_run_together_and_none_gets_the_answer_of_another(self, reach: Reach) -> None:
        """A hundred at a time."""
        client = (await reach(echo())).client
        texts = [f"call {number}" for number in range(100)]

        async with asyncio.timeout(BOUND):
            results = await asyncio.gather(*(client.run(text) for text in texts))

        assert [result.text for result in results] == [f"You said: {text}" for text in texts]

    @proves("BIND-01")
    async def test_a_call_that_is_given_up_leaves_the_others_and_the_task_alone(self, reach: Reach) -> None:
        """Cancellation ends a call, not what it started."""
        agent, begun = Agent("Patient", description="Waits"), asyncio.Event()

        @agent.task
        async def work(ctx: Context) -> str:
            if ctx.text == "wait":
                begun.set()
                await asyncio.Event().wait()
            return ctx.text

        client = (await reach(agent)).client
        waiting = asyncio.create_task(client.send("wait"))
        async with asyncio.timeout(BOUND):
            await begun.wait()

        waiting.cancel()
        await asyncio.wait((waiting,))

        assert (await client.run("still there")).text == "still there"
        assert [task.status.state for task in (await client.list_tasks(status=TaskState.WORKING)).tasks] != []
