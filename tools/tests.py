#!/usr/bin/env python3
"""Tests of what tools/release, tools/npm, tools/site, tools/same-bytes, tools/nightly, tools/sluice-vectors.py, tools/chromium-twins and estimators/ are made of,
and of README.md: python3 tools/tests.py"""

import contextlib
import gzip
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest
import zipfile
from pathlib import Path

sys.dont_write_bytecode = True

# The classes of documents/tests.py and packing/tests.py are run with those of this file.
from documents.tests import Commands, Controllers, Pages, Pictures  # noqa: F401
from packing import libraries, npm, packages, source, wheel
from packing.archives import Tree, gzipped, tar
from packing.bill import licence_files
from packing.failure import Failure, run
from packing.tests import Nightly, SameBytes  # noqa: F401
from packing.toolchain import Toolchain, glibc

ROOT = Path(__file__).resolve().parent.parent


class Archives(unittest.TestCase):
    def test_the_order_of_addition_changes_nothing(self):
        one, other = Tree(), Tree()
        for tree, names in [(one, ["b/x", "a"]), (other, ["a", "b/x"])]:
            for name in names:
                tree.add(name, name, 0o755 if name == "a" else 0o644)
        self.assertEqual(tar(one, 7, "top/"), tar(other, 7, "top/"))
        self.assertNotEqual(tar(one, 7), tar(one, 8))
        self.assertEqual(gzipped(b"text"), gzipped(b"text"))

    def test_entries_are_sorted_and_belong_to_root(self):
        tree = Tree()
        tree.add("b/x", "x")
        tree.add("a", "a", 0o755)
        tree.folders["c"] = 0o1777
        with tarfile.open(fileobj=io.BytesIO(tar(tree, 7))) as archive:
            entries = archive.getmembers()
        self.assertEqual([e.name for e in entries], ["a", "b", "b/x", "c"])
        self.assertEqual([oct(e.mode) for e in entries], ["0o755", "0o755", "0o644", "0o1777"])
        self.assertTrue(all((e.mtime, e.uid, e.gid, e.uname) == (7, 0, 0, "root") for e in entries))

    def test_written_files_do_not_depend_on_the_umask(self):
        tree = Tree()
        tree.add("folder/file", "text", 0o644)
        before = os.umask(0o077)
        try:
            with tempfile.TemporaryDirectory() as place:
                tree.write(Path(place), 7)
                file = Path(place) / "folder/file"
                self.assertEqual((oct(file.stat().st_mode)[-3:], file.stat().st_mtime), ("644", 7))
                self.assertEqual((oct(file.parent.stat().st_mode)[-3:], file.parent.stat().st_mtime), ("755", 7))
        finally:
            os.umask(before)


    def test_links_are_links(self):
        tree = Tree()
        tree.add("lib/x.so.1", "x")
        tree.links["lib/x.so"] = "x.so.1"
        with tarfile.open(fileobj=io.BytesIO(tar(tree, 7))) as archive:
            self.assertEqual([(e.name, e.linkname) for e in archive.getmembers() if e.issym()], [("lib/x.so", "x.so.1")])
        with tempfile.TemporaryDirectory() as place:
            tree.write(Path(place), 7)
            self.assertEqual((Path(place) / "lib/x.so").read_text(), "x")


class Chains(unittest.TestCase):
    def test_versions_of_glibc_are_checked(self):
        self.assertEqual(glibc("2.17"), "2.17")
        for text, words in [("2.5", "older than 2.17"), ("new", "no version"), ("2.17.1", "no version")]:
            with self.assertRaisesRegex(ValueError, words):
                glibc(text)

    def test_paths_of_this_machine_are_taken_out(self):
        env = Toolchain(Path("/there"), "0123456789abcdef").environment(["-Cextra"])
        self.assertIn("--remap-path-prefix=/there=/weir", env["CARGO_ENCODED_RUSTFLAGS"].split("\x1f"))
        self.assertTrue(env["CARGO_ENCODED_RUSTFLAGS"].endswith("-Cextra") and "/there=/weir" in env["CFLAGS"])
        self.assertEqual(env["WEIR_COMMIT"], "0123456789ab")


class Wheels(unittest.TestCase):
    def test_licences_are_added_with_their_line_and_at_a_fixed_time(self):
        with tempfile.TemporaryDirectory() as place:
            made = []
            for name in ["one.whl", "other.whl"]:
                path = Path(place) / name
                with zipfile.ZipFile(path, "w") as archive:
                    archive.writestr("w-1.dist-info/RECORD", "w/a.py,,\n")
                    archive.writestr("w/a.py", "pass")
                wheel.add_licences(path, "text", 0)
                made.append(path.read_bytes())
            with zipfile.ZipFile(path) as archive:
                names, record = archive.namelist(), archive.read("w-1.dist-info/RECORD").decode()
        self.assertEqual(made[0], made[1])
        licence = "w-1.dist-info/licenses/THIRD-PARTY-LICENSES.txt"
        self.assertEqual(names, ["w/a.py", licence, "w-1.dist-info/RECORD"])
        self.assertEqual(record, f"w/a.py,,\n{licence},sha256=mC2ePrmW9VnmM_TRlN7zdh2Qn1o7ZH0ahR_q1nwyydE,4\n")


class DebianPackages(unittest.TestCase):
    def test_what_is_needed_has_the_versions_of_its_symbols(self):
        asked = ["libc.so.6", "/lib64/ld-linux-x86-64.so.2", "ld-linux-x86-64.so.2", "libgstreamer-1.0.so.0", "libgcc_s.so.1"]
        found = packages.depends(asked, "2.17", {"libgstreamer1.0-0": "1.22", "libabsent": "1"})
        self.assertEqual(found, "libc6 (>= 2.17), libgcc-s1, libgstreamer1.0-0 (>= 1.22)")
        with self.assertRaisesRegex(Failure, "libother"):
            packages.depends(["libother.so.1"], "2.17")

    def test_pkg_config_finds_the_library_where_debian_has_it(self):
        template = (ROOT / "crates/capi/weir.pc.in").read_text().replace("@prefix@", "/made/here")
        text = libraries.relocated(template, Path("/made/here"), "x86_64-linux-gnu")
        self.assertIn("prefix=/usr\n", text)
        self.assertIn("libdir=${prefix}/lib/x86_64-linux-gnu\n", text)
        with self.assertRaises(Failure):
            libraries.relocated(text, Path("/made/here"), "aarch64-linux-gnu")

    def test_machines_have_debians_folders(self):
        self.assertEqual(libraries.multiarch("aarch64-unknown-linux-gnu"), "aarch64-linux-gnu")
        self.assertEqual(libraries.oldest_gstreamer(ROOT), "1.22")


class Sources(unittest.TestCase):
    def test_a_formula_has_no_marks_left(self):
        of = packages.Contents(ROOT, None, "1.2.3", "", {}, "", 0, "")
        name, text = source.formula(of, "https://weir.invalid/files/", "weir-1.2.3.tar.gz", b"text")
        self.assertEqual(name, "weir.rb")
        self.assertIn('url "https://weir.invalid/files/weir-1.2.3.tar.gz"', text.decode())
        self.assertIsNone(re.search(r"@[a-z0-9]+@", text.decode()))


class Npm(unittest.TestCase):
    def test_schemas_become_types(self):
        kinds = [
            ({"$ref": "#/$defs/Link"}, "Link"),
            ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "string | null"),
            ({"type": ["integer", "number", "null"]}, "number | null"),
            ({"type": "array", "items": {"type": ["string", "null"]}}, "(string | null)[]"),
            ({"type": "array", "prefixItems": [{"type": "number"}, {"const": "a"}]}, '[number, "a"]'),
            ({"enum": ["a", "b"]}, '"a" | "b"'),
            (True, "unknown"),
        ]
        for schema, words in kinds:
            self.assertEqual(npm.kind(schema, ""), words)
        schema = {"description": "Of */ it.", "properties": {"a": {"type": "number"}, "b-c": {"type": "string"}}, "required": ["a"]}
        text = '/** Of *\\/ it. */\nexport interface Of {\n  a: number;\n  "b-c"?: string;\n}\n'
        self.assertEqual(npm.declaration("Of", schema), text)

    def test_results_have_types_and_no_name_of_a_schema(self):
        text = npm.types(ROOT)
        for line in ["export interface RunResult {", "export interface OpenedCall {", "  flows: FlowSummary[];"]:
            self.assertIn(f"{line}\n", text)
        self.assertNotIn("weir:run", text)
        used = set(re.findall(r"[:|(] ?([A-Z]\w+)", re.sub(r"/\*\*.*\*/", "", text)))
        declared = set(re.findall(r"^export (?:interface|type) (\w+)", text, re.MULTILINE))
        self.assertEqual(used - declared, set())

    @unittest.skipUnless(shutil.which("node"), "node is not there")
    def test_a_simulator_that_stops_is_a_fault_and_is_started_again(self):
        # WebAssembly with the functions' names, whose answer is the instruction `unreachable`.
        stops = (
            "0061736d01000000010a0260017f017f6000017f030504000100000503010001074705066d656d6f727902000c776569725f726573657276650000"
            "0b776569725f616e7377657200010b776569725f6f757470757400020f776569725f6f75747075745f6c656e00030a1404040041080b0300000b04"
            "0041000b040041000b"
        )
        script = f"""
            const {{ Fault, Weir }} = await import({json.dumps((ROOT / npm.MODULE / "weir.js").as_uri())});
            const weir = await Weir.from(Buffer.from("{stops}", "hex"));
            for (let i = 0; i < 2; i++) {{
                try {{ weir.controllers(); }} catch (e) {{ console.log(e instanceof Fault, e.kind, e.message); }}
            }}"""
        done = subprocess.run(["node", "--input-type=module", "-e", script], capture_output=True, text=True, check=False)
        line = "true crash the simulator has stopped: unreachable (at most 1 GiB of memory is given)\n"
        self.assertEqual((done.stdout, done.stderr), (2 * line, ""))

    def test_every_request_has_a_method_and_a_type(self):
        listed = re.search(r"pub enum Request \{(.*?)\n\}", (ROOT / "crates/web/src/answer.rs").read_text(), re.DOTALL)[1]
        requests = [name.lower() for name in re.findall(r"^    ([A-Z][a-z]+)", listed, re.MULTILINE)]
        self.assertIn("outline", requests)
        module, types = [(ROOT / npm.MODULE / name).read_text() for name in ["weir.js", "index.d.ts"]]
        for name in requests:
            self.assertIn(f'ask: "{name}"', module)
            self.assertRegex(types, rf"\n  {name}\(")
            self.assertIn(f'"{name}"', types[types.index("export type Request") :])


class Roots(unittest.TestCase):
    """Documents outside of docs/, whose links no site is built from."""

    def slugs(self, page: Path) -> set[str]:
        headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
        return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}

    def test_links_lead_to_files_and_headings(self):
        count = 0
        for page in sorted(ROOT.glob("*.md")):
            for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
                path, _, heading = link.partition("#")
                if path.startswith(("http:", "https:")):
                    continue
                target = ROOT / path if path else page
                self.assertTrue(target.exists(), f"{page.name}: {link}")
                if heading:
                    self.assertIn(heading, self.slugs(target), f"{page.name}: {link}")
                count += 1
        self.assertGreater(count, 25)

    def test_the_readme_is_one_screen(self):
        self.assertLess(len((ROOT / "README.md").read_text().splitlines()), 70)


class Licences(unittest.TestCase):
    def test_texts_are_found_below_and_programs_are_not(self):
        with tempfile.TemporaryDirectory() as place:
            for name in ["LICENSE-MIT", "bundled/COPYING", "src/license.rs", "README.md", "a/b/c/d/LICENSE"]:
                (Path(place) / name).parent.mkdir(parents=True, exist_ok=True)
                (Path(place) / name).write_text(f"of {name} \n")
            found = licence_files(Path(place))
        self.assertEqual(found, {"LICENSE-MIT": "of LICENSE-MIT", "bundled/COPYING": "of bundled/COPYING"})


class Failures(unittest.TestCase):
    def test_a_missing_program_is_said_with_what_it_is_for(self):
        with self.assertRaisesRegex(Failure, "absent-program cannot be run .*: of nothing"):
            run(["absent-program"], "of nothing")
        with self.assertRaisesRegex(Failure, "false ended with 1"):
            run(["false"], "of coreutils")


# A controller whose rate is the start rate and then a tenth more with each message, and whose timer is 100 ms after it.
GROWING = """
class Sluice:
    def __init__(self, start_ns, floor_bps, ceiling_bps, start_bps, params):
        self.rate, self.due, self.factor = start_bps, None, params.get("growth", 1.1)
        self.queue = params.get("queue_target", 2.0)

    def on_sent(self, now_ns, sequence, size):
        pass

    def on_feedback(self, now_ns, packets, in_flight, rtt_ns):
        assert [p.arrival_ns - p.departure_ns for p in packets if p.arrival_ns is not None] == [23_000, 24_000]
        assert [(p.sequence, p.departure_ns, p.is_ce, p.was_lost) for p in packets] == [
            (4, 10_000, False, False), (5, 12_000, False, False), (9, 14_000, True, True)]
        self.rate, self.due = self.rate * self.factor, now_ns + 100_000_000

    def target(self):
        return self.rate, 2 * self.rate

    def timeout(self):
        return self.due

    def internals(self):
        return {"mode": 1, "queue_ms": self.queue + (self.factor != 1.1)}
"""


RUNNER = Path(__file__).resolve().parent / "sluice-vectors.py"
EXAMPLES = RUNNER.parent.parent / "examples/python"


class Vectors(unittest.TestCase):
    def replay(self, *options, **params):
        """What the runner prints of a vector with three packets, of which the last one has come after all."""
        sent = [["s", 10, 4, [2]], ["s", 14, 9, []]]
        message = ["f", 40, 30, 0, 4, [3, None, [9, 4, 3]], [110, 220, 100_040_000, 1, 2.0]]
        vector = {
            "name": "made", "requires": ["ECN"], "tick_ns": 1_000, "clock_offset": 20, "size": 100,
            "config": {"start": 0, "floor_bps": 1, "ceiling_bps": 1_000, "start_bps": 100, "params": params},
            "outputs": ["media_bps", "pacing_bps", "timeout_ns", "mode", "queue_ms"],
            "begin": [100, 200, None, 1, 2.0], "events": [*sent, message],
        }
        with tempfile.TemporaryDirectory() as place:
            module, file = Path(place) / "growing.py", Path(place) / "made.json"
            module.write_text(GROWING)
            file.write_text(json.dumps(vector))
            return self.runner(RUNNER, module, *options, file)

    def runner(self, *arguments):
        done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    def test_a_vector_passes_or_its_first_difference_is_told(self):
        self.assertEqual(self.replay(growth=1.1), (0, "made: passes\n1 of 1 pass\n"))
        code, text = self.replay(growth=1.2)
        self.assertEqual(code, 1)
        self.assertIn("event 2 (f) at 0.000040 s: media_bps is 120.0, expected 110", text)
        self.assertIn("before it: at the start: queue_ms is 3.0, expected 2.0", text)

    def test_internal_values_that_differ_are_counted(self):
        code, text = self.replay(queue_target=5.0)
        self.assertEqual(code, 0)
        self.assertIn("made: passes, but 2 of 2 internal values differ\n    the first: at the start: queue_ms is 5.0", text)

    def test_options_may_stand_after_the_module(self):
        self.assertEqual(self.replay("--with", "ECN,LATE")[0], 0)
        code, text = self.replay("--core")
        self.assertEqual(code, 2, text)
        self.assertIn("leave no vector", text)

    def test_without_vectors_the_runner_says_where_it_looked(self):
        with tempfile.TemporaryDirectory() as place:
            tools = Path(place) / "tools"
            tools.mkdir()
            alone = tools / RUNNER.name
            alone.write_text(RUNNER.read_text())
            code, text = self.runner(alone, "json")
        self.assertEqual(code, 2)
        self.assertIn(f"no vectors in {Path(place).resolve()}", text)

    def test_the_implementation_in_python_passes_all_vectors(self):
        code, text = self.runner(RUNNER, EXAMPLES / "sluice.py")
        self.assertEqual(code, 0, text)
        self.assertNotIn("differ", text)

    def test_its_core_passes_the_vectors_that_require_no_extension(self):
        with tempfile.TemporaryDirectory() as place:
            module = Path(place) / "core.py"
            module.write_text(f"import sys\nsys.path.insert(0, {str(EXAMPLES)!r})\nfrom sluice import Core as Sluice\n")
            code, text = self.runner("-B", RUNNER, "--core", module)
        self.assertEqual(code, 0, text)


ESTIMATORS = RUNNER.parent.parent / "estimators"


@unittest.skipIf(sys.version_info < (3, 11), "estimators/ needs Python 3.11")
class Estimators(unittest.TestCase):
    def script(self, name, *arguments, **env):
        words = [sys.executable, "-B", ESTIMATORS / name, *arguments]
        done = subprocess.run(words, capture_output=True, text=True, check=False, env={**os.environ, **env})
        return done.returncode, done.stdout + done.stderr

    def test_each_script_explains_itself(self):
        for name, word in [("build", "pion-gcc"), ("league", "judge rows"), ("faults/run", "reordering")]:
            code, text = self.script(name, "--help")
            self.assertEqual(code, 0, text)
            self.assertIn(word, text)
            self.assertIn("estimators/", text)

    def test_an_unknown_name_is_refused_with_those_that_are_known(self):
        for name, known in [("build", "pion-gcc, mediasoup-gcc, aiortc-remb"), ("faults/run", "reordering")]:
            code, text = self.script(name, "absent")
            self.assertEqual(code, 2)
            self.assertIn(known, text)

    def test_what_cannot_be_built_is_left_out_with_the_way_to_get_it(self):
        code, text = self.script("build", "pion-gcc", PATH="/nowhere")
        self.assertEqual(code, 0, text)
        self.assertIn("pion-gcc: left out, for it needs go (Go 1.25 or newer, https://go.dev/dl/)", text)

    def test_each_fault_has_two_controllers_and_one_budget(self):
        import tomllib

        files = sorted(ESTIMATORS.glob("faults/*/gate.toml"))
        self.assertGreaterEqual(len(files), 9)
        listed = (ESTIMATORS.parent / "docs/league.md").read_text()
        for file in files:
            gate = tomllib.loads(file.read_text())
            self.assertEqual(len(gate["controllers"]), 2, file)
            (suite,) = gate["suites"]
            self.assertEqual(len(suite["budgets"]), 1, file)
            if "scenario" in suite:
                self.assertTrue((file.parent / suite["scenario"]).exists(), file)
            self.assertIn(f"| `{file.parent.name}` |", listed)


# A program in place of weir: what it sends is even, with the share of a seed; its estimate is 2 Mbit/s.
SIMULATED = """#!/usr/bin/env python3
import os, sys
word = lambda name: sys.argv[sys.argv.index(name) + 1]
os.makedirs(word("--series"))
with open(word("--series") + "/1.flows.csv", "w") as out:
    out.write("time_s,sent_bps,cc_retransmissions_sent,cc_delay_based_bps,cc_loss_based_bps\\n")
    for k in range(1, 120):
        out.write(f"{k / 10},{1e6 * (1 + (int(word('--seed')) - 1) * 0.2)},{0},3000000,2000000\\n")
"""


class ChromiumTwins(unittest.TestCase):
    def record(self, folder, rate, estimate=2e6):
        os.makedirs(folder)
        (folder / "link.toml").write_text('duration = "90 s"\n[links.bottleneck]\nrate = "4 Mbps"\n[rtp.video]\ncontroller = "gcc"\n')
        truth = {"cause": "x", "connected_epoch_ms": 2000, "emulation_start_epoch_ms": 0, "emulator": {"began_epoch_ms": 0}}
        (folder / "truth.json").write_text(json.dumps(truth))
        with gzip.open(folder / "left-stats.jsonl.gz", "wt") as out:
            for t in range(1, 9):
                # Retransmissions of video do not count.
                video = {"type": "outbound-rtp", "kind": "video", "bytesSent": t * rate / 8 + 1000 * t, "retransmittedBytesSent": 1000 * t}
                stats = {"v": video, "p": {"type": "candidate-pair", "availableOutgoingBitrate": estimate}}
                out.write(json.dumps({"t": t + 0.01, "stats": stats}) + "\n")

    def twins(self, place, *arguments):
        program = Path(place) / "weir"
        program.write_text(SIMULATED)
        program.chmod(0o755)
        words = [sys.executable, ROOT / "tools/chromium-twins", place, "--weir", program, *arguments]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    def test_repeated_calls_are_compared_by_their_means(self):
        with tempfile.TemporaryDirectory() as place:
            # Means of 1.1 Mbit/s on both sides; one call has 1.0 or 1.2.
            self.record(Path(place) / "link-1", 1.0e6)
            self.record(Path(place) / "link-2", 1.2e6)
            code, text = self.twins(place, "--seeds", "2", "--json")
            self.assertEqual(code, 0, text)
            rate = json.loads(text)["calls"]["link"]["rate"]
            self.assertAlmostEqual(rate["means"], 0, places=6)
            self.assertAlmostEqual(rate["chance"], 100 * (0.2 / 1.0 + 0.2 / 1.2) / 2, places=6)
            self.assertAlmostEqual(rate["pair"], rate["chance"] / 2, places=6)

    def test_a_call_that_differs_is_marked_and_fails(self):
        with tempfile.TemporaryDirectory() as place:
            self.record(Path(place) / "other-3", 1.0e6, estimate=1.0e6)
            code, text = self.twins(place, "--seeds", "1", "--calls", "other-3")
            self.assertEqual(code, 1, text)
            self.assertRegex(text, r"other-3 +1 +0\.0 +0\.0 +100\.0 +100\.0 +x\n0 of 1")

    def test_a_folder_without_calls_says_how_to_make_them(self):
        with tempfile.TemporaryDirectory() as place:
            code, text = self.twins(place)
            self.assertEqual(code, 1)
            self.assertIn("tools/record-calls", text)

    def test_calls_over_given_links_have_their_names(self):
        with tempfile.TemporaryDirectory() as place:
            self.record(Path(place) / "mine", 1e6)
            words = [sys.executable, ROOT / "tools/record-calls", "absent", "--list", "--repeat", "2", "--over", Path(place) / "mine/link.toml"]
            done = subprocess.run(words, capture_output=True, text=True, check=True)
            self.assertEqual([line.split()[0] for line in done.stdout.splitlines()], ["mine-1", "mine-2"])


if __name__ == "__main__":
    unittest.main()
