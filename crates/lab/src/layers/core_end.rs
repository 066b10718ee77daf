//! The core: the source of the layers, and the router that sends each to the sites that want it.

use super::message::{ANNOUNCEMENT, Message, Outgoing, PACKET};
use super::plan::LayersPlan;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::collections::VecDeque;
use weir_sim::AgentId;
use weir_units::{TimeDelta, Timestamp};

/// By how much the time between two packets differs from the layer's at most, so that layers do not keep step.
const JITTER: f64 = 0.1;

struct Layer {
    interval: TimeDelta,
    next: Timestamp,
    sequence: u16,
    /// Sites that want it, by index.
    wanted: Vec<bool>,
}

pub(super) struct CoreEnd {
    sites: Vec<AgentId>,
    layers: Vec<Layer>,
    out: VecDeque<Outgoing>,
    rng: Pcg64Mcg,
    /// Announcements passed on, one for each site.
    pub announcements: u64,
}

impl CoreEnd {
    pub(super) fn new(plan: &LayersPlan, sites: &[AgentId], seed: u64) -> Self {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let mut layer = |rate: &weir_units::DataRate| {
            let interval = TimeDelta::from_secs_f64(PACKET.as_bits() as f64 / rate.as_bps_f64());
            let next = Timestamp::ZERO + interval.mul_f64(rng.random());
            Layer { interval, next, sequence: rng.random(), wanted: vec![false; sites.len()] }
        };
        let layers = plan.layers.iter().map(&mut layer).collect();
        Self { sites: sites.to_vec(), layers, out: VecDeque::new(), rng, announcements: 0 }
    }
    fn site(&self, id: AgentId) -> Option<usize> {
        self.sites.iter().position(|s| *s == id)
    }
    fn layer(&mut self, layer: u8) -> Option<&mut Layer> {
        self.layers.get_mut(usize::from(layer).checked_sub(1)?)
    }
    pub(super) fn on_message(&mut self, from: AgentId, message: Message) {
        let Some(site) = self.site(from) else { return };
        let mut want = |layer, wants: bool| {
            if let Some(wanted) = self.layer(layer).and_then(|l| l.wanted.get_mut(site)) {
                *wanted = wants;
            }
        };
        match message {
            Message::Graft(layer) => want(layer, true),
            Message::Prune(layer) => want(layer, false),
            Message::Announce(_) => {
                for to in self.sites.iter().filter(|s| **s != from) {
                    self.announcements += 1;
                    self.out.push_back(Outgoing { to: *to, message, size: ANNOUNCEMENT });
                }
            }
            Message::Media(..) => {}
        }
    }
    pub(super) fn next(&self) -> Option<Timestamp> {
        self.layers.iter().map(|l| l.next).min()
    }
    pub(super) fn handle_timeout(&mut self, now: Timestamp) {
        for (number, layer) in (1u8..).zip(&mut self.layers) {
            while layer.next <= now {
                layer.sequence = layer.sequence.wrapping_add(1);
                let factor = 1.0 + JITTER * (2.0 * self.rng.random::<f64>() - 1.0);
                layer.next += layer.interval.mul_f64(factor);
                let message = Message::Media(number, layer.sequence);
                let wanted = self.sites.iter().zip(&layer.wanted).filter(|w| *w.1);
                self.out.extend(wanted.map(|(to, _)| Outgoing { to: *to, message, size: PACKET }));
            }
        }
    }
    pub(super) fn pop(&mut self) -> Option<Outgoing> {
        self.out.pop_front()
    }
}
