//! Packets addressed to an agent, over the access links of both ends.

use super::{RouteEntry, Simulator};
use crate::agent::Agent;
use crate::ids::{AgentId, LinkId};
use crate::observer::{Observer, Place};
use crate::packet::Body;
use crate::slab::Head;
use weir_path as path;

/// An agent's access links, and the routes used so far.
#[derive(Clone, Debug)]
struct Ends {
    up: LinkId,
    down: LinkId,
    /// By receiver: the position in `Simulator::routes` of the two links to it.
    routes: Vec<(AgentId, u32)>,
}

/// The access links of all agents that have some.
#[derive(Clone, Debug, Default)]
pub(super) struct Access {
    ends: Vec<Option<Ends>>,
}

impl Access {
    /// Whether no agent has any.
    pub(super) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }
    /// The route from an agent to another, whose links are appended to `routes` at its first use.
    fn route(&mut self, from: AgentId, to: AgentId, routes: &mut Vec<LinkId>) -> Option<RouteEntry> {
        let down = self.ends.get(to.index())?.as_ref()?.down;
        let ends = self.ends.get_mut(from.index())?.as_mut()?;
        let first = match ends.routes.binary_search_by_key(&to, |r| r.0) {
            Ok(at) => ends.routes[at].1,
            Err(at) => {
                let first = routes.len() as u32;
                routes.extend([ends.up, down]);
                ends.routes.insert(at, (to, first));
                first
            }
        };
        Some(RouteEntry { to, first, end: first + 2 })
    }
}

impl<A: Agent, O: Observer> Simulator<A, O> {
    /// Connects an agent by access links to all others that have some: a packet with [`Body::Addressed`] on a path without
    /// a route goes over the sender's `up` and the receiver's `down`. To be called once for an agent.
    ///
    /// Panics if anything does not belong to this simulator.
    pub fn set_access(&mut self, agent: AgentId, up: LinkId, down: LinkId) {
        assert!(agent.index() < self.agents.len(), "the agent belongs to the simulator");
        assert!([up, down].iter().all(|l| l.index() < self.links.len()), "the links belong to the simulator");
        let count = self.access.ends.len().max(agent.index() + 1);
        self.access.ends.resize(count, None);
        self.access.ends[agent.index()] = Some(Ends { up, down, routes: Vec::new() });
    }

    /// Sends a packet whose path has no route, if it is addressed; otherwise it is lost.
    #[inline(never)]
    pub(super) fn send_addressed(&mut self, slot: u32) {
        let from = self.packets.head(slot).from;
        let packet = self.packets.packet(slot);
        let (size, ecn) = (packet.size, packet.ecn);
        let route = match packet.body {
            Body::Addressed { to, .. } => self.access.route(from, to, &mut self.routes),
            _ => None,
        };
        let Some(route) = route else { return self.lose(slot, Place::Agent(from)) };
        *self.packets.head_mut(slot) = Head { from, to: route.to, hop: route.first, end: route.end };
        self.enter(self.routes[route.first as usize], path::Packet { item: slot, size, ecn, flow: from.0 });
    }
}

#[cfg(test)]
mod tests {
    use crate::{Agent, AgentId, Body, LinkId, Packet, Simulator};
    use weir_path::LinkConfig;
    use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};

    /// Sends one packet to each agent listed, and notes what it receives.
    struct Talker {
        own: AgentId,
        to: Vec<AgentId>,
        received: Vec<Timestamp>,
    }

    impl Agent for Talker {
        fn on_packet(&mut self, now: Timestamp, packet: &Packet) {
            assert_eq!(packet.body, Body::Addressed { from: AgentId::from_index(0), to: self.own });
            self.received.push(now);
        }
        fn on_timeout(&mut self, _: Timestamp) {}
        fn poll_timeout(&mut self) -> Option<Timestamp> {
            None
        }
        fn poll_transmit(&mut self, _: Timestamp, packet: &mut Packet) -> bool {
            let Some(to) = self.to.pop() else { return false };
            (packet.size, packet.body) = (DataSize::from_bytes(1_000), Body::Addressed { from: self.own, to });
            true
        }
    }

    fn link(sim: &mut Simulator<Talker>, ms: i64) -> LinkId {
        let config = LinkConfig::constant(DataRate::from_mbps(8), TimeDelta::from_millis(ms));
        sim.add_link(&config).expect("valid")
    }

    #[test]
    fn addressed_packets_pass_both_access_links() {
        let mut sim: Simulator<Talker> = Simulator::new(1);
        let ids: Vec<AgentId> = (0..4).map(AgentId::from_index).collect();
        for (k, id) in ids.iter().enumerate() {
            // To itself, to the others, and to an agent that does not exist.
            let to = if k == 0 { vec![ids[1], ids[2], ids[1], ids[3], AgentId::from_index(9)] } else { vec![] };
            let added = sim.add_agent(Talker { own: *id, to, received: vec![] }, Timestamp::ZERO);
            assert_eq!(added, *id);
            // The last one has no access.
            if k < 3 {
                let (up, down) = (link(&mut sim, 10), link(&mut sim, 5 * k as i64));
                sim.set_access(added, up, down);
            }
        }
        let _ = sim.run_until(Timestamp::from_secs(1));
        let received = |n: usize| sim.agent(ids[n]).received.clone();
        // 1 ms of transmission on each link; three packets one after the other.
        assert_eq!(received(1), [17, 19].map(Timestamp::from_millis));
        assert_eq!(received(2), [23].map(Timestamp::from_millis));
        let totals = sim.totals();
        assert_eq!((totals.sent, totals.delivered, totals.dropped, totals.inside), (5, 3, 2, 0));
    }
}
