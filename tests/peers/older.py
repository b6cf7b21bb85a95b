"""Between the JSON of version 1.0, which scenarios are written in, and that of protocol 0.3, which clients of that line
take and give. Written apart from dragoman's own translation, so that the two check each other.
"""

from __future__ import annotations

from typing import Any

from tests.peers.calling import Json, Refused, SdkCaller, SdkProcess, Stream

UNWRAPPED = "data_part_compat"
"""Metadata of a data part whose value is no object and so was wrapped in one."""


def older_request(request: Json) -> Json:
    """A SendMessageRequest as MessageSendParams."""
    params: Json = {"message": older_message(request["message"])}
    if given := request.get("configuration"):
        params["configuration"] = _older_configuration(given)
    if "metadata" in request:
        params["metadata"] = request["metadata"]
    return params


def _older_configuration(given: Json) -> Json:
    older: Json = {"acceptedOutputModes": given.get("acceptedOutputModes", [])}
    older["blocking"] = not given.get("returnImmediately", False)
    if "historyLength" in given:
        older["historyLength"] = given["historyLength"]
    if push := given.get("taskPushNotificationConfig"):
        older["pushNotificationConfig"] = {name: push[name] for name in ("id", "url", "token") if name in push}
    return older


def older_message(message: Json) -> Json:
    """A Message with ``kind``."""
    role = message["role"].removeprefix("ROLE_").lower()
    return {**message, "kind": "message", "role": role, "parts": [_older_part(part) for part in message["parts"]]}


def _older_part(part: Json) -> Json:
    metadata = dict(part.get("metadata", {}))
    if "data" in part:
        data = part["data"]
        if not isinstance(data, dict):
            data, metadata[UNWRAPPED] = {"value": data}, True
        older: Json = {"kind": "data", "data": data}
    elif "text" in part:
        older = {"kind": "text", "text": part["text"]}
    else:
        names = {"raw": "bytes", "url": "uri", "filename": "name", "mediaType": "mimeType"}
        older = {"kind": "file", "file": {names[name]: part[name] for name in names if name in part}}
    return {**older, "metadata": metadata} if metadata else older


def newer_part(part: Json) -> Json:
    """A part of version 1.0."""
    metadata = dict(part.get("metadata") or {})
    if part["kind"] == "data":
        newer: Json = {"data": part["data"]["value"] if metadata.pop(UNWRAPPED, False) else part["data"]}
    elif part["kind"] == "text":
        newer = {"text": part["text"]}
    else:
        names = {"bytes": "raw", "uri": "url", "name": "filename", "mimeType": "mediaType"}
        newer = {names[name]: value for name, value in part["file"].items() if value is not None}
    return {**newer, "metadata": metadata} if metadata else newer


def newer_message(message: Json) -> Json:
    """A Message without ``kind``."""
    newer = {name: value for name, value in message.items() if name != "kind"}
    return {
        **newer, "role": f"ROLE_{message['role'].upper()}", "parts": [newer_part(part) for part in message["parts"]]
    }  # fmt: skip


def newer_status(status: Json) -> Json:
    """A TaskStatus with the state's long name."""
    word = status["state"].replace("-", "_").upper()
    newer = {**status, "state": f"TASK_STATE_{'UNSPECIFIED' if word == 'UNKNOWN' else word}"}
    if status.get("message"):
        newer["message"] = newer_message(status["message"])
    return newer


def newer_artifact(artifact: Json) -> Json:
    """An Artifact with the parts of version 1.0."""
    return {**artifact, "parts": [newer_part(part) for part in artifact["parts"]]}


def newer_task(task: Json) -> Json:
    """A Task without ``kind``."""
    newer = {name: value for name, value in task.items() if name != "kind"}
    newer["status"] = newer_status(task["status"])
    for name, convert in (("artifacts", newer_artifact), ("history", newer_message)):
        if name in newer:
            newer[name] = [convert(item) for item in newer[name] or []]
    return newer


def newer_event(event: Json) -> Json:
    """A StreamResponse or SendMessageResponse, with its member named; ``final`` is kept, to be looked at."""
    plain = {name: value for name, value in event.items() if name != "kind"}
    match event["kind"]:
        case "task":
            return {"task": newer_task(event)}
        case "message":
            return {"message": newer_message(event)}
        case "status-update":
            return {"statusUpdate": {**plain, "status": newer_status(event["status"])}}
        case _:
            return {"artifactUpdate": {**plain, "artifact": newer_artifact(event["artifact"])}}


def newer_card(card: Json) -> Json:
    """The members of a card that scenarios look at."""
    others = card.get("additionalInterfaces") or []
    pairs = [(card.get("preferredTransport", "JSONRPC"), card["url"]), *((o["transport"], o["url"]) for o in others)]
    version = ".".join(card.get("protocolVersion", "0.3").split(".")[:2])
    interfaces = [
        {"url": url, "protocolBinding": binding, "protocolVersion": version} for binding, url in dict.fromkeys(pairs)
    ]
    return {**card, "supportedInterfaces": interfaces}


def newer_push(config: Json) -> Json:
    """A TaskPushNotificationConfig, flat."""
    return {"taskId": config["taskId"], **config["pushNotificationConfig"]}


class OlderStream:
    """A stream of a client of the 0.3 line."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    async def next(self) -> Json | None:
        event = await self._stream.next()
        return None if event is None else newer_event(event)

    async def close(self) -> None:
        await self._stream.close()


class OlderCaller(SdkCaller):
    """The client of an SDK of the 0.3 line."""

    @classmethod
    async def connect(cls, process: SdkProcess, url: str, binding: str) -> OlderCaller:
        """Fetch the card and connect by one binding."""
        return cls(process, newer_card(await process.do("connect", url=url, binding=binding)))

    async def send(self, request: Json, *, version: str | None = None) -> Json:
        return newer_event(await self._call("send_message", older_request(request)))

    async def open(self, request: Json) -> Stream:
        return OlderStream(await self._open("send_message", older_request(request)))

    async def subscribe(self, task_id: str) -> Stream:
        return OlderStream(await self._open("subscribe", {"id": task_id}))

    async def get_task(self, request: Json, *, version: str | None = None) -> Json:
        return newer_task(await self._call("get_task", request))

    async def list_tasks(self, request: Json) -> Json:
        raise Refused("NotThere", "protocol 0.3 has no list of tasks")

    async def cancel(self, task_id: str) -> Json:
        return newer_task(await self._call("cancel_task", {"id": task_id}))

    async def extended_card(self) -> Json:
        return newer_card(await super().extended_card())

    async def push(self, verb: str, request: Json) -> Json:
        found = await super().push(verb, _older_push(verb, request))
        if verb == "list":
            configs: Any = found
            return {"configs": [newer_push(config) for config in configs]}
        return newer_push(found) if verb in ("create", "get") else {}


def _older_push(verb: str, request: Json) -> Json:
    if verb == "create":
        config = {name: value for name, value in request.items() if name not in ("taskId", "authentication")}
        return {"taskId": request["taskId"], "pushNotificationConfig": config}
    named = {"id": request["taskId"]}
    return {**named, "pushNotificationConfigId": request["id"]} if "id" in request else named
