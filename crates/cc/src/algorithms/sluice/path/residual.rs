//! The delay that remains when the queue has been emptied. Jitter that keeps packets in order holds each of them behind the
//! slowest before it, so that the least delay is seen seldom and even an empty queue looks like one of some milliseconds.

use super::super::quantity::{Span, Time};
use super::super::sample::Sample;

/// Time constant with which the noise rises.
const RISE: Span = Span::secs(1.5);
/// How much longer the delay is at the full rate than at a drain's: each packet is held behind more of them. For jitter of
/// even distribution in order, by simulation: 1.2 to 1.4.
const DENSER: f64 = 1.4;
/// Noise that packets and other flows make themselves: at least, and in times that a packet takes at this flow's rate of service, since
/// packets of others come between this flow's. Measured beside 0, 0.2, 0.3 and 0.5 (`docs/sluice-tried.md`).
const OWN: Span = Span::secs(0.0007);
const OWN_PACKETS: f64 = 0.4;
/// Weight of each drain in the mean.
const WEIGHT: f64 = 0.5;
/// Part of a drain at its end whose packets find the queue empty.
const EMPTIED: Span = Span::secs(0.04);

/// The least delays seen at the end of each drain, and the noise of the delay.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Residual {
    /// End of the last drain, until it has been measured.
    until: Option<Time>,
    /// Sum of the least delays of the messages from its end.
    sum: Span,
    /// Number of these messages.
    count: f64,
    /// Mean delay at the end of drains.
    mean: Option<Span>,
    noise: Span,
    /// Noise that packets and other flows make.
    own: Span,
    /// Departure of the newest packet so far.
    newest: Time,
}

impl Residual {
    /// A drain ends at `until`: packets that depart shortly before find the queue empty.
    pub(super) fn drain(&mut self, until: Time) {
        (self.until, self.sum, self.count) = (Some(until), Span::ZERO, 0.0);
    }

    /// Takes a message, the unevenness of the delay and the service that is no queue, and the time that a packet takes at this flow's
    /// rate of service; the unevenness is forgotten with the time constant `memory`.
    pub(super) fn observe(&mut self, sample: &Sample, noise: Span, packet: Span, memory: Span) {
        self.own = OWN.max(OWN_PACKETS * packet);
        let elapsed = (sample.last_departure - self.newest).max(Span::ZERO);
        self.newest = self.newest.max(sample.last_departure);
        // Another flow that comes makes noise for a moment.
        let time = if noise > self.noise { RISE } else { memory };
        self.noise += (1.0 - libm::exp(-(elapsed / time))) * (noise - self.noise);
        let Some(until) = self.until else { return };
        if sample.last_departure >= until - EMPTIED && sample.first_departure <= until {
            self.sum += sample.queue.least.delay;
            self.count += 1.0;
        }
        if sample.last_departure > until {
            self.until = None;
            if self.count > 0.0 {
                let seen = self.sum / self.count;
                self.mean = Some(self.mean.map_or(seen, |m| m + WEIGHT * (seen - m)));
            }
        }
    }

    /// Whether delay and service are uneven and nothing is known of what remains.
    pub(super) fn is_unknown(&self) -> bool {
        self.mean.is_none() && self.noise() > Span::ZERO
    }

    /// How uneven delay and service have been of late, beyond what packets and other flows make of them.
    pub(super) fn noise(&self) -> Span {
        (self.noise - self.own).max(Span::ZERO)
    }

    /// The delay that is no queue; at most `share` of the noise. Where service and delay are even, the delay that remains
    /// after a drain is others' queue.
    pub(super) fn delay(&self, share: f64, most: Span) -> Span {
        (DENSER * self.mean.unwrap_or(Span::ZERO)).min(share * self.noise()).min(most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHARE: f64 = 40.0;
    const MOST: Span = Span::secs(0.025);
    const LONG: Span = Span::secs(120.0);

    /// A message each 25 ms up to `to`, all of whose packets have waited for `queue`.
    fn messages(r: &mut Residual, from: f64, to: f64, queue: f64, noise: f64) {
        let count = ((to - from) / 0.025).round() as i32;
        for k in 1..=count {
            let at = from + 0.025 * f64::from(k);
            let (first_departure, last_departure) = (Time::secs(at - 0.02), Time::secs(at));
            let mut sample = Sample { first_departure, last_departure, ..Sample::default() };
            sample.queue.least.delay = Span::secs(queue);
            r.observe(&sample, Span::secs(noise), Span::secs(0.001), LONG);
        }
    }

    #[test]
    fn a_delay_that_remains_after_drains_is_no_queue_where_the_delay_is_uneven() {
        let mut r = Residual::default();
        messages(&mut r, 0.0, 10.0, 0.030, 0.003);
        assert!(r.is_unknown());
        assert_eq!(r.delay(SHARE, MOST), Span::ZERO, "nothing was drained");
        r.drain(Time::secs(10.1));
        messages(&mut r, 10.0, 10.15, 0.010, 0.003);
        assert!(!r.is_unknown());
        assert!((r.delay(SHARE, MOST).as_secs() - DENSER * 0.010).abs() < 1e-9, "{r:?}");
        // Delays between drains do not count; the next drain does by half.
        messages(&mut r, 10.15, 20.0, 0.030, 0.003);
        r.drain(Time::secs(20.1));
        messages(&mut r, 20.0, 20.15, 0.006, 0.003);
        assert!((r.delay(SHARE, MOST).as_secs() - DENSER * 0.008).abs() < 1e-9, "{r:?}");
        assert_eq!(r.delay(SHARE, Span::secs(0.005)), Span::secs(0.005));
    }

    #[test]
    fn on_an_even_link_a_delay_that_remains_is_others_queue() {
        let mut r = Residual::default();
        messages(&mut r, 0.0, 10.0, 0.030, 0.000_5);
        r.drain(Time::secs(10.1));
        messages(&mut r, 10.0, 10.15, 0.020, 0.000_5);
        assert_eq!((r.delay(SHARE, MOST), r.noise()), (Span::ZERO, Span::ZERO));
    }

    #[test]
    fn packets_of_other_flows_between_this_flows_make_noise() {
        let mut r = Residual::default();
        messages(&mut r, 0.0, 10.0, 0.030, 0.003);
        let noise = r.noise();
        assert!((0.002..0.0024).contains(&noise.as_secs()), "a packet of 1 ms makes less than 0.7 ms: {r:?}");
        r.observe(&Sample::default(), Span::ZERO, Span::secs(0.005), LONG);
        assert!((noise - r.noise() - Span::secs(0.0013)).abs() < Span::secs(1e-6), "one of 5 ms makes 2 ms: {r:?}");
        r.observe(&Sample::default(), Span::ZERO, Span::secs(0.01), LONG);
        assert_eq!((r.noise(), r.delay(SHARE, MOST)), (Span::ZERO, Span::ZERO));
    }

    #[test]
    fn the_noise_rises_in_seconds_and_is_kept_for_minutes() {
        let mut r = Residual::default();
        messages(&mut r, 0.0, 0.3, 0.010, 0.004);
        assert!((0.0..0.000_2).contains(&r.noise().as_secs()), "a moment of it: {r:?}");
        messages(&mut r, 0.3, 6.0, 0.010, 0.004);
        assert!((0.003..=0.0033).contains(&r.noise().as_secs()), "{r:?}");
        messages(&mut r, 6.0, 66.0, 0.010, 0.0);
        assert!((0.001..0.002).contains(&r.noise().as_secs()), "a minute without: {r:?}");
    }
}
