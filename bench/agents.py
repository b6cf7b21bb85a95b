"""The agents that are measured."""

from dragoman import Agent, App

reply = Agent("Reply", description="Answers with a direct message.")
task = Agent("Task", description="Answers with a task of one artifact.")
chunks = Agent("Chunks", description="Streams a hundred pieces of text.")

PIECE = "a piece of text of about forty characters "


@reply.reply
async def answer(ctx):  # type: ignore[no-untyped-def]
    """Repeat the text."""
    return f"You said: {ctx.text}"


@task.task
async def work(ctx):  # type: ignore[no-untyped-def]
    """Repeat the text in an artifact."""
    return f"You said: {ctx.text}"


@chunks.task
async def stream(ctx):  # type: ignore[no-untyped-def]
    """A hundred pieces."""
    for _ in range(100):
        yield PIECE


AGENTS = {"reply": reply, "task": task, "chunks": chunks}


def make_app(name: str, store: str | None) -> App:
    """The app for one measurement."""
    return App(AGENTS[name], store=store, public_url="http://127.0.0.1")
