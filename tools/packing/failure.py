"""Errors that are shown without a trace, and calls of other programs."""

import subprocess
from collections.abc import Sequence
from pathlib import Path


class Failure(Exception):
    """A release cannot be made; the text says why, and how it can."""


def run(command: Sequence[str | Path], what: str, **options) -> str:
    """Standard output of a program. `what` says what is needed where it is not there."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    except (FileNotFoundError, PermissionError, OSError) as error:
        raise Failure(f"{command[0]} cannot be run ({error.strerror}): {what}") from error
    if done.returncode != 0:
        said = done.stderr.strip() or done.stdout.strip()
        raise Failure(f"{' '.join(map(str, command))} ended with {done.returncode}: {said}")
    return done.stdout
