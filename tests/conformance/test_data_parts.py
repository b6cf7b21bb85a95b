"""Content on its way through an agent: nothing of it is lost or changed."""

from __future__ import annotations

import json

import pytest

from dragoman import Agent, Part, TaskState
from dragoman.errors import InvalidParamsError, TaskNotFoundError
from dragoman.model import Message, Role
from tests.conformance.differences import BIG, BIG_ARRIVES_AS
from tests.conformance.raw import say

agent = Agent("Mirror", description="Gives back what it gets.", input_modes=["*/*"], output_modes=["*/*"])


@agent.task
async def mirror(ctx):
    await ctx.artifact(list(ctx.message.parts), metadata=dict(ctx.metadata))


ODD_TEXT = '你好 👋🏽 e\u0301 \u0085 \u2028 \u2029 \x0b \x00 \u202e \\ " </script>'

PARTS = [
    Part(text="plain"),
    Part(text=""),
    Part(text=ODD_TEXT, media_type="text/markdown", filename="ä/b.md", metadata={"k": [None, {"a": 1}]}),
    Part(raw=b"\x00\xff\xfe" * 3, media_type="image/png", filename="x.png"),
    Part(raw=b""),
    Part(url="https://example.com/a?b=c#d", media_type="application/pdf", filename="a.pdf", metadata={"n": 3}),
    *(Part(data=value, media_type="application/json") for value in (None, 0, False, "", [], {}, -1.5, [[None]])),
    Part(data={"snake_case": {"camelCase": None}, "revision": 1, "big": BIG, "": "empty key"}),
]


def as_carried_by(binding: str) -> list[Part]:
    last = {**PARTS[-1].data, "big": BIG_ARRIVES_AS[binding]}
    return [*PARTS[:-1], Part(data=last)]


@pytest.mark.req("DATA-02", "DATA-17", "DATA-18", "DATA-29", "AMB-46", "AMB-48", "B001", "B003", "B007", "SEND-01")
async def test_every_kind_of_part_comes_back_as_it_was_sent(connect, binding: str) -> None:
    client = await connect(agent)
    expected = as_carried_by(binding)

    task = await client.send(PARTS, metadata={"deep": [{"n": 3, "none": None}]})

    stored = await client.get_task(task.id)
    listed = (await client.list_tasks(include_artifacts=True, history_length=1)).tasks[0]
    for seen in (task, stored, listed):
        assert seen.artifacts[0].parts == expected
        assert seen.history[0].parts == expected
        assert seen.artifacts[0].metadata == {"deep": [{"n": 3, "none": None}]}


@pytest.mark.req("DATA-02", "B007", "B055", "STREAM-07")
@pytest.mark.parametrize("store", ["memory"], indirect=True)
async def test_a_stream_brings_the_same_content_as_the_answer_to_a_message(connect, binding: str) -> None:
    client = await connect(agent)

    events = [event async for event in client.stream(PARTS)]

    assert events[1].artifact.parts == as_carried_by(binding)


@pytest.mark.req("DATA-03", "DATA-04", "DATA-05", "DATA-18", "AMB-48", "B001", "B003", "B007")
async def test_the_bytes_on_the_wire_are_proto_json(wire) -> None:
    raw = await wire(agent)
    parts = [
        {"data": None, "mediaType": "application/json"},
        {"data": {"revision": 1, "big": 9007199254740993, "f": 1.5}},
        {"raw": "AP/+", "filename": "x"},
        {"text": "你👋\u2028"},
    ]

    answer = await raw.call("SendMessage", say(parts=parts, metadata={"n": 3}))

    task = answer.result["task"]
    assert task["artifacts"][0]["parts"] == task["history"][0]["parts"] == parts
    assert answer.body.count(b'"data":null') == 2
    assert answer.body.count(b'"revision":1,"big":9007199254740993,"f":1.5') == 2
    assert answer.body.count(b'"raw":"AP/+"') == 2
    assert answer.body.count("你👋\u2028".encode()) == 2
    assert b'"state":"TASK_STATE_COMPLETED"' in answer.body
    assert b'"role":"ROLE_USER"' in answer.body
    assert b'{"n":3}' in answer.body


@pytest.mark.req("DATA-06", "DATA-05", "AMB-42", "AMB-47", "DATA-16", "AMB-46", "AMB-56", "B005")
@pytest.mark.parametrize(
    "message",
    [
        {"message_id": "m", "role": 1, "parts": [{"raw": "-_8", "media_type": "x/y"}]},
        {"messageId": "m", "role": "ROLE_USER", "parts": [{"raw": "+/8=", "mediaType": "x/y", "text": None}]},
        {
            "messageId": "m",
            "role": "ROLE_USER",
            "kind": "message",
            "parts": [{"raw": "+/8", "mediaType": "x/y", "kind": "file", "file": {"name": 1}}],
            "taskId": None,
            "contextId": None,
            "extensions": None,
            "referenceTaskIds": None,
            "metadata": None,
            "bogus": {"deep": [1]},
        },
    ],
    ids=["proto names, numbers, url-safe base64", "null members", "unknown members"],
)
async def test_every_spelling_that_proto_json_readers_take_is_taken(wire, message) -> None:
    raw = await wire(agent)

    request = {"message": message, "configuration": {"history_length": "1", "blocking": False}, "bogus": True}
    task = (await raw.call("SendMessage", request)).result["task"]

    assert task["artifacts"][0]["parts"] == [{"raw": "+/8=", "mediaType": "x/y"}]
    assert task["history"][0] == {
        "messageId": "m",
        "taskId": task["id"],
        "contextId": task["contextId"],
        "role": "ROLE_USER",
        "parts": [{"raw": "+/8=", "mediaType": "x/y"}],
    }


@pytest.mark.req("DATA-06", "DATA-15")
async def test_a_whole_number_may_come_in_any_form(wire) -> None:
    raw = await wire(agent)

    for length in (1, "1", 1.0, 1e0, "-0"):
        task = (await raw.call("SendMessage", say(configuration={"historyLength": length}))).result["task"]
        assert len(task.get("history", [])) == int(length)


GOOD = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "a"}]}
BAD_MESSAGES = {
    "no messageId": ({"messageId": None}, "message.messageId"),
    "empty messageId": ({"messageId": ""}, "message.messageId"),
    "no role": ({"role": None}, "message.role"),
    "unspecified role": ({"role": "ROLE_UNSPECIFIED"}, "message.role"),
    "role of the agent": ({"role": "ROLE_AGENT"}, "message.role"),
    "lower-case role of 0.3": ({"role": "user"}, "message.role"),
    "unknown role number": ({"role": 17}, "message.role"),
    "no parts": ({"parts": None}, "message.parts"),
    "empty parts": ({"parts": []}, "message.parts"),
    "null part": ({"parts": [None]}, "message.parts[0]"),
    "part without content": ({"parts": [{"text": "a"}, {"mediaType": "text/plain"}]}, "message.parts[1]"),
    "part with two contents": ({"parts": [{"text": "a", "url": "https://b"}]}, "message.parts[0].url"),
    "part with text and data null": ({"parts": [{"text": "a", "data": None}]}, "message.parts[0].data"),
    "file object of 0.3": ({"parts": [{"kind": "file", "file": {"uri": "https://b"}}]}, "message.parts[0]"),
    "text that is none": ({"parts": [{"text": 5}]}, "message.parts[0].text"),
    "bytes that are none": ({"parts": [{"raw": "?"}]}, "message.parts[0].raw"),
    "metadata that is no object": ({"metadata": [1]}, "message.metadata"),
    "id that is no text": ({"messageId": 5}, "message.messageId"),
}


@pytest.mark.req(
    "DATA-12", "DATA-13", "DATA-14", "DATA-17", "DATA-19", "DATA-20", "DATA-28", "AMB-41", "AMB-42", "AMB-43", "B005"
)
async def test_a_message_that_breaks_a_rule_is_refused_with_the_name_of_the_field(wire) -> None:
    raw = await wire(agent)

    for case, (members, field) in BAD_MESSAGES.items():
        message = {name: value for name, value in {**GOOD, **members}.items() if value is not None}
        for op in ("SendMessage", "SendStreamingMessage"):
            assert field in (await raw.call(op, {"message": message})).fields, case
    assert (await raw.call("ListTasks", {})).result["totalSize"] == 0


@pytest.mark.req("DATA-12", "DATA-13", "B005")
async def test_a_request_that_breaks_a_rule_is_refused_with_the_name_of_the_field(wire) -> None:
    raw = await wire(agent)

    for params, field in (
        ({}, "message"),
        ({"message": "text"}, "message"),
        ({"message": None}, "message"),
        (say(configuration={"historyLength": -1}), "configuration.historyLength"),
        (say(configuration={"historyLength": 1.5}), "configuration.historyLength"),
        (say(configuration={"historyLength": 2**31}), "configuration.historyLength"),
        (say(configuration={"returnImmediately": "yes"}), "configuration.returnImmediately"),
    ):
        assert field in (await raw.call("SendMessage", params)).fields


@pytest.mark.req("DATA-05", "DATA-06")
async def test_one_field_under_both_spellings_is_refused(wire) -> None:
    raw = await wire(agent)

    answer = await raw.call("SendMessage", say(message_id="b"))

    assert answer.fields


@pytest.mark.req("DATA-20", "AMB-42")
@pytest.mark.parametrize("store", ["memory"], indirect=True)
async def test_a_client_cannot_speak_as_the_agent(connect) -> None:
    client = await connect(agent)

    with pytest.raises(InvalidParamsError) as refused:
        await client.send(Message(message_id="m", role=Role.AGENT, parts=[Part(text="a")]))

    assert [violation.field for violation in refused.value.violations] == ["message.role"]


@pytest.mark.req("DATA-16", "DATA-30", "B099", "B013")
@pytest.mark.parametrize("store", ["memory"], indirect=True)
async def test_ids_are_opaque_text(connect) -> None:
    client = await connect(agent)

    for context_id in ("user 42/ä", "c" * 300, "contexts/1", "👋", "a:b?c#d%2F", " "):
        task = await client.send("hi", context_id=context_id)
        assert task.context_id == task.history[0].context_id == context_id
        assert "/" not in task.id
        assert [found.id for found in (await client.list_tasks(context_id=context_id)).tasks] == [task.id]
        assert (await client.list_tasks(context_id=context_id + "x")).tasks == []


@pytest.mark.req("DATA-30", "GET-03")
@pytest.mark.parametrize("store", ["memory"], indirect=True)
async def test_a_resource_name_is_no_id(connect) -> None:
    client = await connect(agent)
    task = await client.send("hi")

    with pytest.raises(TaskNotFoundError):
        await client.get_task(f"tasks/{task.id}")
    assert (await client.get_task(task.id)).status.state is TaskState.COMPLETED


@pytest.mark.req("DATA-05")
async def test_a_number_beyond_double_precision_is_kept_in_json(wire) -> None:
    raw = await wire(agent)
    value = [2**63, -(2**53) - 1, 1e300, 0.1]

    answer = await raw.call("SendMessage", say(parts=[{"data": value}]))

    assert json.loads(answer.body) == answer.json
    assert answer.result["task"]["artifacts"][0]["parts"] == [{"data": value}]
