//! The parts of a run that are sampled with one side of its network.

use super::network::Network;
use super::observer::RunObserver;
use super::sampling::Discards;
use crate::scenario::{Flow, Scenario};
use weir_sim::{LinkId, Side};
use weir_units::Timestamp;
use weir_units::cold_path;

/// Links, flows and base stations of a side.
#[derive(Default)]
pub(super) struct SampledSide {
    /// Links whose queue is there, with their index in the scenario, and those of which none ever fills.
    pub links: Vec<(usize, LinkId)>,
    pub empty: Vec<usize>,
    /// Indices of base stations.
    pub stations: Vec<usize>,
    /// How many samples have been taken.
    pub samples: u64,
    /// When flows that are sent from there start and stop, the first at the end, until sampling has passed them.
    starts: Vec<(Timestamp, usize)>,
    pub stops: Vec<(Timestamp, usize)>,
    /// Flows that are sent from there, those of them that are sampled every time, and those that are sampled now: one bit each. The
    /// others change only when their sending agent runs.
    senders: Vec<u64>,
    steady: Vec<u64>,
    pub due: Vec<u64>,
    /// Flows that are sent from there over several paths or with several streams, and those that are played there; empty if there
    /// are none.
    pub sharing: Vec<u64>,
    pub playing: Vec<u64>,
}

impl SampledSide {
    /// Both sides of a network.
    pub(super) fn both(scenario: &Scenario, network: &mut Network<RunObserver<'_>>) -> [Self; 2] {
        let never: Vec<bool> = network.links.iter().map(|id| network.sim.link(*id).never_queues()).collect();
        let sim = &network.sim;
        let words = scenario.flows.len().div_ceil(64);
        let mut both = Side::BOTH.map(|side| {
            let is_there = |id: &LinkId| sim.side_of_queue(*id) == side;
            let there = || network.links.iter().copied().enumerate().filter(|(_, id)| is_there(id));
            let links = there().filter(|(i, _)| !never[*i]).collect();
            let empty = there().map(|(i, _)| i).filter(|i| never[*i]).collect();
            let stations = network.stations.iter().enumerate();
            let stations = stations.filter(|(_, s)| sim.side_of(s.agent) == side).map(|(i, _)| i).collect();
            let [senders, steady, due, sharing, playing] = [(); 5].map(|()| vec![0; words]);
            Self { links, empty, stations, senders, steady, due, sharing, playing, ..Self::default() }
        });
        for (i, (ids, flow)) in network.flows.iter().zip(&scenario.flows).enumerate() {
            let (word, bit) = (i / 64, 1 << (i % 64));
            let plays = sim.agent(ids.receiver).call().is_some_and(|c| Discards::of(c).is_some());
            let has_streams = flow.rtp().is_some_and(|r| !r.streams.is_empty() || r.multipath.is_some());
            let sender = &mut both[sim.side_of(ids.sender).index()];
            sender.senders[word] |= bit;
            sender.starts.push((Timestamp::ZERO + flow.start, i));
            sender.stops.push((Timestamp::ZERO + flow.stop, i));
            if has_streams {
                sender.sharing[word] |= bit;
            }
            if plays || has_streams || sim.agent(ids.sender).is_over_dccp() {
                sender.steady[word] |= bit;
            }
            if plays {
                both[sim.side_of(ids.receiver).index()].playing[word] |= bit;
            }
        }
        for side in &mut both {
            for set in [&mut side.sharing, &mut side.playing] {
                if set.iter().all(|word| *word == 0) {
                    set.clear();
                }
            }
            side.starts.sort_unstable_by(|a, b| b.cmp(a));
            side.stops.sort_unstable_by(|a, b| b.cmp(a));
        }
        both
    }

    /// Whether anything there is sampled between the ends of rows.
    pub(super) fn is_sampled(&self) -> bool {
        let sends = self.senders.iter().any(|word| *word != 0);
        sends || !(self.links.is_empty() && self.stations.is_empty() && self.playing.is_empty())
    }

    /// Finds the flows that are sampled now: `all` of them, or those that change by themselves, that have started or that are
    /// `active`, which they then are no longer.
    pub(super) fn find_due(&mut self, now: Timestamp, all: bool, active: &mut [u64]) {
        let due = |steady: u64, senders: u64, active: u64| if all { senders } else { steady | (active & senders) };
        // Up to 64 flows are one word, for which the loop would be most of the work.
        if let (&[steady], &[senders], [active]) = (&self.steady[..], &self.senders[..], &mut *active) {
            self.due[0] = due(steady, senders, *active);
            *active &= !senders;
        } else {
            let sets = self.steady.iter().zip(&self.senders).zip(active);
            for (to, ((steady, senders), active)) in self.due.iter_mut().zip(sets) {
                *to = due(*steady, *senders, *active);
                *active &= !senders;
            }
        }
        while let Some(&(_, flow)) = self.starts.last().filter(|s| s.0 <= now) {
            cold_path();
            self.due[flow / 64] |= 1 << (flow % 64);
            self.starts.pop();
        }
    }
}

/// Whether both sides of a run may be simulated apart: nothing that is measured depends on the order of events of both, but at the
/// ends of rows. So it is not with the paths of a flow, base stations, and pictures that are compared.
pub(super) fn may_run_apart(scenario: &Scenario, network: &Network<RunObserver<'_>>) -> bool {
    let has_paths = |f: &Flow| f.rtp().is_some_and(|r| r.multipath.is_some());
    let views = network.flows.iter().any(|ids| network.sim.agent(ids.receiver).viewer().is_some());
    network.stations.is_empty() && !views && !scenario.flows.iter().any(has_paths)
}
