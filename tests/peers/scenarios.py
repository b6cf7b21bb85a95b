"""What client and server do together, and what the client must see: the same whoever made the two.

The agent is the one of ``our_agent.py``. What is known to be otherwise with a peer is in ``deviations.py``.
"""

from __future__ import annotations

import asyncio
import base64
from datetime import datetime

from tests.peers.calling import Caller, Json
from tests.peers.scenario import (
    OVER,
    held_task,
    kinds,
    made_in,
    message,
    new_name,
    pieces,
    polled,
    refusal,
    release,
    request,
    rest_of,
    said_in,
    scenario,
    state_of,
    states,
    stream_refusal,
    task_of,
    text_in,
    text_of,
    until,
    words,
)


@scenario(
    "card",
    "CARD-01",
    name="Words",
    bindings=["JSONRPC", "HTTP+JSON"],
    version="1.0",
    streaming=True,
    skills=["words"],
)
async def _card(caller: Caller) -> Json:
    card = caller.card
    return {
        "name": card["name"],
        "bindings": [entry["protocolBinding"] for entry in card["supportedInterfaces"]][:2],  # gRPC is not on every one
        "version": card["supportedInterfaces"][0]["protocolVersion"],  # others may follow
        "streaming": card["capabilities"]["streaming"],
        "skills": [skill["id"] for skill in card["skills"]],
    }


@scenario("direct reply", "SEND-01", "SEND-02", members=["message"], text="hello", role="ROLE_AGENT", context=True)
async def _reply(caller: Caller) -> Json:
    answer = await caller.send(request("say hello"))
    said = answer["message"]
    context = bool(said.get("contextId"))
    return {"members": list(answer), "text": text_of(said["parts"]), "role": said["role"], "context": context}


@scenario("task", "SEND-01", members=["task"], state="COMPLETED", text="the work", asked=["do the work"], time=True)
async def _task(caller: Caller) -> Json:
    answer = await caller.send(request("do the work"))
    task = answer["task"]
    asked = [text_of(said["parts"]) for said in task["history"] if said["role"] == "ROLE_USER"]
    return {
        "members": list(answer),
        "state": words(task),
        "text": made_in(task),
        "asked": asked,
        "time": task["status"].get("timestamp", "").endswith("Z"),
    }


@scenario("task that fails, task that is rejected", failed=["FAILED", "no luck"], rejected=["REJECTED", "not mine"])
async def _ends(caller: Caller) -> Json:
    failed, rejected = await task_of(caller, "fail no luck"), await task_of(caller, "reject not mine")
    return {"failed": [words(failed), said_in(failed)], "rejected": [words(rejected), said_in(rejected)]}


@scenario(
    "stream",
    "STREAM-01",
    "STREAM-05",
    first="task",
    last="COMPLETED",
    text="0 1 2 3 4 ",
    append=[False, True, True, True, True],
    last_chunk=[False, False, False, False, True],
    stored="0 1 2 3 4 ",
)
async def _stream(caller: Caller) -> Json:
    events = await rest_of(await caller.open(request("stream 5")))
    task = await caller.get_task({"id": events[0]["task"]["id"]})
    return {
        "first": kinds(events)[0],
        "last": states(events)[-1],
        "text": text_in(events),
        "append": [piece.get("append", False) for piece in pieces(events)],
        "last_chunk": [piece.get("lastChunk", False) for piece in pieces(events)],
        "stored": made_in(task),
    }


@scenario("stream of a direct reply", "STREAM-06", kinds=["message"], text="hello")
async def _streamed_reply(caller: Caller) -> Json:
    events = await rest_of(await caller.open(request("say hello")))
    return {"kinds": kinds(events), "text": text_of(events[-1]["message"]["parts"])}


@scenario("immediate answer, then polling", "SEND-08", "SEND-11", over=False, state="COMPLETED", text=True)
async def _polling(caller: Caller) -> Json:
    name = new_name()
    begun = await held_task(caller, name)
    await release(caller, name)
    ended = await polled(caller, begun["id"])
    return {
        "over": state_of(begun) in OVER,
        "state": words(ended),
        "text": made_in(ended) == f"Released {name}",
    }


@scenario(
    "question and answer",
    "CTX-16",
    asked=["INPUT_REQUIRED", "Which name?"],
    answered=["COMPLETED", "Hello Ada"],
    same=True,
    said=["ask", "Ada"],
)
async def _turns(caller: Caller) -> Json:
    asked = await task_of(caller, "ask")
    answered = await task_of(caller, message("Ada", task=asked))
    return {
        "asked": [words(asked), said_in(asked)],
        "answered": [words(answered), made_in(answered)],
        "same": (asked["id"], asked["contextId"]) == (answered["id"], answered["contextId"]),
        "said": [text_of(said["parts"]) for said in answered["history"] if said["role"] == "ROLE_USER"],
    }


@scenario("question and answer, streamed", asked="INPUT_REQUIRED", answered="COMPLETED", text="Hello Ada")
async def _streamed_turns(caller: Caller) -> Json:
    first = await rest_of(await caller.open(request("ask")))
    second = await rest_of(await caller.open(request(message("Ada", task=first[0]["task"]))))
    # The snapshot that opens the second stream may hold all of the answer already.
    text = made_in(second[0].get("task", {})) + text_in(second)
    return {"asked": states(first)[-1], "answered": states(second)[-1], "text": text}


@scenario("login and answer", asked=["AUTH_REQUIRED", "Please log in"], answered=["COMPLETED", "Hello Ada"])
async def _login(caller: Caller) -> Json:
    asked = await task_of(caller, "login")
    answered = await task_of(caller, message("Ada", task=asked))
    return {"asked": [words(asked), said_in(asked)], "answered": [words(answered), made_in(answered)]}


@scenario("cancel", "CANCEL-01", state="CANCELED", stored="CANCELED")
async def _cancel(caller: Caller) -> Json:
    begun = await held_task(caller, new_name())
    canceled = await caller.cancel(begun["id"])
    return {"state": words(canceled), "stored": words(await caller.get_task({"id": begun["id"]}))}


@scenario("cancel, seen by the stream", "STREAM-05", last="CANCELED")
async def _cancel_streamed(caller: Caller) -> Json:
    stream = await caller.open(request(f"hold {new_name()}"))
    seen = await until(stream, lambda event: "Holding" in str(event))
    await caller.cancel(seen[0]["task"]["id"])
    return {"last": states(await rest_of(stream))[-1]}


@scenario("cancel of a finished task", "CANCEL-02", error="TaskNotCancelableError")
async def _cancel_finished(caller: Caller) -> Json:
    done = await task_of(caller, "do it")
    return {"error": await refusal(caller.cancel(done["id"]))}


@scenario("list, page by page", "LIST-08", sizes=[2, 2, 1], total=[5, 5, 5], newest_first=True, artifacts=False)
async def _list(caller: Caller) -> Json:
    context = new_name()
    made = [(await task_of(caller, message(f"do {number}", context=context)))["id"] for number in range(5)]
    pages, token = [], ""
    while not pages or token:
        page = await caller.list_tasks({"contextId": context, "pageSize": 2, "pageToken": token})
        pages.append(page)
        token = page.get("nextPageToken", "")
    listed = [task for page in pages for task in page["tasks"]]
    return {
        "sizes": [len(page["tasks"]) for page in pages],
        "total": [page["totalSize"] for page in pages],
        "newest_first": sorted(task["id"] for task in listed) == sorted(made) and _is_newest_first(listed),
        "artifacts": any("artifacts" in task for task in listed),
    }


def _is_newest_first(tasks: list[Json]) -> bool:
    # As moments: protobuf leaves out a fraction that is zero, so that the texts have no order.
    times = [datetime.fromisoformat(task["status"]["timestamp"]) for task in tasks]
    return times == sorted(times, reverse=True)


@scenario("list by state, with artifacts", failed=["FAILED"], done=["COMPLETED"], text="well", none=[])
async def _list_filtered(caller: Caller) -> Json:
    context = new_name()
    for work in ("do well", "fail badly"):
        await task_of(caller, message(work, context=context))
    asked = {"contextId": context, "includeArtifacts": True}
    failed = await caller.list_tasks({**asked, "status": "TASK_STATE_FAILED"})
    done = await caller.list_tasks({**asked, "status": "TASK_STATE_COMPLETED"})
    none = await caller.list_tasks({**asked, "contextId": new_name()})
    return {
        "failed": [words(task) for task in failed["tasks"]],
        "done": [words(task) for task in done["tasks"]],
        "text": made_in(done["tasks"][0]),
        "none": none.get("tasks", []),
    }


@scenario("history, as much as asked for", "GET-02", none=0, one=["Ada"], all=True, sent=0)
async def _history(caller: Caller) -> Json:
    asked = await task_of(caller, "ask", historyLength=0)
    done = await task_of(caller, message("Ada", task=asked))
    none, one, everything = [
        (await caller.get_task({"id": done["id"], **length})).get("history", [])
        for length in ({"historyLength": 0}, {"historyLength": 1}, {})
    ]
    return {
        "none": len(none),
        "one": [text_of(said["parts"]) for said in one],
        "all": {"ask", "Ada"} <= {text_of(said["parts"]) for said in everything},
        "sent": len(asked.get("history", [])),
    }


@scenario("subscribe", "SUB-01", "SUB-02", first="task", over=False, text=True, last="COMPLETED")
async def _subscribe(caller: Caller) -> Json:
    name = new_name()
    begun = await held_task(caller, name)
    stream = await caller.subscribe(begun["id"])
    first = await stream.next()
    assert first is not None
    await release(caller, name)
    events = [first, *await rest_of(stream)]
    return {
        "first": kinds(events)[0],
        "over": state_of(first["task"]) in OVER,
        "text": text_in(events) == f"Released {name}",
        "last": states(events)[-1],
    }


@scenario("two subscribers", "STRM-06", alike=True, last="COMPLETED")
async def _two_subscribers(caller: Caller) -> Json:
    name = new_name()
    begun = await held_task(caller, name)
    streams = [await caller.subscribe(begun["id"]) for _ in range(2)]
    for stream in streams:
        await stream.next()
    await release(caller, name)
    one, other = [await rest_of(stream) for stream in streams]
    return {"alike": one == other, "last": states(one)[-1]}


@scenario(
    "subscribe to a finished task",
    "SUB-03",
    ours={"error": "none", "events": ["task"]},
    error="UnsupportedOperationError",
    events=[],
)
async def _subscribe_finished(caller: Caller) -> Json:
    done = await task_of(caller, "do it")
    error = await stream_refusal(caller.subscribe(done["id"]))
    events = [] if error != "none" else await rest_of(await caller.subscribe(done["id"]))
    return {"error": error, "events": kinds(events)}


@scenario("stream that is left", "STRM-04", state="COMPLETED", text=True)
async def _left(caller: Caller) -> Json:
    name = new_name()
    stream = await caller.open(request(f"hold {name}"))
    seen = await until(stream, lambda event: "Holding" in str(event))
    await stream.close()
    await release(caller, name)
    ended = await polled(caller, seen[0]["task"]["id"])
    return {"state": words(ended), "text": made_in(ended) == f"Released {name}"}


RAW = {
    "raw": base64.b64encode(bytes(range(256))).decode(),
    "filename": "all.bin",
    "mediaType": "application/octet-stream",
}
LINK = {"url": "https://example.com/a%20b.png?x=1", "filename": "ünï.png", "mediaType": "image/png"}


@scenario("files", "DATA-17", parts=[RAW, LINK])
async def _files(caller: Caller) -> Json:
    return {"parts": await _echoed(caller, RAW, LINK)}


@scenario("file, as the agent has it", "DATA-17", size="256")
async def _size(caller: Caller) -> Json:
    return {"size": made_in(await task_of(caller, message("size", RAW)))}


VALUE = {
    "text": 'naïve ☃ 😀 \u2028\u0085 \\ " \t é',
    "nothing": None,
    "list": [0, -5, 2.5, True, False, None, "", {}, []],
    "deep": {"a": {"b": {"c": [1, [2, [3]]]}}},
    "whole": 9007199254740991,
}


@scenario("data", "DATA-18", parts=[{"data": VALUE}])
async def _data(caller: Caller) -> Json:
    return {"parts": await _echoed(caller, {"data": VALUE})}


@scenario(
    "data that is null, false or empty", "B001", parts=[{"data": None}, {"data": False}, {"data": []}, {"data": 0}]
)
async def _empty_data(caller: Caller) -> Json:
    return {"parts": await _echoed(caller, {"data": None}, {"data": False}, {"data": []}, {"data": 0})}


@scenario("whole numbers beyond 2^53", "B003", data={"big": 9007199254740993})
async def _big(caller: Caller) -> Json:
    return {"data": (await _echoed(caller, {"data": {"big": 9007199254740993}}))[0]["data"]}


async def _echoed(caller: Caller, *parts: Json) -> list[Json]:
    task = await task_of(caller, message("echo", *parts))
    found: list[Json] = [
        {name: value for name, value in part.items() if name != "mediaType" or "data" not in part}
        for part in task["artifacts"][0]["parts"]
    ]
    return found


@scenario("metadata", said={"k": {"n": 1, "none": None, "é": ["x"]}})
async def _metadata(caller: Caller) -> Json:
    given = {"k": {"n": 1, "none": None, "é": ["x"]}}
    task = await task_of(caller, message("do it", metadata=given))
    return {"said": task["history"][0]["metadata"]}


@scenario("a megabyte of text", length=1_000_000, streamed=1_000_000)
async def _large(caller: Caller) -> Json:
    text = "do " + "é" * 1_000_000
    task = await task_of(caller, text)
    events = await rest_of(await caller.open(request(text)))
    return {"length": len(made_in(task)), "streamed": len(text_in(events))}


@scenario("twenty at once", right=20)
async def _many(caller: Caller) -> Json:
    tasks = await asyncio.gather(*(task_of(caller, f"do {number}") for number in range(20)))
    return {"right": sum(made_in(task) == str(number) for number, task in enumerate(tasks))}


UNKNOWN = "TaskNotFoundError"


@scenario(
    "unknown task", "GET-03", "SEND-07", get=UNKNOWN, cancel=UNKNOWN, subscribe=UNKNOWN, send=UNKNOWN, stream=UNKNOWN
)
async def _unknown(caller: Caller) -> Json:
    nobody = new_name()
    return {
        "get": await refusal(caller.get_task({"id": nobody})),
        "cancel": await refusal(caller.cancel(nobody)),
        "subscribe": await stream_refusal(caller.subscribe(nobody)),
        "send": await refusal(caller.send(request(message("hello", taskId=nobody)))),
        "stream": await stream_refusal(caller.open(request(message("hello", taskId=nobody)))),
    }


@scenario("message to a finished task", "SEND-06", send="UnsupportedOperationError", stream="UnsupportedOperationError")
async def _finished(caller: Caller) -> Json:
    done = await task_of(caller, "do it")
    return {
        "send": await refusal(caller.send(request(message("more", task=done)))),
        "stream": await stream_refusal(caller.open(request(message("more", task=done)))),
    }


INVALID = "InvalidParamsError"


@scenario(
    "invalid parameters",
    "ERR-07",
    no_parts=INVALID,
    no_role=INVALID,
    other_context=INVALID,
    page_size_0=INVALID,
    page_size_101=INVALID,
    page_token=INVALID,
    history_length=INVALID,
)
async def _invalid(caller: Caller) -> Json:
    asked = await task_of(caller, "ask")
    elsewhere = {**message("Ada", task=asked), "contextId": new_name()}
    nobody = {**message("say hello"), "role": "ROLE_UNSPECIFIED"}
    return {
        "no_parts": await refusal(caller.send(request({**message("x"), "parts": []}))),
        "no_role": await refusal(caller.send(request(nobody))),
        "other_context": await refusal(caller.send(request(elsewhere))),
        "page_size_0": await refusal(caller.list_tasks({"pageSize": 0})),
        "page_size_101": await refusal(caller.list_tasks({"pageSize": 101})),
        "page_token": await refusal(caller.list_tasks({"pageToken": "nonsense"})),
        "history_length": await refusal(caller.get_task({"id": asked["id"], "historyLength": -1})),
    }


NO_PUSH = "PushNotificationNotSupportedError"


@scenario(
    "push notifications, not offered",
    "PCFG-10",
    create=NO_PUSH,
    get=NO_PUSH,
    list=NO_PUSH,
    delete=NO_PUSH,
    send=NO_PUSH,
)
async def _push(caller: Caller) -> Json:
    task = await task_of(caller, "ask")
    config = {"taskId": task["id"], "id": "1", "url": "https://example.com/hook"}
    named = {"taskId": task["id"], "id": "1"}
    inline = {"url": "https://example.com/hook"}
    return {
        "create": await refusal(caller.push("create", config)),
        "get": await refusal(caller.push("get", named)),
        "list": await refusal(caller.push("list", {"taskId": task["id"]})),
        "delete": await refusal(caller.push("delete", named)),
        "send": await refusal(caller.send(request("do it", taskPushNotificationConfig=inline))),
    }


@scenario("extended card, not offered", "XCARD-03", error="UnsupportedOperationError")
async def _extended(caller: Caller) -> Json:
    return {"error": await refusal(caller.extended_card())}


BAD_VERSION = "VersionNotSupportedError"


@scenario(
    "other versions", "VER-07", "VER-08", "AMB-19", next=BAD_VERSION, minor=BAD_VERSION, none=BAD_VERSION, patch="none"
)
async def _versions(caller: Caller) -> Json:
    async def asked(version: str) -> str:
        return await refusal(caller.send(request("say hello"), version=version))

    return {
        "next": await asked("9.9"),
        "minor": await asked("1.9"),
        "none": await asked(""),
        "patch": await asked("1.0.3"),
    }
