"""``dragoman send``. Spec: A2ACLI_SEND_001 to A2ACLI_SEND_006, A2ACLI_INTERACT_001 to A2ACLI_INTERACT_005."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import msgspec

from dragoman.cli import values
from dragoman.cli.choosing import is_async, refuse_both
from dragoman.cli.download import save_on_the_way
from dragoman.cli.failures import UsageError
from dragoman.cli.follow import Follower
from dragoman.cli.options import Leaf, Run, argument, option
from dragoman.cli.parts import DATA, FILE, MEDIA_TYPE, TEXT, Given, PartReader, arrange, read_file
from dragoman.cli.program import run_client
from dragoman.cli.reaching import Agent, reach
from dragoman.cli.secrets import learn, secret_of, warn_of_plain
from dragoman.cli.session import Session
from dragoman.cli.showing import exit_status, following, show_answer, warn_of_outcome
from dragoman.client import MessageOptions, Result
from dragoman.errors import A2AError
from dragoman.model import Message, Role, SendMessageRequest, TaskPushNotificationConfig, decode_json
from dragoman.ports.clock import SystemClock

_PART_OPTIONS = {"text_part": TEXT, "file_part": FILE, "data_part": DATA, "media_type": MEDIA_TYPE}
_ORDER = "dragoman.parts"


class _SendLeaf(Leaf):
    """Remembers the order of the part options, which click's parser tells but does not keep."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse, and once more for the order."""
        given, _, order = self.make_parser(ctx).parse_args(list(args))
        waiting = {name: list(given.get(name, ())) for name in _PART_OPTIONS}
        ctx.meta[_ORDER] = [
            (_PART_OPTIONS[param.name], waiting[param.name].pop(0)) for param in order if param.name in _PART_OPTIONS
        ]
        return super().parse_args(ctx, args)


def _send(
    run: Run,
    text: str | None,
    stream: bool,
    history: int | None,
    accept: Sequence[str],
    reference_task: Sequence[str],
    message_metadata: dict[str, Any] | None,
    message_id: str | None,
    push_url: str | None,
    push_token_env: str | None,
    request: str | None,
    save: str | None,
    exit_status: bool,
    **parts: object,
) -> int:
    refuse_both(run, stream=stream)
    occurrences = click.get_current_context().meta[_ORDER]
    if push_token_env and not push_url:
        raise UsageError("--push-token-env needs --push-url")
    asked = _Asked(
        given=arrange([*([(TEXT, text)] if text is not None else []), *occurrences]),
        request=request or "",
        message_id=message_id or "",
        save=save or "",
        stream=stream,
        by_outcome=exit_status,
        history=history,
    )
    if bool(asked.given) == bool(request):
        raise UsageError("there is nothing to send" if not request else "--request excludes the parts of a message")
    options = _options(run, history, accept, reference_task, message_metadata, push_url, push_token_env)

    async def body(session: Session) -> int:
        async with reach(session) as agent:
            return await _talk(session, agent, asked, options)

    return run_client(run, body, stream=stream, sending=bool(run.configuration()["task_id"]))


class _Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked for, the options of the message apart."""

    given: list[Given]
    request: str
    message_id: str
    save: str
    stream: bool
    by_outcome: bool
    history: int | None


def _options(
    run: Run,
    history: int | None,
    accept: Sequence[str],
    references: Sequence[str],
    message_metadata: dict[str, Any] | None,
    push_url: str | None,
    push_token_env: str | None,
) -> MessageOptions:
    configuration = run.configuration()
    options = MessageOptions(
        history_length=history,
        accepted_output_modes=list(accept),
        reference_task_ids=list(references),
        metadata=configuration["metadata"],
        message_metadata=message_metadata,
        task_id=configuration["task_id"] or "",
        context_id=configuration["context_id"] or "",
    )
    if push_url:
        options["push"] = TaskPushNotificationConfig(url=push_url, token=secret_of("--push-token", push_token_env))
    return options


async def _talk(session: Session, agent: Agent, asked: _Asked, options: MessageOptions) -> int:
    session.named_task = options.get("task_id", "")
    message, options = _compose(session, asked, options)
    push = options.get("push")
    if push is not None:
        learn(session, push.token, push.authentication.credentials if push.authentication is not None else "")
        warn_of_plain(session, push.url)
    async with following(session, events=asked.stream) as tell:
        follower = Follower(session, agent, tell, history=asked.history)
        if asked.stream and not agent.streams:
            session.notes.note("the agent does not stream; it is asked again and again instead")
        if is_async(session.configuration) and not asked.stream:
            result = await follower.send_only(message, options)
        else:
            result = await follower.send(message, options)
    return await _finish(session, result, asked)


async def _finish(session: Session, result: Result, asked: _Asked) -> int:
    if asked.stream:
        warn_of_outcome(session, result)
    else:
        show_answer(session, result, history=asked.history is not None)
    if asked.save and result.task is not None:
        save_on_the_way(session, result.task, asked.save)
    return exit_status(result, by_outcome=asked.by_outcome)


def _compose(session: Session, asked: _Asked, options: MessageOptions) -> tuple[Message, MessageOptions]:
    """The message, whose id stays the same when it has to be sent again, and its options."""
    reader = PartReader(sys.stdin.buffer.read, session.notes.warn)
    fresh = asked.message_id or SystemClock().new_id()
    if not asked.request:
        parts = [reader.read(given) for given in asked.given]
        return Message(message_id=fresh, role=Role.USER, parts=parts), options
    data = reader.standard_input() if asked.request == "-" else read_file(Path(asked.request))
    try:
        request = decode_json(SendMessageRequest, data, lenient_required=True)
    except A2AError as error:
        raise UsageError(f"--request holds no SendMessageRequest: {error}") from None
    message = request.message
    message.message_id = message.message_id or fresh
    message.role = Role.USER if message.role is Role.UNSPECIFIED else message.role
    return message, _with_request(options, request)


def _with_request(options: MessageOptions, request: SendMessageRequest) -> MessageOptions:
    """Options of the command line over those of a request from a file."""
    merged = MessageOptions(**options)
    configuration = request.configuration
    if merged.get("metadata") is None:
        merged["metadata"] = request.metadata
    if configuration is not None:
        if merged.get("history_length") is None:
            merged["history_length"] = configuration.history_length
        if not merged.get("accepted_output_modes"):
            merged["accepted_output_modes"] = configuration.accepted_output_modes
        if merged.get("push") is None:
            merged["push"] = configuration.task_push_notification_config
    return merged


SEND = _SendLeaf(
    "send",
    _send,
    "Send a message and wait for what comes of it: begin an interaction, or continue one with --task-id (the same "
    "task) or --context-id (a new task in the same context). The parts keep the order of the command line; TEXT is the "
    "first. A TEXT or data of - is read from standard input.",
    [
        argument("text", "[TEXT]"),
        option("--text-part", "--text", "text_part", read=values.read_text, multiple=True, help="A part of text."),
        option(
            "--file-part",
            "--file",
            "file_part",
            metavar="PATH|URL",
            multiple=True,
            help="A file: its bytes for a path, the address alone for a URL.",
        ),
        option(
            "--data-part",
            "--data",
            "data_part",
            metavar="PATH|-|JSON",
            multiple=True,
            help="A part of data: JSON out of a file, standard input, or as it stands; @PATH is always a file.",
        ),
        option(
            "--media-type",
            read=values.read_media_type,
            metavar="TYPE",
            multiple=True,
            help="Media type of the part before it; guessed otherwise.",
        ),
        option(
            "--stream", is_flag=True, help="Show events as they come; JSON Lines with -o json. Never from a setting."
        ),
        option("--history", read=values.read_count, metavar="N", help="Show the N latest messages, too."),
        option("--accept", metavar="TYPE", multiple=True, help="Media type that can be taken; repeatable."),
        option("--reference-task", metavar="ID", multiple=True, help="A related task; repeatable."),
        option("--message-metadata", read=values.read_object, metavar="JSON", help="Metadata of the message."),
        option("--message-id", metavar="ID", help="Id of the message. [default: a fresh one]"),
        option("--push-url", metavar="URL", help="Webhook for the task."),
        option("--push-token-env", metavar="VARIABLE", help="Variable that holds the webhook's token."),
        option("--request", metavar="FILE|-", help="A whole SendMessageRequest as JSON, in place of parts."),
        option("--save", metavar="DIR", help="Save the files of the artifacts there."),
        option(
            "--exit-status",
            is_flag=True,
            help="FAILED exits 10, REJECTED 11, CANCELED 12, INPUT_REQUIRED 13, AUTH_REQUIRED 14.",
        ),
    ],
    examples=(
        'dragoman send -a agent.example.com "Quote 40 chairs" --file room.dwg --media-type image/vnd.dwg',
        "cat order.json | dragoman send -a agent.example.com --data - -o json",
        'dragoman send -a agent.example.com --stream "Full catalogue"',
        'dragoman send -a agent.example.com --task-id 6f0f5a0e "Third floor"',
    ),
)
