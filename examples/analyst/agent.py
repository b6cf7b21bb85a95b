"""An agent that reads a table and says what is in it.

    dragoman run examples.analyst.agent:agent

Send it a CSV file (a file part with ``raw`` bytes, media type ``text/csv``) or a data part: a list of objects, or
``{"columns": [...], "rows": [[...], ...]}``. Without a table it asks for one. While it works it reports progress; it
gives back three artifacts: ``statistics`` (data), ``summary`` (Markdown, streamed in pieces as it is written) and
``plot`` (an SVG file). A table that cannot be read fails the task with a message that names the line.

``{"resamples": 2000}`` in the metadata of the message asks for a finer estimate of the means, which takes longer.
The work has no effect outside of the task and its random numbers are seeded, so it may be run again after a crash.

``gauges.csv`` beside this file is a table to try it with; ``make_data.py`` has made it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from dragoman import RESUMABLE_STREAMS, Agent, Artifact, Context, Fail, Part

from .describe import Bootstrap, correlations, describe
from .plot import draw_plot
from .report import closing, opening, section
from .table import BadTable, Column, Table, read_csv, read_data

RESAMPLES = 200
MOST_RESAMPLES = 20_000

agent = Agent(
    "Analyst",
    description="Reads a table and gives back statistics, a summary and a plot",
    input_modes=("text/plain", "text/csv", "application/json"),
    output_modes=("application/json", "text/markdown", "image/svg+xml"),
    extensions=(RESUMABLE_STREAMS,),
)


@agent.task(
    id="describe-table",
    name="Describe a table",
    description="Statistics of every column, a summary in words, and histograms",
    tags=["csv", "statistics"],
    examples=["What is in this table?"],
    rerun=True,
)
async def analyze(ctx: Context) -> Artifact:
    """Find the table, describe its columns one by one, draw the plot."""
    table = await find_table(ctx)
    resamples = wanted_resamples(ctx.message.metadata or {})
    facts = []
    async with ctx.artifact_stream(artifact_id="summary", name="summary", media_type="text/markdown") as summary:
        await summary.write(opening(table.rows, len(table.columns)))
        for number, column in enumerate(table.columns, start=1):
            await ctx.update(f"Column {number} of {len(table.columns)}: {column.name}")
            facts.append(await describe_column(column, resamples))
            await summary.write(section(facts[-1]))
        pairs = await asyncio.to_thread(correlations, table)
        await summary.write(closing(pairs))
    await ctx.artifact(
        {"rows": table.rows, "columns": facts, "correlations": pairs}, artifact_id="statistics", name="statistics"
    )
    picture = await asyncio.to_thread(draw_plot, table.columns, f"{table.rows:,} rows")
    file = Part(raw=picture, media_type="image/svg+xml", filename="plot.svg")
    return Artifact(artifact_id="plot", name="plot", parts=[file])


async def find_table(ctx: Context) -> Table:
    """The table of the message; ask for it when there is none."""
    parts: Sequence[Part] = ctx.message.parts
    while True:
        try:
            table = await asyncio.to_thread(read_table, parts)
        except BadTable as fault:
            raise Fail(f"The table cannot be read. {fault}") from fault
        if table is not None:
            return table
        answer = await ctx.ask("Which table? Send a CSV file, or a data part with a list of objects.")
        parts = answer.message.parts


def read_table(parts: Sequence[Part]) -> Table | None:
    """The first table among the parts, or None. Raises BadTable."""
    for part in parts:
        if part.raw is not None:
            return read_csv(part.raw)
        if part.url is not None:
            raise BadTable("This agent opens no URLs: send the file itself.")
        if part.text is None:
            return read_data(part.data)
    return None


def wanted_resamples(metadata: dict[str, Any]) -> int:
    """The wish of the caller, within limits."""
    wish = metadata.get("resamples", RESAMPLES)
    if not isinstance(wish, int | float) or not 1 <= wish <= MOST_RESAMPLES:
        raise Fail(f"resamples must be a number from 1 to {MOST_RESAMPLES:,}.")
    return int(wish)


async def describe_column(column: Column, resamples: int) -> dict[str, Any]:
    """Statistics of a column. Works in a thread, slice by slice, so that a cancellation is heard in between."""
    facts = await asyncio.to_thread(describe, column)
    if column.is_numeric:
        bootstrap = Bootstrap(column, resamples)
        for count in bootstrap.slices():
            await asyncio.to_thread(bootstrap.draw, count)
        facts["mean_ci95"] = bootstrap.interval()
    return facts
