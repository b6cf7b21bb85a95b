"""The data model arrives as it was sent, in both directions."""

from __future__ import annotations

from typing import Any, ClassVar

from dragoman.model import (
    GET_TASK,
    LIST_TASKS,
    SEND_MESSAGE,
    Artifact,
    GetTaskRequest,
    ListTasksRequest,
    ListTasksResponse,
    Message,
    Part,
    Role,
    SendMessageRequest,
    SendMessageResponse,
    Task,
    TaskState,
    TaskStatus,
    Timestamp,
)
from dragoman.ports.operations import CallContext
from dragoman.testing.binding_contract.operations import echo
from dragoman.testing.binding_contract.reaching import Reach, proves
from dragoman.testing.binding_contract.scripted import Scripted

TEXT = 'naïve "quotes" \\ back\nline\t\u2028 \u0000 日本語 🜁 e\u0301'
NOTHING: list[Any] = [None, True, False, 0, -1, 0.5, "", [], {}, [[], {}, None]]


class DataContract:
    """Text, bytes, numbers, nothing, times and enums.

    ``biggest_number``: the largest whole number that data can hold without loss; protobuf has only doubles there.
    """

    biggest_number: ClassVar[int] = 2**63

    @proves("BIND-04")
    async def test_parts_of_every_kind_arrive_as_they_were_sent_in_both_directions(self, reach: Reach) -> None:
        """Text, bytes, links and data, with names, types and metadata; null is data, too."""
        answer = SendMessageResponse(message=_message(self.biggest_number))
        scripted = Scripted({"SendMessage": answer})
        operations = (await reach(echo(), interceptors=[scripted])).operations
        request = SendMessageRequest(message=_message(self.biggest_number), metadata={"nothing": NOTHING})

        came_back = await operations.call(SEND_MESSAGE, request, CallContext())

        assert scripted.seen[0][1] == request
        assert came_back == answer

    @proves("BIND-04", "BIND-12")
    async def test_a_part_of_a_mebibyte_arrives_whole(self, reach: Reach) -> None:
        """Text and bytes."""
        parts = [Part(text="é" * 2**19), Part(raw=bytes(range(256)) * 2**12)]
        message = Message(message_id="m-1", role=Role.USER, parts=parts)
        scripted = Scripted({"SendMessage": SendMessageResponse(message=message)})
        operations = (await reach(echo(), interceptors=[scripted])).operations

        came_back = await operations.call(SEND_MESSAGE, SendMessageRequest(message=message), CallContext())

        assert scripted.seen[0][1] == SendMessageRequest(message=message)
        assert came_back == SendMessageResponse(message=message)

    @proves("BIND-04")
    async def test_times_and_states_arrive_as_they_were_sent(self, reach: Reach) -> None:
        """Every state, and milliseconds."""
        tasks = [_task(state) for state in TaskState]
        page = ListTasksResponse(tasks=tasks, next_page_token="à b+/=", page_size=len(tasks), total_size=2**31 - 1)
        scripted = Scripted({"ListTasks": page})
        operations = (await reach(echo(), interceptors=[scripted])).operations
        request = ListTasksRequest(status=TaskState.AUTH_REQUIRED, status_timestamp_after=Timestamp.from_ms(1001))

        came_back = await operations.call(LIST_TASKS, request, CallContext())

        assert scripted.seen[0][1] == request
        assert came_back == page

    @proves("BIND-04")
    async def test_what_is_empty_arrives_as_empty(self, reach: Reach) -> None:
        """A task with nothing in it, and a page without tasks."""
        empty = ListTasksResponse(tasks=[], next_page_token="", page_size=0, total_size=0)
        task = Task(id="t-1", status=TaskStatus(state=TaskState.SUBMITTED))
        scripted = Scripted({"ListTasks": empty, "GetTask": task})
        operations = (await reach(echo(), interceptors=[scripted])).operations

        assert await operations.call(LIST_TASKS, ListTasksRequest(), CallContext()) == empty
        assert await operations.call(GET_TASK, GetTaskRequest(id="t-1"), CallContext()) == task


def _message(biggest: int) -> Message:
    parts = [
        Part(text=TEXT),
        Part(text=""),
        Part(raw=b"", filename="empty.bin"),
        Part(raw=bytes(range(256)), media_type="application/octet-stream", filename="ä.bin"),
        Part(url="https://example.com/a?b=c#d"),
        Part(data=None),
        *(Part(data=value) for value in NOTHING),
        Part(
            data={"biggest": biggest, "smallest": -biggest, "tiny": 5e-324, "": TEXT}, metadata={"k": [1, {"": None}]}
        ),
    ]
    return Message(
        message_id=TEXT,
        role=Role.AGENT,
        parts=parts,
        context_id="c-1",
        task_id="t/1",
        metadata={"https://example.com/ext": NOTHING},
        extensions=["https://example.com/ext"],
        reference_task_ids=["a", "b"],
    )


def _task(state: TaskState) -> Task:
    status = TaskStatus(state=state, timestamp=Timestamp.from_ms(1_700_000_000_001))
    artifact = Artifact(artifact_id="a", parts=[Part(text="x")], name="n", description="d")
    return Task(id=state.name, context_id="c", status=status, artifacts=[artifact], metadata={"state": state.value})
