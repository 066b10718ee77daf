//! The receiver's half of retransmission: which packets are missing, and when to ask for them (RFC 4585, section 6.2.1).
//!
//! A missing packet is asked for once it can hardly be late any more, then once a round trip until it comes, and no more
//! when an answer would come after its playout. Where repair packets flow, they have their chance first.
//!
//! Messages leave at once, as in the immediate feedback mode of RFC 4585, section 3.3, which two members with RTCP's
//! bandwidth are always small enough for; a leaky bucket keeps them inside that bandwidth. They are of reduced size
//! (RFC 5506).

use crate::identity::FeedbackSsrcs;
use crate::rtcp_timer::RTCP_BANDWIDTH_SHARE;
use std::collections::VecDeque;
use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};
use weir_wire::List;
use weir_wire::rtcp::{Nack, NackEntry, NackPacker};

/// Most packets that one message asks for: 800 bytes at worst.
const MAX_IN_MESSAGE: usize = 200;
/// Round trip until one is measured (libwebrtc's `kDefaultRttMs`).
const FIRST_ROUND_TRIP: TimeDelta = TimeDelta::from_millis(100);
/// Weight of a new response time in its mean, as RFC 6298 smooths round trips (section 2).
const RESPONSE_WEIGHT: f64 = 0.125;
/// A gap longer than this is a source that has started again: nothing in it is asked for (RFC 3550, appendix A.1).
const MAX_GAP: u64 = 3_000;
/// Without repair packets for this long, none are expected.
const REPAIR_SILENCE: TimeDelta = TimeDelta::from_secs(1);

/// Losses that a receiver has seen.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct GapCounts {
    /// Packets that were missing.
    pub missing: u64,
    /// Gaps that they were in.
    pub gaps: u64,
}

/// When a receiver asks for lost packets.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct NackConfig {
    /// A packet behind which so many have come is lost, not late. Default: 3, the threshold of TCP's fast retransmission
    /// (RFC 5681, section 3.2).
    pub reorder_packets: u16,
    /// A packet that is missing for so long is lost, not late. Default: 10 ms.
    pub reorder_time: TimeDelta,
    /// Longest wait for repair packets before a packet is asked for. Default: 100 ms.
    pub repair_patience: TimeDelta,
    /// Time on top of the round trip that an answer is given: for both ends' queues. Default: 10 ms.
    pub slack: TimeDelta,
    /// Most requests for one packet. Default: 10, libwebrtc's `kMaxNackRetries`.
    pub max_requests: u8,
    /// Most packets missing at a time; of more, the oldest are given up. Default: 1,000, libwebrtc's `kMaxNackPackets`.
    pub max_packets: usize,
    /// Whether receiver reports count retransmissions as packets of the media stream, so that they show the loss that is left.
    /// They did in libwebrtc, as of 2013, where packets were sent again in the media stream itself, under their old numbers.
    /// Default: false, since a retransmission stream has reports of its own (RFC 4588, section 4).
    pub count_retransmissions: bool,
}

impl Default for NackConfig {
    fn default() -> Self {
        Self {
            reorder_packets: 3,
            reorder_time: TimeDelta::from_millis(10),
            repair_patience: TimeDelta::from_millis(100),
            slack: TimeDelta::from_millis(10),
            max_requests: 10,
            max_packets: 1_000,
            count_retransmissions: false,
        }
    }
}

/// What became of missing packets at the receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NackCounters {
    /// Generic NACK messages sent.
    pub nacks: u64,
    /// Packets asked for, repetitions included.
    pub requested: u64,
    /// Packets that were missing.
    pub missing: u64,
    /// Missing packets that came of themselves: late, not lost.
    pub reordered: u64,
    /// Missing packets that repair packets brought back.
    pub repaired: u64,
    /// Missing packets that a retransmission brought back in time.
    pub recovered: u64,
    /// Missing packets given up: too late for playout, asked for too often, or too many at a time.
    pub given_up: u64,
    /// Retransmissions received.
    pub retransmissions: u64,
    /// Their RTP bytes: headers and payload.
    pub bytes: u64,
    /// Retransmissions that came too late for playout.
    pub late: u64,
    /// Retransmissions of packets that had come already.
    pub duplicates: u64,
    /// Retransmissions that do not parse, or of packets that nobody has asked for yet.
    pub malformed: u64,
}

impl NackCounters {
    /// Retransmissions that were of no use.
    pub const fn useless(&self) -> u64 {
        self.late + self.duplicates
    }
}

/// A packet that has not come.
#[derive(Clone, Copy, Debug)]
struct Missing {
    sequence: u64,
    since: Timestamp,
    /// When it is played, as far as is known.
    deadline: Timestamp,
    requests: u8,
    last: Timestamp,
}

/// What has to be known of a packet that came.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrived {
    pub sequence: u64,
    /// When its frame is played.
    pub deadline: Timestamp,
    /// Whether it ends its frame.
    pub marker: bool,
}

/// Missing packets in order, and when to ask for them.
#[derive(Debug)]
pub(crate) struct Nacker {
    config: NackConfig,
    missing: VecDeque<Missing>,
    /// The highest packet that came.
    highest: Option<Arrived>,
    /// Least distance of frames that has been seen.
    step: TimeDelta,
    rtt: Option<TimeDelta>,
    /// Mean time from request to answer, where no round trip is measured.
    response: Option<TimeDelta>,
    /// The last packet that repair packets cover, when one came last, and how far they are apart.
    repair: Option<(u64, Timestamp, TimeDelta)>,
    /// What RTCP may take.
    bandwidth: DataRate,
    free_at: Timestamp,
    /// No packet is due before this; `None` where none is missing.
    next: Option<Timestamp>,
    /// What the next message asks for.
    due: Vec<u16>,
    entries: Vec<NackEntry>,
    /// Gaps seen.
    gaps: u64,
    /// Whether the profile has feedback messages.
    allowed: bool,
    /// Whether lost packets are asked for at all.
    enabled: bool,
    pub counters: NackCounters,
}

impl Nacker {
    /// What it was made from.
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
            due: Vec::new(),
            entries: Vec::new(),
            gaps: 0,
            allowed: true,
            enabled: true,
            counters: NackCounters::default(),
        }
    }

    /// Whether the profile has feedback messages.
    pub(crate) fn allow(&mut self, allowed: bool) {
        self.allowed = allowed;
        self.give_up_unless_asking();
    }
    /// Whether lost packets are to be asked for.
    pub(crate) fn enable(&mut self, enabled: bool) {
        self.enabled = enabled;
        self.give_up_unless_asking();
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

    /// A packet of the media stream has come.
    pub(crate) fn on_packet(&mut self, now: Timestamp, packet: Arrived) {
        let sequence = packet.sequence;
        let Some(highest) = self.highest else {
            self.highest = Some(packet);
            return;
        };
        if sequence <= highest.sequence {
            if self.take(sequence).is_some() {
                self.counters.reordered += 1;
            } else if highest.sequence - sequence > MAX_GAP {
                self.begin_anew(packet);
            }
            return;
        }
        if sequence - highest.sequence > MAX_GAP {
            self.begin_anew(packet);
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
            // Packets behind a missing one may make it due.
            self.refresh(now);
        }
    }

    /// When a packet between two others is played. Its frame is that of the one before where that does not end it and of
    /// the one behind where there is no room for a third; of more frames all are taken to be of one size.
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

    fn begin_anew(&mut self, packet: Arrived) {
        self.counters.given_up += self.missing.len() as u64;
        self.missing.clear();
        (self.highest, self.next, self.repair) = (Some(packet), None, None);
    }

    /// A repair packet has come that covers packets up to this one.
    pub(crate) fn on_repair(&mut self, now: Timestamp, upto: u64) {
        self.repair = Some(match self.repair {
            Some((last, at, spacing)) if now - at < REPAIR_SILENCE => {
                // Repair packets of one block come together.
                let apart = if now > at { (spacing + (now - at)) / 2 } else { spacing };
                (last.max(upto), now, apart)
            }
            _ => (upto, now, self.config.repair_patience),
        });
        self.refresh(now);
    }

    /// Repair packets have brought a packet back; the newest of all may be first heard of so.
    pub(crate) fn on_repaired(&mut self, now: Timestamp, packet: Arrived) {
        if self.highest.is_some_and(|h| packet.sequence > h.sequence) {
            self.on_packet(now, packet);
        } else {
            self.counters.repaired += u64::from(self.take(packet.sequence).is_some());
        }
    }

    /// A retransmission has come: whether its packet was still missing.
    pub(crate) fn on_retransmission(&mut self, now: Timestamp, sequence: u64) -> bool {
        let Some(missing) = self.take(sequence) else { return false };
        if missing.requests == 1 {
            let took = now - missing.last;
            let mean = self.response.map_or(took, |r| r + (took - r).mul_f64(RESPONSE_WEIGHT));
            self.response = Some(mean);
        }
        true
    }

    /// When a packet may be asked for.
    fn ask_at(&self, m: &Missing) -> Timestamp {
        let round_trip = self.round_trip() + self.config.slack;
        if m.requests > 0 {
            return m.last + round_trip;
        }
        let behind = self.highest.map_or(0, |h| h.sequence.saturating_sub(m.sequence));
        let lost = behind >= u64::from(self.config.reorder_packets);
        let mut at = if lost { m.since } else { m.since + self.config.reorder_time };
        if let Some((upto, last, apart)) = self.repair
            && upto < m.sequence
            && m.since.saturating_since(last) < REPAIR_SILENCE
        {
            // One more repair packet, if it comes as late as ever, but not past the last chance to ask.
            let patience = (apart * 2).min(self.config.repair_patience);
            at = at.max((m.since + patience).min(m.deadline - round_trip));
        }
        at
    }

    /// Whether an answer to a request at `now` comes too late.
    fn is_too_late(&self, m: &Missing, now: Timestamp) -> bool {
        m.requests >= self.config.max_requests || now + self.round_trip() > m.deadline
    }

    fn refresh(&mut self, now: Timestamp) {
        self.next = self.missing.iter().map(|m| self.ask_at(m).max(now)).min();
    }

    /// When [`Self::prepare`] may have something to ask for.
    pub(crate) fn poll_timeout(&self) -> Option<Timestamp> {
        self.next.map(|at| at.max(self.free_at))
    }

    #[inline]
    pub(crate) fn is_due(&self, now: Timestamp) -> bool {
        self.poll_timeout().is_some_and(|at| at <= now)
    }

    /// Whether [`Self::prepare`] found anything to ask for.
    pub(crate) fn is_prepared(&self) -> bool {
        !self.due.is_empty()
    }

    /// Gathers what is to be asked for now; whether there is anything. [`Self::write`] writes it.
    pub(crate) fn prepare(&mut self, now: Timestamp) -> bool {
        self.due.clear();
        if !self.is_due(now) {
            return false;
        }
        let before = self.missing.len();
        let mut missing = core::mem::take(&mut self.missing);
        missing.retain(|m| {
            // Its last answer may still be on its way.
            let waits = m.requests > 0 && now < m.last + self.round_trip() + self.config.slack;
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

    /// Appends the message that was prepared.
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

    /// Takes bytes from RTCP's bandwidth.
    pub(crate) fn charge(&mut self, size: DataSize, now: Timestamp) {
        let takes = self.bandwidth.time_for(size).unwrap_or(TimeDelta::from_secs(1));
        self.free_at = self.free_at.max(now) + takes;
    }

    /// Packets that are missing now.
    #[cfg(test)]
    fn missing(&self) -> Vec<u64> {
        self.missing.iter().map(|m| m.sequence).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use weir_wire::rtcp::{Packet, parse_compound};

    fn ms(n: i64) -> Timestamp {
        Timestamp::from_millis(n)
    }

    fn at(sequence: u64, deadline: Timestamp) -> Arrived {
        Arrived { sequence, deadline, marker: true }
    }

    fn nacker(rtt: i64) -> Nacker {
        let mut n = Nacker::new(NackConfig::default(), DataRate::from_mbps(2), ms(0));
        n.on_rtt(TimeDelta::from_millis(rtt));
        n
    }

    /// What a message of this instant asks for.
    fn asked(n: &mut Nacker, now: Timestamp) -> Vec<u16> {
        if !n.prepare(now) {
            return vec![];
        }
        let mut out = vec![];
        n.write(FeedbackSsrcs { sender: 7, media: 9 }, now, &mut out);
        let Some(Ok(Packet::Nack(nack))) = parse_compound(&out).next() else { panic!("{out:?}") };
        assert_eq!((nack.sender_ssrc, nack.media_ssrc), (7, 9));
        nack.sequences().collect()
    }

    #[test]
    fn a_gap_is_asked_for_after_three_packets_or_some_time_and_then_every_round_trip() {
        let mut n = nacker(100);
        for s in [65_534u64, 65_537] {
            n.on_packet(ms(0), at(s, ms(1_000)));
        }
        assert_eq!(n.missing(), [65_535, 65_536]);
        // Two packets behind the second, but only one behind the first would be too few.
        assert_eq!(asked(&mut n, ms(0)), []);
        n.on_packet(ms(2), at(65_538, ms(1_000)));
        assert_eq!(asked(&mut n, ms(2)), [65_535]);
        assert_eq!(n.poll_timeout(), Some(ms(10)));
        assert_eq!(asked(&mut n, ms(10)), [0]);
        // 100 ms and 10 ms of slack.
        assert_eq!(n.poll_timeout(), Some(ms(112)));
        assert_eq!(asked(&mut n, ms(111)), []);
        assert_eq!(asked(&mut n, ms(112)), [65_535]);
        n.on_packet(ms(113), at(65_536, ms(1_000)));
        assert!(n.on_retransmission(ms(114), 65_535) && !n.on_retransmission(ms(114), 65_535));
        assert_eq!((asked(&mut n, ms(500)), n.poll_timeout()), (vec![], None));
        let c = n.counters;
        assert_eq!((c.missing, c.reordered, c.nacks, c.requested, c.given_up), (2, 1, 3, 3, 0));
    }

    #[test]
    fn nothing_is_asked_for_that_would_come_too_late() {
        for (deadline, requests) in [(109, 0), (110, 1), (219, 1), (220, 2), (330, 3)] {
            let mut n = nacker(100);
            n.on_packet(ms(0), at(1_000, ms(deadline)));
            n.on_packet(ms(0), at(1_002, ms(deadline)));
            let mut count = 0;
            for t in 0..1_000 {
                count += asked(&mut n, ms(t)).len();
            }
            assert_eq!((count, n.counters.given_up, n.missing().len()), (requests, 1, 0), "{deadline}");
        }
    }

    #[test]
    fn what_is_missing_has_the_deadline_of_its_frame() {
        let mut n = nacker(100);
        let mut at = 1_000;
        let mut add = |n: &mut Nacker, gap: u64, deadline, marker| {
            at += 1 + gap;
            n.on_packet(ms(0), Arrived { sequence: at, deadline: ms(deadline), marker });
            n.missing.drain(..).map(|m| (m.deadline - ms(0)).as_millis()).collect::<Vec<_>>()
        };
        // Frames of two packets, 40 ms apart.
        assert_eq!(add(&mut n, 0, 400, false), []);
        assert_eq!(add(&mut n, 0, 400, true), []);
        assert_eq!(add(&mut n, 0, 440, false), []);
        // The frame's end, its beginning, one between two of a frame.
        assert_eq!(add(&mut n, 1, 480, true), [440]);
        assert_eq!(add(&mut n, 1, 520, false), [520]);
        assert_eq!(add(&mut n, 1, 520, true), [520]);
        // Two whole frames.
        assert_eq!(add(&mut n, 2, 640, true), [560, 600]);
    }

    #[test]
    fn repair_packets_have_their_chance_first() {
        let mut n = nacker(20);
        let deadline = ms(1_000);
        // Repair packets 20 ms apart.
        for i in 0..10 {
            n.on_packet(ms(i * 20), at(1_000 + i as u64, deadline));
            n.on_repair(ms(i * 20), 1_000 + i as u64);
        }
        n.on_packet(ms(190), at(1_014, deadline));
        assert_eq!(asked(&mut n, ms(209)), []);
        // It covers what is missing, and did not bring all of it back.
        n.on_repair(ms(210), 1_012);
        n.on_repaired(ms(210), at(1_010, deadline));
        assert_eq!(asked(&mut n, ms(210)), [1_011, 1_012]);
        // No repair packet covers the last: twice their distance at most is waited for.
        assert_eq!(asked(&mut n, ms(228)), []);
        let asked_at = (211..400).find(|&t| asked(&mut n, ms(t)).contains(&1_013));
        assert!(asked_at.is_some_and(|t| (229..=260).contains(&t)), "{asked_at:?}");
        // Where there is no time for it, none is waited for.
        n.on_packet(ms(400), at(1_015, deadline));
        n.on_packet(ms(400), at(1_020, ms(431)));
        let all = asked(&mut n, ms(401));
        assert_eq!(all.into_iter().filter(|&s| s > 1_013).collect::<Vec<_>>(), [1_016, 1_017]);
        assert_eq!(n.counters.repaired, 1);
    }

    #[test]
    fn messages_keep_inside_the_bandwidth_of_rtcp() {
        let mut n = Nacker::new(NackConfig::default(), DataRate::from_kbps(100), ms(0));
        let (mut bytes, mut messages) = (0, 0);
        for t in 0..10_000 {
            n.on_packet(ms(t), at(1_000 + t as u64 * 2, ms(t + 300)));
            let requested = n.counters.requested;
            asked(&mut n, ms(t));
            if n.counters.requested > requested {
                messages += 1;
                bytes += 12 + n.entries.len() * 4;
            }
            assert!(n.entries.len() <= MAX_IN_MESSAGE && n.missing().len() <= 1_000);
        }
        // 5 kbit/s for 10 s is 6,250 bytes.
        assert!((5_000..7_200).contains(&bytes), "{bytes} in {messages}");
    }

    proptest! {
        /// Whatever comes: memory is bounded, time goes on, and every missing packet is accounted for once.
        #[test]
        fn anything_may_come(steps in proptest::collection::vec((0u8..5, 0u64..5_000, 0i64..60), 1..300), max in 1usize..50) {
            let config = NackConfig { max_packets: max, ..NackConfig::default() };
            let mut n = Nacker::new(config, DataRate::from_mbps(1), ms(0));
            let (mut now, mut high) = (ms(0), 70_000u64);
            for (what, step, wait) in steps {
                now += TimeDelta::from_millis(wait);
                match what {
                    0 => n.on_repair(now, high.saturating_sub(step % 50)),
                    1 => n.on_repaired(now, at(high.saturating_sub(step % 50), now)),
                    2 => n.counters.recovered += u64::from(n.on_retransmission(now, high.saturating_sub(step % 50))),
                    3 => n.on_packet(now, at(high.saturating_sub(step), now + TimeDelta::from_millis(200))),
                    _ => {
                        high += step % 40 * (step % 97);
                        n.on_packet(now, at(high, now + TimeDelta::from_millis(200)));
                    }
                }
                if n.prepare(now) {
                    let mut out = vec![];
                    n.write(FeedbackSsrcs { sender: 1, media: 2 }, now, &mut out);
                    prop_assert!(out.len() <= 12 + MAX_IN_MESSAGE * 4);
                }
                prop_assert!(n.poll_timeout().is_none_or(|at| at > now), "time stands still");
                let c = n.counters;
                let settled = c.reordered + c.repaired + c.recovered + c.given_up;
                prop_assert!(n.missing().len() <= max && n.missing().is_sorted());
                prop_assert_eq!(settled + n.missing().len() as u64, c.missing);
            }
        }
    }
}
