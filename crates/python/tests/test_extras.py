"""Tables for other libraries, types, learned policies, the notebooks and the documents' site: run by tests/extras.rs."""

import concurrent.futures
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import matplotlib
import numpy as np

import weir

# The package is tested from a copy of it; this file stays in the checkout.
ROOT = pathlib.Path(__file__).resolve().parents[3]
POLICY = ROOT / "examples/python/policy.onnx"
matplotlib.use("agg")


class Tables(unittest.TestCase):
    def test_series_go_to_other_libraries_without_a_copy(self):
        import polars
        import pyarrow

        run = weir.run("quick", controller="gcc", seed=1)
        name = f"{run.flows[0].name}.sent_bps"
        mine = run.series[run.flows[0].name, "sent_bps"]
        self.assertIs(run.series[run.flows[0].name, "sent_bps"], mine)
        arrow = pyarrow.table(run.series)
        self.assertEqual(arrow[name].chunk(0).buffers()[1].address, mine.__array_interface__["data"][0])
        for frame in (polars.from_arrow(arrow), run.series.to_polars()):
            np.testing.assert_array_equal(frame[name].to_numpy(), mine)
        self.assertEqual(run.series.to_pandas().index.name, "time_s")
        # NaN is what it was.
        delays = run.series[run.flows[0].name, "delay_ms"]
        self.assertEqual(np.isnan(arrow[f"{run.flows[0].name}.delay_ms"].to_numpy()).sum(), np.isnan(delays).sum())

    def test_rows_of_recordings_go_to_other_libraries(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "rtp.log"
            path.write_text("".join(f"{1747225741000 + 10 * i},102,7,{i},9000,false,1200,0,{i},1\n" for i in range(50)))
            packets = weir.open(path).recordings[0]["packets"]
        table = packets.to_arrow()
        self.assertEqual((table.num_rows, table["direction"].to_pylist()[0] in ("sent", "received", "passing")), (50, True))
        self.assertEqual(packets.to_polars()["size"].sum(), 50 * 1200)
        frame = packets.to_pandas()
        self.assertEqual((len(frame), frame["at_ms"].iloc[-1] - frame["at_ms"].iloc[0]), (50, 490))

    def test_results_are_tables(self):
        import pyarrow

        both = weir.compare("quick", controllers=["gcc", "nada"])
        self.assertEqual(pyarrow.table(both)["controller"].to_pylist(), ["gcc", "nada"])
        self.assertEqual(both.to_polars()["goodput_bps"].to_list(), [r["goodput_bps"] for r in both.rows()])
        self.assertIn("<td>nada</td>", both._repr_html_())
        self.assertEqual(len(weir.run("quick", controller="gcc").plot()), 2)


class Policies(unittest.TestCase):
    def test_the_examples_policy_beats_gcc_in_links_of_its_training_and_is_named_in_faults(self):
        import gymnasium
        import weir.gym

        name = f"onnx:{POLICY}"

        def reward(controller):
            envs = gymnasium.make_vec(
                "weir/Call-v0", num_envs=16, vectorization_mode="vector_entry_point", controller=controller, duration_s=30
            )
            envs.reset(seed=5)
            return np.mean([envs.step(np.zeros((16, 1)))[1] for _ in range(500)])

        learned, gcc = reward(name), reward("gcc")
        self.assertGreater(learned, gcc + 0.02)
        self.assertLess(learned, 1.0)
        run = weir.run("quick", controller=name, seed=2)
        self.assertEqual(run.controller, name)
        again = weir.compare("quick", controllers=[name], runs=2, seed=2, threads=2)
        self.assertGreater(again.rows()[0]["goodput_bps"], 0.5e6)
        for absent in ("onnx:absent.onnx", f"onnx:{__file__}"):
            with self.assertRaisesRegex(ValueError, absent.split("/")[-1].removeprefix("onnx:")):
                weir.run("quick", controller=absent)


class Types(unittest.TestCase):
    def test_a_typed_program_is_checked_against_the_package(self):
        with tempfile.TemporaryDirectory() as folder:
            programs = {
                "right.py": 'run: weir.Run = weir.run("quick", controller="gcc", seed=1)\nassert run.series is not None\nlength: float = run.series.interval_s\n',
                "wrong.py": 'weir.run("quick", sed=1)\nweir.run(3)\n',
            }
            for name, text in programs.items():
                (pathlib.Path(folder) / name).write_text("import weir\n\n" + text)
            command = [sys.executable, "-m", "mypy", "--cache-dir", folder, "--follow-imports=silent", *programs]
            environment = os.environ | {"MYPYPATH": os.environ["PYTHONPATH"]}
            out = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment)
            errors = [line for line in out.stdout.splitlines() if ": error:" in line]
            self.assertEqual([line.split(":")[0] for line in errors], ["wrong.py", "wrong.py"], out.stdout)


class Documents(unittest.TestCase):
    def test_the_notebooks_run(self):
        import nbclient
        import nbformat

        notebooks = sorted((ROOT / "examples/python/notebooks").glob("*.ipynb"))
        self.assertEqual(len(notebooks), 3)
        os.environ["MPLBACKEND"] = "agg"

        def run(notebook):
            content = nbformat.read(notebook, as_version=4)
            self.assertFalse(any(cell.get("outputs") for cell in content.cells), "outputs are not kept")
            with tempfile.TemporaryDirectory() as folder:
                nbclient.NotebookClient(
                    content,
                    timeout=300,
                    # A busy machine starts a kernel slowly.
                    startup_timeout=240,
                    kernel_name="python3",
                    resources={"metadata": {"path": folder}},
                ).execute()

        # A kernel's start and a notebook's end are mostly waiting.
        with concurrent.futures.ThreadPoolExecutor(len(notebooks)) as pool:
            begun = {notebook.name: pool.submit(run, notebook) for notebook in notebooks}
        for name, one in begun.items():
            with self.subTest(name):
                one.result()

    def test_the_site_is_built(self):
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", folder]
            out = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
            self.assertEqual(out.returncode, 0, out.stderr)
            self.assertIn("weir.run", (pathlib.Path(folder) / "python/index.html").read_text())


if __name__ == "__main__":
    unittest.main(verbosity=2)
