"""The log of a server on the command line: lines for people, or one JSON object a line for programs.

Spec: SEC-08, SEC-17.
"""

from __future__ import annotations

import json
import logging
import time

FORMATS = ("text", "json")


class JsonLines(logging.Formatter):
    """Each record as one JSON object: ``time`` (UTC), ``level``, ``logger``, ``message``, ``error`` for a traceback,
    and what a record of the audit says, with its own names, in ``audit``."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        found: dict[str, object] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        audit = getattr(record, "audit", None)
        if audit is not None:
            found["audit"] = audit
        if record.exc_info:
            found["error"] = self.formatException(record.exc_info)
        return json.dumps(found, ensure_ascii=True, default=str)


def set_up_logs(level: str, form: str) -> None:
    """Log to the standard error."""
    logging.basicConfig(level=level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    if form == "json":
        for handler in logging.getLogger().handlers:
            handler.setFormatter(JsonLines())
