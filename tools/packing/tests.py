"""Tests of tools/same-bytes and tools/nightly, by programs that stand in for weir. tools/tests.py runs them."""

import subprocess
import tempfile
import unittest
from pathlib import Path

from .results import compact

TOOLS = Path(__file__).resolve().parent.parent
LISTED = '{"scenarios": [{"name": "a/one", "variants": ["x"], "compares": ["gcc"]}, {"name": "a/two", "compares": []}]}'
# It lists two scenarios, refuses the second, and prints what the placeholder has for the first.
PROGRAM = """\
#!/bin/sh
case "$*" in
"show scenarios --json") echo '{listed}' ;;
"run a/one --variant x"*) echo '{result}' ;;
*) exit {refusal} ;;
esac
"""


class SameBytes(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def program(self, name: str, result: str, refusal: int = 1) -> str:
        path = self.folder / name
        path.write_text(PROGRAM.format(listed=LISTED, result=result, refusal=refusal))
        path.chmod(0o755)
        return str(path)

    def compare(self, *words: str) -> subprocess.CompletedProcess:
        return subprocess.run([TOOLS / "same-bytes", *words], capture_output=True, text=True, check=False)

    def test_white_space_and_the_schemas_name_are_no_difference(self):
        first = self.program("first", '{"schema":"weir:run:1", "rate": 1.50}')
        same = self.compare(first, self.program("other", '{ "rate":1.50 }'))
        self.assertEqual((same.returncode, same.stdout), (0, "2 runs compared, 1 refused by all, 0 differ\n"), same.stderr)
        self.assertNotEqual(compact('{"a": 1.0}'), compact('{"a": 1.00}'))
        self.assertEqual(compact('{"a b": " c"}'), '{"a b":" c"}')

    def test_another_number_is_named(self):
        differs = self.compare(self.program("first", '{"rate":1}'), self.program("other", '{"rate":2}'), "--scenarios", "one")
        self.assertEqual(differs.returncode, 1)
        self.assertIn("differs  a/one x gcc: ", differs.stdout)

    def test_a_run_that_one_program_alone_refuses_differs(self):
        differs = self.compare(self.program("first", "{}"), self.program("other", "{}", refusal=0))
        self.assertEqual((differs.returncode, differs.stdout.splitlines()[0][:17]), (1, "differs  a/two  s"))

    def test_nothing_compared_is_no_success(self):
        program = self.program("first", "{}")
        nothing = self.compare(program, program, "--scenarios", "two")
        self.assertEqual(nothing.returncode, 1)
        self.assertIn("nothing was compared", nothing.stderr)
        unknown = self.compare(program, program, "--scenarios", "three")
        self.assertIn("three: no such scenario", unknown.stderr)
        self.assertEqual(self.compare(program).returncode, 2)


class Nightly(unittest.TestCase):
    def test_steps_are_explained_and_others_refused(self):
        told = subprocess.run([TOOLS / "nightly", "--help"], capture_output=True, text=True, check=True).stdout
        source = (TOOLS / "nightly").read_text()
        steps = source.split("steps=(", 1)[1].split(")", 1)[0].split()
        for step in steps:
            self.assertIn(f"\n  {step} ", told)
            self.assertIn(f"\n    {step}) ", source)
        refused = subprocess.run([TOOLS / "nightly", "--only", "files,none"], capture_output=True, text=True, check=False)
        self.assertEqual((refused.returncode, refused.stderr), (2, "tools/nightly: none is no step; see --help\n"))
