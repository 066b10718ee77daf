//! Falls of the capacity that were none. Packets of others between two of this flow's make one long gap, which looks like the first
//! one of a slower link; what is served a moment later tells them apart. Heeded where the source sends in bursts: beside others that do,
//! such gaps are frequent there, while a steady source has more to lose by believing a fall later (`docs/sluice-tried.md`).

use super::super::quantity::{Rate, Span, Time};

/// Time after a fall, by departure, after which it is judged.
const JUDGED_AFTER: Span = Span::secs(0.3);
/// Busy time whose service judges it.
pub(super) const JUDGED_BY: Span = Span::secs(0.1);
/// Share of the service before the fall from which the capacity has not fallen.
const BACK: f64 = 0.7;
/// Factor on the busy time that shows a fall for each one that was none. Measured beside 2 and 16 (`docs/sluice-tried.md`).
const LONGER: f64 = 4.0;
/// Most of them that count: with two the busy time is about that of the steady service, and the correction by the queue remains.
const MOST: f64 = 3.0;
/// Time constant with which they are forgotten.
const MEMORY: Span = Span::secs(20.0);

/// Falls seen of late, and what became of them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Falls {
    /// The last fall until it is judged: departure of the newest packet then, and the steady service.
    seen: Option<(Time, Rate)>,
    /// Number of those that were none, as far as remembered.
    none: f64,
    newest: Time,
}

impl Falls {
    /// Takes the departure of a message's newest packet, and the service over `JUDGED_BY`, if known: judges the last fall.
    pub(super) fn judge(&mut self, newest: Time, service: Option<Rate>) {
        self.none *= libm::exp(-((newest - self.newest).max(Span::ZERO) / MEMORY));
        self.newest = self.newest.max(newest);
        let Some((_, before)) = self.seen.filter(|(at, _)| newest - *at > JUDGED_AFTER) else { return };
        self.seen = None;
        if let Some(service) = service {
            self.none = if service > BACK * before { (self.none + 1.0).min(MOST) } else { 0.0 };
        }
    }

    /// A fall from this steady service is seen in the message last judged.
    pub(super) fn see(&mut self, steady: Rate) {
        self.seen.get_or_insert((self.newest, steady));
    }

    /// Factor on the busy time that shows a fall.
    pub(super) fn longer(&self) -> f64 {
        libm::pow(LONGER, self.none)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A fall from 1 Mbit/s at `at` s, after which `mbps` are served.
    fn fall(f: &mut Falls, at: f64, mbps: f64) {
        f.judge(Time::secs(at), Some(Rate::bps(0.2e6)));
        f.see(Rate::bps(1e6));
        for k in 1..=8 {
            f.judge(Time::secs(at + 0.05 * f64::from(k)), Some(Rate::bps(mbps * 1e6)));
        }
    }

    #[test]
    fn falls_that_were_none_make_the_next_one_take_longer_to_believe() {
        let mut f = Falls::default();
        assert_eq!(f.longer(), 1.0);
        fall(&mut f, 1.0, 0.8);
        assert!((3.8..=4.0).contains(&f.longer()), "{f:?}");
        (2..8).for_each(|k| fall(&mut f, f64::from(k), 0.8));
        assert!((50.0..=64.0).contains(&f.longer()), "three at most: {f:?}");
        f.judge(Time::secs(80.0), None);
        assert!(f.longer() < 1.2, "they are forgotten: {f:?}");
    }

    #[test]
    fn a_fall_that_lasts_clears_the_record() {
        let mut f = Falls::default();
        fall(&mut f, 1.0, 0.8);
        fall(&mut f, 2.0, 0.3);
        assert_eq!(f.longer(), 1.0);
        // Nothing is served: it says nothing.
        fall(&mut f, 3.0, 0.8);
        f.judge(Time::secs(4.0), None);
        f.see(Rate::bps(1e6));
        let before = f.longer();
        f.judge(Time::secs(4.4), None);
        assert!(f.longer() > 0.9 * before, "{f:?}");
    }
}
