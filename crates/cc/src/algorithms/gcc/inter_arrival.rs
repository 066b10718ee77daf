//! Pre-filtering: packets sent close together form a group, and consecutive groups give delay variations
//! (draft-ietf-rmcat-gcc-02, sections 5.1 and 5.2).

use weir_units::{RemoteTimestamp, TimeDelta, Timestamp};

/// A packet that arrives within this time of its group while the queue drains joins the group, regardless of its
/// departure (draft-ietf-rmcat-gcc-02, section 5.2: `burst_time`).
const BURST_GAP: TimeDelta = TimeDelta::from_millis(5);
/// Longest burst (libwebrtc, as of 2024: `kMaxBurstDuration`).
const MAX_BURST: TimeDelta = TimeDelta::from_millis(100);
/// Arrival times that run ahead of the feedback's own times by this much show that the receiver's clock has changed
/// (libwebrtc, as of 2024: `kArrivalTimeOffsetThreshold`).
const CLOCK_JUMP: TimeDelta = TimeDelta::from_secs(3);
/// Consecutive groups that arrive before their predecessor after which the state is reset (libwebrtc, as of 2024).
const MAX_REORDERED: u32 = 3;

/// The differences between two groups.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Deltas {
    pub(super) departure: TimeDelta,
    pub(super) arrival: TimeDelta,
}

#[derive(Clone, Copy, Debug)]
struct Group {
    first_departure: Timestamp,
    last_departure: Timestamp,
    first_arrival: RemoteTimestamp,
    last_arrival: RemoteTimestamp,
    /// When the feedback on its last packet was received.
    reported: Timestamp,
}

/// Collects packets into groups.
#[derive(Clone, Debug)]
pub(super) struct InterArrival {
    length: TimeDelta,
    current: Option<Group>,
    previous: Option<Group>,
    reordered: u32,
}

impl InterArrival {
    pub(super) fn new(length: TimeDelta) -> Self {
        Self { length, current: None, previous: None, reordered: 0 }
    }

    pub(super) fn reset(&mut self) {
        *self = Self::new(self.length);
    }

    /// Takes packets in the order of arrival. The first packet of a third or later group completes a pair of groups.
    pub(super) fn on_packet(
        &mut self,
        departure: Timestamp,
        arrival: RemoteTimestamp,
        now: Timestamp,
    ) -> Option<Deltas> {
        let fresh = Group {
            first_departure: departure,
            last_departure: departure,
            first_arrival: arrival,
            last_arrival: arrival,
            reported: now,
        };
        let Some(current) = &mut self.current else {
            self.current = Some(fresh);
            return None;
        };
        if departure < current.first_departure {
            return None;
        }
        if current.holds_burst(departure, arrival) || departure - current.first_departure <= self.length {
            current.last_departure = current.last_departure.max(departure);
            current.last_arrival = arrival;
            current.reported = now;
            return None;
        }
        let done = *current;
        let mut deltas = None;
        if let Some(previous) = self.previous {
            let d = Deltas {
                departure: done.last_departure - previous.last_departure,
                arrival: done.last_arrival - previous.last_arrival,
            };
            if d.arrival - (done.reported - previous.reported) >= CLOCK_JUMP {
                self.reset();
                return None;
            }
            if d.arrival.is_negative() {
                self.reordered += 1;
                if self.reordered >= MAX_REORDERED {
                    self.reset();
                }
                return None;
            }
            self.reordered = 0;
            deltas = Some(d);
        }
        self.previous = Some(done);
        self.current = Some(fresh);
        deltas
    }
}

impl Group {
    /// Whether the packet left a draining queue back to back with its group, so that the spacing does not reflect when
    /// they were sent.
    fn holds_burst(&self, departure: Timestamp, arrival: RemoteTimestamp) -> bool {
        let departure_gap = departure - self.last_departure;
        let arrival_gap = arrival - self.last_arrival;
        departure_gap == TimeDelta::ZERO
            || (arrival_gap < departure_gap && arrival_gap <= BURST_GAP && arrival - self.first_arrival < MAX_BURST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feed(packets: &[(i64, i64)]) -> Vec<(i64, i64)> {
        let mut g = InterArrival::new(TimeDelta::from_millis(5));
        packets
            .iter()
            .filter_map(|&(d, a)| {
                let now = Timestamp::from_millis(a + 50);
                g.on_packet(Timestamp::from_millis(d), RemoteTimestamp::from_millis(a), now)
            })
            .map(|d| (d.departure.as_millis(), d.arrival.as_millis()))
            .collect()
    }

    #[test]
    fn a_pair_is_complete_when_a_third_group_starts() {
        assert_eq!(feed(&[(0, 100), (20, 122)]), []);
        assert_eq!(feed(&[(0, 100), (20, 122), (40, 145)]), [(20, 22)]);
    }

    #[test]
    fn packets_within_the_length_are_one_group_timed_by_its_last() {
        // Groups {0, 3, 5} and {20, 24}: departures 5 and 24, arrivals 109 and 133.
        let p = [(0, 100), (3, 104), (5, 109), (20, 126), (24, 133), (40, 145)];
        assert_eq!(feed(&p), [(19, 24)]);
    }

    #[test]
    fn a_draining_burst_is_one_group() {
        // 10 ms apart at the sender, 4 ms at the receiver: the queue drains, so 0, 10 and 20 are one group.
        let p = [(0, 100), (10, 104), (20, 108), (40, 140), (60, 160)];
        assert_eq!(feed(&p), [(20, 32)]);
    }

    #[test]
    fn reordered_packets_are_skipped() {
        let p = [(0, 100), (20, 122), (10, 123), (40, 145), (60, 165)];
        assert_eq!(feed(&p), [(20, 22), (20, 23)]);
    }

    #[test]
    fn a_jump_of_the_receivers_clock_restarts() {
        let mut g = InterArrival::new(TimeDelta::from_millis(5));
        let mut seen = vec![];
        for (i, jump) in [0, 0, 0, 10_000, 10_000, 10_000, 10_000, 10_000].into_iter().enumerate() {
            let t = i as i64 * 20;
            let d = g.on_packet(
                Timestamp::from_millis(t),
                RemoteTimestamp::from_millis(t + jump),
                Timestamp::from_millis(t + 50),
            );
            seen.push(d.map(|d| d.arrival.as_millis()));
        }
        assert_eq!(seen, [None, None, Some(20), Some(20), None, None, None, Some(20)]);
    }
}
