"""``operations.py``: the table of operations."""

from __future__ import annotations

import re

from tools.generate.facts import OperationFact, Protocol, generated

# The one fact about operations that the proto does not hold (Spec: ERR-23).
CAPABILITIES = {
    "SendStreamingMessage": "streaming",
    "SubscribeToTask": "streaming",
    "CreateTaskPushNotificationConfig": "push_notifications",
    "GetTaskPushNotificationConfig": "push_notifications",
    "ListTaskPushNotificationConfigs": "push_notifications",
    "DeleteTaskPushNotificationConfig": "push_notifications",
    "GetExtendedAgentCard": "extended_agent_card",
}

HEAD = '''"""The operations of the protocol."""

from typing import Final

from dragoman.model import types as t
from dragoman.model.operation import Operation
'''


def render(protocol: Protocol) -> str:
    """The text of the module."""
    rows = [_row(operation) for operation in protocol.operations]
    names = ", ".join(constant(operation.name) for operation in protocol.operations)
    table = f"OPERATIONS: Final[dict[str, Operation]] = {{op.name: op for op in ({names},)}}\n"
    return "\n".join([f"# {generated(protocol.source)}\n{HEAD}", *rows, table])


def constant(name: str) -> str:
    """The name of an operation's constant."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).upper()


def _row(operation: OperationFact) -> str:
    route = operation.routes[0]
    path_fields = "".join(f'"{name}", ' for name in route.path_fields)
    return f'''{constant(operation.name)}: Final = Operation(
    name="{operation.name}",
    request=t.{operation.request},
    response=t.{operation.response},
    streaming={operation.streaming},
    http_method="{route.method}",
    http_path="{route.path}",
    path_fields=({path_fields}),
    body="{route.body}",
    capability="{CAPABILITIES.get(operation.name, "")}",
)
"""{operation.comment}"""
'''
