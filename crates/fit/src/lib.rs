//! The link of a recorded call, and other controllers over it.
//!
//! [`fit`] takes a [`Call`] whose packets are known with their fates (captures at both ends, or one log with feedback) and finds the
//! path that they went through: base delay, capacity over time, the room of its queue, losses by chance apart from those by
//! congestion. Each number has bounds: while packets queue, the gaps between their arrivals show the capacity; where none queues it is only
//! known to be at least what arrived. [`Fit::scenario`] writes the path as a scenario, by the likeliest values or by values drawn
//! within the bounds.
//!
//! Sans-IO and deterministic: the same call gives the same fit, the same number of a draw the same scenario.

mod base;
mod beside;
mod bins;
mod capacity;
mod changes;
mod check;
mod coarse;
mod cross;
mod jitter;
mod losses;
mod measured;
mod mode;
mod packets;
mod policer;
mod queue;
mod scenario;
mod seconds;
mod service;
mod source;
mod stalls;
mod transmission;
mod whatif;

pub use base::BaseDelay;
pub use capacity::Capacity;
pub use changes::{CHANGES, ChangeError, Changes};
pub use check::{Check, NEAR, NEAR_MS, Standing};
pub use cross::CrossTraffic;
pub use jitter::JitterStep;
pub use losses::{LossFit, LossStep, Outage};
pub use measured::{Measured, Residual, residual};
pub use policer::PolicerFit;
pub use queue::{Discipline, QueueFit};
pub use scenario::{FittedScenario, TRACE};
pub use source::SourceFit;
pub use stalls::Stall;
pub use whatif::{DECIDED, Estimate, Judged, Order, Prediction, WhatIf, WhatIfError, changed_whatif, whatif};

use packets::{Packets, first_ms};
use seconds::{Missing, Rows};
use serde::Serialize;
use weir_timeline::Call;

/// Evidence that a fit is made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", schemars(rename = "FitEvidence"))]
pub enum Evidence {
    /// Packets with their fates.
    Packets,
    /// Statistics once a second: coarser, with wider bounds.
    Statistics,
}

/// Why a call has no fit.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FitError {
    /// No recording has sent packets with their fates.
    #[error(
        "no recording has sent packets and their fates, nor a sender's statistics: a fit needs captures at both ends, one log with feedback, or getStats of the sending end"
    )]
    NoPassages,
    /// Statistics of the receiving end alone.
    #[error(
        "these are statistics of the receiving end alone, without round trips and without what was sent: a fit needs those of the sending end"
    )]
    ReceiverAlone,
    /// Too few packets, or too short.
    #[error(
        "{packets} packets in {seconds:.1} s are too few for a fit (at least {LEAST_PACKETS} in {LEAST_SECONDS:.0} s)"
    )]
    TooShort {
        /// Packets with a fate.
        packets: usize,
        /// Time from the first to the last, in s.
        seconds: f64,
    },
    /// Too long, or a clock that jumped.
    #[error(
        "the packets span {hours:.1} h, more than the {MOST_HOURS:.0} h of a fit: cut the recording, or look for a clock that jumped"
    )]
    TooLong {
        /// Time from the first to the last, in h.
        hours: f64,
    },
}

/// Least packets and least length of a call, in s, and greatest length in h.
const LEAST_PACKETS: usize = 200;
const LEAST_SECONDS: f64 = 5.0;
const MOST_HOURS: f64 = 6.0;

/// The path of a call, and what its sender had to send.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Fit {
    /// Evidence that it is made of.
    pub evidence: Evidence,
    /// Length of the call in s.
    pub length_s: f64,
    /// Least round-trip time in ms: half of it is the delay each way, since how it divides is not known. Absent if no answer is known.
    pub rtt_ms: Option<f64>,
    /// Base delay over time, as changes from the first.
    pub base: Vec<BaseDelay>,
    /// The same of the way back. Of statistics both have half of what the round trip changes by, since they do not say which way does.
    pub back: Vec<BaseDelay>,
    /// Capacity over time.
    pub capacity: Capacity,
    /// Times in which the link stood still; the capacity is that beside them.
    pub stalls: Vec<Stall>,
    /// Traffic of others in the same queue.
    pub cross: Vec<CrossTraffic>,
    /// The queue before the link.
    pub queue: QueueFit,
    /// A token bucket that drops, if there is one.
    pub policer: Option<PolicerFit>,
    /// Losses by chance.
    pub loss: LossFit,
    /// Delay by chance over time; empty if there is none.
    pub jitter: Vec<JitterStep>,
    /// Share of the packets that arrived behind one that was sent later.
    pub reordered: f64,
    /// Share of the answers that were lost on the way back; absent if it is not known.
    pub answers_lost: Option<f64>,
    /// The sender's pictures and limits.
    pub source: SourceFit,
    /// Measured numbers of the recorded sender.
    pub measured: Measured,
    /// Numbers that cannot be known from this call, in words.
    pub unknown: Vec<String>,
}

/// Fits the path of a call.
///
/// # Errors
/// The call has no sent packets with their fates, or too few, or is longer than 6 h.
pub fn fit(call: &Call) -> Result<Fit, FitError> {
    let Some(passages) = weir_timeline::why::passages(call) else {
        return coarse(Rows::of_statistics(call).map_err(|missing| match missing {
            Missing::All => FitError::NoPassages,
            Missing::Sender => FitError::ReceiverAlone,
        })?);
    };
    let times = passages.packets.iter().map(|p| p.at).filter(|at| at.is_finite());
    let (begin, end) = times.fold((0.0_f64, 0.0_f64), |(a, b), at| (a.min(at), b.max(at)));
    let hours = (end - begin) / 3_600.0;
    if hours > MOST_HOURS {
        return Err(FitError::TooLong { hours });
    }
    let packets = Packets::of(&passages);
    let (first, last) = packets.span();
    if packets.all.len() < LEAST_PACKETS || last - first < LEAST_SECONDS {
        return Err(FitError::TooShort { packets: packets.all.len(), seconds: last - first });
    }
    let mut base = base::segments(&packets);
    let mut lone = transmission::settle(&packets, &mut base);
    let entered = packets.entered(&base);
    let policer = policer::find(&entered);
    let queue = queue::find(&entered, policer.is_some());
    let common = mode::rates(&entered);
    // Packets that all take their transmission time leave no room for jitter; but it may have begun later.
    let is_beside = lone && jitter::is_beside(&entered, &common);
    lone &= !is_beside;
    let mut service = service::service(&entered, &queue, &[], packets.resolution, lone);
    let mut capacity = bins::capacity(&entered, &service);
    let mut jitter = Vec::new();
    if !lone {
        let least_packets = if is_beside { jitter::FEW_PACKETS } else { jitter::LEAST_PACKETS };
        let rate_at = |at: f64| mode::at(&common, at).unwrap_or_else(|| capacity.likely_at(at));
        let (steps, least) = jitter::find(&entered, &rate_at, least_packets);
        jitter = steps;
        // Packets that came sooner than at the supposed rate say that it is another one, and nothing of the base delay.
        base.iter_mut().for_each(|s| s.transmission -= least.max(0.0));
        if !jitter.is_empty() {
            // Neighbours that jitter pushed together did not wait for one another.
            service = service::service(&entered, &queue, &jitter, packets.resolution, false);
            capacity = bins::capacity(&entered, &service);
            capacity.steady(&common);
        }
    }
    let stalls = if jitter.is_empty() { stalls::find(&entered, &service) } else { Vec::new() };
    if !stalls.is_empty() {
        service.without(&stalls);
        capacity = bins::capacity(&entered, &service);
    }
    let mut cross = cross::find(&service, &jitter, &mut capacity);
    let stalls: Vec<Stall> =
        stalls.into_iter().filter(|s| !cross.iter().any(|c| s.to_s > c.from_s && s.from_s < c.to_s)).collect();
    cross::tell_elastic(&mut cross, &entered, &capacity);
    let mut queue = queue;
    queue.beside(&entered, &cross, &capacity);
    let loss = losses::find(&entered, &queue, policer.as_ref());
    let source = source::find(call, &passages);
    let rtt_ms = packets.rtt(call, &passages, &base);
    // A round trip that RTCP measured has a transmission in it.
    let first = if passages.captured { first_ms(&base) } else { 0.0 };
    let mut out = Fit {
        evidence: Evidence::Packets,
        length_s: last,
        rtt_ms,
        measured: measured::measured(&packets, &entered, rtt_ms, first, last),
        base: base::changes(&base),
        back: base::changes(&base::segments(&Packets::of_answers(&passages))),
        capacity,
        stalls,
        cross,
        queue: queue.fit,
        policer,
        loss,
        jitter,
        reordered: packets.reordered,
        answers_lost: packets.answers_lost,
        source,
        unknown: Vec::new(),
    };
    out.unknown = out.gaps();
    Ok(out)
}

/// Fits the path of a call as if only statistics once a second of it were known, those of both ends: how coarse such a fit is.
///
/// # Errors
/// As [`fit`].
pub fn fit_by_seconds(call: &Call) -> Result<Fit, FitError> {
    coarse(Rows::of_packets(call).ok_or(FitError::NoPassages)?)
}

fn coarse(rows: Rows) -> Result<Fit, FitError> {
    let (seconds, hours) = (rows.rows.len() as f64, rows.rows.len() as f64 / 3_600.0);
    if hours > MOST_HOURS {
        return Err(FitError::TooLong { hours });
    }
    let packets = rows.rows.iter().map(|r| r.sent).sum::<f64>() as usize;
    if packets < LEAST_PACKETS || seconds < 2.0 * LEAST_SECONDS {
        return Err(FitError::TooShort { packets, seconds });
    }
    Ok(coarse::find(&rows))
}

impl Fit {
    /// The same with the rate that arrived in the place of the capacity, and no losses: a baseline for comparisons.
    pub fn by_throughput(&self) -> Self {
        let mut out = self.clone();
        out.capacity.served_bps = self.capacity.arrived_bps.iter().map(|r| Some(*r)).collect();
        out.queue.limit_bytes = None;
        out.policer = None;
        out.jitter.clear();
        out.loss.steps.clear();
        out.cross.clear();
        out.stalls.clear();
        out
    }

    /// Numbers that this call does not show, in words.
    fn gaps(&self) -> Vec<String> {
        let mut out = Vec::new();
        if self.rtt_ms.is_none() {
            out.push("the round-trip time: no answer of the receiver is known".into());
        }
        let known = self.capacity.known_share();
        if known < 0.02 {
            out.push("the capacity: hardly a packet queued, so that it is known to be at least what arrived".into());
        } else if known < 0.5 {
            out.push(format!("the capacity in {:.0} % of the time, in which no packet queued", (1.0 - known) * 100.0));
        }
        if self.evidence == Evidence::Statistics {
            out.push("others' traffic, jitter, and how losses follow each other: a second hides them, and what others took is no part of the capacity".into());
            if self.base.len() > 1 {
                out.push(
                    "which way became longer, and whether it is a path: a queue that never empties looks like one"
                        .into(),
                );
            }
            if self.policer.is_some() {
                out.push("the policer's burst".into());
            }
        }
        if !self.cross.is_empty() {
            out.push(
                "how the others' traffic gives way to the call: what it seems to do is drawn for the most part".into(),
            );
        }
        if self.queue.limit_bytes.is_none() && self.policer.is_none() {
            out.push(format!(
                "the room of the queue beyond {:.0} bytes: it never overflowed",
                self.queue.at_least_bytes
            ));
        }
        out
    }
}

#[cfg(test)]
mod tests;
