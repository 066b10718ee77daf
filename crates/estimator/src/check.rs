//! Whether an estimator keeps the protocol, in words.

mod call;
mod receiving;

use crate::faults::Faults;
use crate::over::Over;
use crate::process::{Fault, Traffic, shown};
use crate::protocol::{About, Form, Side};
use crate::turns::impossible;
use crate::{Remote, RemoteReceiver, nominal};
use call::{Call, LENGTH, RATE, SILENCE};
use serde::Serialize;
use weir_cc::Registry;
use weir_units::DataRate;

/// Calls of a check whose time is not asked for: two, which are compared.
pub const CALLS: u32 = 2;
/// The estimator in messages about its faults.
const NAME: &str = "the estimator";
/// Timers a second from which they are a storm.
const STORM: f64 = 500.0;

/// Something that an adapter should mend, or that its author should know.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "EstimatorFinding"))]
pub struct Finding {
    /// Whether it breaks the protocol or makes results differ; else it is a remark.
    pub is_fault: bool,
    /// In words.
    pub text: String,
}

/// An estimator, checked.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "EstimatorChecked"))]
pub struct Checked {
    /// The name that it gives itself.
    pub name: String,
    /// Faults and remarks.
    pub findings: Vec<Finding>,
    /// The form of its messages.
    pub form: Form,
    /// Ends of the call at which it works.
    pub sides: Vec<Side>,
    /// Calls whose times these are.
    pub calls: u32,
    /// Events of a call that it received, batched ones included.
    pub events: u64,
    /// Turns of a call: messages with these events, each with an answer.
    pub turns: u64,
    /// Bytes of an event.
    pub bytes_per_event: f64,
    /// Wall time of an event in us, from its writing to the answer, start-up left out: the median over the calls.
    pub us_per_event: f64,
    /// The same of the fastest call.
    pub us_per_event_least: f64,
    /// Simulated time over wall time.
    pub times_real_time: f64,
    /// Mean target over the last 10 s before the silence, in bit/s, on a link of 2 Mbit/s.
    pub target_bps: f64,
}

/// Runs a command through like calls, [`CALLS`] or more, and says what is wrong with it. `command` is without
/// [`PREFIX`](crate::PREFIX).
///
/// # Errors
/// It does not start, or its first answer is not in the protocol.
pub fn check(command: &str, calls: u32) -> Result<Checked, Fault> {
    let calls = calls.max(CALLS);
    let faults = Faults::default();
    let about = Remote::start(NAME, command, &nominal(), faults.clone())?.about().clone();
    let sides: Vec<Side> = about.sides.iter().copied().collect();
    let mut findings: Vec<Finding> = Vec::new();
    let mut made: Vec<Vec<Call>> = Vec::new();
    for side in &sides {
        let mut like: Vec<Call> = Vec::new();
        while like.len() < calls as usize && faults.is_empty() {
            like.push(match side {
                Side::Sender => sending(command, &about, &faults)?,
                Side::Receiver => {
                    receiving::call(&mut RemoteReceiver::start(NAME, command, &nominal(), faults.clone())?)
                }
            });
        }
        judge(&like, *side, faults.is_empty(), &mut findings);
        made.push(like);
    }
    findings.splice(0..0, faults.take().into_iter().map(|text| Finding { is_fault: true, text }));
    // The nth calls of both sides together.
    let traffic =
        |n: usize| made.iter().filter_map(|like| like.get(n)).map(|c| c.traffic).fold(Traffic::default(), sum);
    let count = made.iter().map(Vec::len).min().unwrap_or_default();
    let per_event = |t: Traffic| t.took.as_secs_f64() * 1e6 / t.events.max(1) as f64;
    let mut times: Vec<f64> = (0..count).map(|n| per_event(traffic(n))).collect();
    times.sort_by(f64::total_cmp);
    let first = traffic(0);
    let took: f64 = made.iter().filter_map(|like| like.first()).map(|c| c.took).sum();
    Ok(Checked {
        name: about.name,
        findings,
        form: about.form,
        calls: u32::try_from(count).unwrap_or(u32::MAX),
        events: first.events,
        turns: first.turns,
        bytes_per_event: first.bytes as f64 / first.events.max(1) as f64,
        us_per_event: times.get(times.len() / 2).copied().unwrap_or_default(),
        us_per_event_least: times.first().copied().unwrap_or_default(),
        times_real_time: LENGTH * sides.len() as f64 / took.max(1e-9),
        target_bps: made.first().and_then(|like| like.first()).map_or(0.0, before_the_silence),
        sides,
    })
}

/// The call with the command at the sender; over the controller that it names, if it does.
fn sending(command: &str, about: &About, faults: &Faults) -> Result<Call, Fault> {
    let mut remote = Remote::start(NAME, command, &nominal(), faults.clone())?;
    let Some(base) = &about.over else {
        let made = call::call(&mut remote);
        return Ok(Call { traffic: remote.traffic(), ..made });
    };
    let pair = Registry::builtin().make(base, &nominal());
    let expected = "a controller of `weir show controllers`";
    let pair = pair.map_err(|_| impossible(0, "about.over", shown(base), expected))?;
    let mut over = Over::new(pair.sender, remote, nominal().now);
    let made = call::call(&mut over);
    Ok(Call { traffic: over.traffic(), ..made })
}

fn sum(a: Traffic, b: Traffic) -> Traffic {
    Traffic { turns: a.turns + b.turns, events: a.events + b.events, bytes: a.bytes + b.bytes, took: a.took + b.took }
}

/// Mean target over the last 10 s before the silence.
fn before_the_silence(call: &Call) -> f64 {
    let known = call.targets.iter().filter(|(at, _)| (SILENCE.start - 10.0..SILENCE.start).contains(at));
    let rates: Vec<f64> = known.map(|(_, r)| r.as_bps_f64()).collect();
    rates.iter().sum::<f64>() / rates.len().max(1) as f64
}

/// Faults and remarks of like calls of one side.
fn judge(like: &[Call], side: Side, is_whole: bool, findings: &mut Vec<Finding>) {
    let Some(first) = like.first() else { return };
    let mut fault = |text: String| findings.push(Finding { is_fault: true, text });
    let differs = |other: &Call| {
        let mut pairs = first.targets.iter().zip(&other.targets);
        pairs.find(|(a, b)| a != b).map(|((at, a), (_, b))| (*at, a.as_bps(), b.as_bps()))
    };
    if let Some((at, a, b)) = like.iter().skip(1).find_map(differs).filter(|_| is_whole) {
        fault(format!(
            "two like calls differ from {at:.1} s on ({a} and {b} bit/s): it uses a clock or a random number of its own; take the times \
             of the events, and the seed of `configure`"
        ));
    }
    if let Some(rate) = first.outside {
        fault(format!("a target of {} bit/s is outside the limits", rate.as_bps()));
    }
    if is_whole && first.traffic.turns == 0 {
        let why = "`answers` has no kind that `events` has and the call brings; leave it out for a turn with each kind but `sent` and `queue`";
        fault(format!("it had no turn in {LENGTH:.0} s: {why}"));
    }
    if first.timers as f64 > STORM * LENGTH {
        fault(format!("{} timers in {LENGTH:.0} s: it is woken for nothing", first.timers));
    }
    if !is_whole {
        return;
    }
    let mut remark = |text: String| findings.push(Finding { is_fault: false, text });
    let (target, start) = (before_the_silence(first), nominal().start_rate);
    let only = first.targets.first().map_or(start, |t| t.1);
    let of_event = if side == Side::Receiver { "received" } else { "feedback" };
    let still = |(at, rate): &(f64, DataRate)| *at >= LENGTH || *rate == only;
    if first.targets.is_empty() {
        remark("the receiver never asked for a rate: does it set `report`?".into());
    } else if first.targets.iter().all(still) {
        let only = if only == start { "the start rate".into() } else { format!("{} bit/s", only.as_bps()) };
        remark(format!("the target never left {only}: does it read `{of_event}`?"));
    } else if target > 1.5 * RATE {
        remark(format!("the target is {:.1} Mbit/s on a link of {:.1} Mbit/s", target * 1e-6, RATE * 1e-6));
    }
}
