//! A site: its receivers, and the router that joins the groups that any of them wants.

use super::message::{ANNOUNCEMENT, MEMBERSHIP, Message, Outgoing};
use super::plan::{LayersPlan, Learning};
use std::collections::VecDeque;
use weir_session::{LayerAction, LayeredReceiver};
use weir_sim::AgentId;
use weir_units::{DataSize, TimeDelta, Timestamp};

/// A receiver, and how long it was at, above and below its level.
pub(super) struct Member {
    pub start: Timestamp,
    started: bool,
    pub receiver: LayeredReceiver,
    /// When its level was last looked at.
    since: Timestamp,
    level: u8,
    pub reached: Option<Timestamp>,
    /// Time at the right level, above and below, in the last third of the run.
    pub at: TimeDelta,
    pub above: TimeDelta,
    pub below: TimeDelta,
    /// Integral of the level there.
    pub level_time: f64,
}

pub(super) struct SiteEnd {
    core: AgentId,
    pub class: usize,
    right: u8,
    /// The last third of the run begins here.
    settled_from: Timestamp,
    learning: Learning,
    leave_latency: TimeDelta,
    pub members: Vec<Member>,
    /// Members of each group, and when the router gives it up.
    groups: Vec<(u32, Option<Timestamp>)>,
    joined: Vec<bool>,
    out: VecDeque<Outgoing>,
    next: Option<Timestamp>,
    id: AgentId,
    pub announced: u64,
    pub reports: u64,
    pub media_packets: u64,
}

impl SiteEnd {
    pub(super) fn new(plan: &LayersPlan, core: AgentId, class: usize) -> Self {
        Self {
            core,
            class,
            right: plan.right_level(class),
            settled_from: Timestamp::ZERO + plan.duration.mul_f64(2.0 / 3.0),
            learning: plan.learning,
            leave_latency: plan.leave_latency,
            members: Vec::new(),
            groups: vec![(0, None); plan.layers.len()],
            joined: vec![false; plan.layers.len()],
            out: VecDeque::new(),
            next: Some(Timestamp::ZERO),
            id: core,
            announced: 0,
            reports: 0,
            media_packets: 0,
        }
    }
    pub(super) fn with_id(self, id: AgentId) -> Self {
        Self { id, ..self }
    }
    pub(super) fn id(&self) -> AgentId {
        self.id
    }
    pub(super) fn right_level(&self) -> u8 {
        self.right
    }
    pub(super) fn add(&mut self, start: Timestamp, receiver: LayeredReceiver) {
        self.members.push(Member {
            start,
            started: false,
            receiver,
            since: start,
            level: 0,
            reached: None,
            at: TimeDelta::ZERO,
            above: TimeDelta::ZERO,
            below: TimeDelta::ZERO,
            level_time: 0.0,
        });
    }
    pub(super) fn next(&self) -> Option<Timestamp> {
        self.next
    }
    pub(super) fn pop(&mut self) -> Option<Outgoing> {
        self.out.pop_front()
    }

    pub(super) fn on_message(&mut self, message: Message, now: Timestamp) {
        match message {
            Message::Media(layer, sequence) => {
                self.media_packets += 1;
                let mut changed = false;
                for m in self.members.iter_mut().filter(|m| m.started && m.receiver.level() >= layer) {
                    let lost = m.receiver.counters().lost;
                    m.receiver.on_packet(layer, sequence, now);
                    changed |= m.receiver.counters().lost != lost;
                }
                // Without a loss no timer and no level moves.
                if changed {
                    self.settle(now);
                }
            }
            Message::Announce(layer) => {
                for m in self.members.iter_mut().filter(|m| m.started) {
                    m.receiver.on_announcement(layer, now);
                }
            }
            Message::Graft(_) | Message::Prune(_) => {}
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Timestamp) {
        for m in &mut self.members {
            if m.start <= now {
                m.started = true;
                m.receiver.handle_timeout(now);
            }
        }
        for at in 0..self.groups.len() {
            if self.groups[at].1.take_if(|due| *due <= now).is_some() && self.groups[at].0 == 0 {
                self.joined[at] = false;
                self.send(Message::Prune(at as u8 + 1), MEMBERSHIP);
            }
        }
        self.settle(now);
    }

    fn send(&mut self, message: Message, size: DataSize) {
        self.out.push_back(Outgoing { to: self.core, message, size });
    }

    /// Does what the receivers want, and finds when something is due next.
    fn settle(&mut self, now: Timestamp) {
        for k in 0..self.members.len() {
            if !self.members[k].started {
                continue;
            }
            while let Some(action) = self.members[k].receiver.poll_action() {
                match action {
                    LayerAction::Join(layer) => self.join(layer),
                    LayerAction::Leave(layer) => self.leave(layer, now),
                    LayerAction::Announce(layer) => self.announce(k, layer, now),
                }
            }
            self.members[k].account(now, self.right, self.settled_from);
        }
        let receivers = self.members.iter().map(|m| if m.started { m.receiver.poll_timeout() } else { Some(m.start) });
        let routers = self.groups.iter().map(|g| g.1);
        self.next = receivers.chain(routers).flatten().min();
    }
    fn join(&mut self, layer: u8) {
        self.reports += 1;
        let at = usize::from(layer) - 1;
        self.groups[at].0 += 1;
        self.groups[at].1 = None;
        if !self.joined[at] {
            self.joined[at] = true;
            self.send(Message::Graft(layer), MEMBERSHIP);
        }
    }
    fn leave(&mut self, layer: u8, now: Timestamp) {
        self.reports += 1;
        let at = usize::from(layer) - 1;
        self.groups[at].0 -= 1;
        if self.groups[at].0 == 0 {
            self.groups[at].1 = Some(now + self.leave_latency);
        }
    }
    fn announce(&mut self, from: usize, layer: u8, now: Timestamp) {
        self.announced += 1;
        for (_, m) in self.members.iter_mut().enumerate().filter(|(k, m)| *k != from && m.started) {
            m.receiver.on_announcement(layer, now);
        }
        if self.learning == Learning::Session {
            self.send(Message::Announce(layer), ANNOUNCEMENT);
        }
    }
    /// Counts the time up to the run's end.
    pub(super) fn finished(&self, end: Timestamp) -> impl Iterator<Item = Member> + '_ {
        self.members.iter().map(move |m| {
            let mut m = Member { receiver: m.receiver.clone(), ..*m };
            m.account(end, self.right, self.settled_from);
            m
        })
    }
}

impl Member {
    fn account(&mut self, now: Timestamp, right: u8, settled_from: Timestamp) {
        let passed = now.saturating_since(self.since.max(settled_from)).max(TimeDelta::ZERO);
        let time = match self.level.cmp(&right) {
            core::cmp::Ordering::Less => &mut self.below,
            core::cmp::Ordering::Equal => &mut self.at,
            core::cmp::Ordering::Greater => &mut self.above,
        };
        *time += passed;
        self.level_time += f64::from(self.level) * passed.as_secs_f64();
        (self.since, self.level) = (now, self.receiver.level());
        if self.level >= right {
            self.reached = self.reached.or(Some(now));
        }
    }
    pub(super) fn level(&self) -> u8 {
        self.level
    }
}
