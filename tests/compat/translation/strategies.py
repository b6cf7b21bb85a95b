"""Hypothesis strategies for what 0.3 and 1.0 can both say."""

from __future__ import annotations

from hypothesis import strategies as st
from msgspec.structs import replace

from dragoman.compat.v03 import types as v03
from dragoman.compat.v03.upward import WRAPPED
from dragoman.model import (
    Artifact,
    Message,
    Part,
    Role,
    StreamResponse,
    Task,
    TaskArtifactUpdateEvent,
    TaskPushNotificationConfig,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)
from tests.model.strategies import JSON_OBJECTS, JSON_VALUES, TIMESTAMPS

IDS = st.text("abcdefghij-0123456789", min_size=1, max_size=6)
TEXTS = st.text(max_size=8)
METADATA = st.none() | JSON_OBJECTS.filter(bool).filter(lambda found: WRAPPED not in found)
STATES = st.sampled_from(list(TaskState))
ROLES = st.sampled_from([Role.USER, Role.AGENT])
WORDS = st.lists(TEXTS.filter(bool), max_size=2)

PARTS = (
    st.builds(Part, text=TEXTS, metadata=METADATA)
    | st.builds(Part, raw=st.binary(max_size=9), filename=TEXTS, media_type=TEXTS, metadata=METADATA)
    | st.builds(Part, url=TEXTS, filename=TEXTS, media_type=TEXTS, metadata=METADATA)
    | st.builds(Part, data=JSON_VALUES, metadata=METADATA)
)
MESSAGES = st.builds(
    Message,
    message_id=IDS,
    context_id=TEXTS,
    task_id=TEXTS,
    role=ROLES,
    parts=st.lists(PARTS, max_size=3),
    metadata=METADATA,
    extensions=WORDS,
    reference_task_ids=WORDS,
)
ARTIFACTS = st.builds(
    Artifact,
    artifact_id=IDS,
    name=TEXTS,
    description=TEXTS,
    parts=st.lists(PARTS, max_size=3),
    metadata=METADATA,
    extensions=WORDS,
)
STATUSES = st.builds(TaskStatus, state=STATES, message=st.none() | MESSAGES, timestamp=st.none() | TIMESTAMPS)
TASKS = st.builds(
    Task,
    id=IDS,
    context_id=IDS,
    status=STATUSES,
    artifacts=st.lists(ARTIFACTS, max_size=2),
    history=st.lists(MESSAGES, max_size=2),
    metadata=METADATA,
)
STATUS_UPDATES = st.builds(TaskStatusUpdateEvent, task_id=IDS, context_id=IDS, status=STATUSES, metadata=METADATA)
ARTIFACT_UPDATES = st.builds(
    TaskArtifactUpdateEvent,
    task_id=IDS,
    context_id=IDS,
    artifact=ARTIFACTS,
    append=st.booleans(),
    last_chunk=st.booleans(),
    metadata=METADATA,
)
EVENTS = (
    st.builds(StreamResponse, task=TASKS)
    | st.builds(StreamResponse, message=MESSAGES)
    | st.builds(StreamResponse, status_update=STATUS_UPDATES)
    | st.builds(StreamResponse, artifact_update=ARTIFACT_UPDATES)
)
WEBHOOKS = st.builds(TaskPushNotificationConfig, id=IDS, task_id=IDS, url=TEXTS.filter(bool), token=TEXTS)


V03_FILES = st.builds(v03.FilePart, file_with_bytes=st.binary(max_size=9), mime_type=TEXTS, name=TEXTS) | st.builds(
    v03.FilePart, file_with_uri=TEXTS, mime_type=TEXTS, name=TEXTS
)
V03_PARTS = (
    st.builds(v03.Part, text=TEXTS, metadata=METADATA)
    | st.builds(v03.Part, file=V03_FILES, metadata=METADATA)
    | st.builds(v03.Part, data=st.builds(v03.DataPart, data=JSON_OBJECTS), metadata=METADATA)
)
V03_MESSAGES = st.builds(
    v03.Message,
    message_id=IDS,
    context_id=TEXTS,
    task_id=TEXTS,
    role=ROLES,
    content=st.lists(V03_PARTS, max_size=3),
    metadata=METADATA,
    extensions=WORDS,
    reference_task_ids=WORDS,
)
V03_STATUSES = st.builds(
    v03.TaskStatus, state=STATES, update=st.none() | V03_MESSAGES, timestamp=st.none() | TIMESTAMPS
)
V03_ARTIFACTS = st.builds(
    v03.Artifact,
    artifact_id=IDS,
    name=TEXTS,
    description=TEXTS,
    parts=st.lists(V03_PARTS, max_size=3),
    metadata=METADATA,
    extensions=WORDS,
)
V03_TASKS = st.builds(
    v03.Task,
    id=IDS,
    context_id=IDS,
    status=V03_STATUSES,
    artifacts=st.lists(V03_ARTIFACTS, max_size=2),
    history=st.lists(V03_MESSAGES, max_size=2),
    metadata=METADATA,
)
V03_EVENTS = (
    st.builds(v03.StreamResponse, task=V03_TASKS)
    | st.builds(v03.StreamResponse, msg=V03_MESSAGES)
    | st.builds(
        v03.StreamResponse,
        status_update=st.builds(
            v03.TaskStatusUpdateEvent,
            task_id=IDS,
            context_id=IDS,
            status=V03_STATUSES,
            final=st.booleans(),
            metadata=METADATA,
        ),
    )
    | st.builds(
        v03.StreamResponse,
        artifact_update=st.builds(
            v03.TaskArtifactUpdateEvent,
            task_id=IDS,
            context_id=IDS,
            artifact=V03_ARTIFACTS,
            append=st.booleans(),
            last_chunk=st.booleans(),
            metadata=METADATA,
        ),
    )
)


def by_final(event: v03.StreamResponse) -> v03.StreamResponse:
    """The event with ``final`` as its state demands, which is all that 1.0 can know of it."""
    update = event.status_update
    if update is None or update.status is None:
        return event
    final = update.status.state in {
        TaskState.COMPLETED,
        TaskState.FAILED,
        TaskState.CANCELED,
        TaskState.REJECTED,
        TaskState.INPUT_REQUIRED,
    }
    return v03.StreamResponse(status_update=replace(update, final=final))
