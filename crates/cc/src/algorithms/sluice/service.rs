//! The rate at which the link serves this flow, from the digests of the last few messages.

use super::arrivals::Digest;

/// Digests kept.
const KEPT: usize = 32;
/// Oldest digest used, s.
const MAX_AGE: f64 = 0.5;
/// Time over which the share of busy time is taken, s.
const SHARE_TIME: f64 = 0.1;

/// What the link has served.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Served {
    /// In bit/s.
    pub(super) rate: f64,
    /// The busy time that it is from, s.
    pub(super) busy: f64,
    /// The time in which what was served in it had been sent, s.
    pub(super) sent: f64,
    /// Departure of the first packet of the messages that it is from.
    pub(super) since: f64,
}

/// The last digests.
#[derive(Clone, Debug, Default)]
pub(super) struct Service {
    ring: [Digest; KEPT],
    count: usize,
}

impl Service {
    /// Takes the next digest.
    pub(super) fn push(&mut self, digest: Digest) {
        self.ring[self.count % KEPT] = digest;
        self.count += 1;
    }

    /// The digests, newest first, up to the age allowed.
    fn recent(&self) -> impl Iterator<Item = &Digest> {
        let newest = if self.count == 0 { 0.0 } else { self.ring[(self.count - 1) % KEPT].last_departure };
        let kept = self.count.min(KEPT);
        let all = (1..=kept).map(|k| &self.ring[(self.count - k) % KEPT]);
        all.take_while(move |d| newest - d.last_departure <= MAX_AGE)
    }

    /// Rate of service over the last `time` s of busy time; `None` if there was none.
    pub(super) fn rate(&self, time: f64) -> Option<Served> {
        self.rate_of(time, 0.0)
    }

    /// The same over at least so many packets.
    pub(super) fn rate_of(&self, time: f64, packets: f64) -> Option<Served> {
        let (mut busy, mut bytes, mut sent, mut since, mut count) = (0.0, 0.0, 0.0, 0.0, 0);
        for d in self.recent() {
            busy += d.busy_time;
            bytes += d.busy_bytes;
            sent += d.busy_sent;
            count += d.busy_packets;
            since = d.first_departure;
            if busy >= time && f64::from(count) >= packets {
                break;
            }
        }
        (busy > 1e-4).then(|| Served { rate: bytes * 8.0 / busy, busy, sent, since })
    }

    /// Share of the last 100 ms during which the link was busy with this flow, 0 to 1.
    pub(super) fn busy_share(&self) -> f64 {
        let (mut busy, mut elapsed) = (0.0, 0.0);
        for d in self.recent() {
            busy += d.busy_time;
            elapsed += d.elapsed;
            if elapsed >= SHARE_TIME {
                break;
            }
        }
        if elapsed > 0.0 { (busy / elapsed).min(1.0) } else { 0.0 }
    }

    /// The least queueing delay of the last `time` s, and the departure of its packet.
    pub(super) fn standing(&self, time: f64) -> Option<(f64, f64)> {
        let newest = self.recent().next()?;
        let within = self.recent().take_while(|d| newest.last_departure - d.last_departure <= time);
        let least = within.min_by(|a, b| a.queue_least.total_cmp(&b.queue_least))?;
        Some((least.queue_least, least.least_departure))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message of 50 ms with `busy` s of busy time at `rate` bit/s, and a queue of `queue` s.
    fn digest(at: f64, busy: f64, rate: f64, queue: f64) -> Digest {
        Digest {
            received: 5,
            bytes: rate * 0.05 / 8.0,
            elapsed: 0.05,
            busy_time: busy,
            busy_bytes: rate * busy / 8.0,
            busy_packets: 5,
            queue_least: queue,
            least_departure: at - 0.02,
            queue_last: queue,
            queue_most: queue,
            first_departure: at - 0.05,
            last_departure: at,
            ..Digest::default()
        }
    }

    #[test]
    fn the_rate_is_bytes_over_busy_time_of_as_many_messages_as_it_takes() {
        let mut s = Service::default();
        assert_eq!((s.rate(0.1), s.standing(0.1)), (None, None));
        for (i, rate) in [2e6, 2e6, 2e6, 0.5e6].into_iter().enumerate() {
            s.push(digest(0.05 * i as f64, 0.05, rate, 0.0));
        }
        let newest = s.rate(0.025).expect("busy");
        assert!((newest.rate - 0.5e6).abs() < 1.0 && (newest.since - 0.1).abs() < 1e-9, "{newest:?}");
        let longer = s.rate(0.1).expect("busy");
        assert!((longer.rate - 1.25e6).abs() < 1.0 && (longer.busy - 0.1).abs() < 1e-9, "{longer:?}");
        let of_packets = s.rate_of(0.025, 6.0).expect("busy");
        assert!((of_packets.busy - 0.1).abs() < 1e-9, "five packets a message: {of_packets:?}");
    }

    #[test]
    fn an_idle_link_has_no_rate_and_old_messages_do_not_count() {
        let mut s = Service::default();
        s.push(digest(0.0, 0.05, 2e6, 0.0));
        s.push(digest(0.6, 0.0, 1e6, 0.0));
        assert_eq!(s.rate(0.1), None, "half a second is too old");
        assert_eq!(s.busy_share(), 0.0);
        s.push(digest(0.65, 0.03, 1e6, 0.0));
        assert!((s.busy_share() - 0.3).abs() < 1e-9, "30 of 100 ms: {}", s.busy_share());
    }

    #[test]
    fn the_standing_queue_is_the_least_of_the_window() {
        let mut s = Service::default();
        for (i, queue) in [0.01, 0.05, 0.03, 0.04].into_iter().enumerate() {
            s.push(digest(0.05 * i as f64, 0.05, 1e6, queue));
        }
        let near = |found: Option<(f64, f64)>, queue: f64, departure: f64| {
            let (q, d) = found.expect("there");
            assert!((q - queue).abs() < 1e-12 && (d - departure).abs() < 1e-9, "{q} {d}");
        };
        near(s.standing(0.0), 0.04, 0.13);
        near(s.standing(0.06), 0.03, 0.08);
        near(s.standing(0.2), 0.01, -0.02);
    }

    #[test]
    fn more_messages_than_are_kept_overwrite_the_oldest() {
        let mut s = Service::default();
        for i in 0..100 {
            s.push(digest(0.01 * f64::from(i), 0.01, if i < 90 { 9e6 } else { 1e6 }, 0.0));
        }
        let all = s.rate(10.0).expect("busy");
        assert!((all.busy - 0.01 * KEPT as f64).abs() < 1e-9, "{all:?}");
    }
}
