//! Groups of packets and the delay variation between them (sections 5.1 and 5.2).

use weir_units::{RemoteTimestamp, TimeDelta, Timestamp};

/// Longest extension of a burst by arrivals (libwebrtc's `kMaxBurstDuration`).
const MAX_BURST: TimeDelta = TimeDelta::from_millis(100);
/// A delay variation beyond this shows that a clock has changed (libwebrtc's `kArrivalTimeOffsetThreshold`).
const CLOCK_JUMP: TimeDelta = TimeDelta::from_secs(3);
/// Consecutive reordered packets from which the sender's clock has gone back (libwebrtc's `kReorderedResetThreshold`).
const MAX_REORDERED: u32 = 3;

#[derive(Clone, Copy, Debug)]
struct Group {
    first_departure: RemoteTimestamp,
    first_arrival: Timestamp,
    departure: RemoteTimestamp,
    arrival: Timestamp,
}

/// A group relative to the one before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Variation {
    /// T(i) - T(i-1).
    pub(super) departure: TimeDelta,
    /// t(i) - t(i-1).
    pub(super) arrival: TimeDelta,
    /// d(i).
    pub(super) delay: TimeDelta,
}

/// The result of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Grouped {
    /// It joined a group or was reordered.
    Nothing,
    /// It began a new group, which completes the one before.
    Variation(Variation),
    /// It does not fit the sequence; filters must restart.
    Restart,
}

/// Collects packets into groups.
#[derive(Clone, Debug, Default)]
pub(super) struct InterArrival {
    current: Option<Group>,
    previous: Option<Group>,
    reordered: u32,
}

impl InterArrival {
    /// Takes a packet; call it in order of arrival.
    pub(super) fn on_packet(&mut self, departure: RemoteTimestamp, arrival: Timestamp, burst: TimeDelta) -> Grouped {
        let fresh = Group { first_departure: departure, first_arrival: arrival, departure, arrival };
        let Some(current) = &mut self.current else {
            self.current = Some(fresh);
            return Grouped::Nothing;
        };
        let since = departure - current.departure;
        let delay = (arrival - current.arrival) - since;
        if since < TimeDelta::ZERO && self.reordered < MAX_REORDERED {
            self.reordered += 1;
            return Grouped::Nothing;
        }
        if delay.abs() > CLOCK_JUMP || since < TimeDelta::ZERO {
            *self = Self { current: Some(fresh), ..Self::default() };
            return Grouped::Restart;
        }
        self.reordered = 0;
        let sent_together = departure - current.first_departure <= burst;
        let came_together =
            arrival - current.arrival < burst && delay < TimeDelta::ZERO && arrival - current.first_arrival < MAX_BURST;
        if sent_together || came_together {
            (current.departure, current.arrival) = (departure, arrival);
            return Grouped::Nothing;
        }
        let whole = *current;
        self.current = Some(fresh);
        match self.previous.replace(whole) {
            None => Grouped::Nothing,
            Some(before) => {
                let departure = whole.departure - before.departure;
                let arrival = whole.arrival - before.arrival;
                Grouped::Variation(Variation { departure, arrival, delay: arrival - departure })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BURST: TimeDelta = TimeDelta::from_millis(5);

    fn feed(packets: &[(i64, i64)]) -> Vec<Grouped> {
        let mut i = InterArrival::default();
        let mut one =
            |&(d, a): &(i64, i64)| i.on_packet(RemoteTimestamp::from_millis(d), Timestamp::from_millis(a), BURST);
        packets.iter().map(&mut one).filter(|g| *g != Grouped::Nothing).collect()
    }
    fn variation(departure: i64, arrival: i64) -> Grouped {
        let ms = TimeDelta::from_millis;
        Grouped::Variation(Variation { departure: ms(departure), arrival: ms(arrival), delay: ms(arrival - departure) })
    }

    #[test]
    fn groups_by_departure() {
        // Groups 0 to 5, 20 to 22 and 40; each is timed by its last packet.
        let packets = [(0, 100), (3, 104), (5, 108), (20, 121), (22, 124), (40, 147), (60, 160)];
        assert_eq!(feed(&packets), [variation(17, 16), variation(18, 23)]);
    }

    #[test]
    fn joins_what_an_outage_held_back() {
        // The packets of 20, 30 and 40 ms arrive together with the one of 10 ms.
        let packets = [(0, 100), (10, 200), (20, 201), (30, 202), (40, 203), (60, 219), (80, 239)];
        assert_eq!(feed(&packets), [variation(40, 103), variation(20, 16)]);
    }

    #[test]
    fn ignores_reordered_packets_and_restarts_on_another_clock() {
        let packets = [(0, 100), (10, 110), (30, 130), (20, 131), (40, 140), (50, 150)];
        assert_eq!(feed(&packets), [variation(10, 10), variation(20, 20), variation(10, 10)]);
        assert_eq!(feed(&[(0, 100), (10, 110), (5_000, 120)]), [Grouped::Restart]);
        let back = [(9_000, 100), (1, 101), (2, 102), (3, 103), (4, 104)];
        assert_eq!(feed(&back), [Grouped::Restart]);
    }
}
