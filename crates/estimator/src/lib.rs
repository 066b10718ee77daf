//! Bandwidth estimators in other processes as congestion controllers: `exec:COMMAND` in place of a controller's name.
//!
//! The command is started once for each flow. It reads a [`Turn`](protocol::Turn) a line from standard input, and writes an
//! [`Answer`](protocol::Answer) a line to standard output. Time is that of the simulation: an estimator that uses the times of the events and no
//! clock of its own gives the same results on every run. It may be written in any language; `examples/estimators` has a first one.
//!
//! A process that dies, hangs or answers with what is not in the protocol is ended, its flow goes on at the floor, and
//! [`Faults`] says why.
//!
//! ```
//! use weir_estimator::{Permits, add_to};
//!
//! let mut registry = weir_cc::Registry::builtin();
//! let faults = add_to(&mut registry, Permits::these(["exec:no-such-program"]));
//! let refused = registry.find("exec:no-such-program").expect_err("it does not exist");
//! assert!(refused.to_string().contains("does not start"));
//! // A scenario from elsewhere cannot start a program.
//! let refused = registry.find("exec:rm -r folder").expect_err("nobody has permitted it");
//! assert!(refused.to_string().contains("--controllers"));
//! assert!(faults.take().is_empty());
//! ```

mod check;
mod controller;
mod faults;
mod process;
pub mod protocol;
mod serve;

pub use check::{Checked, Finding, check};
pub use controller::Remote;
pub use faults::Faults;
pub use process::Fault;
pub use serve::{ServeError, serve};

use protocol::{About, Format};
use std::collections::BTreeSet;
use weir_cc::tunable::SetupError;
use weir_cc::{Entry, FeedbackFormat, FeedbackPlan, Limits, Pair, Registry, Sender, Setup, Spec};
use weir_units::{DataRate, TimeDelta, Timestamp};

/// Begins the names of estimators in other processes; the command follows.
pub const PREFIX: &str = "exec:";

/// Names that may start a program: those that the user has typed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Permits(BTreeSet<String>);

impl Permits {
    /// These names, each with its [`PREFIX`].
    pub fn these<N: Into<String>>(names: impl IntoIterator<Item = N>) -> Self {
        Self(names.into_iter().map(Into::into).collect())
    }

    /// The words of a command line that have [`PREFIX`], whole, and as lists separated by commas.
    pub fn of_words(words: impl IntoIterator<Item = String>) -> Self {
        let value = |w: String| w.split_once(PREFIX).map(|(before, _)| w[before.len()..].to_owned());
        let each = |w: String| w.split(',').map(str::to_owned).collect::<Vec<_>>();
        // The whole word, too: a single name may have commas.
        let both = |w: String| each(w.clone()).into_iter().chain([w]).collect::<Vec<_>>();
        Self(words.into_iter().flat_map(both).filter_map(value).collect())
    }
}

/// Initial conditions under which an estimator is asked who it is.
pub(crate) fn nominal() -> Setup {
    let limits = Limits { floor: DataRate::from_kbps(50), ceiling: DataRate::from_kbps(10_000) };
    Setup { limits, start_rate: DataRate::from_kbps(300), now: Timestamp::ZERO, seed: 1, params: Vec::new() }
}

fn spec(name: &str, about: &About) -> Spec {
    let format = match about.feedback.format {
        Format::TransportWide => FeedbackFormat::TransportWide,
        Format::Ccfb => FeedbackFormat::CongestionControl,
    };
    let plan = FeedbackPlan { format, ..FeedbackPlan::LIBWEBRTC };
    let plan = about.feedback.interval_ms.map_or(plan, |ms| FeedbackPlan {
        min_interval: TimeDelta::from_millis_f64(ms),
        max_interval: TimeDelta::from_millis_f64(about.feedback.max_interval_ms.unwrap_or(ms)),
        bandwidth_share: about.feedback.bandwidth_share.unwrap_or(1.0),
        ..plan
    });
    Spec { feedback: Some(plan), ..Spec::new(name, &about.name, "a program of the user's") }
}

/// Adds the controllers `exec:COMMAND` to a registry, as far as they are permitted. [`Registry::find`] starts the command once, to ask
/// who it is.
pub fn add_to(registry: &mut Registry, permits: Permits) -> Faults {
    let faults = Faults::default();
    let given = faults.clone();
    registry.add_family(PREFIX, move |name| {
        let refused = |why: String| SetupError::Refused { controller: name.into(), why };
        if !permits.0.contains(name) {
            let why = "it would start a program that you have not named: give --controllers or --controller with this very name";
            return Err(refused(why.into()));
        }
        let command = name.strip_prefix(PREFIX).unwrap_or(name).to_owned();
        let asked = Remote::start(name, &command, &nominal(), Faults::default());
        let spec = spec(name, asked.map_err(|f| refused(f.to_string()))?.about());
        let faults = given.clone();
        Ok(Entry::new(spec, move |name, setup| {
            if let Some((param, _)) = setup.params.first() {
                let (controller, name) = (name.into(), param.clone());
                return Err(SetupError::UnknownParam { controller, name, known: Vec::new() });
            }
            let started = Remote::start(name, &command, setup, faults.clone());
            let remote = started.map_err(|f| SetupError::Refused { controller: name.into(), why: f.to_string() })?;
            Ok(Pair::alone(Sender::Custom(Box::new(remote))))
        }))
    });
    faults
}

#[cfg(test)]
mod tests;
