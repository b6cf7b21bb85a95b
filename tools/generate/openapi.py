"""``schema/openapi.json``: OpenAPI 3.1 of the HTTP+JSON binding.

Spec: §11, HTTP-01 to HTTP-12, AMB-88 to AMB-92.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tools.generate.facts import FieldFact, OperationFact, Protocol, RouteFact, generated
from tools.generate.json_schema import definitions, field_schema, message_schema

Object = dict[str, Any]

JSON_TYPES = ("application/a2a+json", "application/json")
REFERENCE = "#/components/schemas/"
CARD_PATH = "/.well-known/agent-card.json"

# Routes that the prose of the specification has beside those of the proto: operation → verb (Spec: AMB-88).
SECOND_VERBS = {"SubscribeToTask": "POST"}

ERROR: Object = {
    "description": "What an operation answers instead of its response when it fails.",
    "type": "object",
    "properties": {
        "error": {
            "type": "object",
            "properties": {
                "code": {"type": "integer", "description": "The HTTP status."},
                "status": {"type": "string", "description": "Name of the gRPC status."},
                "message": {"type": "string", "description": "Text for people."},
                "details": {
                    "type": "array",
                    "description": "ErrorInfo for errors of the protocol, BadRequest for fields that are wrong.",
                    "items": {
                        "type": "object",
                        "properties": {"@type": {"type": "string"}},
                        "required": ["@type"],
                    },
                },
            },
            "required": ["code", "message"],
        }
    },
    "required": ["error"],
}

HEADERS: dict[str, Object] = {
    "Version": {
        "name": "A2A-Version",
        "in": "header",
        "description": "Version of the protocol, as major.minor.",
        "schema": {"type": "string", "examples": ["1.0"]},
    },
    "Extensions": {
        "name": "A2A-Extensions",
        "in": "header",
        "description": "URIs of the extensions asked for, separated by commas.",
        "schema": {"type": "string"},
    },
}


def render(protocol: Protocol) -> str:
    """The text of the file."""
    document = {
        "openapi": "3.1.0",
        "info": {
            "title": "A2A, HTTP+JSON binding",
            "version": "1.0",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "x-generated": generated(protocol.source),
        "servers": [{"url": "/", "description": "The interface URL, as the agent card gives it."}],
        "paths": _paths(protocol),
        "components": {
            "schemas": definitions(protocol, REFERENCE) | {"Error": ERROR},
            "parameters": HEADERS,
            "responses": {"Error": _answer("The operation failed.", JSON_TYPES, REFERENCE + "Error")},
        },
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _paths(protocol: Protocol) -> dict[str, Object]:
    paths: dict[str, Object] = {}
    for operation in protocol.operations:
        for route in _routes(operation):
            verbs = paths.setdefault(_wire_path(route, operation, protocol), {})
            verbs[route.method.lower()] = _operation(operation, route, protocol)
    return paths | {CARD_PATH: _public_card()}


def _routes(operation: OperationFact) -> Iterator[RouteFact]:
    yield from operation.routes
    if verb := SECOND_VERBS.get(operation.name):
        for route in operation.routes:
            yield RouteFact(verb, route.path, "*", route.path_fields)


def _wire_path(route: RouteFact, operation: OperationFact, protocol: Protocol) -> str:
    names = {field.name: field.json_name for field in protocol.message(operation.request).fields}
    return route.path.format_map({name: f"{{{wire}}}" for name, wire in names.items()})


def _operation(operation: OperationFact, route: RouteFact, protocol: Protocol) -> Object:
    found: Object = {
        "operationId": _operation_id(operation, route),
        "summary": operation.comment,
        "parameters": [*_header_references(), *_parameters(operation, route, protocol)],
        "responses": {"200": _response(operation), "default": {"$ref": "#/components/responses/Error"}},
    }
    if route.body:
        found["requestBody"] = _body(operation, route, protocol)
    return found


def _operation_id(operation: OperationFact, route: RouteFact) -> str:
    verb = "" if route.method == operation.routes[0].method else route.method.capitalize()
    return operation.name + verb + ("OfTenant" if "tenant" in route.path_fields else "")


def _header_references() -> list[Object]:
    return [{"$ref": f"#/components/parameters/{name}"} for name in HEADERS]


def _parameters(operation: OperationFact, route: RouteFact, protocol: Protocol) -> Iterator[Object]:
    for field in protocol.message(operation.request).fields:
        in_path = field.name in route.path_fields
        if in_path or not route.body:
            yield _parameter(field, "path" if in_path else "query")


def _parameter(field: FieldFact, place: str) -> Object:
    found: Object = {"name": field.json_name, "in": place, "schema": field_schema(field, REFERENCE)}
    if field.comment:
        found["description"] = field.comment
    if place == "path" or field.required:
        found["required"] = True
    return found


def _body(operation: OperationFact, route: RouteFact, protocol: Protocol) -> Object:
    """The request without the fields that are in the path; may be empty when nothing in it is REQUIRED."""
    message = protocol.message(operation.request)
    schema: Object = {"$ref": REFERENCE + message.name}
    if route.path_fields:
        schema = message_schema(message, REFERENCE, without=route.path_fields)
    rest = (field for field in message.fields if field.name not in route.path_fields)
    return {
        "required": any(field.required for field in rest),
        "content": {kind: {"schema": schema} for kind in JSON_TYPES},
    }


def _response(operation: OperationFact) -> Object:
    if operation.response == "Empty":
        return _content("Done.", JSON_TYPES[:1], {"type": "object"})
    if operation.streaming:
        text = "Server-sent events; the data of each is one object of this schema."
        return _answer(text, ("text/event-stream",), REFERENCE + operation.response)
    return _answer("Done.", JSON_TYPES[:1], REFERENCE + operation.response)


def _answer(description: str, kinds: tuple[str, ...], reference: str) -> Object:
    return _content(description, kinds, {"$ref": reference})


def _content(description: str, kinds: tuple[str, ...], schema: Object) -> Object:
    return {"description": description, "content": {kind: {"schema": schema} for kind in kinds}}


def _public_card() -> Object:
    """The card that everybody may read; at the root of the host, wherever the interface is."""
    return {
        "servers": [{"url": "/", "description": "The root of the host."}],
        "get": {
            "operationId": "GetAgentCard",
            "summary": "Read the public agent card.",
            "parameters": [],
            "responses": {
                "200": _answer("Done.", JSON_TYPES[1:], REFERENCE + "AgentCard"),
                "default": {"$ref": "#/components/responses/Error"},
            },
        },
    }
