//! The extension module `weir._weir`. The package `weir` around it (`python/weir/`) has what users call; what passes between
//! the two is JSON text and bytes, so that results are those of the command line.

mod calls;
mod controller;
mod gym;
mod interrupt;
mod live;
mod open;
mod outcome;
mod scenario;
mod sweep;

use controller::{Failed, PythonController};
use interrupt::Interrupt;
use outcome::Series;
use pyo3::exceptions::{PyRuntimeError, PyRuntimeWarning, PyValueError};
use pyo3::prelude::*;
use scenario::Given;
use std::ffi::CString;
use weir_cc::{Registry, Sender};
use weir_estimator::{Faults, Permits};
use weir_judge::paper::data::PaperData;
use weir_lab::catalogue;
use weir_lab::compare::{KEPT_RUNS, Outcome, Plan, Repeat};
use weir_lab::run::{RunError, RunOptions};
use weir_lab::scenario::InputError;

/// Runs of each scenario if neither the caller nor the paper states a number, as on the command line.
const PAPER_RUNS: u32 = 5;
/// The frame that a warning is for: that of the package's caller, above the package's own.
const STACK_LEVEL: i32 = 2;

/// A fault in what the caller gave: with its place, and a remedy if one is known.
fn value_error(e: &InputError) -> PyErr {
    let help = e.help_text().map_or_else(String::new, |h| format!("\nhelp: {h}"));
    PyValueError::new_err(format!("{e}{help}"))
}
fn json(value: &impl serde::Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|e| PyRuntimeError::new_err(e.to_string()))
}

/// The controllers by name: built-in ones, and learned policies as `onnx:FILE`.
fn base_registry() -> Registry {
    #[cfg_attr(not(feature = "onnx"), expect(unused_mut))]
    let mut registry = Registry::builtin();
    #[cfg(feature = "onnx")]
    weir_onnx::add_to(&mut registry);
    registry
}

/// The same, the caller's classes, and of programs (`exec:COMMAND`) those that the caller has named; and the faults of these.
fn registry(own: Vec<(String, Py<PyAny>)>, named: &[String], failed: &Failed) -> (Registry, Faults) {
    let mut registry = base_registry();
    let faults = weir_estimator::add_to(&mut registry, Permits::these(named));
    for (name, class) in own {
        let (spec, failed) = (PythonController::spec(&name), failed.clone());
        registry.register(spec, move |_, setup| {
            let made = Python::attach(|py| PythonController::new(class.clone_ref(py), setup, failed.clone()));
            Ok(weir_cc::Pair::alone(Sender::Custom(Box::new(made))))
        });
    }
    (registry, faults)
}

/// Warns of programs that failed during runs, whose flows went on at their floor.
fn warn_of(faults: &Faults, py: Python<'_>) -> PyResult<()> {
    faults.take().into_iter().try_for_each(|fault| {
        let text = format!("{fault}; numbers of its flow are those of the floor from then on");
        // An interior NUL cannot be in a warning.
        let text = CString::new(text.replace('\0', " ")).unwrap_or_default();
        PyErr::warn(py, &py.get_type::<PyRuntimeWarning>(), &text, STACK_LEVEL)
    })
}

/// One run. Gives the JSON of `weir run --json` without its schema's name, and the series if asked for.
#[pyfunction]
#[pyo3(signature = (scenario, *, controller=None, variant=None, seed=None, series=true, own=Vec::new(), progress=None))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments")]
fn run(
    py: Python<'_>,
    scenario: Given,
    controller: Option<String>,
    variant: Option<String>,
    seed: Option<u64>,
    series: bool,
    own: Vec<(String, Py<PyAny>)>,
    progress: Option<Py<PyAny>>,
) -> PyResult<(String, Option<Series>)> {
    let failed = Failed::default();
    let (registry, faults) = registry(own, controller.as_slice(), &failed);
    let file = scenario.open(&registry).map_err(|e| value_error(&e))?;
    let scenario = file.one(variant.as_deref(), controller.as_deref(), &registry).map_err(|e| value_error(&e))?;
    let seed = seed.unwrap_or(scenario.seed);
    let interrupt = Interrupt::new(progress, failed.clone());
    let made = py.detach(|| {
        let notice = |share| interrupt.progress(share);
        let options = RunOptions { registry: &registry, series, stop: interrupt.stop(), progress: &notice };
        weir_lab::run::run(&scenario, seed, &options)
    });
    interrupt.raise()?;
    warn_of(&faults, py)?;
    let mut result = made.map_err(|e: RunError| PyRuntimeError::new_err(e.to_string()))?;
    let series = result.series.take().map(Series::new);
    Ok((json(&result)?, series))
}

/// Many runs. Gives the JSON of `weir compare --json`, and the failures.
#[pyfunction]
#[pyo3(signature = (scenarios, *, controllers=None, runs=1, seed=None, threads=None, own=Vec::new(), progress=None))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments")]
fn compare(
    py: Python<'_>,
    scenarios: Vec<Given>,
    controllers: Option<Vec<String>>,
    runs: u32,
    seed: Option<u64>,
    threads: Option<usize>,
    own: Vec<(String, Py<PyAny>)>,
    progress: Option<Py<PyAny>>,
) -> PyResult<(String, Vec<String>)> {
    if runs == 0 {
        return Err(PyValueError::new_err("runs: 0: expected a whole number above zero"));
    }
    let failed = Failed::default();
    let (registry, faults) = registry(own, controllers.as_deref().unwrap_or_default(), &failed);
    let files = scenarios.iter().map(|s| s.open(&registry)).collect::<Result<Vec<_>, _>>();
    let files = files.map_err(|e| value_error(&e))?;
    let repeat = Repeat { runs, own: false, seed };
    let plan = Plan::new(&files, controllers.as_deref(), repeat, &registry).map_err(|e| value_error(&e))?;
    let outcome = all_runs(py, &plan, &registry, threads, Interrupt::new(progress, failed))?;
    warn_of(&faults, py)?;
    Ok((json(&outcome.json())?, outcome.failures))
}

/// A paper's experiments. Gives the JSON of `weir judge paper --json` without its schema's name, and the failures.
#[pyfunction]
#[pyo3(signature = (paper, *, table=None, runs=None, seed=None, threads=None, progress=None))]
fn reproduce(
    py: Python<'_>,
    paper: &str,
    table: Option<&str>,
    runs: Option<u32>,
    seed: Option<u64>,
    threads: Option<usize>,
    progress: Option<Py<PyAny>>,
) -> PyResult<(String, Vec<String>)> {
    if runs == Some(0) {
        return Err(PyValueError::new_err("runs: 0: expected a whole number above zero"));
    }
    let registry = base_registry();
    let mut data = PaperData::open(paper).map_err(|e| value_error(&e))?;
    if let Some(table) = table {
        data = data.with_table(table).map_err(|e| value_error(&e))?;
    }
    let files = data.files(&registry).map_err(|e| value_error(&e))?;
    let repeat = Repeat { runs: runs.or(data.runs).unwrap_or(PAPER_RUNS), own: runs.is_none(), seed };
    let plan = Plan::new(&files, None, repeat, &registry).map_err(|e| value_error(&e))?;
    if !plan.keeps_runs() {
        let message = format!("runs: {}: a paper's numbers need each run's result: at most {KEPT_RUNS}", plan.runs());
        return Err(PyValueError::new_err(message));
    }
    let outcome = all_runs(py, &plan, &registry, threads, Interrupt::new(progress, Failed::default()))?;
    let runs: Vec<_> = outcome.runs().cloned().collect();
    let reproduction = weir_judge::paper::reproduce(&data.paper, &runs);
    Ok((json(&reproduction)?, outcome.failures))
}

/// Makes a plan's runs on several threads, while this one looks for signals.
fn all_runs(
    py: Python<'_>,
    plan: &Plan,
    registry: &Registry,
    threads: Option<usize>,
    interrupt: Interrupt,
) -> PyResult<Outcome> {
    let all = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
    let notice = |share| interrupt.progress(share);
    let options = RunOptions { registry, series: false, stop: interrupt.stop(), progress: &notice };
    let work = || plan.run(threads.unwrap_or(all).max(1), &options, None, &|_, _| {});
    let outcome = interrupt.heeded(py, work)?;
    interrupt.raise()?;
    Ok(outcome)
}

/// The controllers as JSON: name, summary, source, whether it adapts, parameters.
#[pyfunction]
fn controllers() -> PyResult<String> {
    json(&catalogue::controllers(&Registry::builtin()))
}

/// The scenarios that ship with Weir as JSON: name, title, doc, variants, controllers, text.
#[pyfunction]
fn scenarios() -> PyResult<String> {
    json(&catalogue::scenarios(&Registry::builtin()).map_err(|e| value_error(&e))?)
}

#[pymodule]
fn _weir(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<Series>()?;
    module.add_class::<open::Recorded>()?;
    module.add_class::<gym::Calls>()?;
    for function in [
        wrap_pyfunction!(run, module)?,
        wrap_pyfunction!(compare, module)?,
        wrap_pyfunction!(live::call, module)?,
        wrap_pyfunction!(open::open, module)?,
        wrap_pyfunction!(reproduce, module)?,
        wrap_pyfunction!(controllers, module)?,
        wrap_pyfunction!(scenarios, module)?,
        wrap_pyfunction!(sweep::sweep_plan, module)?,
        wrap_pyfunction!(sweep::sweep_make, module)?,
        wrap_pyfunction!(sweep::sweep_keep, module)?,
        wrap_pyfunction!(calls::calls_plan, module)?,
        wrap_pyfunction!(calls::calls_make, module)?,
        wrap_pyfunction!(calls::calls_keep, module)?,
        wrap_pyfunction!(calls::calls_summary, module)?,
    ] {
        module.add_function(function)?;
    }
    Ok(())
}
