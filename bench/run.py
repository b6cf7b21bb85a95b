"""``make bench``: what dragoman costs, next to a bare ASGI app and to a2a-sdk, and how its costs grow.

    python -m bench              everything, some five minutes
    python -m bench ratios       requests and streams
    python -m bench growth       the curves

``--only TEXT`` takes the rows or curves with that text in their titles; ``--markdown`` ends with tables for the README.
"""

from __future__ import annotations

import argparse
import asyncio
import datetime
import importlib.metadata
import platform
import tempfile
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path

import uvloop

from bench.growth.chunks import measure_chunks
from bench.growth.curve import Curve, Sizes
from bench.growth.finished import measure_finished
from bench.growth.importing import measure_imports
from bench.growth.listing import measure_listing
from bench.growth.reading import measure_reading
from bench.growth.subscribers import measure_subscribers
from bench.grpc_ratios import GRPC_CASES, grpc_cells, run_grpc_case
from bench.processes import allow_many_files, sdk_python
from bench.ratios import HEADINGS, cells, run_case, wanted
from bench.tables import as_markdown, as_text

WIDTHS = (29, 9, 5, 8, 5, 9, 4, 7, 7, 9, 9, 8, 7, 5, 6)


def curves(sizes: Sizes, folder: Path, sdk: Path | None) -> dict[str, Callable[[], Awaitable[Curve]]]:
    """What makes each curve, by what ``--only`` finds it by."""

    async def imports() -> Curve:
        return await asyncio.to_thread(measure_imports, sizes, sdk)

    return {
        "chunks": lambda: measure_chunks(sizes, folder, sdk),
        "subscribers": lambda: measure_subscribers(sizes, sdk),
        "finished tasks": lambda: measure_finished(sizes, folder),
        "ListTasks": lambda: measure_listing(sizes, folder, sdk),
        "reading": lambda: measure_reading(sizes, folder, sdk),
        "import": imports,
    }


async def measure_ratios(only: str, seconds: float, folder: Path, sdk: Path | None) -> list[list[str]]:
    """Measure the rows, and print each when it is there."""
    print("\n".join(as_text(HEADINGS, [], widths=WIDTHS, left=2)), flush=True)
    rows: list[list[str]] = []

    def keep(row: list[str]) -> None:
        rows.append(row)
        print(as_text(HEADINGS, [row], widths=WIDTHS, left=2)[1], flush=True)

    for case, binding in wanted(only):
        keep(cells(await run_case(case, binding, seconds, folder, sdk)))
    for grpc_case in GRPC_CASES:
        if only in grpc_case.title:
            keep(grpc_cells(await run_grpc_case(grpc_case, seconds, folder, sdk)))
    return rows


async def measure_growth(only: str, folder: Path, sdk: Path | None) -> list[Curve]:
    """Measure the curves, and print each when it is there."""
    found = []
    for name, measure in curves(Sizes(), folder, sdk).items():
        if only in name:
            curve = await measure()
            print("\n".join(["", f"{curve.title}: {curve.goal}", *as_text(curve.headings, curve.rows)]), flush=True)
            found.append(curve)
    return found


def report(rows: Sequence[list[str]], found: Iterable[Curve]) -> list[str]:
    """All of it in Markdown, with the date."""
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ("uvicorn", "uvloop", "httptools"))
    today = datetime.datetime.now(datetime.UTC).date()
    lines = ["", f"Measured on {today}: Python {platform.python_version()}, {versions}, {platform.machine()}.", ""]
    if rows:
        lines += [*as_markdown(HEADINGS, rows), ""]
    for curve in found:
        lines += [f"{curve.title} ({curve.goal}):", "", *as_markdown(curve.headings, curve.rows), ""]
    return lines


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("what", nargs="?", choices=("all", "ratios", "growth"), default="all")
    options.add_argument("--seconds", type=float, default=1.5, help="for each server of each row of the ratios")
    options.add_argument("--only", default="", help="a part of a row's or a curve's title")
    options.add_argument("--markdown", action="store_true", help="end with tables in Markdown")
    given = options.parse_args()
    allow_many_files()
    sdk = sdk_python()
    rows: list[list[str]] = []
    found: list[Curve] = []
    with tempfile.TemporaryDirectory() as name:
        if given.what in ("all", "ratios"):
            rows = uvloop.run(measure_ratios(given.only, given.seconds, Path(name), sdk))
        if given.what in ("all", "growth"):
            found = uvloop.run(measure_growth(given.only, Path(name), sdk))
    if given.markdown:
        print("\n".join(report(rows, found)))
