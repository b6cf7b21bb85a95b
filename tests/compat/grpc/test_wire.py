"""The bytes of a2a.v1: against the protobuf library, and against the SDK of the 0.3 line."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.bindings.grpc.schema import message_class
from dragoman.compat.v03 import types as v03
from dragoman.compat.v03.fields import FIELDS
from dragoman.compat.v03.grpc.messages import RAW, TEXT
from dragoman.errors import InvalidParamsError
from dragoman.model import Role, TaskState, Timestamp, WireMessage
from tests.compat.grpc import oracle
from tests.model.strategies import messages
from tests.peers.processes import needed
from tools.peers import SDK_03, interpreter

TASK = v03.Task(
    id="t",
    context_id="c",
    status=v03.TaskStatus(
        state=TaskState.CANCELED,
        update=v03.Message(message_id="m", role=Role.AGENT, content=[v03.Part(text="stopped")]),
        timestamp=Timestamp.from_ms(1_700_000_000_123),
    ),
    artifacts=[
        v03.Artifact(
            artifact_id="a",
            name="n",
            parts=[
                v03.Part(file=v03.FilePart(file_with_bytes=b"hello", mime_type="text/plain", name="f.txt")),
                v03.Part(file=v03.FilePart(file_with_uri="https://a.example/f")),
                v03.Part(data=v03.DataPart(data={"whole": 3, "half": 0.5, "big": 2**53}), metadata={"k": [1, None]}),
            ],
        )
    ],
    history=[v03.Message(message_id="h", role=Role.USER, content=[v03.Part(text="go")], reference_task_ids=["o"])],
    metadata={"n": 1},
)


@pytest.mark.req("V03-08")
def test_the_protobuf_library_reads_what_we_write() -> None:
    found = oracle.read("Task", TEXT.encode(TASK))

    assert found["status"] == {
        "state": "TASK_STATE_CANCELLED",
        "message": {"messageId": "m", "role": "ROLE_AGENT", "content": [{"text": "stopped"}]},
        "timestamp": "2023-11-14T22:13:20.123Z",
    }
    file, link, data = found["artifacts"][0]["parts"]
    assert file == {"file": {"fileWithBytes": "YUdWc2JHOD0=", "mimeType": "text/plain", "name": "f.txt"}}
    assert link == {"file": {"fileWithUri": "https://a.example/f"}}
    assert data["data"] == {"data": {"whole": 3, "half": 0.5, "big": 2**53}}


@pytest.mark.req("V03-08", "V03-07")
def test_what_we_write_is_read_the_same_and_whole_numbers_stay_whole() -> None:
    read = TEXT.decode(v03.Task, TEXT.encode(TASK))

    assert read == TASK
    data = read.artifacts[0].parts[2].data
    assert data is not None
    assert repr(data.data["whole"]) == "3"


@pytest.mark.req("V03-P09")
def test_a_peer_with_plain_content_gets_and_gives_it_plain() -> None:
    text_that_looks_like_base64 = v03.Message(
        content=[v03.Part(file=v03.FilePart(file_with_bytes=content)) for content in (b"aGVsbG8=", b"hello", b"")]
    )

    data = RAW.encode(text_that_looks_like_base64)

    plain = [part.file.file_with_bytes for part in _parsed("Message", data).content]
    assert plain == [b"aGVsbG8=", b"hello", b""]
    assert RAW.decode(v03.Message, data) == text_that_looks_like_base64


def _parsed(name: str, data: bytes) -> Any:
    message = oracle.new(name)
    message.ParseFromString(data)
    return message


@pytest.mark.req("V03-P24")
def test_what_is_absent_stays_absent() -> None:
    for message in (
        v03.TaskStatus(state=TaskState.WORKING),
        v03.Task(id="t"),
        v03.TaskStatusUpdateEvent(task_id="t"),
        v03.Part(),
        v03.FilePart(name="n"),
        v03.SendMessageRequest(request=v03.Message()),
        v03.StreamResponse(),
    ):
        assert TEXT.decode(type(message), TEXT.encode(message)) == message


@pytest.mark.req("V03-P05")
def test_a_configuration_says_whether_to_wait_and_none_says_nothing() -> None:
    asked = v03.SendMessageRequest(request=v03.Message(), configuration=v03.SendMessageConfiguration())

    read = TEXT.decode(v03.SendMessageRequest, TEXT.encode(asked))

    assert read.configuration is not None
    assert read.configuration.blocking is False


@pytest.mark.req("V03-P25")
def test_of_several_flows_the_first_of_the_usual_order_is_written() -> None:
    flows = v03.OAuthFlows(
        password=v03.PasswordOAuthFlow(token_url="https://id.example/p"),
        client_credentials=v03.ClientCredentialsOAuthFlow(token_url="https://id.example/c"),
    )

    assert list(oracle.read("OAuthFlows", TEXT.encode(flows))) == ["clientCredentials"]


@pytest.mark.req("V03-08")
@settings(max_examples=300, deadline=None)
@given(st.sampled_from(tuple(FIELDS)).flatmap(messages))
def test_any_message_survives_the_wire_but_for_what_the_proto_has_no_presence_of(message: WireMessage) -> None:
    data = TEXT.encode(message)

    read = TEXT.decode(type(message), data)

    assert TEXT.decode(type(message), TEXT.encode(read)) == read
    if type(message) is not v03.Empty:
        assert _parsed(type(message).__name__, data) == _parsed(type(message).__name__, TEXT.encode(read))


@pytest.mark.parametrize("data", [b"\xff", b"\x0a\x05abc", b"\x1a\x02\x1a\xff"])
def test_bytes_that_are_no_message_are_an_error_that_names_the_type(data: bytes) -> None:
    with pytest.raises(InvalidParamsError, match=r"a2a\.v1\.Task"):
        TEXT.decode(v03.Task, data)


def test_a_request_without_a_message_is_an_error_that_names_it_as_json_has_it() -> None:
    with pytest.raises(InvalidParamsError) as refused:
        TEXT.decode_whole(v03.SendMessageRequest, b"")

    assert [violation.field for violation in refused.value.violations] == ["message"]


@pytest.mark.req("V03-08")
def test_both_generations_are_in_one_pool_that_is_ours() -> None:
    assert message_class("a2a.v1.Task").DESCRIPTOR.file.pool is message_class("lf.a2a.v1.Task").DESCRIPTOR.file.pool


FOREIGN = """
import sys
from a2a.grpc import a2a_pb2
kind, data = sys.argv[1], bytes.fromhex(sys.argv[2])
message = getattr(a2a_pb2, kind).FromString(data)
print(message.SerializeToString(deterministic=True).hex())
message.DiscardUnknownFields()
print(message.SerializeToString(deterministic=True).hex())
"""

CARD = v03.AgentCard(
    name="n",
    description="d",
    url="https://a.example",
    version="1",
    protocol_version="0.3.0",
    preferred_transport="GRPC",
    capabilities=v03.AgentCapabilities(streaming=True, push_notifications=False),
    security_schemes={
        "k": v03.SecurityScheme(api_key_security_scheme=v03.APIKeySecurityScheme(location="header", name="X"))
    },
    security=[v03.Security(schemes={"k": v03.StringList(list=["s"])})],
    skills=[v03.AgentSkill(id="s", name="n", description="d", tags=["t"])],
    additional_interfaces=[v03.AgentInterface(url="https://a.example", transport="GRPC")],
    icon_url="https://a.example/i",
)
EVENT = v03.StreamResponse(
    status_update=v03.TaskStatusUpdateEvent(
        task_id="t", context_id="c", status=v03.TaskStatus(state=TaskState.COMPLETED), final=True, metadata={"a": 1}
    )
)
PUSH = v03.CreateTaskPushNotificationConfigRequest(
    parent="tasks/t",
    config_id="c",
    config=v03.TaskPushNotificationConfig(
        name="tasks/t/pushNotificationConfigs/c",
        push_notification_config=v03.PushNotificationConfig(
            id="c", url="https://h.example", authentication=v03.AuthenticationInfo(schemes=["Bearer"])
        ),
    ),
)


@pytest.mark.req("V03-08")
@pytest.mark.parametrize("message", [TASK, CARD, EVENT, PUSH], ids=lambda message: type(message).__name__)
def test_the_sdk_of_the_0_3_line_reads_our_bytes_and_we_read_its(message: WireMessage) -> None:
    python = needed(interpreter, SDK_03)
    kind = type(message)

    done = subprocess.run(
        [python, "-c", FOREIGN, kind.__name__, TEXT.encode(message).hex()],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )

    theirs, what_they_know = done.stdout.splitlines()
    assert TEXT.decode(kind, bytes.fromhex(theirs)) == message
    if kind is not v03.Task:  # which holds a field that came later than that SDK
        assert what_they_know == theirs
