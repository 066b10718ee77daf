//! Coupling of a call's paths: which paths form a group, and what each group leaves to its members.

mod bottlenecks;

use super::Sender;
use crate::config::GroupConfig;
use crate::multipath::{Coupling, MAX_PATHS, PathSet};
use bottlenecks::{Bottlenecks, Method};
use weir_cc::coupled::{FlowNumber, FlowStateExchange, Group, Update};
use weir_cc::coupled::{Link, Subflow};
use weir_cc::cue::PacketResult;
use weir_cc::{Controller, Coupled};
use weir_units::{DataRate, TimeDelta, Timestamp};

/// Groups beyond those of detection, one a path, in which a flow leaves the exchange with its rate.
const ALONE: Group = 1 << 16;

/// The groups of a call's paths.
pub(super) struct Coupler {
    exchange: FlowStateExchange,
    /// `None` if all paths are coupled.
    bottlenecks: Option<Box<Bottlenecks>>,
    members: [Member; MAX_PATHS],
    /// Parts in which members share their group's rate.
    priorities: [f64; MAX_PATHS],
    /// Upper bound of a path's rate.
    ceiling: DataRate,
}

/// A path's place in its group.
#[derive(Clone, Copy, Debug)]
struct Member {
    /// The group, if the path is coupled.
    group: Option<Group>,
    /// Its flow in the exchange, if its controller has a rate to couple.
    flow: Option<FlowNumber>,
    /// Factor on increases that its controller was given last.
    increase: f64,
}

const SINGLE: Member = Member { group: None, flow: None, increase: 1.0 };

impl Coupler {
    pub(super) fn new(group: &GroupConfig, paths: usize, now: Timestamp) -> Option<Self> {
        let (division, method) = match group.coupling {
            Coupling::None => return None,
            Coupling::Always(division) => (division, None),
            Coupling::Detected(division) => (division, Some(Method::Shape)),
            Coupling::Correlated(division) => (division, Some(Method::Correlation)),
        };
        let exchange = FlowStateExchange::new(division);
        let bottlenecks = method.map(|method| Box::new(Bottlenecks::new(method, paths, now)));
        let priorities = group.priorities.map(|p| if p.is_finite() && p > 0.0 { p } else { 1.0 });
        Some(Self { exchange, bottlenecks, members: [SINGLE; MAX_PATHS], priorities, ceiling: group.ceiling })
    }

    pub(super) fn set_ceiling(&mut self, ceiling: DataRate) {
        self.ceiling = ceiling;
    }

    /// Takes the results of feedback on a path; returns whether groups may have changed.
    fn on_packets(&mut self, path: usize, packets: &[PacketResult], now: Timestamp) -> bool {
        self.bottlenecks.as_mut().is_some_and(|b| b.on_packets(path, packets, now))
    }

    /// The group that a usable path belongs in.
    fn group_for(&self, path: usize) -> Option<Group> {
        self.bottlenecks.as_ref().map_or(Some(0), |b| b.group(path))
    }

    fn mates(&self, path: usize) -> impl Iterator<Item = usize> + use<> {
        let members = self.members;
        let group = members.get(path).and_then(|m| m.group);
        (0..MAX_PATHS).filter(move |i| group.is_some() && members[*i].group == group)
    }
}

impl Sender {
    /// Results of feedback on a path were passed to its controller.
    pub(super) fn on_results(&mut self, path: usize, now: Timestamp) {
        let Some(c) = self.multipath.as_mut().and_then(|m| m.coupler.as_mut()) else { return };
        if c.on_packets(path, self.paths[path].results(), now) {
            self.regroup(now);
        }
    }

    /// Usable paths, or bottlenecks, have changed: paths leave groups and join them.
    pub(super) fn regroup(&mut self, now: Timestamp) {
        let Some(m) = self.multipath.as_mut() else { return };
        let usable = m.usable();
        let Some(mut c) = m.coupler.take() else { return };
        let mut groups = [None; MAX_PATHS];
        for (p, group) in self.paths.iter().zip(&mut groups) {
            let can = p.controller.coupled_rate().is_some() || p.target().window.is_some();
            *group = c.group_for(p.id.index()).filter(|_| can && usable.contains(p.id));
        }
        // A group of one is none.
        let size = |group| groups.iter().filter(|g| **g == group).count();
        let groups = groups.map(|g| g.filter(|_| size(g) > 1));
        let mut changed = PathSet::NONE;
        for (path, group) in groups.iter().enumerate() {
            if c.members[path].group != *group {
                changed = changed.with(self.paths[path].id);
            }
        }
        let is_changed = |path: usize| changed.contains(self.paths[path].id);
        let going: Vec<usize> = (0..self.paths.len()).filter(|p| is_changed(*p) && groups[*p].is_none()).collect();
        let coming: Vec<usize> = (0..self.paths.len()).filter(|p| is_changed(*p) && groups[*p].is_some()).collect();
        // Silent paths first: what they leave goes to the others, even to one that is alone then.
        for is_usable in [false, true] {
            for path in going.iter().copied() {
                if usable.contains(self.paths[path].id) == is_usable {
                    self.leave(&mut c, path, is_usable, now);
                }
            }
            if !changed.is_empty() {
                (0..self.paths.len()).for_each(|path| self.hand_out(&mut c, path, now));
            }
        }
        for path in coming {
            let (member, Some(group)) = (&mut c.members[path], groups[path]) else { continue };
            member.group = Some(group);
            match (member.flow, self.paths[path].controller.coupled_rate()) {
                (Some(flow), _) => c.exchange.set_group(flow, group),
                (None, Some(rate)) => member.flow = Some(c.exchange.register(group, c.priorities[path], rate)),
                (None, None) => {}
            }
        }
        if let Some(m) = self.multipath.as_mut() {
            m.coupler = Some(c);
        }
        for path in 0..self.paths.len() {
            if let Some(wanted) = self.paths[path].wants_news() {
                self.apply_target(path, wanted, now);
            }
        }
    }

    /// A path leaves its group: a usable one with its rate, a silent one without, as a flow that has ended.
    fn leave(&mut self, c: &mut Coupler, path: usize, with_rate: bool, now: Timestamp) {
        let before = core::mem::replace(&mut c.members[path], SINGLE);
        if let Some(flow) = before.flow {
            if with_rate {
                c.exchange.set_group(flow, ALONE + path as Group);
            }
            c.exchange.deregister(flow);
            if let Some(group) = before.group {
                c.exchange.share_out(group);
            }
        }
        self.paths[path].controller.on_coupled(&Coupled { rate: None, increase: 1.0 }, now);
    }

    /// The controller of a coupled path has a new target: divides the rates of its group again. Returns the paths whose
    /// targets may have changed.
    pub(super) fn couple(&mut self, path: usize, now: Timestamp) -> PathSet {
        let own = PathSet::NONE.with(self.paths[path].id);
        let Some(m) = self.multipath.as_mut() else { return own };
        let Some(mut c) = m.coupler.take() else { return own };
        let mut affected = own;
        let rtt = m.state(path).and_then(|s| s.rtt).unwrap_or(TimeDelta::ZERO);
        if let Some(flow) = c.members[path].flow
            && self.paths[path].controller.coupled_rate().is_none()
        {
            // Its controller has changed to one with a window.
            c.members[path].flow = None;
            c.exchange.set_group(flow, ALONE + path as Group);
            c.exchange.deregister(flow);
        }
        if let (Some(flow), Some(rate)) = (c.members[path].flow, self.paths[path].controller.coupled_rate()) {
            // The rate given last is no news; rounding must not look like a decrease.
            if c.exchange.rate(flow) != Some(rate) {
                let desired = Some(c.ceiling);
                c.exchange.update(flow, Update { now, rate, desired, rtt });
            }
        }
        for mate in c.mates(path) {
            self.hand_out(&mut c, mate, now);
            affected = affected.with(self.paths[mate].id);
        }
        if let Some(m) = self.multipath.as_mut() {
            m.coupler = Some(c);
        }
        affected
    }

    /// Passes a path's controller its rate, or how far its window may grow, if that has changed.
    fn hand_out(&mut self, c: &mut Coupler, path: usize, now: Timestamp) {
        let member = c.members[path];
        if member.group.is_none() {
            return;
        }
        let (rate, increase) = match member.flow {
            Some(flow) => {
                let all: f64 = c.mates(path).map(|mate| c.priorities[mate]).sum();
                (c.exchange.rate(flow), c.priorities[path] / all)
            }
            None => (None, self.linked(c, path)),
        };
        let controller = &mut self.paths[path].controller;
        let is_news = rate.is_some_and(|r| controller.coupled_rate() != Some(r));
        if is_news || increase != member.increase {
            c.members[path].increase = increase;
            controller.on_coupled(&Coupled { rate: rate.filter(|_| is_news), increase }, now);
        }
    }

    /// The factor on the growth of a path's window among those of its group.
    fn linked(&self, c: &Coupler, path: usize) -> f64 {
        let m = self.multipath.as_deref();
        let subflow = |path: usize| {
            let window = self.paths[path].target().window?;
            Some(Subflow { window, rtt: m?.state(path)?.rtt? })
        };
        let mut subflows = [None; MAX_PATHS];
        for mate in c.mates(path) {
            subflows[mate] = subflow(mate);
        }
        let mut known = subflows.into_iter().flatten();
        let all = [(); MAX_PATHS].map(|()| known.next());
        let none = Subflow { window: weir_units::DataSize::ZERO, rtt: TimeDelta::from_millis(1) };
        let all = all.map(|s| s.unwrap_or(none));
        let own = subflows[path].map(|s| s.window);
        Link::new(&all).zip(own).map_or(1.0, |(link, window)| link.factor(window))
    }
}
