//! The delay that remains when the queue has been emptied. Jitter that keeps packets in order holds each of them behind the
//! slowest before it, so that the least delay is seen seldom and even an empty queue looks like one of some milliseconds.

use super::arrivals::Digest;

/// Time constant with which the noise rises, s.
const RISE: f64 = 1.5;
/// How much longer the delay is at the full rate than at a drain's: each packet is held behind more of them. For jitter of
/// even distribution in order, by simulation: 1.2 to 1.4.
const DENSER: f64 = 1.4;
/// Noise that packets and other flows make themselves, s.
const OWN: f64 = 0.0007;
/// Weight of each drain in the mean.
const WEIGHT: f64 = 0.5;
/// Part of a drain at its end whose packets find the queue empty, s.
const EMPTIED: f64 = 0.04;

/// What is seen at the end of each drain.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Residual {
    /// End of the last drain, until it has been measured.
    until: Option<f64>,
    sum: f64,
    count: f64,
    mean: Option<f64>,
    noise: f64,
    updated: f64,
}

impl Residual {
    /// A drain ends at `until`: what departs shortly before finds the queue empty.
    pub(super) fn drain(&mut self, until: f64) {
        (self.until, self.sum, self.count) = (Some(until), 0.0, 0.0);
    }

    /// Takes a message, and the unevenness of the delay and the service that is no queue, s.
    pub(super) fn observe(&mut self, d: &Digest, noise: f64, memory: f64) {
        let elapsed = (d.last_departure - self.updated).max(0.0);
        self.updated = self.updated.max(d.last_departure);
        // Another flow that comes makes noise for a moment.
        let time = if noise > self.noise { RISE } else { memory };
        self.noise += (1.0 - libm::exp(-elapsed / time)) * (noise - self.noise);
        let Some(until) = self.until else { return };
        if d.last_departure >= until - EMPTIED && d.first_departure <= until {
            self.sum += d.queue_least;
            self.count += 1.0;
        }
        if d.last_departure > until {
            self.until = None;
            if self.count > 0.0 {
                let seen = self.sum / self.count;
                self.mean = Some(self.mean.map_or(seen, |m| m + WEIGHT * (seen - m)));
            }
        }
    }

    /// Whether delay and service are uneven and nothing is known of what remains.
    pub(super) fn is_unknown(&self) -> bool {
        self.mean.is_none() && self.noise() > 0.0
    }

    /// How uneven delay and service have been of late, s.
    pub(super) fn noise(&self) -> f64 {
        (self.noise - OWN).max(0.0)
    }

    /// The delay in s that is no queue; at most `share` of the noise. Where service and delay are even, what remains
    /// after a drain is others' queue.
    pub(super) fn delay(&self, share: f64, most: f64) -> f64 {
        (DENSER * self.mean.unwrap_or(0.0)).min(share * self.noise()).min(most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHARE: f64 = 40.0;
    const MOST: f64 = 0.025;
    const LONG: f64 = 120.0;

    /// A message each 25 ms up to `to`, all of whose packets have waited for `queue`.
    fn messages(r: &mut Residual, from: f64, to: f64, queue: f64, noise: f64) {
        let count = ((to - from) / 0.025).round() as i32;
        for k in 1..=count {
            let at = from + 0.025 * f64::from(k);
            let d = Digest { first_departure: at - 0.02, last_departure: at, queue_least: queue, ..Digest::default() };
            r.observe(&d, noise, LONG);
        }
    }

    #[test]
    fn what_remains_after_drains_is_no_queue_where_the_delay_is_uneven() {
        let mut r = Residual::default();
        messages(&mut r, 0.0, 10.0, 0.030, 0.003);
        assert!(r.is_unknown());
        assert_eq!(r.delay(SHARE, MOST), 0.0, "nothing was drained");
        r.drain(10.1);
        messages(&mut r, 10.0, 10.15, 0.010, 0.003);
        assert!(!r.is_unknown());
        assert!((r.delay(SHARE, MOST) - DENSER * 0.010).abs() < 1e-9, "{r:?}");
        // What is seen between drains does not count; the next drain does by half.
        messages(&mut r, 10.15, 20.0, 0.030, 0.003);
        r.drain(20.1);
        messages(&mut r, 20.0, 20.15, 0.006, 0.003);
        assert!((r.delay(SHARE, MOST) - DENSER * 0.008).abs() < 1e-9, "{r:?}");
        assert_eq!(r.delay(SHARE, 0.005), 0.005);
    }

    #[test]
    fn on_an_even_link_what_remains_is_others_queue() {
        let mut r = Residual::default();
        messages(&mut r, 0.0, 10.0, 0.030, 0.000_5);
        r.drain(10.1);
        messages(&mut r, 10.0, 10.15, 0.020, 0.000_5);
        assert_eq!((r.delay(SHARE, MOST), r.noise()), (0.0, 0.0));
    }

    #[test]
    fn the_noise_rises_in_seconds_and_is_kept_for_minutes() {
        let mut r = Residual::default();
        messages(&mut r, 0.0, 0.3, 0.010, 0.004);
        assert!((0.0..0.000_2).contains(&r.noise()), "a moment of it: {r:?}");
        messages(&mut r, 0.3, 6.0, 0.010, 0.004);
        assert!((0.003..=0.0033).contains(&r.noise()), "{r:?}");
        messages(&mut r, 6.0, 66.0, 0.010, 0.0);
        assert!((0.001..0.002).contains(&r.noise()), "a minute without: {r:?}");
    }
}
