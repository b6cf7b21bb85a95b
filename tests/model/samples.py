"""Messages as they occur in practice."""

from __future__ import annotations

from dragoman.model import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    APIKeySecurityScheme,
    Artifact,
    AuthorizationCodeOAuthFlow,
    Message,
    OAuth2SecurityScheme,
    OAuthFlows,
    Part,
    Role,
    SecurityRequirement,
    SecurityScheme,
    SendMessageConfiguration,
    SendMessageRequest,
    StreamResponse,
    StringList,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
    Timestamp,
)

NOON = Timestamp.parse("2026-03-12T12:00:00.125Z")

QUESTION = Message(message_id="m-1", role=Role.USER, parts=[Part(text="How far is it?")], context_id="c-1")
ANSWER = Artifact(
    artifact_id="a-1",
    name="answer",
    parts=[
        Part(text="It is 1,200 km — 你好 👋"),
        Part(data={"km": 1200, "legs": [1, 2.5, None]}, media_type="application/json"),
        Part(raw=b"\xff\xef\x00", filename="map.png", media_type="image/png"),
        Part(url="https://maps.example/route", metadata={"zoom": 3}),
    ],
)
TASK = Task(
    id="t-1",
    context_id="c-1",
    status=TaskStatus(state=TaskState.COMPLETED, timestamp=NOON),
    artifacts=[ANSWER],
    history=[QUESTION],
    metadata={"n": 3},
)
REQUEST = SendMessageRequest(
    message=QUESTION,
    configuration=SendMessageConfiguration(accepted_output_modes=["text/plain"], history_length=0),
)
EVENTS = [
    StreamResponse(task=TASK),
    StreamResponse(message=Message(message_id="m-2", role=Role.AGENT, parts=[Part(text="Far.")])),
    StreamResponse(
        status_update=TaskStatusUpdateEvent(
            task_id="t-1", context_id="c-1", status=TaskStatus(state=TaskState.WORKING, timestamp=NOON)
        )
    ),
    StreamResponse(
        artifact_update=TaskArtifactUpdateEvent(
            task_id="t-1", context_id="c-1", artifact=ANSWER, append=True, last_chunk=True
        )
    ),
]
CARD = AgentCard(
    name="Router",
    description="Finds routes",
    version="1.2.3",
    supported_interfaces=[
        AgentInterface(url="https://agent.example/a2a", protocol_binding="JSONRPC", protocol_version="1.0")
    ],
    capabilities=AgentCapabilities(streaming=True, push_notifications=False),
    default_input_modes=["text/plain"],
    default_output_modes=["text/plain"],
    skills=[AgentSkill(id="route", name="Route", description="Finds a route", tags=["maps"])],
    security_schemes={
        "key": SecurityScheme(api_key_security_scheme=APIKeySecurityScheme(location="header", name="X-Key")),
        "oauth": SecurityScheme(
            oauth2_security_scheme=OAuth2SecurityScheme(
                flows=OAuthFlows(
                    authorization_code=AuthorizationCodeOAuthFlow(
                        authorization_url="https://id.example/authorize",
                        token_url="https://id.example/token",
                        scopes={"read": "Read routes"},
                        pkce_required=True,
                    )
                )
            )
        ),
    },
    security_requirements=[SecurityRequirement(schemes={"oauth": StringList(list=["read"])})],
)
