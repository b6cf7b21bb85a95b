"""Both clients behind one interface, so that one scenario drives either: requests and answers are ProtoJSON.

What a client raises is :class:`Refused`, with the name of its error class; dragoman and the SDK name the protocol's
errors alike.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import subprocess
import threading
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Protocol

import httpx2
import msgspec

import dragoman
from dragoman.client import Client, ClientStream, V03Settings
from dragoman.errors import DragomanError
from dragoman.model import (
    Message,
    Operation,
    Task,
    TaskArtifactUpdateEvent,
    TaskPushNotificationConfig,
    TaskState,
    TaskStatusUpdateEvent,
    decode_value,
    encode_json,
)
from dragoman.ports.operations import CallContext, EventStream, Operations

Json = dict[str, Any]
BOUND = 20.0
"""Seconds that an answer may take."""


class Refused(Exception):
    """The client raised an error of this name."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(f"{name}: {message}")
        self.name = name


class Stream(Protocol):
    """An open stream of a client."""

    async def next(self) -> Json | None:
        """The next StreamResponse, None at the end."""
        ...

    async def close(self) -> None:
        """Leave it."""
        ...


class Caller(Protocol):
    """A client. ``version`` is what the request says in ``A2A-Version`` instead of the client's own."""

    card: Json

    async def send(self, request: Json, *, version: str | None = None) -> Json: ...
    async def open(self, request: Json) -> Stream: ...
    async def subscribe(self, task_id: str) -> Stream: ...
    async def get_task(self, request: Json, *, version: str | None = None) -> Json: ...
    async def list_tasks(self, request: Json) -> Json: ...
    async def cancel(self, task_id: str) -> Json: ...
    async def push(self, verb: str, request: Json) -> Json: ...
    async def extended_card(self) -> Json: ...


# The SDK's, in a process of its own.


class SdkProcess:
    """A program that drives an SDK's client, as a child process, for many tests one after the other.

    ``python`` runs it: the interpreter of the SDK's environment, or Node.js. ``environment`` is added to ours.
    """

    def __init__(self, python: Path, program: Path, environment: Mapping[str, str] | None = None) -> None:
        self._process = subprocess.Popen(
            [str(python), str(program)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            env={**os.environ, **(environment or {})},
        )
        self._waiting: dict[int, Future[Json]] = {}
        self._numbers = itertools.count(1)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                told = json.loads(line)
                waiting = self._waiting.pop(told["id"])
                if waiting.set_running_or_notify_cancel():  # nobody waits any more once the time is over
                    waiting.set_result(told)
        for waiting in self._waiting.values():
            if waiting.set_running_or_notify_cancel():
                waiting.set_exception(EOFError("the SDK's client ended"))

    async def do(self, what: str, **more: Any) -> Any:
        """Give a command and wait for what was seen. Raises Refused, TimeoutError, EOFError."""
        number = next(self._numbers)
        waiting = self._waiting[number] = Future()
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"id": number, "do": what, **more}) + "\n")
        self._process.stdin.flush()
        told = await asyncio.wait_for(asyncio.wrap_future(waiting), BOUND)
        if "error" in told:
            raise Refused(told["error"], told["message"])
        return told["saw"]

    def stop(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()
        self._reader.join()
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()


class SdkStream:
    """A stream of the SDK's client."""

    def __init__(self, process: SdkProcess, name: str) -> None:
        self._process = process
        self._name = name

    async def next(self) -> Json | None:
        found: Json | None = await self._process.do("next", stream=self._name)
        return found

    async def close(self) -> None:
        await self._process.do("close", stream=self._name)


class SdkCaller:
    """The SDK's client."""

    def __init__(self, process: SdkProcess, card: Json) -> None:
        self._process = process
        self._names = itertools.count(1)
        self.card = card

    @classmethod
    async def connect(cls, process: SdkProcess, url: str, binding: str) -> SdkCaller:
        """Fetch the card and connect by one binding."""
        return cls(process, await process.do("connect", url=url, binding=binding))

    async def _call(self, what: str, request: Json, version: str | None = None) -> Json:
        headers = {"A2A-Version": version} if version is not None else {}
        found: Json = await self._process.do(what, request=request, headers=headers)
        return found

    async def _open(self, what: str, request: Json) -> Stream:
        name = f"stream-{next(self._names)}"
        await self._process.do("open", stream=name, call=what, request=request)
        return SdkStream(self._process, name)

    async def send(self, request: Json, *, version: str | None = None) -> Json:
        return await self._call("send_message", request, version)

    async def open(self, request: Json) -> Stream:
        return await self._open("send_message", request)

    async def subscribe(self, task_id: str) -> Stream:
        return await self._open("subscribe", {"id": task_id})

    async def get_task(self, request: Json, *, version: str | None = None) -> Json:
        return await self._call("get_task", request, version)

    async def list_tasks(self, request: Json) -> Json:
        return await self._call("list_tasks", request)

    async def cancel(self, task_id: str) -> Json:
        return await self._call("cancel_task", {"id": task_id})

    async def push(self, verb: str, request: Json) -> Json:
        return await self._call(f"{verb}_task_push_notification_config{'s' if verb == 'list' else ''}", request)

    async def extended_card(self) -> Json:
        return await self._call("get_extended_agent_card", {})


# Ours.


def as_json(value: Any) -> Json:
    """A Struct of ours as ProtoJSON."""
    found: Json = json.loads(encode_json(value))
    return found


MEMBERS: dict[type, str] = {
    Task: "task",
    Message: "message",
    TaskStatusUpdateEvent: "statusUpdate",
    TaskArtifactUpdateEvent: "artifactUpdate",
}


def _as_response(event: msgspec.Struct) -> Json:
    return {MEMBERS[type(event)]: as_json(event)}


@contextlib.contextmanager
def _refusals() -> Any:
    try:
        yield
    except DragomanError as error:
        raise Refused(type(error).__name__, str(error)) from error


class OurStream:
    """A stream of our client."""

    def __init__(self, stream: ClientStream) -> None:
        self._stream = stream

    async def next(self) -> Json | None:
        with _refusals():
            async with asyncio.timeout(BOUND):
                event = await anext(self._stream, None)
        return None if event is None else _as_response(event)

    async def close(self) -> None:
        await self._stream.aclose()


def _options(request: Json) -> Json:
    given = request.get("configuration", {})
    options: Json = {"history_length": given.get("historyLength"), "metadata": request.get("metadata")}
    if push := given.get("taskPushNotificationConfig"):
        options["push"] = decode_value(TaskPushNotificationConfig, push)
    return {name: value for name, value in options.items() if value is not None}


class OurCaller:
    """Our client, by its methods for users."""

    def __init__(self, client: Client, versions: dict[str, str]) -> None:
        self._client = client
        self._versions = versions
        self.card = as_json(client.card)

    @contextlib.contextmanager
    def _saying(self, version: str | None) -> Any:
        if version is not None:
            self._versions["A2A-Version"] = version
        with _refusals():
            yield
        self._versions.clear()

    async def send(self, request: Json, *, version: str | None = None) -> Json:
        wait = not request.get("configuration", {}).get("returnImmediately", False)
        with self._saying(version):
            answer = await self._client.send(_message(request), wait=wait, timeout=BOUND, **_options(request))
        return _as_response(answer)

    async def open(self, request: Json) -> Stream:
        return OurStream(self._client.stream(_message(request), **_options(request)))

    async def subscribe(self, task_id: str) -> Stream:
        return OurStream(self._client.subscribe(task_id))

    async def get_task(self, request: Json, *, version: str | None = None) -> Json:
        with self._saying(version):
            return as_json(await self._client.get_task(request["id"], history_length=request.get("historyLength")))

    async def list_tasks(self, request: Json) -> Json:
        with _refusals():
            page = await self._client.list_tasks(
                context_id=request.get("contextId", ""),
                status=TaskState(request.get("status", "TASK_STATE_UNSPECIFIED")),
                page_size=request.get("pageSize"),
                page_token=request.get("pageToken", ""),
                history_length=request.get("historyLength"),
                include_artifacts=request.get("includeArtifacts"),
            )
        return as_json(page)

    async def cancel(self, task_id: str) -> Json:
        with _refusals():
            return as_json(await self._client.cancel(task_id))

    async def push(self, verb: str, request: Json) -> Json:
        with _refusals():
            if verb == "create":
                config = decode_value(TaskPushNotificationConfig, request)
                return as_json(await self._client.create_push_config(request["taskId"], config))
            if verb == "list":
                return as_json(await self._client.list_push_configs(request["taskId"]))
            if verb == "get":
                return as_json(await self._client.get_push_config(request["taskId"], request["id"]))
            await self._client.delete_push_config(request["taskId"], request["id"])
            return {}

    async def extended_card(self) -> Json:
        with _refusals():
            return as_json(await self._client.get_extended_card())


def _message(request: Json) -> Message:
    message = decode_value(Message, request["message"])
    assert isinstance(message, Message)
    return message


@contextlib.asynccontextmanager
async def our_caller(url: str, binding: str, *, v03: V03Settings | None = None) -> AsyncIterator[OurCaller]:
    """Our client, connected by one binding. It asks the server even for what the card does not offer.

    ``v03``: what it is told of an agent of version 0.3.
    """
    versions: dict[str, str] = {}

    async def overwrite(request: httpx2.Request) -> None:
        _replace(request.headers, versions)

    async with (
        httpx2.AsyncClient(event_hooks={"request": [overwrite]}, timeout=BOUND) as http,
        dragoman.connect(
            url,
            bindings=(binding,),
            http=http,
            check_capabilities=False,
            timeout=BOUND,
            v03=v03,
            interceptors=[lambda below: _OtherVersion(below, versions)],
        ) as client,
    ):
        yield OurCaller(client, versions)


class _OtherVersion:
    """Sends another version than the client's own, where no HTTP request passes by."""

    def __init__(self, below: Operations, versions: Mapping[str, str]) -> None:
        self._below = below
        self._versions = versions

    async def call(self, op: Operation, request: msgspec.Struct, context: CallContext) -> msgspec.Struct:
        context.version = next(iter(self._versions.values()), context.version)
        return await self._below.call(op, request, context)

    async def stream(self, op: Operation, request: msgspec.Struct, context: CallContext) -> EventStream:
        context.version = next(iter(self._versions.values()), context.version)
        return await self._below.stream(op, request, context)


def _replace(headers: httpx2.Headers, other: Mapping[str, str]) -> None:
    for name, value in other.items():
        headers[name] = value
