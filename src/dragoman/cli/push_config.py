"""``dragoman task push-config create``, ``get``, ``list`` and ``delete``.

Spec: A2ACLI_PUSH_001; section 14.8 of the register of the command line.
"""

from __future__ import annotations

from dragoman.cli import values
from dragoman.cli.failures import UsageError
from dragoman.cli.options import Leaf, Run, argument, option
from dragoman.cli.program import run_client
from dragoman.cli.reaching import Agent, reach
from dragoman.cli.redact import REDACTED
from dragoman.cli.secrets import authentication_of, learn, secret_of, warn_of_plain
from dragoman.cli.session import Session
from dragoman.cli.task_ids import task_id_of
from dragoman.cli.text import Record
from dragoman.errors import InvalidAgentResponseError
from dragoman.model import Empty, ListTaskPushNotificationConfigsResponse, TaskPushNotificationConfig


def _create(
    run: Run,
    task: str,
    url: str,
    config_id: str | None,
    token: str | None,
    token_env: str | None,
    auth_scheme: str | None,
    auth_credentials: str | None,
    auth_credentials_env: str | None,
) -> int:
    secret = secret_of("--token", token_env, token)
    credentials = secret_of("--auth-credentials", auth_credentials_env, auth_credentials)
    config = TaskPushNotificationConfig(
        id=config_id or "", url=url, token=secret, authentication=authentication_of(auth_scheme, credentials)
    )
    wanted = task_id_of(run, task)

    async def body(session: Session) -> int:
        session.named_task = wanted
        learn(session, secret, credentials)
        warn_of_plain(session, url)
        async with reach(session) as agent:
            _show(session, await agent.client.create_push_config(wanted, config))
        return 0

    return run_client(run, body)


def _get(run: Run, task: str, config_id: str) -> int:
    wanted = task_id_of(run, task)

    async def body(session: Session) -> int:
        session.named_task = wanted
        async with reach(session) as agent:
            _show(session, await agent.client.get_push_config(wanted, config_id))
        return 0

    return run_client(run, body)


def _delete(run: Run, task: str, config_id: str) -> int:
    wanted = task_id_of(run, task)

    async def body(session: Session) -> int:
        session.named_task = wanted
        async with reach(session) as agent:
            await agent.client.delete_push_config(wanted, config_id)
        if session.output.json:
            session.output.struct(Empty())
        else:
            record = Record()
            record.field("Deleted", config_id)
            record.field("Task", wanted)
            session.output.record(record)
        return 0

    return run_client(run, body)


def _list(run: Run, task: str, page_size: int | None, page_token: str | None, all: bool, stream: bool) -> int:
    if page_token and all:
        raise UsageError("--page-token excludes --all")
    wanted = task_id_of(run, task)

    async def body(session: Session) -> int:
        session.named_task = wanted
        async with reach(session) as agent:
            page = await _pages(agent, wanted, page_size or 0, page_token or "", all=all)
        if session.output.json and not session.stream:
            session.output.struct(page)
            return 0
        for config in page.configs:
            _show(session, config)
        if page.next_page_token and not session.output.json:
            record = Record()
            record.field("Next page", page.next_page_token)
            session.output.record(record)
        return 0

    return run_client(run, body, stream=stream)


async def _pages(
    agent: Agent, task: str, size: int, token: str, *, all: bool
) -> ListTaskPushNotificationConfigsResponse:
    """One page, or all of them as one."""
    page = await agent.client.list_push_configs(task, page_size=size, page_token=token)
    found = list(page.configs)
    while all and page.next_page_token:
        before = page.next_page_token
        page = await agent.client.list_push_configs(task, page_size=size, page_token=before)
        if page.next_page_token == before:
            raise InvalidAgentResponseError("ListTaskPushNotificationConfigs leads back to the same page")
        found += page.configs
    return ListTaskPushNotificationConfigsResponse(configs=found, next_page_token=page.next_page_token)


def _show(session: Session, config: TaskPushNotificationConfig) -> None:
    if session.output.json:
        session.output.struct(config)
        return
    record = Record()
    record.field("Config", config.id)
    record.field("Task", config.task_id)
    record.field("URL", config.url)
    record.field("Token", REDACTED if config.token else "")
    record.field("Authentication", config.authentication.scheme if config.authentication is not None else "")
    session.output.record(record)


_TASK = argument("task", "TASK-ID", required=True)
_CONFIG = argument("config_id", "CONFIG-ID", required=True)

CREATE = Leaf(
    "create",
    _create,
    "Have an agent tell a webhook what comes of a task. With the --id of another configuration it takes its place.",
    [
        _TASK,
        option("--url", metavar="URL", required=True, help="The webhook; https."),
        option("--id", "config_id", metavar="ID", help="Id of the configuration. [default: the agent's choice]"),
        option("--token-env", metavar="VARIABLE", help="Variable that holds the token, which comes with each call."),
        option("--token", metavar="TOKEN", help="The token itself, which others can see here: prefer --token-env."),
        option("--auth-scheme", metavar="SCHEME", help="Scheme of the Authorization header, such as Bearer."),
        option("--auth-credentials-env", metavar="VARIABLE", help="Variable that holds what comes behind it."),
        option("--auth-credentials", metavar="TEXT", help="That itself: prefer --auth-credentials-env."),
    ],
    examples=(
        "dragoman task push-config create 6f0f5a0e -a agent.example.com --url https://hooks.example.net/a2a "
        "--token-env HOOK_TOKEN",
    ),
)
GET = Leaf(
    "get",
    _get,
    "Show a configuration. Secrets are not shown in text; JSON is what the agent answers.",
    [_TASK, _CONFIG],
    examples=("dragoman task push-config get 6f0f5a0e pc-1 -a agent.example.com",),
)
LIST = Leaf(
    "list",
    _list,
    "List the configurations of a task.",
    [
        _TASK,
        option("--page-size", read=values.read_page_size, metavar="N", help="Configurations on a page, 1 to 100."),
        option("--page-token", metavar="TOKEN", help="The page to show, as the page before it says."),
        option("--all", is_flag=True, help="All pages."),
        option("--stream", is_flag=True, help="With -o json: each object on one line."),
    ],
    examples=("dragoman task push-config list 6f0f5a0e -a agent.example.com -o json",),
)
DELETE = Leaf(
    "delete",
    _delete,
    "Remove a configuration. That it is not there is no error.",
    [_TASK, _CONFIG],
    examples=("dragoman task push-config delete 6f0f5a0e pc-1 -a agent.example.com",),
)
