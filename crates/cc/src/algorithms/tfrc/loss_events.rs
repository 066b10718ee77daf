//! Detection of packets lost or marked, and of those that start a loss event (RFC 5348, sections 5.1 and 5.2).

use crate::cue::PacketResult;
use crate::tcp::friendly::CLOCK_JUMP;
use std::collections::VecDeque;
use weir_units::{Ecn, RemoteTimestamp, TimeDelta};

/// Most missing packets that wait for later ones. Beyond this the first of them counts as lost.
const MAX_MISSING: usize = 256;

/// A packet's sequence number and arrival.
type Arrival = (u64, RemoteTimestamp);

#[derive(Clone, Copy, Debug)]
struct Missing {
    sequence: u64,
    /// S_before: the last packet that arrived before it. S_after: the first after it.
    before: Option<Arrival>,
    after: Option<Arrival>,
    /// Packets received in order when it was found missing.
    arrived_before: u64,
}

impl Missing {
    /// T_loss: its nominal arrival. `None` if nothing has arrived yet.
    fn nominal_arrival(&self) -> Option<RemoteTimestamp> {
        let Some((s_before, t_before)) = self.before else { return self.after.map(|a| a.1) };
        let Some((s_after, t_after)) = self.after else { return Some(t_before) };
        let part = self.sequence.saturating_sub(s_before) as f64 / s_after.saturating_sub(s_before).max(1) as f64;
        Some(t_before + t_after.saturating_since(t_before).mul_f64(part.min(1.0)))
    }
}

/// Detects loss events.
#[derive(Clone, Debug)]
pub(super) struct LossDetector {
    missing: VecDeque<Missing>,
    /// The highest packet received.
    last: Option<Arrival>,
    arrived: u64,
    /// T_old: arrival, or nominal arrival, of the first packet of the last loss event.
    event: Option<RemoteTimestamp>,
}

impl LossDetector {
    pub(super) fn new() -> Self {
        Self { missing: VecDeque::with_capacity(MAX_MISSING), last: None, arrived: 0, event: None }
    }

    /// S_max: the highest packet received.
    pub(super) fn highest(&self) -> u64 {
        self.last.map_or(0, |l| l.0)
    }

    /// Takes a packet's fate, in send order within a report. `on_event` is called with the first packet's number for
    /// each loss event found. Losses within `rtt` of the start of an event belong to it.
    pub(super) fn on_packet(&mut self, p: &PacketResult, rtt: TimeDelta, ndupack: u32, mut on_event: impl FnMut(u64)) {
        let Some(at) = p.arrival else { return self.on_missing(p.sequence, rtt, on_event) };
        if p.was_lost {
            self.missing.retain(|m| m.sequence != p.sequence);
        } else if self.last.is_none_or(|(highest, _)| p.sequence > highest) {
            for m in self.missing.iter_mut().rev().take_while(|m| m.after.is_none()) {
                m.after = Some((p.sequence, at));
            }
            self.last = Some((p.sequence, at));
            self.arrived += 1;
            while let Some(m) = self.missing.front().copied() {
                if self.arrived - m.arrived_before < u64::from(ndupack) {
                    break;
                }
                self.missing.pop_front();
                self.on_loss(m.sequence, m.nominal_arrival(), rtt, &mut on_event);
            }
        }
        if p.ecn == Ecn::Ce {
            // Packets possibly lost before a marked packet count as lost with it.
            while let Some(m) = self.missing.front().copied().filter(|m| m.sequence < p.sequence) {
                self.missing.pop_front();
                self.on_loss(m.sequence, m.nominal_arrival(), rtt, &mut on_event);
            }
            self.on_loss(p.sequence, Some(at), rtt, &mut on_event);
        }
    }

    fn on_missing(&mut self, sequence: u64, rtt: TimeDelta, mut on_event: impl FnMut(u64)) {
        if self.missing.len() == MAX_MISSING
            && let Some(m) = self.missing.pop_front()
        {
            self.on_loss(m.sequence, m.nominal_arrival(), rtt, &mut on_event);
        }
        let m = Missing { sequence, before: self.last, after: None, arrived_before: self.arrived };
        self.missing.push_back(m);
    }

    fn on_loss(&mut self, sequence: u64, at: Option<RemoteTimestamp>, rtt: TimeDelta, on_event: &mut impl FnMut(u64)) {
        let at = at.unwrap_or(RemoteTimestamp::ZERO);
        // After a step back of the receiver's clock all later losses would be of the event before it.
        if self.event.is_none_or(|t_old| at > t_old + rtt || t_old - at > CLOCK_JUMP) {
            self.event = Some(at);
            on_event(sequence);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_units::{DataSize, Timestamp};

    const RTT: TimeDelta = TimeDelta::from_millis(50);

    /// Packets every 10 ms from number 100: `.` arrives, `x` is missing, `m` arrives marked. Collects the events.
    struct Run(LossDetector, u64, Vec<u64>);

    impl Run {
        fn new() -> Self {
            Self(LossDetector::new(), 100, Vec::new())
        }
        fn packet(&mut self, sequence: u64, arrival: Option<i64>, ecn: Ecn, was_lost: bool) {
            let p = PacketResult {
                sequence,
                departure: Timestamp::ZERO,
                arrival: arrival.map(RemoteTimestamp::from_millis),
                size: DataSize::from_bytes(1_000),
                ecn,
                probe: 0,
                was_lost,
            };
            self.0.on_packet(&p, RTT, 3, |s| self.2.push(s));
        }
        fn take(mut self, pattern: &str) -> Self {
            for c in pattern.chars() {
                let at = Some(10 * self.1 as i64).filter(|_| c != 'x');
                self.packet(self.1, at, if c == 'm' { Ecn::Ce } else { Ecn::Ect0 }, false);
                self.1 += 1;
            }
            self
        }
    }

    #[test]
    fn three_later_packets_make_a_loss() {
        let two = Run::new().take("..x..");
        assert_eq!(two.2, []);
        assert_eq!(two.take(".").2, [102]);
        assert_eq!(Run::new().take("x...").2, [100], "the first packet of all");
        assert_eq!(Run::new().take("xxxxxxxx").2, [], "no later one");
    }

    #[test]
    fn losses_of_one_round_trip_are_one_event() {
        // The nominal arrival of 102 is 1,020 ms: 107 at 1,070 still belongs to the event, 108 does not.
        assert_eq!(Run::new().take("..x....x...").2, [102]);
        assert_eq!(Run::new().take("..x.....x...").2, [102, 108]);
        // A long gap is several round trips of loss: every 6th packet starts an event.
        assert_eq!(Run::new().take("..xxxxxxxxxxxxxx...").2, [102, 108, 114]);
    }

    #[test]
    fn losses_after_the_clock_was_set_back_are_events() {
        let mut r = Run::new().take("..x...");
        for sequence in 106..126 {
            let at = Some(10 * sequence as i64 - 700_000).filter(|_| sequence % 8 != 4);
            r.packet(sequence, at, Ecn::Ect0, false);
        }
        assert_eq!(r.2, [102, 108, 116]);
    }

    #[test]
    fn a_late_packet_is_not_lost() {
        let mut r = Run::new().take("..x..");
        r.packet(102, Some(1_045), Ecn::Ect0, true);
        assert_eq!(r.take("......").2, []);
        let mut r = Run::new().take("..x...");
        r.packet(102, Some(1_065), Ecn::Ect0, true);
        assert_eq!(r.take("......").2, [102], "too late");
    }

    #[test]
    fn a_mark_counts_at_once_and_takes_what_is_missing_before_it() {
        assert_eq!(Run::new().take("..m").2, [102]);
        assert_eq!(Run::new().take(".x.m").2, [101]);
        assert_eq!(Run::new().take("..m....mm").2, [102, 108]);
    }

    #[test]
    fn the_missing_are_bounded() {
        let mut r = Run::new().take("..");
        for sequence in 102..10_000 {
            r.packet(sequence, None, Ecn::NotEct, false);
        }
        assert_eq!((r.0.missing.len(), r.2.clone()), (MAX_MISSING, vec![102]));
        assert_eq!(r.0.highest(), 101);
    }
}
