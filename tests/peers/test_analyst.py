"""An example is called by an SDK of each generation, on one server."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from dragoman import App
from dragoman.server import GrpcServerSettings
from dragoman.testing.serving import serving
from examples.analyst import make_data
from examples.analyst.agent import agent
from tests.peers.calling import Caller, Json, SdkCaller, SdkProcess
from tests.peers.deviation import ALL
from tests.peers.older import OlderCaller
from tests.peers.scenario import message, request, rest_of, states, text_in, words

GAUGES = Path(make_data.__file__).with_name("gauges.csv").read_bytes()
TABLE = {"raw": base64.b64encode(GAUGES).decode(), "filename": "gauges.csv", "mediaType": "text/csv"}


async def analyzed(caller: Caller) -> Json:
    """What a client makes of the table: sent and waited for, streamed, and after a question."""
    task: Json = (await caller.send(request(message("What is in it?", TABLE))))["task"]
    artifacts = {artifact["name"]: artifact["parts"] for artifact in task["artifacts"]}
    events = await rest_of(await caller.open(request(message("What is in it?", TABLE))))
    asked: Json = (await caller.send(request("Hello")))["task"]
    answered: Json = (await caller.send(request(message("Here", TABLE, task=asked))))["task"]
    return {
        "state": words(task),
        "statistics": artifacts["statistics"][0]["data"],
        "summary": "".join(part["text"] for part in artifacts["summary"]),
        "plot": base64.b64decode(artifacts["plot"][0]["raw"])[:4],
        "streamed": [text_in(events), states(events)],
        "asked": [words(asked), words(answered), len(answered["artifacts"])],
    }


@pytest.mark.timeout(600)
@pytest.mark.req("V03-02", "AC-S-20")
async def test_a_client_of_each_generation_gets_the_same_of_one_server(
    sdk_client: SdkProcess, sdk_v03_client: SdkProcess
) -> None:
    seen: dict[str, Json] = {}
    async with serving(App(agent), grpc=GrpcServerSettings(port=0)) as url:
        for binding in ALL:
            seen[f"1.0, {binding}"] = await analyzed(await SdkCaller.connect(sdk_client, url, binding))
            seen[f"0.3, {binding}"] = await analyzed(await OlderCaller.connect(sdk_v03_client, url, binding))

    first = seen["1.0, JSONRPC"]
    assert first["asked"] == ["INPUT_REQUIRED", "COMPLETED", 3]
    assert (first["statistics"]["rows"], first["plot"]) == (4380, b"<svg")
    assert first["streamed"][0] == first["summary"]
    assert first["streamed"][1][-1] == "COMPLETED"
    for who, told in seen.items():
        assert told == first, who
