"""What dragoman's client does with servers of frameworks, which have their own idea of what an agent is.

The programs are ``programs/fasta2a_agent.py`` and ``programs/strands_agent.py``.
"""

from __future__ import annotations

from tests.peers.calling import Caller, Json
from tests.peers.deviation import FASTA2A_03_SERVER, FASTA2A_SERVER, STRANDS_SERVER
from tests.peers.scenario import (
    Run,
    Scenario,
    held_task,
    kinds,
    made_in,
    message,
    new_name,
    polled,
    refusal,
    request,
    rest_of,
    said_in,
    states,
    task_of,
    text_in,
    words,
)

FRAMEWORKS: dict[str, dict[str, Scenario]] = {FASTA2A_SERVER: {}, FASTA2A_03_SERVER: {}, STRANDS_SERVER: {}}
"""Whose server, then the scenarios that are gone through with it."""

FASTA2A = (FASTA2A_SERVER, FASTA2A_03_SERVER)
EACH = (*FASTA2A, STRANDS_SERVER)


def _with(run: Run, name: str, *whos: str, seen: Json) -> None:
    for who in whos:
        FRAMEWORKS[who][name] = Scenario(name, run, seen, {}, ("V03-02",))


async def _card(caller: Caller) -> Json:
    card = caller.card
    interfaces = card["supportedInterfaces"]
    return {
        "name": card["name"],
        "interfaces": [(entry["protocolBinding"], entry["protocolVersion"]) for entry in interfaces],
        "streaming": card["capabilities"].get("streaming"),
        "skills": [skill["id"] for skill in card.get("skills", [])],
    }


def _seen(name: str, version: str, *, streaming: bool, skills: list[str]) -> Json:
    return {"name": name, "interfaces": [("JSONRPC", version)], "streaming": streaming, "skills": skills}


_with(_card, "card", FASTA2A_SERVER, seen=_seen("Words", "1.0", streaming=True, skills=["words"]))
_with(_card, "card", FASTA2A_03_SERVER, seen=_seen("Words", "0.3", streaming=False, skills=["words"]))
_with(_card, "card", STRANDS_SERVER, seen=_seen("Parrot", "0.3", streaming=True, skills=[]))


async def _task(caller: Caller) -> Json:
    """What is not over when it is first seen is asked for again: these servers never wait."""
    begun = await held_task(caller, "never")
    task = await polled(caller, begun["id"])
    return {"state": words(task), "text": made_in(task), "time": task["status"]["timestamp"].endswith("Z")}


_with(_task, "task", *FASTA2A, seen={"state": "COMPLETED", "text": "never", "time": True})
_with(_task, "task", STRANDS_SERVER, seen={"state": "COMPLETED", "text": "1: hold never", "time": True})


async def _waiting(caller: Caller) -> Json:
    task = await task_of(caller, "do it")
    return {"state": words(task), "text": made_in(task)}


_with(_waiting, "send and wait", STRANDS_SERVER, seen={"state": "COMPLETED", "text": "1: do it"})


async def _stream(caller: Caller) -> Json:
    events = await rest_of(await caller.open(request("do it")))
    return {"first": kinds(events)[0], "text": text_in(events), "last": states(events)[-1]}


_with(_stream, "stream", FASTA2A_SERVER, seen={"first": "task", "text": "it", "last": "COMPLETED"})
_with(_stream, "stream", STRANDS_SERVER, seen={"first": "task", "text": "1: do it", "last": "COMPLETED"})


async def _fails(caller: Caller) -> Json:
    begun = await task_of(caller, "fail")
    task = await polled(caller, begun["id"])
    return {"state": words(task), "said": bool(said_in(task))}


_with(_fails, "task that fails", *FASTA2A, seen={"state": "FAILED", "said": False})
_with(_fails, "task that fails", STRANDS_SERVER, seen={"state": "FAILED", "said": True})


async def _turns(caller: Caller) -> Json:
    context = new_name()
    texts = [made_in(await task_of(caller, message(text, context=context))) for text in ("one", "two")]
    return {"texts": texts}


_with(_turns, "two messages in one context", STRANDS_SERVER, seen={"texts": ["1: one", "2: two"]})


async def _subscribe(caller: Caller) -> Json:
    begun = await task_of(caller, "do it")
    await polled(caller, begun["id"])
    events = await rest_of(await caller.subscribe(begun["id"]))
    return {"events": kinds(events), "state": states(events)}


_with(
    _subscribe,
    "subscribe to a finished task",
    FASTA2A_SERVER,
    STRANDS_SERVER,
    seen={"events": ["task"], "state": ["COMPLETED"]},
)

PARTS: list[Json] = [{"data": {"a": [1, None, "é"]}}, {"raw": "AAEC", "filename": "a.bin", "mediaType": "image/png"}]


async def _echo(caller: Caller) -> Json:
    begun = await task_of(caller, message("echo", *PARTS))
    task = await polled(caller, begun["id"])
    return {"parts": task["artifacts"][0]["parts"]}


_with(_echo, "data and files", *FASTA2A, seen={"parts": PARTS})


async def _unknown(caller: Caller) -> Json:
    nobody = new_name()
    return {"get": await refusal(caller.get_task({"id": nobody}))}


_with(_unknown, "unknown task", *EACH, seen={"get": "TaskNotFoundError"})


async def _cancel(caller: Caller) -> Json:
    begun = await task_of(caller, "do it")
    await polled(caller, begun["id"])
    return {"error": await refusal(caller.cancel(begun["id"]))}


_with(_cancel, "cancel of a finished task", STRANDS_SERVER, seen={"error": "TaskNotCancelableError"})
