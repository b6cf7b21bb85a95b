"""The generated files are fresh, and say what the proto says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
from hypothesis import given, settings
from openapi_spec_validator import validate

from dragoman import model
from dragoman.compat.v03 import types as types_v03
from dragoman.model import FIELDS, OPERATIONS, WireMessage, encode_json
from tests.model.samples import CARD, EVENTS, REQUEST, TASK
from tests.model.strategies import any_message
from tools.generate import v03
from tools.generate.__main__ import MODEL, PACKAGE, PROTO, V03_PROTO, write
from tools.generate.facts import Protocol
from tools.generate.json_schema import NOT_EMPTY
from tools.generate.proto import read_protocol


@pytest.fixture(scope="module")
def protocol() -> Protocol:
    return read_protocol(PROTO)


def schema(name: str) -> Any:
    return json.loads((MODEL / "schema" / name).read_text(encoding="utf-8"))


@pytest.mark.req("DATA-01")
def test_the_checked_in_files_are_what_the_generator_makes_of_the_proto(tmp_path: Path) -> None:
    made = write(tmp_path)

    stale = [
        path.name
        for path in made
        if path.read_text(encoding="utf-8") != (PACKAGE / path.relative_to(tmp_path)).read_text(encoding="utf-8")
    ]
    assert stale == [], "run `make generate`"


@pytest.mark.req("DATA-01")
def test_the_proto_has_all_messages_fields_and_operations(protocol: Protocol) -> None:
    assert len(protocol.messages) == 44
    assert sum(len(message.fields) for message in protocol.messages) == 176
    assert len(protocol.operations) == 11


# What protocol 0.3 has under the same name as 1.0, or nearly so, and at another place.
NUMBERS_OF_0_3 = {
    "Artifact": {"artifactId": 1, "name": 3, "description": 4, "parts": 5, "metadata": 6, "extensions": 7},
    "TaskStatusUpdateEvent": {"taskId": 1, "contextId": 2, "status": 3, "final": 4, "metadata": 5},
    "Part": {"text": 1, "file": 2, "data": 3, "metadata": 4},
    "FilePart": {"fileWithUri": 1, "fileWithBytes": 2, "mimeType": 3, "name": 4},
    "SendMessageRequest": {"message": 1, "configuration": 2, "metadata": 3},
    "SendMessageConfiguration": {"acceptedOutputModes": 1, "pushNotification": 2, "historyLength": 3, "blocking": 4},
    "AgentCapabilities": {"streaming": 1, "pushNotifications": 2, "extensions": 3, "stateTransitionHistory": 4},
    "TaskPushNotificationConfig": {"name": 1, "pushNotificationConfig": 2},
    "GetTaskRequest": {"name": 1, "historyLength": 2},
    "StreamResponse": {"task": 1, "message": 2, "statusUpdate": 3, "artifactUpdate": 4},
    "TaskStatus": {"state": 1, "message": 2, "timestamp": 3},
}


@pytest.mark.req("V03-08")
def test_the_proto_of_0_3_has_all_messages_fields_and_operations() -> None:
    old = read_protocol(V03_PROTO)
    later = [field for message in old.messages for field in message.fields if field.comment.startswith("Later: ")]
    later_messages = [message for message in old.messages if message.comment.startswith("Later: ")]
    fields_of_those = sum(len(message.fields) for message in later_messages)

    assert (old.package, len(old.messages), sum(len(m.fields) for m in old.messages)) == ("a2a.v1", 47, 165)
    assert (len(later_messages), 165 - len(later) - fields_of_those) == (2, 150)
    assert [operation.name for operation in old.operations if operation.comment.startswith("Later: ")] == ["ListTasks"]
    assert len(old.operations) == 11


@pytest.mark.req("V03-08")
def test_the_proto_of_0_3_gives_fields_other_numbers_than_that_of_1_0() -> None:
    old = read_protocol(V03_PROTO)

    for name, numbers in NUMBERS_OF_0_3.items():
        assert {field.json_name: field.number for field in old.message(name).fields} == numbers
    state = next(enum for enum in old.enums if enum.name == "TaskState")
    assert [value.number for value in state.values] == [member.number for member in model.TaskState]
    assert {value.name for value in state.values} - {member.value for member in model.TaskState} == {
        "TASK_STATE_CANCELLED"
    }


@pytest.mark.req("V03-08")
def test_every_field_of_a_struct_of_0_3_has_the_names_of_the_proto_and_presence_where_json_rpc_has_it() -> None:
    for message in v03.read(V03_PROTO).messages:
        kind = getattr(types_v03, message.name)
        fields = [(field.name, field.encode_name) for field in msgspec.structs.fields(kind)]

        assert fields == [(field.name, field.json_name) for field in message.fields]
    assert types_v03.SendMessageConfiguration().blocking is None
    assert types_v03.AgentCapabilities().streaming is None


@pytest.mark.req("DATA-03")
def test_every_field_of_a_struct_has_the_names_of_the_proto(protocol: Protocol) -> None:
    for message in protocol.messages:
        kind = getattr(model, message.name)
        fields = [(field.name, field.encode_name) for field in msgspec.structs.fields(kind)]

        assert fields == [(field.name, field.json_name) for field in message.fields]


@pytest.mark.req("DATA-12", "DATA-15")
def test_required_fields_have_no_default_and_explicit_presence_defaults_to_absent() -> None:
    for kind, fields in FIELDS.items():
        structs = {field.name: field for field in msgspec.structs.fields(kind)}
        for field in fields:
            assert structs[field.name].required == field.required
            if field.presence and not field.required:
                assert structs[field.name].default in (None, msgspec.UNSET)


@pytest.mark.req("AMB-58")
def test_the_proto_gives_the_numbers_on_the_wire() -> None:
    numbers = {field.name: field.number for field in FIELDS[model.AgentCapabilities]}

    assert numbers["extended_agent_card"] == 4
    assert {field.name: field.number for field in FIELDS[model.AgentCard]}["signatures"] == 13


def test_every_type_says_what_it_is() -> None:
    assert [kind.__name__ for kind in FIELDS if not kind.__doc__] == []


@pytest.mark.req("AMB-41")
def test_the_json_schema_takes_the_samples() -> None:
    document = schema("a2a.schema.json")
    jsonschema.Draft202012Validator.check_schema(document)

    for sample in (TASK, CARD, REQUEST, *EVENTS):
        validator(document, type(sample)).validate(json.loads(encode_json(sample)))


def validator(document: Any, kind: type[WireMessage]) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator({**document, "$ref": f"#/$defs/{kind.__name__}"})


@pytest.mark.req("DATA-02")
@settings(max_examples=300, deadline=None)
@given(any_message())
def test_the_json_schema_complains_of_nothing_that_we_write_but_what_is_incomplete(message: WireMessage) -> None:
    if isinstance(message, model.Empty):
        return
    value = json.loads(encode_json(message))

    errors = list(validator(schema_of_messages, type(message)).iter_errors(value))

    # Random messages may have an empty oneof, an empty list of parts, or an enum number from the future.
    assert {error.validator for error in errors} <= {"oneOf", "anyOf", "minItems", "type"}
    assert all("TASK_STATE" in str(e.schema) or "ROLE" in str(e.schema) for e in errors if e.validator == "type")


schema_of_messages = schema("a2a.schema.json")


@pytest.mark.req("DATA-17")
@pytest.mark.parametrize("content", [{}, {"text": "a", "data": None}, {"text": 5}, {"raw": None}])
def test_the_json_schema_refuses_a_part_without_exactly_one_content(content: Any) -> None:
    with pytest.raises(jsonschema.ValidationError):
        validator(schema_of_messages, model.Part).validate(content)


def test_arrays_that_must_not_be_empty_are_required_ones(protocol: Protocol) -> None:
    for message, name in NOT_EMPTY:
        assert next(field for field in protocol.message(message).fields if field.name == name).required


@pytest.mark.req("HTTP-01")
def test_the_openapi_document_is_valid() -> None:
    validate(schema("openapi.json"))


@pytest.mark.req("HTTP-01", "HTTP-12", "AMB-49", "AMB-89")
def test_the_openapi_document_has_each_operation_with_and_without_a_tenant() -> None:
    paths = schema("openapi.json")["paths"]

    for operation in OPERATIONS.values():
        verb = operation.http_method.lower()
        path = operation.http_path.replace("{task_id}", "{taskId}")
        assert paths[path][verb]["operationId"] == operation.name
        assert paths["/{tenant}" + path][verb]["operationId"] == f"{operation.name}OfTenant"


@pytest.mark.req("AMB-88")
@pytest.mark.parametrize("prefix", ["", "/{tenant}"])
def test_the_openapi_document_has_both_verbs_of_subscribe(prefix: str) -> None:
    routes = schema("openapi.json")["paths"][prefix + "/tasks/{id}:subscribe"]

    assert set(routes) == {"get", "post"}
    for route in routes.values():
        assert list(route["responses"]["200"]["content"]) == ["text/event-stream"]


@pytest.mark.req("HTTP-03", "HTTP-04")
def test_the_openapi_document_names_query_parameters_in_camel_case() -> None:
    parameters = schema("openapi.json")["paths"]["/tasks"]["get"]["parameters"]

    names = {parameter["name"] for parameter in parameters if parameter.get("in") == "query"}

    assert names == {
        "tenant", "contextId", "status", "pageSize", "pageToken", "historyLength", "statusTimestampAfter",
        "includeArtifacts",
    }  # fmt: skip


@pytest.mark.req("HTTP-10")
def test_the_openapi_document_has_the_error_body_for_every_route() -> None:
    document = schema("openapi.json")

    error = document["components"]["schemas"]["Error"]["properties"]["error"]["properties"]

    assert set(error) == {"code", "status", "message", "details"}
    for routes in document["paths"].values():
        for verb in {"get", "post", "delete"} & set(routes):
            assert routes[verb]["responses"]["default"] == {"$ref": "#/components/responses/Error"}
