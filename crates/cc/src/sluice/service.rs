//! The rate at which the link serves this flow, from the digests of the last few messages.

use super::arrivals::Digest;

/// Digests kept.
const KEPT: usize = 16;
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
        let (mut busy, mut bytes, mut since) = (0.0, 0.0, 0.0);
        for d in self.recent() {
            busy += d.busy_time;
            bytes += d.busy_bytes;
            since = d.first_departure;
            if busy >= time {
                break;
            }
        }
        (busy > 1e-4).then(|| Served { rate: bytes * 8.0 / busy, busy, since })
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
