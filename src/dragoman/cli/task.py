"""``dragoman task get``, ``cancel``, ``list`` and ``subscribe``.

Spec: A2ACLI_TASK_GET_001, A2ACLI_TASK_CANCEL_001, A2ACLI_TASK_POLL_001 to A2ACLI_TASK_POLL_004,
A2ACLI_TASK_LIST_001, A2ACLI_TASK_SUBSCRIBE_001, A2ACLI_TASK_SUBSCRIBE_002.
"""

from __future__ import annotations

from datetime import UTC, datetime

from dragoman.cli import values
from dragoman.cli.choosing import refuse_both
from dragoman.cli.download import save_on_the_way
from dragoman.cli.failures import UsageError
from dragoman.cli.follow import Follower
from dragoman.cli.listing import Filters, list_all, list_page
from dragoman.cli.options import Leaf, Run, argument, option
from dragoman.cli.program import run_client
from dragoman.cli.reaching import reach
from dragoman.cli.session import Session
from dragoman.cli.showing import exit_status as status_of
from dragoman.cli.showing import following, show_task, warn_of_outcome
from dragoman.cli.task_ids import task_id_of
from dragoman.client import Result
from dragoman.errors import InvalidAgentResponseError, UnsupportedOperationError
from dragoman.model import Task, TaskState
from dragoman.protocol.lifecycle import is_settled

_UNTIL = option(
    "--until",
    read=values.one_of("settled", "terminal"),
    words=("settled", "terminal"),
    metavar="settled|terminal",
    default="settled",
    help="Where a wait ends: also when the task needs input, or only when it is over. [default: settled]",
)
_HISTORY = option("--history", read=values.read_count, metavar="N", help="Show the N latest messages, too.")
_SAVE = option("--save", metavar="DIR", help="Save the files of the artifacts there.")
_EXIT_STATUS = option(
    "--exit-status",
    is_flag=True,
    help="FAILED exits 10, REJECTED 11, CANCELED 12, INPUT_REQUIRED 13, AUTH_REQUIRED 14.",
)
_STATES = tuple(state.name.lower().replace("_", "-") for state in TaskState)
_ONE_LINE = option("--stream", is_flag=True, help="With -o json: each object on one line.")


def _task(result: Result) -> Task:
    if result.task is None:
        raise InvalidAgentResponseError("The agent answered about a task without one")
    return result.task


def _get(
    run: Run,
    task: str | None,
    history: int | None,
    until: str,
    save: str | None,
    stream: bool,
    exit_status: bool,
) -> int:
    refuse_both(run, stream=False)
    wanted = task_id_of(run, task)

    async def body(session: Session) -> int:
        session.named_task = wanted
        async with reach(session) as agent, following(session, events=False) as tell:
            follower = Follower(session, agent, tell, until=until, history=history)
            waits = session["wait"] or until == "terminal"
            result = await (follower.wait(wanted) if waits else follower.look(wanted))
        return _show(session, result, save, history=history is not None, by_outcome=exit_status)

    return run_client(run, body, stream=stream)


def _show(
    session: Session, result: Result, save: str | None, *, history: bool = False, by_outcome: bool = False
) -> int:
    task = _task(result)
    show_task(session, task, history=history)
    if save:
        save_on_the_way(session, task, save)
    return status_of(result, by_outcome=by_outcome)


def _cancel(run: Run, task: str | None, stream: bool, exit_status: bool) -> int:
    wanted = task_id_of(run, task)

    async def body(session: Session) -> int:
        session.named_task = wanted
        async with reach(session) as agent:
            canceled = await agent.client.cancel(wanted, metadata=session["metadata"])
            result = Result(task=canceled)
            if session["wait"] and not is_settled(canceled.status.state):
                async with following(session, events=False) as tell:
                    result = await Follower(session, agent, tell, until="terminal").wait(wanted)
        return _show(session, result, None, by_outcome=exit_status)

    return run_client(run, body, stream=stream)


def _subscribe(run: Run, task: str | None, stream: bool, until: str, save: str | None, exit_status: bool) -> int:
    wanted = task_id_of(run, task)

    async def body(session: Session) -> int:
        session.named_task = wanted
        async with reach(session) as agent:
            if not agent.streams:
                raise UnsupportedOperationError("The agent does not stream: its card says so")
            async with following(session, events=stream) as tell:
                result = await Follower(session, agent, tell, until=until).subscribe(wanted)
        if stream:
            warn_of_outcome(session, result)
            if save:
                save_on_the_way(session, _task(result), save)
            return status_of(result, by_outcome=exit_status)
        return _show(session, result, save, by_outcome=exit_status)

    return run_client(run, body, stream=stream)


def _list(
    run: Run,
    status: TaskState | None,
    page_size: int | None,
    page_token: str | None,
    all: bool,
    limit: int | None,
    since: str | None,
    history: int | None,
    with_artifacts: bool,
    stream: bool,
) -> int:
    if page_token and (all or limit is not None):
        raise UsageError("--page-token excludes --all and --limit")
    try:
        after = values.read_moment(since, datetime.now(UTC)) if since else None
    except ValueError as error:
        raise UsageError(f"--since {error}") from None
    filters = Filters(
        context_id=run.configuration()["context_id"] or "",
        status=status or TaskState.UNSPECIFIED,
        page_size=page_size,
        history_length=history,
        status_timestamp_after=after,
        include_artifacts=True if with_artifacts else None,
    )

    async def body(session: Session) -> int:
        async with reach(session) as agent:
            if all or limit is not None:
                await list_all(session, agent, filters, limit)
            else:
                await list_page(session, agent, filters, page_token or "")
        return 0

    return run_client(run, body, stream=stream)


GET = Leaf(
    "get",
    _get,
    "Show the state, the artifacts and, if asked for, the history of a task. With --wait, wait until the task is over "
    "or needs input.",
    [argument("task", "[TASK-ID]"), _HISTORY, _UNTIL, _SAVE, _ONE_LINE, _EXIT_STATUS],
    examples=(
        "dragoman task get 6f0f5a0e -a agent.example.com --history 5",
        "dragoman task get 6f0f5a0e -a agent.example.com --wait --poll-interval 5s --timeout 20m -o json",
    ),
)
CANCEL = Leaf(
    "cancel",
    _cancel,
    "Ask for a task to be canceled, and show the state that it came to. With --wait, follow it until it is over.",
    [argument("task", "[TASK-ID]"), _ONE_LINE, _EXIT_STATUS],
    examples=("dragoman task cancel 6f0f5a0e -a agent.example.com",),
)
SUBSCRIBE = Leaf(
    "subscribe",
    _subscribe,
    "Follow a running task by its event stream, for the first time or again, until it is over or needs input.",
    [
        argument("task", "[TASK-ID]"),
        option(
            "--stream", is_flag=True, help="Show events as they come; JSON Lines with -o json. Never from a setting."
        ),
        _UNTIL,
        _SAVE,
        _EXIT_STATUS,
    ],
    examples=("dragoman task subscribe 6f0f5a0e -a agent.example.com --stream -o json",),
)
LIST = Leaf(
    "list",
    _list,
    "List tasks, those with the newest status first; --context-id and --status narrow the list.",
    [
        option("--status", read=values.read_state, metavar="STATE", words=_STATES, help="Only tasks in this state."),
        option("--page-size", read=values.read_page_size, metavar="N", help="Tasks on a page, 1 to 100."),
        option("--page-token", metavar="TOKEN", help="The page to show, as the page before it says."),
        option("--all", is_flag=True, help="All pages."),
        option("--limit", read=values.read_count, metavar="N", help="Stop after this many tasks."),
        option(
            "--since",
            metavar="TIME",
            help="Only with a status since then: 2026-03-04T09:00:00Z, or 2h for 2 hours ago.",
        ),
        option("--history", read=values.read_count, metavar="N", help="With the N latest messages."),
        option("--with-artifacts", is_flag=True, help="With the artifacts."),
        _ONE_LINE,
    ],
    examples=("dragoman task list -a agent.example.com --status input-required",),
)
