"""The commands that pages show, run as a reader types them.

A block marked `sh` is run by Bash, each page in a folder of its own from top to bottom. A block marked `text` behind it has lines that the
output has to have, in this order. A comment in the line before a block changes that:

    <!-- not run: REASON -->                  the block is not run
    <!-- stopped after N s, as by Ctrl-C -->   the last command is interrupted
"""

import contextlib
import os
import re
import signal
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

BLOCK = re.compile(r"(?:^<!-- (?P<note>[^\n]*) -->\n)?^```(?P<kind>sh|text)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
LONGEST = 300


@dataclass
class Shown:
    """A block of a page."""

    line: int
    note: str
    body: str
    # Lines that its output has to have.
    expected: list[str]


def shown(page: str) -> list[Shown]:
    found: list[Shown] = []
    for block in BLOCK.finditer(page):
        line = page.count("\n", 0, block.start("kind")) + 1
        if block["kind"] == "sh":
            found.append(Shown(line, block["note"] or "", block["body"], []))
        elif found:
            found[-1].expected += [text for text in block["body"].splitlines() if text.strip()]
    return found


def missing(expected: list[str], output: str) -> str | None:
    """The first expected line that does not follow those before it; a line may be the begin of one that is printed."""
    lines = iter(output.splitlines())
    for text in expected:
        if not any(line.strip().startswith(text.strip()) for line in lines):
            return text
    return None


def ended_within(child: subprocess.Popen, seconds: float) -> bool:
    try:
        child.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def run(block: Shown, folder: Path, env: dict[str, str]) -> tuple[int, str]:
    stop = re.fullmatch(r"stopped after (\d+) s, as by Ctrl-C", block.note)
    # The shell is replaced by an endless command, which is then the one that is interrupted.
    body = f"exec {block.body}" if stop else block.body
    with tempfile.TemporaryFile("w+") as out:
        child = subprocess.Popen(
            ["bash", "-euo", "pipefail", "-c", body],
            cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, start_new_session=True,
        )
        try:
            child.wait(int(stop[1]) if stop else LONGEST)
        except subprocess.TimeoutExpired:
            if stop:
                os.killpg(child.pid, signal.SIGINT)
                ended_within(child, LONGEST)
        finally:
            # Whatever it has left behind as well.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
        out.seek(0)
        code, text = child.returncode, out.read()
    # Interrupted, as it should be.
    return (0 if stop and code in (0, 130) else code), text


def check(root: Path, pages: list[Path], binary: Path) -> int:
    """Runs the blocks of all pages; returns how many failed."""
    failed = ran = 0
    for page in pages:
        with tempfile.TemporaryDirectory() as place:
            folder, tools = Path(place) / "empty", Path(place) / "bin"
            folder.mkdir()
            tools.mkdir()
            (tools / "weir").symlink_to(binary)
            env = os.environ | {"PATH": f"{tools}:{os.environ['PATH']}", "COLUMNS": "80", "NO_COLOR": "1", "HOME": place}
            for block in shown(page.read_text()):
                where = f"{page.relative_to(root)}:{block.line}"
                if block.note.startswith("not run: "):
                    print(f"not run  {where}: {block.note.removeprefix('not run: ')}")
                    continue
                code, output = run(block, folder, env)
                lacks = missing(block.expected, output)
                ran += 1
                if code == 0 and lacks is None:
                    print(f"good     {where}: {block.body.splitlines()[0]}")
                    continue
                failed += 1
                why = f"it ended with {code}" if code else f"its output has no line `{lacks}`"
                print(f"FAILED   {where}: {why}\n{block.body}--\n{output}")
    print(f"{ran} blocks were run, {failed} of them failed")
    return failed if ran else 1
