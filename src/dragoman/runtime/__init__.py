"""The runtime: one writer for each task, durable logs, streams as cursors."""

from dragoman.runtime.limits import Limits
from dragoman.runtime.runtime import Runtime

__all__ = ["Limits", "Runtime"]
