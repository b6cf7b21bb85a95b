"""How the server tells the generations apart: every row of the table, strict and lenient, with 0.3 and without."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman import App
from dragoman.bindings.dialect import check_guest_version, is_below, may_be_guest, takes_method
from dragoman.compat.v03.server_dialect import V03Dialect
from dragoman.errors import ConfigurationError, VersionNotSupportedError
from dragoman.ports.operations import Caller
from dragoman.ports.store import Scope
from tests.compat.server.speaking import ECHO, Old, checked_error, envelope, serving, told, told_in_proto
from tests.conformance.wire import as_caller, by_header, said

pytestmark = pytest.mark.req("V03-06", "V03-P10")

ABSENT = [{}, {"A2A-Version": ""}]
OLD = [{"A2A-Version": "0.3"}, {"a2a-version": "0.3.0"}, {"A2A-VERSION": "0.3.99"}]
NEW = [{"A2A-Version": "1.0"}, {"a2a-version": "1.0.1"}, {"A2A-Version": "1"}]
OTHER = [{"A2A-Version": version} for version in ("1.7", "0.2", "0.2.9", "99.0", "2", "abc")]


async def spoken(old: Old, method: str, headers: Any, query: str = "") -> tuple[str, Any]:
    """The form of an answer, ``"1.0"``, ``"0.3"`` or either, and its result or the code of its error."""
    params = told() if "/" in method else said()
    found = await old.post(f"/{query}", envelope(method, params), headers)
    assert found.status == 200
    answer = found.json
    if "result" in answer:
        return ("0.3" if answer["result"].get("kind") == "task" else "1.0"), "served"
    error = answer["error"]
    if "data" not in error:
        return "either", error["code"]
    if isinstance(error["data"], dict):
        checked_error(answer, 1)
        return "0.3", error["code"]
    return "1.0", error["code"]


@pytest.mark.parametrize("lenient", [False, True])
@pytest.mark.req("AMB-17", "VER-08", "V03-P21", "V03-P22")
async def test_the_table_of_json_rpc(lenient: bool) -> None:
    async with serving(infer_version=lenient) as old:
        for headers in ABSENT:
            assert await spoken(old, "message/send", headers) == ("0.3", "served")
            assert await spoken(old, "SendMessage", headers) == ("1.0", "served" if lenient else -32009)
            assert await spoken(old, "nonsense", headers) == ("either", -32601)
        for headers in OLD:
            assert await spoken(old, "message/send", headers) == ("0.3", "served")
            assert await spoken(old, "SendMessage", headers) == ("1.0", -32009)
            assert await spoken(old, "nonsense", headers) == ("either", -32601)
        for headers in NEW:
            assert (await spoken(old, "message/send", headers))[1] == -32601
            assert await spoken(old, "SendMessage", headers) == ("1.0", "served")
            assert (await spoken(old, "nonsense", headers))[1] == -32601
        for headers in OTHER:
            assert await spoken(old, "message/send", headers) == ("0.3", -32009)
            assert await spoken(old, "SendMessage", headers) == ("1.0", -32009)
            assert (await spoken(old, "nonsense", headers))[1] == -32009


@pytest.mark.parametrize("lenient", [False, True])
@pytest.mark.req("B149", "AMB-17")
async def test_the_table_of_http_json(lenient: bool) -> None:
    async with serving(infer_version=lenient) as old:
        task = await old.result("message/send", told())

        async def got(path: str, headers: Any) -> tuple[int, str]:
            found = (await old.wire.ask("GET", path, None, headers)).json
            if "error" in found and isinstance(found["error"], dict):
                return found["error"]["code"], "1.0"
            return found.get("code", 200), "0.3" if "type" in found or "kind" in found else "any"

        for headers in (*ABSENT, *OLD):
            assert await got(f"/v1/tasks/{task['id']}", headers) == (200, "any")
            assert await got("/v1/tasks", headers) == (-32004, "0.3")
        for headers in NEW:
            assert await got(f"/v1/tasks/{task['id']}", headers) == (400, "1.0")
            assert await got("/v1/tasks", headers) == (400, "1.0")
            assert await got(f"/tasks/{task['id']}", headers) == (200, "any")
        for headers in (*OLD, *OTHER):
            assert await got(f"/tasks/{task['id']}", headers) == (400, "1.0")
        for headers in OTHER:
            assert await got(f"/v1/tasks/{task['id']}", headers) == (-32009, "0.3")
        for headers in ABSENT:
            assert await got(f"/tasks/{task['id']}", headers) == ((200, "any") if lenient else (400, "1.0"))


async def test_the_query_names_a_version_where_no_header_does(old: Old) -> None:
    assert await spoken(old, "message/send", {}, "?a2a-version=0.3") == ("0.3", "served")
    assert (await spoken(old, "message/send", {}, "?A2A-Version=1.0"))[1] == -32601
    assert await spoken(old, "message/send", {"A2A-Version": "0.3"}, "?A2A-Version=1.0") == ("0.3", "served")
    assert await spoken(old, "SendMessage", {}, "?A2A-Version=1.0") == ("1.0", "served")


async def test_an_error_for_a_missing_version_says_so_and_what_to_send(old: Old) -> None:
    found = await old.rpc("SendMessage", said())
    named = await old.rpc("message/send", told(), headers={"A2A-Version": "1.7"})

    assert "missing" in found.error["message"]
    assert "A2A-Version: 1.0" in found.error["message"]
    assert named.error["data"]["supportedVersions"] == "0.3"


async def test_a_slash_method_under_1_0_is_told_its_name_there(old: Old) -> None:
    found = await old.rpc("message/send", told(), headers={"A2A-Version": "1.0"})

    assert "SendMessage" in found.error["message"]


async def test_both_generations_in_one_request_are_refused_clearly(old: Old) -> None:
    as_old = await old.rpc("message/send", {"message": {**said()["message"], "parts": [{"raw": "aGk="}]}})
    as_new = await old.rpc("SendMessage", told(), headers={"A2A-Version": "1.0"})

    assert (as_old.error["code"], as_new.error["code"]) == (-32602, -32602)
    assert "message.parts[0]" in json.dumps(as_old.error)
    assert "message.role" in json.dumps(as_new.error)


@pytest.mark.parametrize("lenient", [False, True])
async def test_without_0_3_its_methods_and_paths_are_refused(lenient: bool) -> None:
    async with serving(versions=("1.0",), infer_version=lenient) as old:
        for headers in (*ABSENT, *OLD, *OTHER):
            assert (await spoken(old, "message/send", headers)) == ("1.0", -32009)
        for headers in NEW:
            assert (await spoken(old, "message/send", headers))[1] == -32601
        found = await old.rest("GET", "/tasks/t", headers={"A2A-Version": "1.0"})
        alias = await old.wire.ask("GET", "/.well-known/agent.json", None, {"A2A-Version": "1.0"})
        tenant = await old.wire.rpc("ListTasks", {"tenant": "v1"})

    assert (found.status, found.error["status"]) == (404, "NOT_FOUND"), "a tenant may be called v1 then"
    assert alias.status == 404
    assert tenant.result["totalSize"] == 0


async def test_no_tenant_is_called_like_the_paths_of_0_3(old: Old) -> None:
    for found in (
        await old.wire.rpc("ListTasks", {"tenant": "v1"}),
        await old.wire.rpc("SendMessage", {**said(), "tenant": "v1"}),
        await old.wire.rest("GET", "/v1/tasks"),
        await old.wire.rest("POST", "/v1/message:send", said()),
        await old.wire.rest("GET", "/tasks?tenant=v1"),
    ):
        assert "tenant" in found.fields, found.body
    other = await old.wire.rest("GET", "/v10/tasks")
    assert other.result["totalSize"] == 0


async def test_credentials_are_asked_for_first_and_refusals_are_readable_by_both() -> None:
    async with serving(identify=by_header) as old:
        for found in (await old.rpc("message/send", told()), await old.rest("GET", "/tasks/t")):
            assert found.status == 401
            assert found.headers["www-authenticate"] == 'Bearer realm="agents"'
        mine = (await old.rpc("message/send", told(), headers=as_caller("ann"))).result  # type: ignore[arg-type]
        theirs = await old.rpc("tasks/get", {"id": mine["id"]}, headers=as_caller("bob"))  # type: ignore[arg-type]

    assert theirs.error["code"] == -32001


async def test_a_task_remembers_the_generation_that_it_was_made_by(store: str) -> None:
    app = App(ECHO, store=store)
    async with serving(app) as old:
        by_old = await old.result("message/send", told())
        by_rest = (await old.rest("POST", "/message:send", told_in_proto())).json["task"]
        by_new = (await old.wire.rpc("SendMessage", said())).result["task"]
        found = [
            await app.runtime._store.task(task["id"], Scope(owner=Caller().id, agent=ECHO.name))
            for task in (by_old, by_rest, by_new)
        ]

    assert [stored.wire_version for stored in found if stored] == ["0.3", "0.3", "1.0"]


async def test_a_task_of_one_generation_is_seen_and_moved_by_the_other(old: Old) -> None:
    asked = await old.result("message/send", told("!input Which floor?"))
    answered = await old.wire.rpc("SendMessage", said("4th", taskId=asked["id"], messageId="m-2"))
    seen = await old.result("tasks/get", {"id": asked["id"]})

    assert answered.result["task"]["status"]["state"] == "TASK_STATE_COMPLETED"
    assert seen["status"]["state"] == "completed"
    assert seen["artifacts"][0]["parts"] == [{"kind": "text", "text": "You said: 4th"}]


@pytest.mark.parametrize("versions", ["1.0", ("0.3",), ("1.0", "0.2"), ()])
def test_versions_that_cannot_be_are_refused(versions: Any) -> None:
    with pytest.raises(ConfigurationError, match="versions"):
        App(ECHO, versions=versions)


# The decision by itself.

DIALECT = V03Dialect()


@pytest.mark.parametrize(
    ("version", "method", "taken"),
    [
        ("", "message/send", True),
        ("0.3", "message/send", True),
        ("1.7", "message/send", True),
        ("1.0", "message/send", False),
        ("", "SendMessage", False),
        ("0.3", "SendMessage", False),
        ("", "what", True),
        ("0.3.0", "what", True),
        ("1.0", "what", False),
        ("9", "what", False),
    ],
)
def test_who_answers_a_method(version: str, method: str, taken: bool) -> None:
    assert takes_method(DIALECT, version, method) is taken


@pytest.mark.parametrize("version", ["1.0", "0.2", "x", "0.3.1.2"])
def test_other_versions_are_not_those_of_a_guest(version: str) -> None:
    assert not may_be_guest(DIALECT, version)
    with pytest.raises(VersionNotSupportedError):
        check_guest_version(DIALECT, version)


def test_a_prefix_ends_at_a_slash() -> None:
    paths = ["/v1", "/v1/", "/v1/tasks", "/v10", "/v1x/tasks", "/tasks", "/"]
    assert [is_below("/v1", path) for path in paths] == [True, True, True, False, False, False, False]
