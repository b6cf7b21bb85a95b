"""What client and server do together when one of them speaks protocol 0.3 only: the scenarios of ``scenarios.py``
that it can express, as it expresses them, and some of its own.

The other one of the two is dragoman: its server, which is then called by a client of that line, or its client, which
shows 1.0 whatever it speaks.
"""

from __future__ import annotations

import tests.peers.scenarios  # noqa: F401  registers what is taken from it
from tests.peers.calling import Caller, Json
from tests.peers.scenario import (
    SCENARIOS,
    Run,
    Scenario,
    held_task,
    made_in,
    message,
    new_name,
    refusal,
    release,
    request,
    rest_of,
    said_in,
    states,
    task_of,
    text_in,
    text_of,
    until,
    words,
)

CLIENT = "a client of theirs"
SERVER = "a server of theirs"
BOTH = (CLIENT, SERVER)

V03: dict[str, dict[str, Scenario]] = {CLIENT: {}, SERVER: {}}
"""Who is of the 0.3 line, then the scenarios that are gone through with it."""


def _again(name: str, /, *rows: str, of: tuple[str, ...] = BOTH, run: Run | None = None, **expected: object) -> None:
    """Take a scenario of 1.0; the keyword arguments are what is seen otherwise."""
    known = SCENARIOS[name]
    for side in of:
        V03[side][name] = Scenario(
            name, run or known.run, {**known.expected, **expected}, {**known.ours}, ("V03-02", *rows)
        )


def _own(
    name: str, /, *rows: str, run: Run, of: tuple[str, ...] = BOTH, ours: Json | None = None, **expected: object
) -> None:
    for side in of:
        V03[side][name] = Scenario(name, run, expected, ours or {}, ("V03-02", *rows))


for _name in (
    "direct reply",
    "task",
    "task that fails, task that is rejected",
    "stream",
    "stream of a direct reply",
    "immediate answer, then polling",
    "question and answer",
    "question and answer, streamed",
    "cancel",
    "cancel, seen by the stream",
    "cancel of a finished task",
    "subscribe",
    "stream that is left",
    "files",
    "file, as the agent has it",
    "data",
    "data that is null, false or empty",
    "whole numbers beyond 2^53",
    "metadata",
    "a megabyte of text",
    "twenty at once",
    "unknown task",
    "message to a finished task",
):
    _again(_name)
_again("card", version="0.3")
_again("login and answer", "B151", of=(CLIENT,))


async def _login(caller: Caller) -> Json:
    asked = await task_of(caller, "login")
    for _ in range(LOOKS):
        await caller.get_task({"id": asked["id"]})
    answered = await task_of(caller, message("Ada", task=asked))
    return {"asked": [words(asked), said_in(asked)], "answered": [words(answered), made_in(answered)]}


LOOKS = 5
"""How often a task is looked at before it is answered: one server fails an answer that comes while it clears away what
asked for it."""
_again("login and answer", "B151", of=(SERVER,), run=_login)
_again("subscribe to a finished task", "V03-P17", error="none", events=["task"])


_again("two subscribers", of=(CLIENT,))


async def _two_subscribers(caller: Caller) -> Json:
    """Both see the end; where they begin is up to the server."""
    name = new_name()
    begun = await held_task(caller, name)
    streams = [await caller.subscribe(begun["id"]) for _ in range(2)]
    for stream in streams:
        await stream.next()
    await release(caller, name)
    ends = [await rest_of(stream) for stream in streams]
    return {"text": [text_in(end) == f"Released {name}" for end in ends], "last": [states(end)[-1] for end in ends]}


_own("two subscribers", of=(SERVER,), run=_two_subscribers, text=[True, True], last=["COMPLETED", "COMPLETED"])


async def _history(caller: Caller) -> Json:
    asked = await task_of(caller, "ask")
    done = await task_of(caller, message("Ada", task=asked))
    zero, one, everything = [
        (await caller.get_task({"id": done["id"], **length})).get("history", [])
        for length in ({"historyLength": 0}, {"historyLength": 1}, {})
    ]
    return {
        "zero": "all" if len(zero) == len(everything) else len(zero),
        "one": [text_of(said["parts"]) for said in one],
        "all": {"ask", "Ada"} <= {text_of(said["parts"]) for said in everything},
    }


_own("history, as much as asked for", "V03-P23", run=_history, ours={"zero": 0}, zero="all", one=["Ada"], all=True)

FINAL: dict[str, Json] = {
    "do it": {"completed": [1, True]},
    "fail it": {"failed": [1, True]},
    "reject it": {"rejected": [1, True]},
    "ask": {"input-required": [1, True]},
    "say hello": {"message": [0, True]},
}


async def _final(caller: Caller) -> Json:
    """How many updates of each stream are final, and whether the last event is."""
    seen = {}
    for text in FINAL:
        events = await rest_of(await caller.open(request(text)))
        final = [event for event in events if event.get("statusUpdate", {}).get("final")]
        last = next(iter(events[-1]))
        state = words(events[-1]["statusUpdate"]).lower().replace("_", "-") if last == "statusUpdate" else last
        seen[text] = {state: [len(final), not final or final == events[-1:]]}
    return seen


_own("final, once and last", "V03-03", "V03-P06", "V03-P07", of=(CLIENT,), run=_final, **FINAL)


async def _final_later(caller: Caller) -> Json:
    """A login is not the end of a stream, and neither is a cancel until it is done."""
    seen = {}
    for text, wanted in (("login", "AUTH_REQUIRED"), (f"hold {new_name()}", "WORKING")):
        stream = await caller.open(request(text))
        begun = await until(stream, lambda event, wanted=wanted: states([event])[-1:] == [wanted])
        task = begun[0]["task"]
        if wanted == "AUTH_REQUIRED":
            await caller.send(request(message("Ada", task=task)))
        else:
            await caller.cancel(task["id"])
        events = [*begun, *await rest_of(stream)]
        final = [state for event in events if event.get("statusUpdate", {}).get("final") for state in states([event])]
        seen[wanted] = [final, states(events)[-1]]
    return seen


_own(
    "final, after a login and after a cancel",
    "V03-03",
    "V03-P06",
    of=(CLIENT,),
    run=_final_later,
    AUTH_REQUIRED=[["COMPLETED"], "COMPLETED"],
    WORKING=[["CANCELED"], "CANCELED"],
)

OLD_INVALID = "InvalidParamsError"


async def _invalid(caller: Caller) -> Json:
    asked = await task_of(caller, "ask")
    elsewhere = {**message("Ada", task=asked), "contextId": new_name()}
    return {
        "no_parts": await refusal(caller.send(request({**message("x"), "parts": []}))),
        "other_context": await refusal(caller.send(request(elsewhere))),
        "history_length": await refusal(caller.get_task({"id": asked["id"], "historyLength": -1})),
    }


_own(
    "invalid parameters",
    run=_invalid,
    no_parts=OLD_INVALID,
    other_context=OLD_INVALID,
    history_length=OLD_INVALID,
)


async def _list(caller: Caller) -> Json:
    return {"error": await refusal(caller.list_tasks({}))}


_own("list of tasks, which 0.3 does not have", of=(SERVER,), run=_list, error="UnsupportedOperationError")

_again("push notifications, not offered", of=(CLIENT,))


async def _push(caller: Caller) -> Json:
    task = await task_of(caller, "ask")
    named = {"taskId": task["id"], "id": "hook"}
    config = {**named, "url": "https://example.com/hook", "token": "t"}
    other = {**config, "id": "other", "url": "https://example.com/other"}
    created = [await caller.push("create", each) for each in (config, other)]
    listed = (await caller.push("list", {"taskId": task["id"]}))["configs"]
    got = await caller.push("get", named)
    deleted = await caller.push("delete", named)
    left = (await caller.push("list", {"taskId": task["id"]}))["configs"]
    return {
        "created": [_told(each) for each in created],
        "listed": sorted(_told(each) for each in listed),
        "got": _told(got),
        "deleted": deleted,
        "left": [_told(each) for each in left],
        "same_task": {each["taskId"] for each in (*created, *listed, got)} == {task["id"]},
    }


def _told(config: Json) -> list[str]:
    return [config.get(name, "") for name in ("id", "url", "token")]


HOOK, OTHER = ["hook", "https://example.com/hook", "t"], ["other", "https://example.com/other", "t"]
_own(
    "push configurations",
    "V03-P19",
    "V03-P26",
    of=(SERVER,),
    run=_push,
    created=[HOOK, OTHER],
    listed=[HOOK, OTHER],
    got=HOOK,
    deleted={},
    left=[OTHER],
    same_task=True,
)

_again("extended card, not offered", of=(CLIENT,), error="AuthenticatedExtendedCardNotConfiguredError")


async def _extended(caller: Caller) -> Json:
    card = await caller.extended_card()
    return {"name": card["name"], "skills": [skill["id"] for skill in card["skills"]]}


_own("extended card", of=(SERVER,), run=_extended, name="Words, extended", skills=["words"])
