"""Tests of what tools/site is made of: python3 tools/tests.py runs them."""

import contextlib
import importlib.util
import io
import tempfile
import unittest
import xml.etree.ElementTree
from pathlib import Path

from documents import commands, controllers, plots, reference

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = """\
# Title

```sh
printf 'import time\\ntry:\\n time.sleep(60)\\nexcept KeyboardInterrupt:\\n raise SystemExit(130)\\n' > stops.py
echo one
```

```text
one
```

<!-- not run: it would fail -->
```sh
false
```

<!-- stopped after 2 s, as by Ctrl-C -->
```sh
python3 stops.py
```
"""


class Commands(unittest.TestCase):
    def test_blocks_have_their_notes_and_expected_lines(self):
        found = commands.shown(PAGE)
        self.assertEqual([b.body.splitlines()[-1] + "\n" for b in found], ["echo one\n", "false\n", "python3 stops.py\n"])
        self.assertEqual([b.expected for b in found], [["one"], [], []])
        self.assertEqual(found[1].note, "not run: it would fail")
        self.assertEqual(found[0].line, 3)

    def test_a_page_is_run_and_what_is_wrong_in_it_is_found(self):
        with tempfile.TemporaryDirectory() as place:
            page = Path(place) / "page.md"
            for text, failed in [
                (PAGE, 0),
                (PAGE.replace("one\n```\n\n<", "two\n```\n\n<"), 1),
                (PAGE.replace("not run: it would fail", "a remark"), 1),
            ]:
                page.write_text(text)
                with contextlib.redirect_stdout(io.StringIO()):
                    self.assertEqual(commands.check(Path(place), [page], Path("/bin/true")), failed, text)
            page.write_text("no command")
            with contextlib.redirect_stdout(io.StringIO()):
                self.assertEqual(commands.check(Path(place), [page], Path("/bin/true")), 1)

    def test_lines_are_expected_in_their_order(self):
        self.assertIsNone(commands.missing(["a", "c"], "a 1\nb\n  c\n"))
        self.assertEqual(commands.missing(["c", "a"], "a 1\nb\nc\n"), "a")


class Pages(unittest.TestCase):
    def test_cells_keep_a_table_whole(self):
        self.assertEqual(reference.cell("a | b\n<c>"), "a \\| b &lt;c>")

    def test_types_are_words(self):
        kinds = [
            ({"$ref": "#/$defs/Link"}, "[Link](#link)"),
            ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "text"),
            ({"type": ["integer", "null"]}, "whole number"),
            ({"type": "array", "items": {"type": "number"}}, "list of number"),
            ({"enum": ["a", "b"]}, "`a`, `b`"),
        ]
        for field, words in kinds:
            self.assertEqual(reference.kind_of(field), words)

    def test_commands_are_read_from_a_help_text(self):
        text = "About.\n\nUsage: weir <COMMAND>\n\nCommands:\n  run   Runs\n  show  Shows,\n        in lines\n  help  Help\n\nOptions:\n  -h\n"
        self.assertEqual(reference.subcommands(text), ["run", "show"])


PACED = {
    "name": "paced",
    "shelf": "algorithms",
    "params": [
        {"name": "beta", "unit": "1", "default": 0.85},
        {"name": "window", "unit": "bytes", "default": 46720.0},
        {"name": "gain", "unit": "1", "default": 0.0078125},
    ],
}
PACED_PAGE = """\
# paced

<!-- plot: paced -->

`crates/cc/src/algorithms/fixed.rs`

| parameter | default | meaning |
|---|---|---|
| `beta` | 0.85 | share |
| `window` | 46,720 bytes | window |
| `gain` | 0.0078125 | gain |
"""


class Listing:
    """A program that lists controllers."""

    def __init__(self, *listed):
        self.listed = list(listed)

    def json(self, *_):
        return {"controllers": self.listed}


class Controllers(unittest.TestCase):
    def test_a_true_page_has_no_fault(self):
        self.assertEqual(controllers.of_page(PACED_PAGE, PACED, ROOT), [])

    def test_each_fault_is_told(self):
        for old, new, words in [
            ("0.85", "0.8", "the default of `beta` is 0.85, not 0.8"),
            ("46,720 bytes", "46,720 ms", "the default of `window` is 46720 bytes, not 46,720 ms"),
            ("46,720 bytes", "46,720", "the default of `window` is 46720 bytes, not 46,720"),
            ("0.0078125", "0.0078", "the default of `gain` is 0.0078125, not 0.0078"),
            ("`beta`", "`alpha`", "`alpha` is no parameter of paced"),
            ("fixed.rs", "absent.rs", "`crates/cc/src/algorithms/absent.rs` is not there"),
            ("`crates/cc/src/algorithms/fixed.rs`", "", "it names no file of its source"),
            ("plot: paced", "plot: other", "it has no line <!-- plot: paced -->, or others"),
        ]:
            self.assertEqual(controllers.of_page(PACED_PAGE.replace(old, new), PACED, ROOT), [words])
        faults = controllers.of_page(PACED_PAGE.split("| parameter")[0], PACED, ROOT)
        self.assertEqual(faults, ["it has no parameter with its default"])

    def test_each_controller_of_the_shelf_has_a_listed_page(self):
        with tempfile.TemporaryDirectory() as place:
            root = Path(place)
            folder = root / "docs" / controllers.FOLDER
            folder.mkdir(parents=True)
            source = root / "crates/cc/src/algorithms/fixed.rs"
            source.parent.mkdir(parents=True)
            source.touch()
            (folder / "index.md").write_text("[paced](paced.md)\n")
            (folder / "paced.md").write_text(PACED_PAGE)
            of_a_paper = {"name": "old", "shelf": "papers"}
            for listed, found in [
                ([PACED, of_a_paper], ""),
                ([PACED, PACED | {"name": "new"}], "explanation/controllers/new.md: new has no page"),
            ]:
                out = io.StringIO()
                with contextlib.redirect_stdout(out):
                    self.assertEqual(controllers.check(root, Listing(*listed)), 1 if found else 0)
                self.assertIn(found, out.getvalue())
            (folder / "index.md").write_text("")
            with contextlib.redirect_stdout(io.StringIO()):
                self.assertEqual(controllers.check(root, Listing(PACED)), 1)
                self.assertEqual(controllers.check(root, Listing()), 1)


FLOWS = "time_s,flow,target_bps,goodput_bps\n" + "".join(f"{0.1 * k:.1f},video,{2e5 * k},{'' if k < 6 else 1e6}\n" for k in range(1, 11))
LINKS = "time_s,link,capacity_bps,queue_delay_ms\n" + "".join(f"{0.1 * k:.1f},bottleneck,2000000,{k}\n" for k in range(1, 11))


class Pictures(unittest.TestCase):
    def series(self, place):
        (Path(place) / "run.flows.csv").write_text(FLOWS + "1.0,audio,1,1\n")
        (Path(place) / "run.links.csv").write_text(LINKS)
        return plots.read(Path(place))

    def test_five_samples_are_a_point(self):
        with tempfile.TemporaryDirectory() as place:
            series = self.series(place)
        self.assertEqual([round(x, 3) for x in series.time], [0.3, 0.8])
        self.assertEqual([round(x, 3) for x in series.target], [0.6, 1.6])
        self.assertEqual((series.received[1], series.capacity, series.queue), (1.0, [2.0, 2.0], [3.0, 8.0]))
        self.assertNotEqual(series.received[0], series.received[0], "nothing was received yet")

    def test_series_of_no_run_or_of_several_are_refused(self):
        with tempfile.TemporaryDirectory() as place, self.assertRaisesRegex(RuntimeError, "0 files"):
            plots.read(Path(place))

    def test_the_mark_of_a_controller_becomes_its_picture(self):
        page = "a\n\n<!-- plot: gcc -->\n\nb\n"
        self.assertIn("\n\n![Capacity, target", plots.with_picture(page, "gcc"))
        self.assertIn("of gcc over time](gcc.svg)\n\nb", plots.with_picture(page, "gcc"))
        self.assertEqual(plots.with_picture(page, "nada"), page)

    @unittest.skipUnless(importlib.util.find_spec("matplotlib"), "matplotlib is not there")
    def test_a_run_gives_the_same_picture_each_time(self):
        with tempfile.TemporaryDirectory() as place:
            series, made = self.series(place), []
            for name in ["one.svg", "other.svg"]:
                plots.draw(series, Path(place) / name)
                made.append((Path(place) / name).read_bytes())
        self.assertEqual(made[0], made[1])
        words = "".join(xml.etree.ElementTree.fromstring(made[0]).itertext())
        for word in ["capacity", "target", "received", "queue, ms", "time, s"]:
            self.assertIn(word, words)

    @unittest.skipIf(importlib.util.find_spec("matplotlib"), "matplotlib is there")
    def test_without_matplotlib_the_way_to_get_it_is_told(self):
        with tempfile.TemporaryDirectory() as place, self.assertRaisesRegex(RuntimeError, "pip install matplotlib"):
            plots.draw(self.series(place), Path(place) / "one.svg")
