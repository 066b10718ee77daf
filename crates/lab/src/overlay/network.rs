//! The network of an overlay: every end has its own access links to a core without queues.

use super::agent::{Agent, FocusEnd, Member, NodeEnd, RootEnd, address, agent};
use super::meter::Meter;
use super::plan::{Division, OverlayPlan};
use super::source::{FRAME_TICKS, Source};
use crate::plan::PlanError;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use serde::Serialize;
use std::sync::Arc;
use weir_cc::Registry;
use weir_path::{Limit, LinkConfig, Loss};
use weir_session::overlay::{self, Focus, FocusConfig, HopControl, Node, NodeConfig, Peer, PeerConfig};
use weir_sim::{AgentId, Simulator, mix};
use weir_units::{DataRate, TimeDelta, Timestamp};

/// Uplinks of nodes as multiples of the stream's rate, and the share of nodes that has each: some send less than they
/// receive, most somewhat more, some several times as much. A choice of this scenario; the mean is 2.1.
const UPLINKS: [(f64, f64); 3] = [(0.6, 0.2), (2.0, 0.6), (4.0, 0.2)];
/// Share of an uplink that children may take; the rest is for repeated packets, feedback and control.
const UPLINK_SHARE: f64 = 0.7;
/// Downlinks of nodes as a multiple of the stream's rate.
const DOWNLINK: f64 = 5.0;
/// One-way delays of access links in microseconds: between two nodes 10 to 80 ms.
const DELAYS_US: core::ops::Range<i64> = 5_000..40_000;
/// Queue of an access link.
const QUEUE: TimeDelta = TimeDelta::from_millis(200);
/// Access of the focus.
const FOCUS_RATE: DataRate = DataRate::from_mbps(100);
const FOCUS_DELAY: TimeDelta = TimeDelta::from_millis(10);
/// Members beside the root whose addresses a node without a focus knows at first.
const CONTACTS: u32 = 2;
/// Packets kept by each node, in seconds.
const HISTORY_S: f64 = 4.0;

/// Hops from the root.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "OverlayDepth"))]
pub struct Depth {
    /// Mean over all nodes and trees.
    pub mean: f64,
    /// The largest.
    pub max: u16,
    /// Places that were not given, of nodes times trees: without a focus, those whose parents do not lead to the root.
    pub unplaced: u64,
}

/// The simulation of an overlay.
pub(super) struct Overlay {
    pub sim: Simulator<Agent>,
    pub focus: AgentId,
    pub root: AgentId,
    pub nodes: Vec<AgentId>,
    /// For what follows the run's beginning.
    rng: Pcg64Mcg,
}

impl Depth {
    fn of(depths: Vec<Option<u16>>) -> Self {
        let known: Vec<f64> = depths.iter().flatten().map(|d| f64::from(*d)).collect();
        Self {
            mean: known.iter().sum::<f64>() / (known.len() as f64).max(1.0),
            max: depths.iter().flatten().copied().max().unwrap_or(0),
            unplaced: depths.iter().filter(|d| d.is_none()).count() as u64,
        }
    }
}

fn times(rate: DataRate, factor: f64) -> DataRate {
    DataRate::from_bps_f64(rate.as_bps_f64() * factor)
}

impl Overlay {
    pub(super) fn new(plan: &OverlayPlan, registry: &Registry) -> Result<Self, PlanError> {
        let mut rng = Pcg64Mcg::seed_from_u64(plan.seed);
        let control = HopControl::new(Arc::new(registry.clone()), &plan.controller, &[])?;
        let packets_a_frame = plan.packets_a_frame();
        let frame_bytes = plan.rate.as_bps_f64() / 8.0 / 30.0;
        // The RTP header and its extension take 24 bytes.
        let payload = ((frame_bytes / f64::from(packets_a_frame)) as u32).saturating_sub(24).max(1);
        let first_sequence: u16 = rng.random();
        let ids: Vec<AgentId> = (0..plan.nodes + 2).map(AgentId::from_index).collect();
        let (focus, root) = (ids[0], ids[1]);
        let mut sim = Simulator::new(plan.seed);

        let mut secret = [0; 32];
        secret.iter_mut().for_each(|b| *b = rng.random());
        let root_degree = plan.root_copies.saturating_mul(plan.trees.into());
        let config = FocusConfig {
            max_nodes: plan.nodes as usize,
            ..FocusConfig::new(plan.trees, address(root), root_degree, secret)
        };
        let machine = Focus::new(config);
        let identity = machine.root();
        sim.add_agent(Agent::Focus(Box::new(FocusEnd { id: focus, focus: machine })), Timestamp::ZERO);

        let packets_a_second = f64::from(packets_a_frame) * 30.0;
        let node_config = |degree: u16, k: u64| NodeConfig {
            division: match plan.division {
                Division::Packets => overlay::Division::Packets,
                Division::Frames => overlay::Division::Frames { ticks: FRAME_TICKS },
            },
            playout: plan.playout,
            history: (packets_a_second * HISTORY_S) as usize,
            seed: mix(plan.seed, k),
            ..NodeConfig::new(address(focus), degree, plan.rate, control.clone())
        };
        let source = Source::new(payload, packets_a_frame, first_sequence);
        let peers = |contacts: Vec<AgentId>, k: u64| {
            let mut own = secret;
            own.iter_mut().zip(mix(plan.seed, k).to_be_bytes()).for_each(|(s, b)| *s ^= b);
            PeerConfig { trees: plan.trees, contacts: contacts.into_iter().map(address).collect(), secret: own }
        };
        let node = if plan.focus {
            Member::Focused(Box::new(Node::root(node_config(0, 1), &identity, Timestamp::ZERO)))
        } else {
            let peers = peers(Vec::new(), 1);
            Member::Alone(Box::new(Peer::root(node_config(0, 1), &peers, plan.root_copies, Timestamp::ZERO)))
        };
        let end = RootEnd { id: root, now: Timestamp::ZERO, node, source };
        sim.add_agent(Agent::Root(Box::new(end)), Timestamp::ZERO);

        let access = |sim: &mut Simulator<Agent>, id, rates: [DataRate; 2], delays: [TimeDelta; 2], loss: f64| {
            let mut links = [None; 2];
            for ((link, rate), delay) in links.iter_mut().zip(rates).zip(delays) {
                let mut config = LinkConfig::constant(rate, delay);
                config.limit = Limit::Time(QUEUE);
                config.loss = if loss > 0.0 { Loss::Independent { share: loss } } else { Loss::None };
                *link = Some(sim.add_link(&config)?);
            }
            if let [Some(up), Some(down)] = links {
                sim.set_access(id, up, down);
            }
            Ok::<(), PlanError>(())
        };
        access(&mut sim, focus, [FOCUS_RATE; 2], [FOCUS_DELAY; 2], 0.0)?;
        // The root sends its copies, and repeats packets.
        let rate = times(plan.rate, f64::from(plan.root_copies) / UPLINK_SHARE * 1.25);
        access(&mut sim, root, [rate, times(plan.rate, DOWNLINK)], [FOCUS_DELAY; 2], plan.loss)?;

        let packets = (plan.duration.as_secs_f64() * packets_a_second).ceil() as usize + 2 * packets_a_frame as usize;
        let mut nodes = Vec::with_capacity(plan.nodes as usize);
        for (k, id) in ids.iter().copied().enumerate().skip(2) {
            let mut drawn: f64 = rng.random();
            let (uplink, _) = UPLINKS
                .into_iter()
                .find(|(_, share)| {
                    drawn -= share;
                    drawn < 0.0
                })
                .unwrap_or(UPLINKS[1]);
            let degree = (uplink * UPLINK_SHARE * f64::from(plan.trees)) as u16;
            let start = Timestamp::ZERO + plan.arrivals.mul_f64(rng.random());
            let node = if plan.focus {
                Member::Focused(Box::new(Node::new(node_config(degree, k as u64), start)))
            } else {
                let mut contacts = vec![root];
                contacts
                    .extend((0..CONTACTS).map(|_| ids[rng.random_range(2..ids.len())]).filter(|other| *other != id));
                Member::Alone(Box::new(Peer::new(node_config(degree, k as u64), &peers(contacts, k as u64), start)))
            };
            let meter = Meter::new(first_sequence, packets_a_frame, packets, Timestamp::ZERO + plan.leave_at);
            sim.add_agent(Agent::Node(Box::new(NodeEnd { id, start, now: start, node, meter })), start);
            let mut delay = || TimeDelta::from_micros(rng.random_range(DELAYS_US));
            let (rates, delays) = ([times(plan.rate, uplink), times(plan.rate, DOWNLINK)], [delay(), delay()]);
            access(&mut sim, id, rates, delays, plan.loss)?;
            nodes.push(id);
        }
        Ok(Self { sim, focus, root, nodes, rng })
    }

    /// Hops from the root to a node of a tree without a focus, by its parents; `None` if they do not lead to the root, or are among
    /// those that have left, `without`, in order.
    fn hops(&self, node: AgentId, tree: u8, without: &[AgentId]) -> Option<u16> {
        let (mut at, mut hops) = (node, 0);
        while at != self.root {
            if without.binary_search(&at).is_ok() {
                return None;
            }
            let end = self.sim.agent(at).node()?;
            at = agent(end.node.node().parent(tree)?.1);
            hops += 1;
            if hops > self.nodes.len() as u16 {
                return None;
            }
        }
        Some(hops)
    }

    /// The trees' depths: as the focus knows them, or by the nodes' parents.
    pub(super) fn depth(&self, plan: &OverlayPlan, without: &[AgentId]) -> Depth {
        if !plan.focus {
            let places = self.nodes.iter().filter(|n| without.binary_search(n).is_err());
            let depths = places.flat_map(|n| (0..plan.trees).map(move |t| (*n, t)));
            return Depth::of(depths.map(|(n, t)| self.hops(n, t, without)).collect());
        }
        let Some(focus) = self.sim.agent(self.focus).focus() else { return Depth::default() };
        let forest = focus.forest();
        let places = forest.nodes().flat_map(|n| (0..forest.trees()).map(move |t| (n, t)));
        Depth::of(places.map(|(n, t)| forest.depth(n, t)).collect())
    }

    /// The nodes that leave, a share of them drawn at random, and when, in order.
    pub(super) fn leaving(&mut self, plan: &OverlayPlan) -> Vec<(Timestamp, AgentId)> {
        let count = (plan.leave * self.nodes.len() as f64).round() as usize;
        let mut all = self.nodes.clone();
        for k in 0..count {
            let other = self.rng.random_range(k..all.len());
            all.swap(k, other);
        }
        all.truncate(count);
        all.sort_unstable();
        let first = Timestamp::ZERO + plan.leave_at;
        let mut leaving: Vec<(Timestamp, AgentId)> = if plan.leave_within <= TimeDelta::ZERO {
            all.into_iter().map(|id| (first, id)).collect()
        } else {
            all.into_iter().map(|id| (first + plan.leave_within.mul_f64(self.rng.random()), id)).collect()
        };
        leaving.sort_unstable();
        leaving
    }
}
