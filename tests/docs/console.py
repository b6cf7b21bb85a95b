"""A console with top-level ``await``, as ``python -m asyncio`` has it, for a program at the other end of its pipes.

Reads JSON strings, one to a line: pieces of source, which share their names. Answers each with one JSON object:
``printed`` is what it wrote to standard output, ``error`` its traceback or empty.
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import inspect
import io
import json
import sys
import traceback
from typing import Any


async def run(source: str, names: dict[str, Any]) -> dict[str, str]:
    """Run one piece of source."""
    printed, error = io.StringIO(), ""
    code = compile(source, "<documentation>", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    with contextlib.redirect_stdout(printed):
        try:
            result = eval(code, names)
            if inspect.iscoroutine(result):
                await result
        except BaseException:
            error = traceback.format_exc()
    return {"printed": printed.getvalue(), "error": error}


async def main() -> None:
    """Serve until the end of the input."""
    names: dict[str, Any] = {"__name__": "__main__"}
    while line := await asyncio.to_thread(sys.stdin.readline):
        answer = await run(json.loads(line), names)
        print(json.dumps(answer), flush=True)


asyncio.run(main())
