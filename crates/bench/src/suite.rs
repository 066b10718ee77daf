//! Workloads measured one after the other: CPU time of one thread, the best of some runs after one to warm up.

mod controllers;
#[cfg(target_os = "linux")]
mod loopback;
mod many;
mod sessions;
mod simulator;

use crate::ns3;
use crate::report::Report;
use cpu_time::ThreadTime;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use weir_cc::Registry;

/// Measurements of which the best counts, after one to warm up.
pub const TRIES: u32 = 3;

/// Why there is no report.
#[derive(Debug)]
pub enum BenchError {
    /// The stop flag was set.
    Stopped,
    /// A workload failed, in words.
    Failed(String),
}

impl BenchError {
    fn failed(e: impl std::fmt::Display) -> Self {
        Self::Failed(e.to_string())
    }
}

/// The suite of benchmarks, and its configuration.
#[derive(Clone, Copy)]
pub struct Suite<'a> {
    /// The controllers.
    pub registry: &'a Registry,
    /// Ends the measurement.
    pub stop: &'a AtomicBool,
    /// Share of the usual simulated time.
    pub scale: f64,
    /// Gets the share of the work that is done, and the name of the benchmark that begins.
    pub begins: &'a dyn Fn(f64, &str),
}

impl Suite<'_> {
    /// Measures everything. `ns3` has ns-3's runs of the same scenarios, if there are any. Errors: a workload fails, or the
    /// stop flag is set.
    pub fn measure(&self, ns3: &[ns3::Figures]) -> Result<Report, BenchError> {
        let work = Work::new(self);
        // First, while the process has no memory to reuse.
        let many = many::rows(&work)?;
        let mut rows = simulator::rows(&work, ns3)?;
        rows.extend(sessions::rows(&work)?);
        rows.extend(many);
        rows.extend(controllers::rows(&work)?);
        Ok(Report {
            version: env!("CARGO_PKG_VERSION"),
            debug_build: cfg!(debug_assertions),
            scale: self.scale,
            best_of: TRIES,
            rows,
            #[cfg(target_os = "linux")]
            loopback: loopback::rows(&work)?,
        })
    }
}

/// A measurement that is under way.
struct Work<'a> {
    suite: &'a Suite<'a>,
    /// Benchmarks that have begun, and all.
    begun: Cell<usize>,
    planned: usize,
}

impl<'a> Work<'a> {
    fn new(suite: &'a Suite<'a>) -> Self {
        let mut planned = crate::many::NUMBERS.len() + crate::simulator::SCENARIOS.len() + sessions::COUNT;
        planned += suite.registry.specs().len();
        #[cfg(target_os = "linux")]
        {
            planned += loopback::TRANSPORTS.len();
        }
        Self { suite, begun: Cell::new(0), planned }
    }

    /// The next benchmark begins. Errors: the stop flag is set.
    fn begin(&self, name: &str) -> Result<(), BenchError> {
        let begun = self.begun.replace(self.begun.get() + 1);
        (self.suite.begins)(begun as f64 / self.planned as f64, name);
        self.check()
    }

    fn check(&self) -> Result<(), BenchError> {
        if self.suite.stop.load(Ordering::Relaxed) { Err(BenchError::Stopped) } else { Ok(()) }
    }

    /// The result of a workload and its least CPU time in s.
    fn best<T>(&self, name: &str, mut once: impl FnMut() -> Result<T, BenchError>) -> Result<(T, f64), BenchError> {
        self.begin(name)?;
        let mut made = once()?;
        let mut least = f64::INFINITY;
        for _ in 0..TRIES {
            self.check()?;
            let start = ThreadTime::now();
            made = once()?;
            least = least.min(start.elapsed().as_secs_f64());
        }
        Ok((made, least.max(1e-9)))
    }
}

/// A run that failed.
fn run_failed(e: weir_lab::run::RunError) -> BenchError {
    match e {
        weir_lab::run::RunError::Stopped { .. } => BenchError::Stopped,
        e => BenchError::failed(e),
    }
}
