//! Two sides of a network that run apart.
//!
//! A packet takes at least the least propagation delay between the sides to reach the other one. So either can be simulated ahead
//! of the other by that much, with the same result (conservative lookahead: K. M. Chandy and J. Misra, "Distributed Simulation",
//! IEEE Transactions on Software Engineering SE-5(5), 1979). One end of a call then handles several packets in a row, and their
//! code and data stay in the processor's caches; in the order of time the ends displace each other's with each packet.

use super::{Outcome, Simulator};
use crate::agent::Agent;
use crate::ids::{AgentId, LinkId};
use crate::observer::Observer;
use std::ops::ControlFlow;
use weir_units::{TimeDelta, Timestamp};

/// Below this a side is not worth running apart.
const LEAST_LOOKAHEAD: TimeDelta = TimeDelta::from_millis(2);
/// Bits of the rank of an event among those that are set at one time.
const RANK_BITS: u32 = 10;
/// Times from setting an event to it are exact below this many ns, and above it counted in 2^`COARSE_BITS` ns, up to nine
/// minutes.
const FINE_AGES: u64 = 1 << 29;
const COARSE_BITS: u32 = 10;

/// One of the two sides.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// The one of the first agent; all, where a network is not divided.
    Near,
    /// The other.
    Far,
}

impl Side {
    /// Both.
    pub const BOTH: [Self; 2] = [Self::Near, Self::Far];

    /// 0 or 1.
    #[inline]
    pub const fn index(self) -> usize {
        self as usize
    }
    /// The other one.
    #[inline]
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Near => Self::Far,
            Self::Far => Self::Near,
        }
    }
}

/// How a network is divided.
#[derive(Debug, Default)]
pub(super) struct Sides {
    /// How far a side may be ahead of the other's next event, if there are two.
    lookahead: Option<TimeDelta>,
    /// When each side has run to.
    reached: [Timestamp; 2],
    /// By link, where its queue is.
    entrances: Vec<Side>,
}

impl<A: Agent, O: Observer> Simulator<A, O> {
    #[inline]
    pub(super) fn near(&mut self) -> &mut super::SourceTimers {
        &mut self.timers[Side::Near.index()]
    }

    /// Rank among events at the same time: first those that were set first. With two sides the time at which they were set
    /// decides, and then the order in which a side has set them, since the sides set theirs in no order.
    #[inline(always)]
    pub(super) fn next_order(&mut self, at: Timestamp) -> u64 {
        if self.sides.lookahead.is_none() {
            self.order += 1;
            return self.order;
        }
        self.rank += 1;
        rank(at, self.now, self.rank)
    }

    /// As [`Self::next_order`] for a link that a packet has entered. In the order of time its side would have found the packet when it last `looked`, if
    /// that was later.
    #[inline(always)]
    pub(super) fn order_from(&mut self, at: Timestamp, looked: (Timestamp, u64)) -> u64 {
        if self.sides.lookahead.is_none() {
            self.order += 1;
            return self.order;
        }
        if looked.0 >= self.now { rank(at, looked.0, looked.1) } else { rank(at, self.now, 0) }
    }

    /// Divides the network into two sides, if there is enough delay between any two, and returns whether it has; to be called before it
    /// runs, when it is complete. Routes, links and agents added later are not divided.
    ///
    /// The observer then sees each side's events in order of time, but not those of both.
    pub fn divide(&mut self) -> bool {
        if !self.access.is_empty() || self.now > Timestamp::ZERO || self.sides.lookahead.is_some() {
            return false;
        }
        let (agents, links) = (self.agents.len(), self.links.len());
        let entrance = |link: LinkId| agents + link.index();
        let exit = |link: LinkId| agents + links + link.index();
        let mut groups = Groups::new(agents + 2 * links);
        let mut used = vec![false; links];
        for (k, agent) in self.agents.iter().enumerate() {
            for route in std::iter::once(&agent.route).chain(&agent.further) {
                let hops = &self.routes[route.first as usize..route.end as usize];
                let (Some(first), Some(last)) = (hops.first(), hops.last()) else { continue };
                groups.join(k, entrance(*first));
                groups.join(exit(*last), route.to.index());
                for pair in hops.windows(2) {
                    groups.join(exit(pair[0]), entrance(pair[1]));
                }
                hops.iter().for_each(|l| used[l.index()] = true);
            }
        }
        let ids = (0..links).map(|l| LinkId(l as u32));
        let mut spans: Vec<(TimeDelta, LinkId)> = ids.map(|l| (self.links[l.index()].link.lookahead(), l)).collect();
        spans.sort_by_key(|s| s.0);
        for (_, link) in spans.iter().filter(|s| s.0 < LEAST_LOOKAHEAD || !used[s.1.index()]) {
            groups.join(entrance(*link), exit(*link));
        }
        // Of each connected part two groups remain, those with the longest delay between them.
        let mut parts = groups.clone();
        for &(_, link) in &spans {
            parts.join(entrance(link), exit(link));
        }
        let mut left = vec![0_usize; agents + 2 * links];
        for node in 0..left.len() {
            if groups.of(node) == node {
                left[parts.of(node)] += 1;
            }
        }
        for &(_, link) in &spans {
            let (part, ends) = (parts.of(entrance(link)), [groups.of(entrance(link)), groups.of(exit(link))]);
            if ends[0] != ends[1] && left[part] > 2 {
                groups.join(ends[0], ends[1]);
                left[part] -= 1;
            }
        }
        let mut near = vec![usize::MAX; left.len()];
        let mut side = |groups: &mut Groups, node: usize| {
            let (part, group) = (parts.of(node), groups.of(node));
            if near[part] == usize::MAX {
                near[part] = group;
            }
            if near[part] == group { Side::Near } else { Side::Far }
        };
        let agent_sides: Vec<Side> = (0..agents).map(|k| side(&mut groups, k)).collect();
        let entrances: Vec<Side> = (0..links).map(|l| side(&mut groups, agents + l)).collect();
        let exits: Vec<Side> = (0..links).map(|l| side(&mut groups, agents + links + l)).collect();
        let between = spans.iter().filter(|s| entrances[s.1.index()] != exits[s.1.index()]);
        let Some(lookahead) = between.map(|s| s.0).min() else { return false };
        self.sides = Sides { lookahead: Some(lookahead), reached: [self.now; 2], entrances };
        self.timers[Side::Far.index()].links.grow(links);
        self.timers[Side::Far.index()].agents.grow(agents);
        for (entry, side) in self.links.iter_mut().zip(exits) {
            entry.side = side;
        }
        for (k, side) in agent_sides.into_iter().enumerate() {
            let at = self.timers[Side::Near.index()].agents.get(k);
            self.timers[Side::Near.index()].agents.clear(k);
            self.agents[k].side = side;
            if at < Timestamp::MAX {
                self.set_agent_timer(k, at);
            }
        }
        true
    }

    /// How far one side may be ahead of the other; `None` if the network is not divided.
    pub const fn lookahead(&self) -> Option<TimeDelta> {
        self.sides.lookahead
    }

    /// The side of an agent.
    pub fn side_of(&self, agent: AgentId) -> Side {
        self.agents[agent.index()].side
    }

    /// The side of a link's queue.
    pub fn side_of_queue(&self, link: LinkId) -> Side {
        self.sides.entrances.get(link.index()).copied().unwrap_or(Side::Near)
    }

    /// When a side's next event is due; `Timestamp::MAX` for never.
    pub fn next_event_of(&self, side: Side) -> Timestamp {
        self.timers[side.index()].first().at()
    }

    /// Runs one side until `end`, inclusive, which is before [`Self::safe_until`] of it.
    #[inline]
    pub fn run_side(&mut self, side: Side, end: Timestamp) -> Outcome {
        if self.next_event_of(side) > end {
            let reached = &mut self.sides.reached[side.index()];
            *reached = end.max(*reached);
            self.now = *reached;
            return Outcome::Reached;
        }
        self.run_side_now(side, end)
    }

    fn run_side_now(&mut self, side: Side, end: Timestamp) -> Outcome {
        self.now = self.sides.reached[side.index()];
        let outcome = self.run_list(side, end, u64::MAX, |_| ControlFlow::Continue(()));
        self.sides.reached[side.index()] = self.now;
        outcome
    }

    /// The time before which nothing more can arrive at a side from the other: that of the earliest event of all, and what lies between, there and
    /// if need be back.
    pub fn safe_until(&self, side: Side) -> Timestamp {
        let Some(lookahead) = self.sides.lookahead else { return Timestamp::MAX };
        let (own, others) = (self.next_event_of(side), self.next_event_of(side.other()));
        others.min(own + lookahead) + lookahead
    }

    /// Runs both sides until `end`, inclusive.
    pub(super) fn run_both(
        &mut self,
        end: Timestamp,
        every: u64,
        mut hook: impl FnMut(Timestamp) -> ControlFlow<()>,
    ) -> Outcome {
        let mut ask_at = self.events.saturating_add(every);
        loop {
            let [near, far] = Side::BOTH.map(|s| self.next_event_of(s));
            if near.min(far) > end {
                break;
            }
            let side = if near <= far { Side::Near } else { Side::Far };
            let until = (self.safe_until(side) - TimeDelta::from_nanos(1)).min(end);
            if self.run_side(side, until) == Outcome::Stuck {
                return Outcome::Stuck;
            }
            if self.events >= ask_at {
                ask_at = self.events.saturating_add(every);
                if hook(self.now).is_break() {
                    return Outcome::Cancelled;
                }
            }
        }
        self.now = self.now.max(end);
        self.sides.reached = [self.now; 2];
        Outcome::Reached
    }
}

/// The rank of an event that was set at a time, as the so many-th of that time.
#[inline(always)]
fn rank(at: Timestamp, set: Timestamp, nth: u64) -> u64 {
    let age = at.saturating_since(set).as_nanos().unsigned_abs();
    let age = age.min(FINE_AGES + (age >> COARSE_BITS)).min(2 * FINE_AGES - 1);
    (2 * FINE_AGES - 1 - age) << RANK_BITS | nth.min((1 << RANK_BITS) - 1)
}

/// Sets that are joined (union and find).
#[derive(Clone)]
struct Groups(Vec<usize>);

impl Groups {
    fn new(count: usize) -> Self {
        Self((0..count).collect())
    }
    /// The node that stands for a node's group.
    fn of(&mut self, mut node: usize) -> usize {
        while self.0[node] != node {
            self.0[node] = self.0[self.0[node]];
            node = self.0[node];
        }
        node
    }
    /// Joins two groups; the lower node stands for both.
    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.of(a), self.of(b));
        self.0[a.max(b)] = a.min(b);
    }
}
