//! Events on their way to an estimator's process, in batches, and its answers.

use crate::faults::Faults;
use crate::process::{Budgets, Fault, MAX_PROBES, Process, Traffic, shown};
use crate::protocol::{About, Answer, Event, Kind, OLDEST, Side, VERSION};
use std::collections::BTreeSet;
use weir_cc::Setup;
use weir_units::{DataRate, Timestamp};

/// Highest rate that an answer may have, in bit/s.
const MAX_RATE: f64 = 1e12;
/// Bounds of feedback intervals in ms.
const INTERVALS: (f64, f64) = (5.0, 1_000.0);
/// A second in ns.
const SECOND: i64 = 1_000_000_000;
/// Most timers in a second of the call: ten times the packets of 20 Mbit/s, and a run that still ends.
const MAX_TIMERS: u32 = 20_000;
/// Most events that wait for a turn: a longer batch is a turn of its own.
const MAX_BATCH: usize = 1_024;

/// A process, and the events that it has not seen yet.
pub(crate) struct Turns {
    name: String,
    /// `None` after a fault.
    process: Option<Process>,
    about: About,
    faults: Faults,
    batch: Vec<Event>,
    /// Kinds, a bit each.
    wanted: u32,
    deciding: u32,
    /// Begin of the present second of the call in ns, and its timers so far.
    timers: (i64, u32),
}

fn bits(kinds: &BTreeSet<Kind>) -> u32 {
    kinds.iter().fold(0, |bits, kind| bits | 1 << *kind as u32)
}

/// A time of a session in the protocol.
pub(crate) const fn ns(t: Timestamp) -> i64 {
    t.as_nanos()
}

/// An impossible value, with the values that are possible.
pub(crate) fn impossible(turn: u64, field: &'static str, value: String, expected: &str) -> Fault {
    Fault::Impossible { turn, field, value, expected: expected.into() }
}

/// A rate of an answer.
pub(crate) fn rate(turn: u64, field: &'static str, bps: f64) -> Result<DataRate, Fault> {
    if (0.0..=MAX_RATE).contains(&bps) {
        Ok(DataRate::from_bps_f64(bps))
    } else {
        Err(impossible(turn, field, bps.to_string(), "0 to 1e12 bit/s"))
    }
}

/// The time of an answer's `timer_ns`.
pub(crate) fn timer(a: &Answer, now: Timestamp) -> Result<Option<Timestamp>, Fault> {
    if let Some(at) = a.timer_ns.filter(|at| *at <= ns(now)) {
        let expected = format!("later than the turn's last event, {}", ns(now));
        return Err(impossible(a.turn, "timer_ns", at.to_string(), &expected));
    }
    Ok(a.timer_ns.map(Timestamp::from_nanos))
}

fn configure(setup: &Setup, side: Side) -> Event {
    Event::Configure {
        version: VERSION,
        now_ns: ns(setup.now),
        floor_bps: setup.limits.floor.as_bps(),
        ceiling_bps: setup.limits.ceiling.as_bps(),
        start_bps: setup.start_rate.as_bps(),
        seed: setup.seed,
        side,
    }
}

impl Turns {
    /// Starts a command and tells it the setup; the answer to that is for the caller to follow.
    pub(crate) fn start(
        budgets: Budgets,
        name: &str,
        command: &str,
        (setup, side): (&Setup, Side),
        faults: Faults,
    ) -> Result<(Self, Answer), Fault> {
        let mut process = Process::start(command, budgets)?;
        let mut answer = process.ask(&mut vec![configure(setup, side)])?;
        let about = answer.about.take().ok_or_else(|| Fault::Unreadable {
            turn: 0,
            why: "the first answer has no `about`: { version, name }".into(),
            line: String::new(),
        })?;
        check(&about)?;
        process.speak(about.form);
        let (wanted, deciding) = (bits(&about.events), bits(&about.answers));
        let process = Some(process);
        Ok((
            Self { name: name.into(), process, about, faults, batch: Vec::new(), wanted, deciding, timers: (0, 0) },
            answer,
        ))
    }

    pub(crate) const fn about(&self) -> &About {
        &self.about
    }

    /// Messages exchanged so far; none after a fault.
    pub(crate) fn traffic(&self) -> Traffic {
        self.process.as_ref().map(Process::traffic).unwrap_or_default()
    }

    /// Whether events of a kind go to the process.
    pub(crate) fn wants(&self, kind: Kind) -> bool {
        self.process.is_some() && self.wanted & (1 << kind as u32) != 0
    }

    pub(crate) const fn is_broken(&self) -> bool {
        self.process.is_none()
    }

    /// Takes an event of a kind that is wanted, and asks for an answer if the estimator decides on it.
    pub(crate) fn push(&mut self, event: Event) -> Option<Result<Answer, Fault>> {
        let kind = event.kind().filter(|kind| self.wants(*kind))?;
        if let Event::Timer { now_ns } = event
            && let Err(fault) = self.count_timer(now_ns)
        {
            return Some(Err(fault));
        }
        self.batch.push(event);
        if self.deciding & (1 << kind as u32) == 0 && self.batch.len() < MAX_BATCH {
            return None;
        }
        Some(self.process.as_mut()?.ask(&mut self.batch))
    }

    /// One more timer. Without a bound, a timer of a few ns ahead would be a run without end.
    fn count_timer(&mut self, now_ns: i64) -> Result<(), Fault> {
        let (begin, count) = &mut self.timers;
        if now_ns.saturating_sub(*begin) >= SECOND {
            (*begin, *count) = (now_ns, 0);
        }
        *count += 1;
        if *count <= MAX_TIMERS {
            return Ok(());
        }
        let expected = format!("at most {MAX_TIMERS} timers in a second of the call");
        Err(impossible(self.process.as_ref().map_or(0, Process::turn), "timer_ns", now_ns.to_string(), &expected))
    }

    /// Ends the process, for a reason.
    pub(crate) fn fail(&mut self, now: Timestamp, fault: &Fault) {
        self.faults.add(&self.name, now, fault);
        self.process = None;
        self.batch = Vec::new();
    }
}

/// Whether an estimator can be what it says of itself.
fn check(about: &About) -> Result<(), Fault> {
    let impossible = |field, value, expected: &str| impossible(0, field, value, expected);
    if !(OLDEST..=VERSION).contains(&about.version) {
        let expected = format!("{OLDEST} to {VERSION}, those of Weir");
        return Err(impossible("about.version", about.version.to_string(), &expected));
    }
    if about.name.is_empty() || about.name.len() > 100 || about.name.chars().any(char::is_control) {
        return Err(impossible("about.name", shown(&format!("{:?}", about.name)), "1 to 100 bytes of one line"));
    }
    if about.over.is_some() && (about.sides.len() != 1 || !about.sides.contains(&Side::Sender)) {
        let value = shown(&format!("{:?}", about.over));
        return Err(impossible("about.over", value, "none, where the estimator is at the receiver"));
    }
    if about.sides.is_empty() {
        return Err(impossible("about.sides", "[]".into(), "\"sender\", \"receiver\" or both"));
    }
    let feedback = &about.feedback;
    for (field, ms) in [
        ("about.feedback.interval_ms", feedback.interval_ms),
        ("about.feedback.max_interval_ms", feedback.max_interval_ms),
    ] {
        let least = feedback.interval_ms.unwrap_or(INTERVALS.0).max(INTERVALS.0);
        if ms.is_some_and(|ms| !(least..=INTERVALS.1).contains(&ms)) {
            return Err(impossible(field, format!("{ms:?}"), "5 to 1,000, the greatest at least the least"));
        }
    }
    if feedback.bandwidth_share.is_some_and(|s| !(s > 0.0 && s <= 1.0)) {
        let value = format!("{:?}", feedback.bandwidth_share);
        return Err(impossible("about.feedback.bandwidth_share", value, "above 0 to 1"));
    }
    Ok(())
}

/// Whether an answer has no more probes than may be.
pub(crate) fn few_probes(a: &Answer) -> Result<(), Fault> {
    let count = a.probes.len();
    if count > MAX_PROBES { Err(impossible(a.turn, "probes", count.to_string(), "at most 16")) } else { Ok(()) }
}
