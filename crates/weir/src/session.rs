//! Shared by all commands: controllers, the stop flag and a progress bar.

use crate::args::OneArgs;
use crate::output::{Failure, remark};
use indicatif::{ProgressBar, ProgressStyle};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use weir_cc::Registry;
use weir_lab::measure::run::RunOptions;
use weir_lab::measure::scenario::{Scenario, ScenarioFile};

/// Steps of the progress bar.
const STEPS: u64 = 1_000;

pub(crate) struct Session {
    pub(crate) registry: Registry,
    pub(crate) stop: Arc<AtomicBool>,
}

impl Session {
    pub(crate) fn new(registry: Registry) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let flag = stop.clone();
        let handler = move || flag.store(true, Ordering::Relaxed);
        if let Err(e) = ctrlc::set_handler(handler) {
            remark(&format!("Ctrl-C will end the program at once: {e}"));
        }
        Self { registry, stop }
    }

    pub(crate) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Works with a progress bar on standard error, if that is a terminal.
    pub(crate) fn with_progress<T>(&self, quiet: bool, series: bool, work: impl FnOnce(&RunOptions<'_>) -> T) -> T {
        let bar = if quiet { ProgressBar::hidden() } else { ProgressBar::new(STEPS) };
        if let Ok(style) = ProgressStyle::with_template("{bar:40} {percent:>3} % {elapsed} (about {eta} left)") {
            bar.set_style(style);
        }
        let progress = |share: f64| bar.set_position((share * STEPS as f64) as u64);
        let options = RunOptions { registry: &self.registry, series, stop: &self.stop, progress: &progress };
        let result = work(&options);
        bar.finish_and_clear();
        result
    }

    /// The one scenario that the arguments name, and its seed.
    pub(crate) fn one(&self, args: &OneArgs) -> Result<(Scenario, u64), Failure> {
        let file = ScenarioFile::open(&args.scenario, &self.registry)?;
        let variant = args.variant.as_deref().or_else(|| file.variants().first().copied().flatten());
        let controller = args.controller.as_deref().or_else(|| file.controllers().first().map(String::as_str));
        if args.controller.is_some() && file.controllers().is_empty() && !args.quiet {
            remark("the scenario names its controllers itself: --controller changes nothing");
        }
        let scenario = file.scenario(variant, controller, &self.registry)?;
        let seed = args.seed.unwrap_or(scenario.seed);
        Ok((scenario, seed))
    }
}

/// Number of threads: as requested, or one for each core.
pub(crate) fn threads(asked: Option<NonZeroUsize>) -> usize {
    asked.or_else(|| std::thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get)
}
