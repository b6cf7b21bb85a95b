"""Read the proto: compile it to descriptors, and take the facts from there."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import google.api.annotations_pb2 as http_annotations  # type: ignore[import-untyped]
import google.api.field_behavior_pb2 as field_behavior  # type: ignore[import-untyped]
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
    MethodDescriptorProto,
)
from grpc_tools import protoc  # type: ignore[import-untyped]

from tools.generate.facts import (
    EnumFact,
    FieldFact,
    MessageFact,
    OperationFact,
    Protocol,
    RouteFact,
    ValueFact,
)

Comments = Mapping[tuple[int, ...], str]

# Numbers of fields in descriptor.proto, which paths of comments are made of.
MESSAGES, ENUMS, SERVICES, FIELDS, VALUES, METHODS = 4, 5, 6, 2, 2, 2

SCALARS = {
    FieldDescriptorProto.TYPE_STRING: "string",
    FieldDescriptorProto.TYPE_BOOL: "bool",
    FieldDescriptorProto.TYPE_INT32: "int32",
    FieldDescriptorProto.TYPE_BYTES: "bytes",
    FieldDescriptorProto.TYPE_ENUM: "enum",
}

WELL_KNOWN = {
    ".google.protobuf.Timestamp": "timestamp",
    ".google.protobuf.Struct": "struct",
    ".google.protobuf.Value": "value",
}


def compile_descriptors(path: Path) -> FileDescriptorSet:
    """Descriptors of the proto at ``path`` and all it imports. RuntimeError when it does not compile."""
    includes = [path.parent, resources.files("grpc_tools") / "_proto", _googleapis()]
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "descriptors"
        options = [f"--descriptor_set_out={target}", "--include_imports", "--include_source_info"]
        if protoc.main(["protoc", *(f"-I{include}" for include in includes), *options, str(path)]):
            raise RuntimeError(f"{path.name} does not compile")
        return FileDescriptorSet.FromString(target.read_bytes())


def _googleapis() -> Path:
    return Path(http_annotations.__file__).parents[2]


def read_protocol(path: Path) -> Protocol:
    """The facts of the proto at ``path``."""
    file = compile_descriptors(path).file[-1]
    comments = {
        tuple(location.path): " ".join(location.leading_comments.split()) for location in file.source_code_info.location
    }
    return Protocol(
        source=path.name,
        package=file.package,
        messages=tuple(_message(message, comments, (MESSAGES, n), file) for n, message in enumerate(file.message_type)),
        enums=tuple(_enum(enum, comments, (ENUMS, n)) for n, enum in enumerate(file.enum_type)),
        operations=tuple(_operations(file, comments)),
    )


def _message(
    message: DescriptorProto, comments: Comments, path: tuple[int, ...], file: FileDescriptorProto
) -> MessageFact:
    fields = (
        _field(field, message, comments.get((*path, FIELDS, n), ""), file) for n, field in enumerate(message.field)
    )
    return MessageFact(message.name, comments[path], tuple(fields))


def _field(field: FieldDescriptorProto, message: DescriptorProto, comment: str, file: FileDescriptorProto) -> FieldFact:
    values = _map_values(field, message)
    kind, type_name = _kind(values or field, file)
    repeated = field.label == FieldDescriptorProto.LABEL_REPEATED
    in_oneof = field.HasField("oneof_index") and not field.proto3_optional
    singular_message = field.type == FieldDescriptorProto.TYPE_MESSAGE and not repeated
    return FieldFact(
        name=field.name,
        json_name=field.json_name,
        number=field.number,
        kind=kind,
        shape="map" if values else "list" if repeated else "single",
        type=type_name,
        required=field_behavior.REQUIRED in field.options.Extensions[field_behavior.field_behavior],
        presence=field.proto3_optional or in_oneof or singular_message,
        oneof=message.oneof_decl[field.oneof_index].name if in_oneof else "",
        deprecated=field.options.deprecated,
        comment=comment,
    )


def _map_values(field: FieldDescriptorProto, message: DescriptorProto) -> FieldDescriptorProto | None:
    for nested in message.nested_type:
        if nested.options.map_entry and field.type_name.endswith(f".{message.name}.{nested.name}"):
            return nested.field[1]
    return None


def _kind(field: FieldDescriptorProto, file: FileDescriptorProto) -> tuple[str, str]:
    """Kind of a value, and the short name of its type when it is one of ours."""
    short = field.type_name.removeprefix(f".{file.package}.")
    if field.type != FieldDescriptorProto.TYPE_MESSAGE:
        return SCALARS[field.type], short
    if field.type_name in WELL_KNOWN:
        return WELL_KNOWN[field.type_name], ""
    return "message", short


def _enum(enum: EnumDescriptorProto, comments: Comments, path: tuple[int, ...]) -> EnumFact:
    prefix = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", enum.name).upper() + "_"
    values = (
        ValueFact(value.name, value.name.removeprefix(prefix), value.number, comments.get((*path, VALUES, n), ""))
        for n, value in enumerate(enum.value)
    )
    return EnumFact(enum.name, comments[path], tuple(values))


def _operations(file: FileDescriptorProto, comments: Comments) -> Iterator[OperationFact]:
    for s, service in enumerate(file.service):
        for m, method in enumerate(service.method):
            yield _operation(method, comments[SERVICES, s, METHODS, m])


def _operation(method: MethodDescriptorProto, comment: str) -> OperationFact:
    rule = method.options.Extensions[http_annotations.http]
    return OperationFact(
        name=method.name,
        comment=comment,
        request=method.input_type.rpartition(".")[2],
        response=method.output_type.rpartition(".")[2],
        streaming=method.server_streaming,
        routes=tuple(_route(binding) for binding in (rule, *rule.additional_bindings)),
    )


def _route(rule: Any) -> RouteFact:
    verb = rule.WhichOneof("pattern") or "get"
    path: str = getattr(rule, verb).replace("=*}", "}")
    return RouteFact(verb.upper(), path, rule.body, tuple(re.findall(r"{(\w+)[}=]", path)))
