//! Results of an overlay's run.

use super::agent::NodeEnd;
use super::network::{Depth, Overlay};
use super::plan::{Division, OverlayPlan};
use super::seconds;
use crate::results::Distribution;
use serde::Serialize;
use std::collections::BTreeSet;
use weir_sim::AgentId;
use weir_units::{TimeDelta, Timestamp};

/// An overlay's run.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OverlayResult {
    /// Nodes beside the root.
    pub nodes: u32,
    /// Trees.
    pub trees: u8,
    /// Rate of the stream, RTP headers included.
    pub rate_bps: f64,
    /// How packets are divided among trees.
    pub division: Division,
    /// The controller of each hop.
    pub controller: String,
    /// Whether a focus places nodes; otherwise their neighbours do.
    pub focus: bool,
    /// Share of packets lost at random on each access link, 0 to 1.
    pub link_loss: f64,
    /// Delay after which a packet is of no use, in s.
    pub playout_s: f64,
    /// Simulated time in s.
    pub simulated_s: f64,
    /// Seed.
    pub seed: u64,
    /// How nodes have joined.
    pub joins: Joins,
    /// Hops from the root, before nodes leave.
    pub depth: Depth,
    /// The same at the end, of the nodes that stay.
    pub depth_at_end: Depth,
    /// Packets received by the nodes that stay, from 1 s after each has joined on.
    pub delivery: Delivery,
    /// Effect on the nodes that stay of those that leave; none if none do.
    pub churn: Option<Churn>,
    /// Packets sent on all hops.
    pub traffic: Traffic,
    /// Events of the simulator.
    pub events: u64,
}

/// How nodes have joined.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "OverlayJoins"))]
pub struct Joins {
    /// Nodes that have received a packet of each tree.
    pub joined: u64,
    /// Nodes that have not.
    pub incomplete: u64,
    /// Time from the request until a packet of each tree had arrived, in s.
    pub time_s: Option<Distribution>,
}

/// Packets received by nodes.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "OverlayDelivery"))]
pub struct Delivery {
    /// Share of packets received in time for playout, 0 to 1, mean over nodes.
    pub in_time: f64,
    /// The same of the node with the smallest.
    pub least_in_time: f64,
    /// Share of packets never received, 0 to 1, mean over nodes.
    pub residual_loss: f64,
    /// Delay of packets received, in ms.
    pub delay_ms: Option<Distribution>,
}

/// Effect of the nodes that leave on those that stay. Times after leaving are from the first that leaves.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "OverlayChurn"))]
pub struct Churn {
    /// Nodes that have left.
    pub left: u64,
    /// Whether they said so.
    pub graceful: bool,
    /// Nodes that stay and lacked a parent for a time, or had one that lacked the tree.
    pub disconnected: u64,
    /// Time after leaving until the node had a parent again in each tree that does not lack the tree, in s; of those
    /// disconnected.
    pub reconnected_s: Option<Distribution>,
    /// Nodes that do not have them at the end.
    pub never_reconnected: u64,
    /// Nodes that stay and missed packets in time for playout after the others left.
    pub interrupted: u64,
    /// Time after leaving until the last packet was sent that the node missed, in s; of those interrupted.
    pub whole_after_s: Option<Distribution>,
    /// Share of packets sent in the 2 s after leaving that were received in time for playout, 0 to 1, mean over nodes.
    pub in_time: f64,
    /// Share of them never received.
    pub residual_loss: f64,
    /// Times that a node lacked a parent in some tree, or had one that lacked the tree, for each node that has left: all nodes
    /// below one that fails count.
    pub breaks_a_leave: f64,
    /// Their mean length in s.
    pub break_s: f64,
    /// The product: time that nodes lacked a tree for each node that has left, in s, from its silence on that the node noticed.
    pub broken_s_a_leave: f64,
}

/// Packets sent on all hops.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "OverlayTraffic"))]
pub struct Traffic {
    /// RTP packets sent, by the root and all nodes.
    pub packets: u64,
    /// Share of them that were repeated at a child's request, 0 to 1.
    pub repeated: f64,
    /// Share of packets received that had arrived before, 0 to 1.
    pub duplicates: f64,
    /// Packets dropped by relays, since they waited too long for a hop's controller.
    pub dropped: u64,
    /// RTP bytes sent by nodes as a share of those that they received: 1 if each forwards as much as it receives.
    pub forwarded: f64,
    /// Places that the focus has given.
    pub placements: u64,
    /// Leaves that it has moved to make room for nodes that forward.
    pub displaced: u64,
    /// Nodes that it has removed since they did not answer.
    pub failed: u64,
    /// Without a focus: what neighbours have done, of all nodes together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub neighbours: Option<Neighbours>,
}

/// Counts of what neighbours have done in an overlay without a focus.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "OverlayNeighbours"))]
pub struct Neighbours {
    /// Searches for a parent.
    pub searches: u64,
    /// Requests for a parent.
    pub asked: u64,
    /// Places offered.
    pub offered: u64,
    /// Seekers referred to others.
    pub referred: u64,
    /// Leaves asked to make room for nodes that forward.
    pub displaced: u64,
    /// Hops ended since they closed a cycle, or were too deep.
    pub cycles: u64,
}

/// Shares of a node's packets sent in a span: in time, and never received.
fn shares(node: &NodeEnd, from: Timestamp, to: Timestamp, playout: TimeDelta) -> Option<(f64, f64)> {
    let (mut all, mut in_time, mut lost) = (0u64, 0u64, 0u64);
    for (_, delay) in node.meter.packets(from, to) {
        all += 1;
        in_time += u64::from(delay.is_some_and(|d| d <= playout));
        lost += u64::from(delay.is_none());
    }
    (all > 0).then(|| (in_time as f64 / all as f64, lost as f64 / all as f64))
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0u64), |(sum, count), v| (sum + v, count + 1));
    if count == 0 { 0.0 } else { sum / count as f64 }
}

pub(super) fn result(plan: &OverlayPlan, o: &Overlay, depth: Depth, leaving: &[AgentId]) -> OverlayResult {
    let left: BTreeSet<AgentId> = leaving.iter().copied().collect();
    let nodes = || o.nodes.iter().filter_map(|id| Some((*id, o.sim.agent(*id).node()?)));
    let stay: Vec<&NodeEnd> = nodes().filter(|(id, _)| !left.contains(id)).map(|n| n.1).collect();
    let times: Vec<f64> = nodes().filter_map(|(_, n)| n.node.node().join_time()).map(seconds).collect();
    let joined = times.len() as u64;
    let joins = Joins { joined, incomplete: u64::from(plan.nodes) - joined, time_s: Distribution::of_values(times) };

    // Packets sent later may still be under way at the end.
    let end = Timestamp::ZERO + (plan.duration - plan.playout).max(TimeDelta::ZERO);
    let since = |n: &NodeEnd| n.joined_at().map(|at| at + TimeDelta::from_secs(1));
    let received: Vec<(f64, f64)> = stay.iter().filter_map(|n| shares(n, since(n)?, end, plan.playout)).collect();
    // A node's delays have about the same shape at all times: one packet of seven represents the rest.
    let delays = stay.iter().flat_map(|n| n.meter.packets(since(n).unwrap_or(end), end).step_by(7));
    let delivery = Delivery {
        in_time: mean(received.iter().map(|r| r.0)),
        least_in_time: received.iter().map(|r| r.0).fold(1.0, f64::min),
        residual_loss: mean(received.iter().map(|r| r.1)),
        delay_ms: Distribution::of_values(delays.filter_map(|(_, d)| Some(seconds(d?) * 1e3)).collect()),
    };
    OverlayResult {
        nodes: plan.nodes,
        trees: plan.trees,
        rate_bps: plan.rate.as_bps_f64(),
        division: plan.division,
        controller: plan.controller.clone(),
        focus: plan.focus,
        depth_at_end: o.depth(plan, leaving),
        link_loss: plan.loss,
        playout_s: seconds(plan.playout),
        simulated_s: seconds(plan.duration),
        seed: plan.seed,
        joins,
        depth,
        delivery,
        churn: (!leaving.is_empty()).then(|| churn(plan, &stay, leaving.len() as u64, end)),
        traffic: traffic(o),
        events: o.sim.totals().events,
    }
}

fn churn(plan: &OverlayPlan, stay: &[&NodeEnd], left: u64, end: Timestamp) -> Churn {
    let at = Timestamp::ZERO + plan.leave_at;
    let mut reconnected = Vec::new();
    let mut whole = Vec::new();
    let (mut never, mut disconnected) = (0, 0);
    for n in stay {
        match n.meter.connected_since() {
            None => never += 1,
            Some(since) if since > at => {
                disconnected += 1;
                reconnected.push(seconds(since - at));
            }
            Some(_) => {}
        }
        let missed = n.meter.packets(at, end).filter(|(_, d)| d.is_none_or(|d| d > plan.playout)).last();
        if let Some((packet, _)) = missed {
            whole.push(seconds(n.meter.sent(packet) - at));
        }
    }
    let whole_run = Timestamp::ZERO + plan.duration;
    let (breaks, broken) =
        stay.iter().map(|n| n.meter.breaks(whole_run)).fold((0, TimeDelta::ZERO), |sum, b| (sum.0 + b.0, sum.1 + b.1));
    let after: Vec<(f64, f64)> =
        (stay.iter()).filter_map(|n| shares(n, at, (at + TimeDelta::from_secs(2)).min(end), plan.playout)).collect();
    Churn {
        left,
        graceful: plan.graceful,
        disconnected: disconnected + never,
        reconnected_s: Distribution::of_values(reconnected),
        never_reconnected: never,
        interrupted: whole.len() as u64,
        whole_after_s: Distribution::of_values(whole),
        in_time: mean(after.iter().map(|a| a.0)),
        residual_loss: mean(after.iter().map(|a| a.1)),
        breaks_a_leave: breaks as f64 / left.max(1) as f64,
        break_s: if breaks == 0 { 0.0 } else { seconds(broken) / breaks as f64 },
        broken_s_a_leave: seconds(broken) / left.max(1) as f64,
    }
}

fn neighbours(o: &Overlay) -> Option<Neighbours> {
    let root = o.sim.agent(o.root).root().map(|r| &r.node);
    let members = o.nodes.iter().filter_map(|id| Some(&o.sim.agent(*id).node()?.node)).chain(root);
    let zero = Neighbours { searches: 0, asked: 0, offered: 0, referred: 0, displaced: 0, cycles: 0 };
    members.filter_map(|m| Some(m.peer()?.peer_counters())).fold(None, |sum, c| {
        let sum = sum.unwrap_or(zero);
        Some(Neighbours {
            searches: sum.searches + c.searches,
            asked: sum.asked + c.asked,
            offered: sum.offered + c.offered,
            referred: sum.referred + c.referred,
            displaced: sum.displaced + c.displaced,
            cycles: sum.cycles + c.cycles,
        })
    })
}

fn traffic(o: &Overlay) -> Traffic {
    let root = o.sim.agent(o.root).root().map(|r| r.node.node().hop_counters()).unwrap_or_default();
    let (mut packets, mut repeated, mut dropped) = (root.packets, root.repeated, root.dropped);
    let (mut sent_bytes, mut bytes, mut received, mut duplicates) = (0, 0, 0, 0);
    for n in o.nodes.iter().filter_map(|id| o.sim.agent(*id).node()) {
        let (hops, counters) = (n.node.node().hop_counters(), n.node.node().counters());
        packets += hops.packets;
        repeated += hops.repeated;
        dropped += hops.dropped;
        sent_bytes += hops.bytes;
        bytes += counters.bytes;
        received += counters.packets;
        duplicates += counters.duplicates;
    }
    let share = |part: u64, whole: u64| if whole == 0 { 0.0 } else { part as f64 / whole as f64 };
    let focus = o.sim.agent(o.focus).focus().map(|f| f.counters()).unwrap_or_default();
    Traffic {
        packets,
        repeated: share(repeated, packets),
        duplicates: share(duplicates, received + duplicates),
        dropped,
        forwarded: share(sent_bytes, bytes),
        placements: focus.placements,
        displaced: focus.displaced,
        failed: focus.failed,
        neighbours: neighbours(o),
    }
}
