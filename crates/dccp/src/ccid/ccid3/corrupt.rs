//! Packets reported corrupt, which count as marked (RFC 4340, section 11.7.2): the receiver's loss intervals do not
//! include them.

use super::options::{INTERVALS, Interval};
use weir_units::{Seq48, TimeDelta, Timestamp};

/// Loss events begun by such packets, newest first.
#[derive(Clone, Debug, Default)]
pub(super) struct CorruptEvents {
    starts: [Option<Seq48>; INTERVALS],
    last: Option<Timestamp>,
}

impl CorruptEvents {
    /// A packet was reported corrupt. It begins an event unless another one, by loss or otherwise, began within a round
    /// trip.
    pub(super) fn on_corrupt(&mut self, now: Timestamp, rtt: TimeDelta, sequence: Seq48, lost_at: Option<Timestamp>) {
        let last = self.last.into_iter().chain(lost_at).max();
        if last.is_none_or(|t| now - t > rtt) {
            self.starts.rotate_right(1);
            self.starts[0] = Some(sequence);
            self.last = Some(now);
        }
    }

    /// Splits the reported intervals where such events began. Both are newest first.
    pub(super) fn part(&self, reported: &[(Seq48, Interval)]) -> ([(Seq48, Interval); INTERVALS], usize) {
        let mut parts = [(Seq48::default(), Interval::default()); INTERVALS];
        let mut count = 0;
        let mut push = |start: Seq48, interval: Interval| {
            if let Some(place) = parts.get_mut(count) {
                *place = (start, interval);
                count += 1;
            }
        };
        for &(start, whole) in reported {
            let mut rest = whole;
            // Newest first, each beyond the lossy part.
            for &event in self.starts.iter().flatten() {
                let into = event.since(start);
                if into <= 0 || into.unsigned_abs() < whole.lossy || into.unsigned_abs() >= rest.lossy + rest.lossless {
                    continue;
                }
                let packets = rest.lossy + rest.lossless - into.unsigned_abs();
                push(event, Interval { lossless: packets - 1, lossy: 1, data: packets, dropped: 1 });
                rest.lossless -= packets;
                if whole.lossy > 0 {
                    rest.data = rest.data.saturating_sub(packets).max(1);
                }
            }
            push(start, rest);
        }
        (parts, count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_parted_where_events_began() {
        let mut c = CorruptEvents::default();
        let rtt = TimeDelta::from_millis(100);
        let reported = [
            (Seq48::new(500), Interval { lossless: 90, lossy: 10, data: 95, dropped: 4 }),
            (Seq48::new(100), Interval { lossless: 400, lossy: 0, data: 30, dropped: 0 }),
        ];
        let parted = |c: &CorruptEvents| {
            let (parts, n) = c.part(&reported);
            parts[..n].iter().map(|(s, i)| (s.get(), i.lossless, i.lossy, i.data)).collect::<Vec<_>>()
        };
        assert_eq!(parted(&c), [(500, 90, 10, 95), (100, 400, 0, 30)]);
        c.on_corrupt(Timestamp::from_millis(0), rtt, Seq48::new(300), None);
        c.on_corrupt(Timestamp::from_millis(90), rtt, Seq48::new(305), None);
        c.on_corrupt(Timestamp::from_millis(700), rtt, Seq48::new(505), None);
        c.on_corrupt(Timestamp::from_millis(900), rtt, Seq48::new(560), Some(Timestamp::from_millis(850)));
        c.on_corrupt(Timestamp::from_millis(960), rtt, Seq48::new(570), Some(Timestamp::from_millis(850)));
        // 305 and 560 belong to earlier events, 505 to the lossy part.
        let expected = [(570, 29, 1, 30), (500, 60, 10, 65), (300, 199, 1, 200), (100, 200, 0, 30)];
        assert_eq!(parted(&c), expected);
    }
}
