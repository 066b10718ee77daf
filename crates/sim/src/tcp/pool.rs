//! Many small agents behind one.

use crate::agent::Agent;
use crate::packet::{Body, Packet};
use crate::timers::{Key, Timers};
use weir_units::Timestamp;

/// Agents that share a place in the network; each is a connection, identified by its number in segments.
///
/// Slots are reused, so there are never more than were alive at once.
#[derive(Clone, Debug)]
pub(super) struct Pool<A> {
    members: Vec<A>,
    timers: Timers,
    order: u64,
    /// The member that has had an event and may have something to send.
    current: Option<u32>,
}

impl<A: Agent> Pool<A> {
    pub(super) fn new() -> Self {
        Self { members: Vec::new(), timers: Timers::default(), order: 0, current: None }
    }
    pub(super) fn len(&self) -> usize {
        self.members.len()
    }
    pub(super) fn iter(&self) -> impl Iterator<Item = &A> {
        self.members.iter()
    }
    pub(super) fn push(&mut self, member: A) {
        self.members.push(member);
        self.timers.grow(self.members.len());
    }
    /// A member with an event: its packets and timeout are polled next. The previous one must have been polled
    /// completely.
    #[inline]
    pub(super) fn stimulate(&mut self, index: u32) -> Option<&mut A> {
        let member = self.members.get_mut(index as usize)?;
        self.current = Some(index);
        Some(member)
    }

    /// A timer that is too early is kept, and is updated when it expires.
    #[inline]
    fn rearm(&mut self, index: usize, now: Timestamp) {
        let timeout = self.members[index].poll_timeout().unwrap_or(Timestamp::MAX);
        let armed = self.timers.get(index);
        if armed > now && armed <= timeout {
            return;
        }
        if timeout < Timestamp::MAX {
            self.order += 1;
            self.timers.set(index, timeout, self.order);
        } else {
            self.timers.clear(index);
        }
    }

    #[inline]
    pub(super) fn poll_transmit(&mut self, now: Timestamp, packet: &mut Packet) -> bool {
        loop {
            if let Some(index) = self.current {
                let member = &mut self.members[index as usize];
                if member.poll_transmit(now, packet) {
                    if let Body::Tcp(s) = &mut packet.body {
                        s.connection = index;
                    }
                    return true;
                }
                self.current = None;
                self.rearm(index as usize, now);
            }
            let first: Key = self.timers.first();
            if first.at() > now {
                return false;
            }
            let index = first.index();
            let member = &mut self.members[index];
            if member.poll_timeout().is_some_and(|t| t <= now) {
                member.on_timeout(now);
                self.current = Some(index as u32);
            } else {
                self.rearm(index, now);
            }
        }
    }

    /// The earliest timeout of a member or of an armed timer.
    #[inline]
    pub(super) fn poll_timeout(&self) -> Option<Timestamp> {
        Some(self.timers.first().at()).filter(|&t| t < Timestamp::MAX)
    }
}
