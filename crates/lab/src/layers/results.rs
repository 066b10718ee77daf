//! Results of a run of layers.

use super::agent::Agent;
use super::message::{ANNOUNCEMENT, MEMBERSHIP, PACKET};
use super::plan::{LayersPlan, Learning};
use super::site::Member;
use crate::results::Distribution;
use serde::Serialize;
use weir_sim::Simulator;
use weir_units::Timestamp;

/// A run of layers.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LayersResult {
    /// Receivers.
    pub receivers: u32,
    /// Sites, each with one link.
    pub sites: u32,
    /// Rates of the layers in bit/s, from the lowest on.
    pub layers_bps: Vec<f64>,
    /// From whose experiments receivers learn.
    pub learning: Learning,
    /// From the last leave until a router stops a group, in s.
    pub leave_latency_s: f64,
    /// Simulated time in s.
    pub simulated_s: f64,
    /// Seed.
    pub seed: u64,
    /// Share of receivers at the right level at the end, 0 to 1: the highest whose layers their link carries.
    pub right_at_end: f64,
    /// Share of time at it in the last third of the run, mean over receivers.
    pub right: f64,
    /// Share of time above it there: with experiments, and before a failed one is dropped.
    pub above: f64,
    /// Share of time below it there.
    pub below: f64,
    /// From a receiver's start until it first was at the right level, or above it, in s; of those that were.
    pub reached_s: Option<Distribution>,
    /// Receivers that never were.
    pub never: u64,
    /// Share of packets of joined layers that were lost, 0 to 1, mean over receivers, from their start on.
    pub loss: f64,
    /// By class of link.
    pub classes: Vec<ClassResult>,
    /// Messages that it takes beside the media.
    pub control: ControlTraffic,
    /// Events of the simulator.
    pub events: u64,
}

/// The receivers behind links of one rate.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "LayersClass"))]
pub struct ClassResult {
    /// Rate of the link in bit/s.
    pub rate_bps: f64,
    /// Receivers.
    pub receivers: u64,
    /// The right level.
    pub level: u8,
    /// Share of receivers at it at the end.
    pub right_at_end: f64,
    /// Share of time at it in the last third of the run.
    pub right: f64,
    /// Share of time above it there.
    pub above: f64,
    /// Mean level there.
    pub mean_level: f64,
    /// Until it was first reached, in s.
    pub reached_s: Option<Distribution>,
    /// Share of packets lost.
    pub loss: f64,
}

/// Messages beside the media.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "LayersControl"))]
pub struct ControlTraffic {
    /// Layers joined after the first, by all receivers.
    pub experiments: u64,
    /// Layers dropped.
    pub drops: u64,
    /// Layers that a receiver tries more rarely since another's experiment failed.
    pub learned: u64,
    /// Announcements sent.
    pub announced: u64,
    /// Announcements heard, by all receivers.
    pub heard: u64,
    /// Announcements heard by a receiver in a minute, mean.
    pub heard_a_minute: f64,
    /// Membership reports and leaves of receivers.
    pub memberships: u64,
    /// Bits a second that announcements and memberships of a receiver take, mean.
    pub bps_a_receiver: f64,
    /// Announcements as a share of the bytes that arrive over the sites' links, 0 to 1.
    pub share_of_links: f64,
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0u64), |(sum, count), v| (sum + v, count + 1));
    if count == 0 { 0.0 } else { sum / count as f64 }
}

/// Shares of a receiver's time in the last third at the right level, above and below, and its mean level.
fn times(m: &Member) -> [f64; 4] {
    let (at, above, below) = (m.at.as_secs_f64(), m.above.as_secs_f64(), m.below.as_secs_f64());
    let whole = (at + above + below).max(f64::MIN_POSITIVE);
    [at / whole, above / whole, below / whole, m.level_time / whole]
}
fn loss(m: &Member) -> f64 {
    let c = m.receiver.counters();
    c.lost as f64 / (c.lost + c.received).max(1) as f64
}
fn reached(m: &Member) -> Option<f64> {
    m.reached.map(|at| at.saturating_since(m.start).as_secs_f64())
}

pub(super) fn result(plan: &LayersPlan, sim: &Simulator<Agent>) -> LayersResult {
    let end = Timestamp::ZERO + plan.duration;
    let sites: Vec<_> = sim.agents().filter_map(|(_, a)| a.site()).collect();
    let members: Vec<(usize, u8, Member)> =
        sites.iter().flat_map(|s| s.finished(end).map(|m| (s.class, s.right_level(), m))).collect();
    let of = |class: Option<usize>| members.iter().filter(move |m| class.is_none_or(|c| c == m.0));
    let at_end = |class| mean(of(class).map(|(_, right, m)| f64::from(u8::from(m.level() == *right))));
    let time = |class, k: usize| mean(of(class).map(|m| times(&m.2)[k]));
    let until = |class| Distribution::of_values(of(class).filter_map(|m| reached(&m.2)).collect());
    let lost = |class| mean(of(class).map(|m| loss(&m.2)));
    let class = |(k, rate): (usize, &weir_units::DataRate)| ClassResult {
        rate_bps: rate.as_bps_f64(),
        receivers: of(Some(k)).count() as u64,
        level: plan.right_level(k),
        right_at_end: at_end(Some(k)),
        right: time(Some(k), 0),
        above: time(Some(k), 1),
        mean_level: time(Some(k), 3),
        reached_s: until(Some(k)),
        loss: lost(Some(k)),
    };
    let total = |of: fn(&weir_session::LayeredCounters) -> u64| -> u64 {
        members.iter().map(|m| of(&m.2.receiver.counters())).sum()
    };
    let announced: u64 = sites.iter().map(|s| s.announced).sum();
    let memberships: u64 = sites.iter().map(|s| s.reports).sum();
    let media: u64 = sites.iter().map(|s| s.media_packets).sum();
    let heard = total(|c| c.heard);
    let receivers = f64::from(plan.receivers);
    let seconds = plan.duration.as_secs_f64();
    let bytes = announced * ANNOUNCEMENT.as_bytes() + memberships * MEMBERSHIP.as_bytes();
    let crossing = sim.agent(weir_sim::AgentId::from_index(0)).core().map_or(0, |c| c.announcements);
    let (crossing, media) = (crossing * ANNOUNCEMENT.as_bytes(), media * PACKET.as_bytes());
    LayersResult {
        receivers: plan.receivers,
        sites: plan.sites,
        layers_bps: plan.layers.iter().map(|r| r.as_bps_f64()).collect(),
        learning: plan.learning,
        leave_latency_s: plan.leave_latency.as_secs_f64(),
        simulated_s: seconds,
        seed: plan.seed,
        right_at_end: at_end(None),
        right: time(None, 0),
        above: time(None, 1),
        below: time(None, 2),
        reached_s: until(None),
        never: members.iter().filter(|m| m.2.reached.is_none()).count() as u64,
        loss: lost(None),
        classes: plan.classes.iter().enumerate().map(class).collect(),
        control: ControlTraffic {
            experiments: total(|c| c.experiments),
            drops: total(|c| c.drops),
            learned: total(|c| c.learned),
            announced,
            heard,
            heard_a_minute: heard as f64 * 60.0 / seconds / receivers,
            memberships,
            bps_a_receiver: bytes as f64 * 8.0 / seconds / receivers,
            share_of_links: crossing as f64 / (crossing + media).max(1) as f64,
        },
        events: sim.totals().events,
    }
}
