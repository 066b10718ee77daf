//! Bandwidth estimators in other processes as congestion controllers: `exec:COMMAND` in place of a controller's name.
//!
//! The command is started once for each flow, and once more at the receiver where it has a half there. It reads a [`Turn`](protocol::Turn)
//! from standard input, and writes an [`Answer`](protocol::Answer) to standard output: a line of JSON each, or after the first of both in the
//! form of [`binary`]. Time is that of the simulation: an estimator that uses the times of the events and no
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

pub mod binary;
mod check;
mod controller;
mod faults;
mod over;
mod process;
pub mod protocol;
mod receiver;
mod serve;
mod turns;

pub use check::{CALLS, Checked, Finding, check};
pub use controller::Remote;
pub use faults::Faults;
pub use process::{Fault, words};
pub use receiver::RemoteReceiver;
pub use serve::{ServeError, serve};

use over::Over;
use protocol::{About, Format, Side};
use receiver::Follower;
use std::collections::BTreeSet;
use weir_cc::tunable::SetupError;
use weir_cc::{Controller, Entry, FeedbackFormat, FeedbackPlan, Limits, Pair, Receiver, Registry, Sender, Setup, Spec};
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
        Format::TransportWide => Some(FeedbackFormat::TransportWide),
        Format::Ccfb => Some(FeedbackFormat::CongestionControl),
        Format::None => None,
    };
    // A sender that obeys has no use for it.
    let format = format.filter(|_| about.sides.contains(&Side::Sender));
    let plan = |format| {
        let plan = FeedbackPlan { format, ..FeedbackPlan::LIBWEBRTC };
        about.feedback.interval_ms.map_or(plan, |ms| FeedbackPlan {
            min_interval: TimeDelta::from_millis_f64(ms),
            max_interval: TimeDelta::from_millis_f64(about.feedback.max_interval_ms.unwrap_or(ms)),
            bandwidth_share: about.feedback.bandwidth_share.unwrap_or(1.0),
            ..plan
        })
    };
    let outside = Spec::new(name, &about.name, "a program of the user's");
    Spec { feedback: format.map(plan), is_fixed: false, ..outside }
}

/// The entry of an estimator over one of the built-in controllers, whose requirements on the session are the entry's.
fn over(name: &str, command: String, base: &str, faults: Faults) -> Result<Entry, SetupError> {
    let known = Registry::builtin();
    let unknown = |_| SetupError::Refused {
        controller: name.into(),
        why: format!(
            "about.over = `{}` is no controller of Weir's: `weir show controllers` lists them",
            process::shown(base)
        ),
    };
    let of_base = known.find(base).map_err(unknown)?.clone();
    let spec = Spec {
        name: name.into(),
        summary: format!("decisions beside the rate of {base}"),
        source: "a program of the user's".into(),
        is_fixed: false,
        params: Vec::new(),
        shelf: weir_cc::Shelf::Added,
        ..of_base
    };
    let base = base.to_owned();
    Ok(Entry::new(spec, move |name, setup| {
        let pair = known.make(&base, setup)?;
        let remote = Remote::start(name, &command, setup, faults.clone());
        let remote = remote.map_err(|f| SetupError::Refused { controller: name.into(), why: f.to_string() })?;
        let sender = Over::new(pair.sender, remote, setup.now);
        Ok(Pair { sender: Sender::Custom(Box::new(sender)), receiver: pair.receiver })
    }))
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
        let asked = asked.map_err(|f| refused(f.to_string()))?;
        let (spec, sides) = (spec(name, asked.about()), asked.about().sides.clone());
        let faults = given.clone();
        if let Some(base) = &asked.about().over {
            return over(name, command, base, faults);
        }
        Ok(Entry::new(spec, move |name, setup| {
            if let Some((param, _)) = setup.params.first() {
                let (controller, name) = (name.into(), param.clone());
                return Err(SetupError::UnknownParam { controller, name, known: Vec::new() });
            }
            let refused = |f: Fault| SetupError::Refused { controller: name.into(), why: f.to_string() };
            let has = |side| sides.contains(&side);
            let sender: Box<dyn Controller> = if has(Side::Sender) {
                Box::new(Remote::start(name, &command, setup, faults.clone()).map_err(refused)?)
            } else {
                Box::new(Follower::new(setup))
            };
            let receiver = || RemoteReceiver::start(name, &command, setup, faults.clone()).map_err(refused);
            let receiver = has(Side::Receiver).then(receiver).transpose()?;
            let receiver = receiver.map(|r| Receiver::Custom(Box::new(r)));
            Ok(Pair { sender: Sender::Custom(sender), receiver })
        }))
    });
    faults
}

#[cfg(test)]
mod tests;
