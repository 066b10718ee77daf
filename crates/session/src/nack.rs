//! The receiver's half of retransmission: which packets are missing, and when to request them (RFC 4585,
//! section 6.2.1).
//!
//! A missing packet is requested once it is unlikely to be merely late, by the reordering seen so far, and then once per round trip until it arrives,
//! as long as the answer can arrive before its playout. If there are repair packets, they are awaited first.
//!
//! Messages are sent at once, as in the immediate feedback mode of RFC 4585, section 3.3, which applies to two members
//! with RTCP's bandwidth; a leaky bucket keeps them within that bandwidth. They are of reduced size (RFC 5506).

mod config;
mod reordering;

pub use config::{NackConfig, NackCounters};

use crate::identity::FeedbackSsrcs;
use crate::receiver_model::ReceiverModel;
use crate::rtcp_timer::RTCP_BANDWIDTH_SHARE;
use reordering::Reordering;
use std::collections::VecDeque;
use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};
use weir_wire::List;
use weir_wire::rtcp::{Nack, NackEntry, NackPacker};

/// Most packets requested by one message: 800 bytes at worst.
const MAX_IN_MESSAGE: usize = 200;
/// Round-trip time until one is measured (libwebrtc's `kDefaultRttMs`).
const FIRST_ROUND_TRIP: TimeDelta = TimeDelta::from_millis(100);
/// Weight of a new response time in its mean, as for round-trip times in RFC 6298 (section 2).
const RESPONSE_WEIGHT: f64 = 0.125;
/// A longer gap indicates a restarted source: nothing in it is requested (RFC 3550, appendix A.1).
const MAX_GAP: u64 = 3_000;
/// After this time without repair packets none are expected.
const REPAIR_SILENCE: TimeDelta = TimeDelta::from_secs(1);

/// Losses detected by a receiver.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct GapCounts {
    /// Packets that were missing.
    pub missing: u64,
    /// Gaps in the sequence numbers.
    pub gaps: u64,
}

/// A missing packet.
#[derive(Clone, Copy, Debug)]
struct Missing {
    sequence: u64,
    since: Timestamp,
    /// Its playout time, as far as known.
    deadline: Timestamp,
    requests: u8,
    last: Timestamp,
}

/// Properties of a received packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrived {
    pub sequence: u64,
    /// Playout time of its frame.
    pub deadline: Timestamp,
    /// Whether it ends its frame.
    pub marker: bool,
}

/// Missing packets in order, and when to request them.
#[derive(Debug)]
pub(crate) struct Nacker {
    config: NackConfig,
    missing: VecDeque<Missing>,
    /// The highest packet received.
    highest: Option<Arrived>,
    /// Least distance between frames so far.
    step: TimeDelta,
    rtt: Option<TimeDelta>,
    /// Mean time from request to response, if no round trip is measured.
    response: Option<TimeDelta>,
    /// The last packet covered by repair packets, when the last one arrived, and their interval.
    repair: Option<(u64, Timestamp, TimeDelta)>,
    /// RTCP's bandwidth.
    bandwidth: DataRate,
    free_at: Timestamp,
    /// No packet is due before this; `None` if none is missing.
    next: Option<Timestamp>,
    reordering: Reordering,
    /// The packets requested by the next message.
    due: Vec<u16>,
    entries: Vec<NackEntry>,
    /// Over several paths: the highest packet received on each, and when the last one was.
    paths: Vec<Option<(u64, Timestamp)>>,
    /// Number of gaps.
    gaps: u64,
    /// Whether the profile has feedback messages.
    allowed: bool,
    /// Whether lost packets are requested.
    enabled: bool,
    /// The program whose timing requests have.
    model: ReceiverModel,
    pub counters: NackCounters,
}

impl Nacker {
    /// The configuration in use.
    pub(crate) fn config(&self) -> NackConfig {
        self.config
    }

    pub(crate) fn new(config: NackConfig, session_bandwidth: DataRate, now: Timestamp) -> Self {
        Self {
            config,
            missing: VecDeque::new(),
            highest: None,
            step: TimeDelta::MAX,
            rtt: None,
            response: None,
            repair: None,
            bandwidth: DataRate::from_bps_f64(session_bandwidth.as_bps_f64() * RTCP_BANDWIDTH_SHARE),
            free_at: now,
            next: None,
            reordering: Reordering::default(),
            due: Vec::new(),
            entries: Vec::new(),
            paths: Vec::new(),
            gaps: 0,
            allowed: true,
            enabled: true,
            model: ReceiverModel::default(),
            counters: NackCounters::default(),
        }
    }

    /// Whether the profile has feedback messages.
    pub(crate) fn allow(&mut self, allowed: bool) {
        self.allowed = allowed;
        self.give_up_unless_asking();
    }
    /// Enables or disables requesting lost packets.
    pub(crate) fn enable(&mut self, enabled: bool) {
        self.enabled = enabled;
        self.give_up_unless_asking();
    }
    /// Requests packets when this program would.
    pub(crate) fn behave_as(&mut self, model: ReceiverModel) {
        self.model = model;
    }
    fn give_up_unless_asking(&mut self) {
        if !(self.allowed && self.enabled) {
            self.counters.given_up += self.missing.len() as u64;
            self.missing.clear();
            self.next = None;
        }
    }
    /// Losses so far.
    pub(crate) fn gaps(&self) -> GapCounts {
        GapCounts { missing: self.counters.missing - self.counters.reordered, gaps: self.gaps }
    }

    pub(crate) fn on_rtt(&mut self, rtt: TimeDelta) {
        self.rtt = Some(rtt);
    }

    fn round_trip(&self) -> TimeDelta {
        self.rtt.or(self.response).unwrap_or(FIRST_ROUND_TRIP)
    }

    fn position(&self, sequence: u64) -> Option<usize> {
        self.missing.binary_search_by_key(&sequence, |m| m.sequence).ok()
    }

    fn take(&mut self, sequence: u64) -> Option<Missing> {
        let at = self.position(sequence)?;
        self.missing.remove(at)
    }

    /// A packet has arrived on one of several paths. Each path keeps the order of its packets, so that a packet is lost,
    /// not late, once all paths in use have delivered later ones.
    pub(crate) fn on_path(&mut self, now: Timestamp, path: usize, sequence: u64) {
        if self.paths.len() <= path {
            self.paths.resize(path + 1, None);
        }
        let highest = self.paths[path].map_or(0, |(highest, _)| highest);
        self.paths[path] = Some((highest.max(sequence), now));
    }

    /// Something other than a packet has arrived on one of several paths: it is not idle.
    pub(crate) fn on_path_alive(&mut self, now: Timestamp, path: usize) {
        if let Some(Some((_, last))) = self.paths.get_mut(path) {
            *last = now;
        }
    }

    /// A packet of the media stream has arrived.
    pub(crate) fn on_packet(&mut self, now: Timestamp, packet: Arrived) {
        let sequence = packet.sequence;
        let Some(highest) = self.highest else {
            self.highest = Some(packet);
            return;
        };
        if sequence <= highest.sequence {
            if let Some(missing) = self.take(sequence) {
                self.counters.reordered += 1;
                self.reordering.on_late(now.saturating_since(missing.since));
            } else if highest.sequence - sequence > MAX_GAP {
                self.restart(packet);
            } else {
                self.reordering.on_known(sequence, now);
            }
            if !self.paths.is_empty() && !self.missing.is_empty() {
                // Others may have waited for its path.
                self.refresh(now);
            }
            return;
        }
        if sequence - highest.sequence > MAX_GAP {
            self.restart(packet);
            return;
        }
        self.highest = Some(packet);
        let apart = packet.deadline - highest.deadline;
        if apart > TimeDelta::ZERO && sequence == highest.sequence + 1 {
            self.step = self.step.min(apart);
        }
        let gap = sequence - highest.sequence - 1;
        self.gaps += u64::from(gap > 0);
        if !(self.allowed && self.enabled) {
            self.counters.missing += gap;
            self.counters.given_up += gap;
            return;
        }
        for s in highest.sequence + 1..sequence {
            self.counters.missing += 1;
            let deadline = self.deadline_between(&highest, &packet, s);
            let missing = Missing { sequence: s, since: now, deadline, requests: 0, last: now };
            self.missing.push_back(missing);
            if self.missing.len() > self.config.max_packets {
                self.missing.pop_front();
                self.counters.given_up += 1;
            }
        }
        if !self.missing.is_empty() {
            // Packets after a missing one may make it due.
            self.refresh(now);
        }
    }

    /// Playout time of a packet between two others. Its frame is that of the earlier packet unless that ends a frame,
    /// and that of the later one if there is no room for a third frame; with more frames, all are assumed to have the
    /// same size.
    fn deadline_between(&self, before: &Arrived, behind: &Arrived, sequence: u64) -> Timestamp {
        let apart = behind.deadline - before.deadline;
        let (place, count) = (sequence - before.sequence, behind.sequence - before.sequence);
        if apart <= TimeDelta::ZERO || (place == 1 && !before.marker) {
            before.deadline.min(behind.deadline)
        } else if before.marker && apart.mul_f64(2.0 / 3.0) < self.step {
            behind.deadline
        } else {
            before.deadline + apart.mul_f64(place as f64 / count as f64)
        }
    }

    fn restart(&mut self, packet: Arrived) {
        self.counters.given_up += self.missing.len() as u64;
        self.missing.clear();
        (self.highest, self.next, self.repair) = (Some(packet), None, None);
        self.paths.clear();
    }

    /// A repair packet that covers packets up to this one has arrived.
    pub(crate) fn on_repair(&mut self, now: Timestamp, upto: u64) {
        self.repair = Some(match self.repair {
            Some((last, at, spacing)) if now - at < REPAIR_SILENCE => {
                // The repair packets of one block arrive together.
                let apart = if now > at { (spacing + (now - at)) / 2 } else { spacing };
                (last.max(upto), now, apart)
            }
            _ => (upto, now, self.config.repair_patience),
        });
        self.refresh(now);
    }

    /// A repair packet of a whole frame has arrived, which covers packets up to this one. Those of the next frame follow it at once, so
    /// that packets are awaited as if they were late.
    pub(crate) fn on_frame_repair(&mut self, now: Timestamp, upto: u64) {
        let last = self.repair.map_or(upto, |(last, ..)| last.max(upto));
        self.repair = Some((last, now, self.config.reorder_time / 2));
        self.refresh(now);
    }

    /// A packet was recovered by repair; it may be the newest packet so far.
    pub(crate) fn on_repaired(&mut self, now: Timestamp, packet: Arrived) {
        if self.highest.is_some_and(|h| packet.sequence > h.sequence) {
            self.on_packet(now, packet);
        } else {
            self.counters.repaired += u64::from(self.take(packet.sequence).is_some());
        }
    }

    /// A retransmission has arrived; returns whether its packet was still missing.
    pub(crate) fn on_retransmission(&mut self, now: Timestamp, sequence: u64) -> bool {
        let Some(missing) = self.take(sequence) else { return false };
        self.reordering.on_replaced(sequence, missing.since);
        if missing.requests == 1 {
            let took = now - missing.last;
            let mean = self.response.map_or(took, |r| r + (took - r).mul_f64(RESPONSE_WEIGHT));
            self.response = Some(mean);
        }
        true
    }

    /// Time after a request before the packet is requested again.
    fn wait_for_response(&self) -> TimeDelta {
        let slack = if self.model.requests_at_once() { TimeDelta::ZERO } else { self.config.slack };
        self.round_trip() + slack
    }

    /// When a packet may be requested.
    fn ask_at(&self, m: &Missing) -> Timestamp {
        let round_trip = self.wait_for_response();
        if m.requests > 0 {
            return self.model.request_again_at(m.last + round_trip);
        }
        if self.model.requests_at_once() {
            return m.since;
        }
        let behind = self.highest.map_or(0, |h| h.sequence.saturating_sub(m.sequence));
        let lost = behind >= u64::from(self.config.reorder_packets);
        let mut at = if lost { m.since } else { m.since + self.config.reorder_time };
        let wait = self.reordering.wait();
        if wait > TimeDelta::ZERO && self.paths.is_empty() {
            // As far as packets are late here, but not beyond the last chance to request.
            at = at.max((m.since + wait).min(m.deadline - round_trip));
        }
        for (_, last) in self.paths.iter().flatten().filter(|(highest, _)| *highest < m.sequence) {
            at = at.max(*last + self.config.path_idle);
        }
        if let Some((upto, last, apart)) = self.repair
            && upto < m.sequence
            && m.since.saturating_since(last) < REPAIR_SILENCE
        {
            // Waits for one more repair packet, if it arrives with the usual delay, but not beyond the last chance to
            // request.
            let patience = (apart * 2).min(self.config.repair_patience);
            at = at.max((m.since + patience).min(m.deadline - round_trip));
        }
        at
    }

    /// Whether the response to a request at `now` would arrive too late.
    fn is_too_late(&self, m: &Missing, now: Timestamp) -> bool {
        m.requests >= self.model.max_requests().unwrap_or(self.config.max_requests)
            || now + self.round_trip() > m.deadline
    }

    fn refresh(&mut self, now: Timestamp) {
        self.next = self.missing.iter().map(|m| self.ask_at(m).max(now)).min();
    }

    /// When [`Self::prepare`] may find packets to request.
    pub(crate) fn poll_timeout(&self) -> Option<Timestamp> {
        self.next.map(|at| at.max(self.free_at))
    }

    #[inline]
    pub(crate) fn is_due(&self, now: Timestamp) -> bool {
        self.poll_timeout().is_some_and(|at| at <= now)
    }

    /// Whether [`Self::prepare`] found packets to request.
    pub(crate) fn is_prepared(&self) -> bool {
        !self.due.is_empty()
    }

    /// Collects the packets to request now; returns whether there are any. [`Self::write`] writes them.
    pub(crate) fn prepare(&mut self, now: Timestamp) -> bool {
        self.due.clear();
        if !self.is_due(now) {
            return false;
        }
        let before = self.missing.len();
        let mut missing = core::mem::take(&mut self.missing);
        missing.retain(|m| {
            // Its last response may still be in flight.
            let waits = m.requests > 0 && now < m.last + self.wait_for_response();
            waits || !self.is_too_late(m, now)
        });
        self.counters.given_up += (before - missing.len()) as u64;
        for m in &mut missing {
            if self.due.len() == MAX_IN_MESSAGE {
                break;
            }
            if self.ask_at(m) <= now {
                (m.requests, m.last) = (m.requests + 1, now);
                self.due.push(m.sequence as u16);
            }
        }
        self.missing = missing;
        self.refresh(now);
        !self.due.is_empty()
    }

    /// Appends the prepared message.
    pub(crate) fn write(&mut self, ssrcs: FeedbackSsrcs, now: Timestamp, out: &mut Vec<u8>) {
        let before = out.len();
        self.entries.clear();
        self.entries.extend(NackPacker::new(self.due.iter().copied()));
        let entries = List::from(&self.entries[..]);
        Nack { sender_ssrc: ssrcs.sender, media_ssrc: ssrcs.media, entries }.write_into(out);
        self.counters.nacks += 1;
        self.counters.requested += self.due.len() as u64;
        self.due.clear();
        self.charge(DataSize::from_bytes((out.len() - before) as u64), now);
    }

    /// Charges bytes to RTCP's bandwidth.
    pub(crate) fn charge(&mut self, size: DataSize, now: Timestamp) {
        let takes = self.bandwidth.time_for(size).unwrap_or(TimeDelta::from_secs(1));
        self.free_at = self.free_at.max(now) + takes;
    }

    /// The packets missing now.
    #[cfg(test)]
    fn missing(&self) -> Vec<u64> {
        self.missing.iter().map(|m| m.sequence).collect()
    }
}

#[cfg(test)]
mod tests;
