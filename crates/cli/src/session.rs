//! State and helpers that all commands share: controllers, the stop flag, files and progress.

use crate::args::OneArgs;
use crate::output::{Failure, remark};
use crate::progress::Progress;
use crate::reading::heeding;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use weir_cc::Registry;
use weir_judge::paper::data::PaperData;
use weir_judge::rows as scoreboard;
use weir_lab::run::RunOptions;
use weir_lab::scenario::{InputError, Scenario, ScenarioFile, split_parameters, suggest};

/// Begins the name of a row of the scoreboard in the place of a scenario.
const ROW: &str = "row:";
/// Set in the environment of the process that runs in a user namespace, so that it does not try a second time.
pub(crate) const USER_NAMESPACE: &str = "WEIR_USER_NAMESPACE";

/// Whether this process was started again by itself.
pub(crate) fn is_started_again() -> bool {
    std::env::var_os(USER_NAMESPACE).is_some()
}

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

    /// Works while its progress is shown, unless it is to be quiet.
    pub(crate) fn with_progress<T>(
        &self,
        quiet: bool,
        series: bool,
        work: impl FnOnce(&RunOptions<'_>, &Progress) -> T,
    ) -> T {
        let shown = Progress::share(quiet);
        let progress = |share: f64| shown.set_share(share);
        let options = RunOptions { registry: &self.registry, series, stop: &self.stop, progress: &progress };
        work(&options, &shown)
    }

    /// A scenario by its name or file; reading it ends at the stop flag.
    pub(crate) fn open(&self, name: &str) -> Result<ScenarioFile, Failure> {
        let (given, registry) = (name.to_owned(), self.registry.clone());
        Ok(heeding(&self.stop, name, move || ScenarioFile::open(&given, &registry))??)
    }

    /// A paper by its name or folder; reading it ends at the stop flag.
    pub(crate) fn open_paper(&self, name: &str) -> Result<PaperData, Failure> {
        let given = name.to_owned();
        Ok(heeding(&self.stop, name, move || PaperData::open(&given))??)
    }

    /// The scenario files of a paper; reading them ends at the stop flag.
    pub(crate) fn open_files_of(&self, paper: &PaperData) -> Result<Vec<ScenarioFile>, Failure> {
        let (given, registry) = (paper.clone(), self.registry.clone());
        Ok(heeding(&self.stop, &paper.paper.name, move || given.files(&registry))??)
    }

    /// Errors: a controller of the command line is unknown, which is no fault of the scenario's file.
    pub(crate) fn check_controllers(&self, option: &str, names: &[String]) -> Result<(), InputError> {
        let known = |name: &String| suggest::find(&self.registry, option, split_parameters(name, &self.registry).0);
        names.iter().try_for_each(|name| known(name).map(|_| ()))
    }

    /// A row of the scoreboard under the controller of the arguments, and its seed.
    fn row(&self, key: &str, args: &OneArgs) -> Result<(Scenario, u64), Failure> {
        let rows = scoreboard::rows();
        let row = rows.iter().find(|r| r.key == key).ok_or_else(|| {
            let known: Vec<&str> = rows.iter().map(|r| r.key.as_str()).collect();
            InputError::whole(&args.scenario, format!("no row of weir judge rows is named `{key}`"))
                .help(format!("rows: {}", known.join(", ")))
        })?;
        self.check_controllers("--controller", args.controller.as_slice())?;
        let controller = args.controller.as_deref().unwrap_or("sluice");
        let scenario = scoreboard::scenario(row, controller, &self.registry)?;
        Ok((scenario, args.seed.unwrap_or(1)))
    }

    /// The one scenario that the arguments name, and its seed.
    pub(crate) fn one(&self, args: &OneArgs) -> Result<(Scenario, u64), Failure> {
        if let Some(key) = args.scenario.strip_prefix(ROW) {
            return self.row(key, args);
        }
        let file = self.open(&args.scenario)?;
        if !file.controllers().is_empty() {
            self.check_controllers("--controller", args.controller.as_slice())?;
        }
        if args.controller.is_some() && file.controllers().is_empty() && !args.quiet {
            remark("the scenario names its controllers itself: --controller changes nothing");
        }
        let scenario = file.one(args.variant.as_deref(), args.controller.as_deref(), &self.registry)?;
        let seed = args.seed.unwrap_or(scenario.seed);
        Ok((scenario, seed))
    }
}

/// Number of runs at a time: as requested, or one for each core.
pub(crate) fn threads(asked: Option<NonZeroUsize>) -> usize {
    asked.or_else(|| std::thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get)
}
