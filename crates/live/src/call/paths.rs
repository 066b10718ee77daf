//! How a call over several paths uses them.

use crate::call::CallError;
use weir_cc::Setup;
use weir_cc::coupled::Division;
use weir_session::GroupConfig;
use weir_session::multipath::{AnyScheduler, Coupling, PathPolicy, SCHEDULERS};
use weir_units::DataRate;

/// Seeds of paths differ by this.
const SEED_STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// How a call over several paths uses them; without effect on one of a single path.
#[derive(Clone, PartialEq, Debug)]
pub struct PathUse {
    /// The scheduler by name (`weir_session::multipath::SCHEDULERS`).
    pub scheduler: String,
    /// Coupling of paths that share one flow's rate, by name ([`Coupling::NAMES`]).
    pub coupling: String,
    /// The application's wishes for each path, from the first on; the default for those left out.
    pub policies: Vec<PathPolicy>,
    /// Media rate that suffices: paths of a worse class carry media only while those of better ones have less.
    pub sufficient_rate: Option<DataRate>,
    /// Parts in which coupled paths share their group's rate, from the first path on; 1 for those left out.
    pub priorities: Vec<f64>,
}

impl Default for PathUse {
    fn default() -> Self {
        Self {
            scheduler: "earliest".into(),
            coupling: "none".into(),
            policies: Vec::new(),
            sufficient_rate: None,
            priorities: Vec::new(),
        }
    }
}

impl PathUse {
    /// How packets and rates are divided among the paths.
    ///
    /// # Errors
    /// There is no such scheduler or coupling.
    pub(super) fn group(&self, ceiling: DataRate) -> Result<GroupConfig, CallError> {
        let (scheduler, coupling) = self.named()?;
        let mut group =
            GroupConfig { coupling, sufficient_rate: self.sufficient_rate, ceiling, ..GroupConfig::new(scheduler) };
        group.priorities.iter_mut().zip(&self.priorities).for_each(|(p, given)| *p = *given);
        Ok(group)
    }

    /// Whether there are such a scheduler and such a coupling.
    ///
    /// # Errors
    /// One of them does not exist.
    pub fn check(&self) -> Result<(), CallError> {
        self.named().map(|_| ())
    }

    fn named(&self) -> Result<(AnyScheduler, Coupling), CallError> {
        let known = |names: &mut dyn Iterator<Item = &str>| names.collect::<Vec<_>>().join(", ");
        let scheduler = AnyScheduler::named(&self.scheduler).ok_or_else(|| CallError::NoSuchPolicy {
            what: "scheduler",
            name: self.scheduler.clone(),
            known: known(&mut SCHEDULERS.iter().map(|s| s.name)),
        })?;
        let coupling = Coupling::named(&self.coupling, Division::Active).ok_or_else(|| CallError::NoSuchPolicy {
            what: "coupling",
            name: self.coupling.clone(),
            known: known(&mut Coupling::NAMES.iter().map(|n| n.0)),
        })?;
        Ok((scheduler, coupling))
    }
}

/// The setup of a path's controller, by its number.
pub(super) fn of_path(setup: &Setup, path: usize) -> Setup {
    Setup { seed: setup.seed.wrapping_add(SEED_STEP.wrapping_mul(path as u64)), ..setup.clone() }
}
