//! Capacity that a device on the path has announced ([`crate::cue::CapacityNotice`]): a bound and a hint, each ignored for a time
//! where the link shows that it is wrong.

use super::super::quantity::{Rate, Span, Time};

/// Share of the capacity announced that media may use; the rest is for headers and repair.
const SHARE: f64 = 0.95;
/// Share to which the rate grows at once where there is room.
const HINT: f64 = 0.9;
/// Age beyond which a capacity announced says nothing: a device announces changes, and some only those.
const VALID: Span = Span::secs(10.0);
/// Ratio of the rate served and the capacity announced from which that is too low: dispersion varies by less.
const EXCEEDED: f64 = 1.25;
/// Weight of each message in the share of messages that show a capacity announced too low.
const WEIGHT: f64 = 0.1;
/// Time for which a notice that proved wrong is ignored.
const IGNORED: Span = Span::secs(10.0);

/// The last notice.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct Notice {
    /// The capacity announced; zero for none.
    capacity: Rate,
    at: Time,
    /// Share of messages that show more than it.
    exceeded: f64,
    /// The bound is ignored until then.
    bound_from: Time,
    /// The hint is ignored until then.
    hint_from: Time,
}

impl Notice {
    /// A device announces a capacity.
    pub(in super::super) fn announce(&mut self, capacity: Rate, now: Time) {
        (self.capacity, self.at) = (capacity, now);
    }

    /// The last capacity announced, however old; `None` if there was none.
    pub(in super::super) fn announced(&self) -> Option<Rate> {
        (self.capacity > Rate::ZERO).then_some(self.capacity)
    }

    fn is_valid(&self, now: Time) -> bool {
        self.capacity > Rate::ZERO && now - self.at <= VALID
    }

    /// The greatest rate that it allows.
    pub(in super::super) fn bound(&self, now: Time) -> Option<Rate> {
        (self.is_valid(now) && now >= self.bound_from).then(|| SHARE * self.capacity)
    }

    /// The rate to which growth may lead at once.
    pub(in super::super) fn hint(&self, now: Time) -> Option<Rate> {
        (self.is_valid(now) && now >= self.hint_from).then(|| HINT * self.capacity)
    }

    /// Takes a message: the rate that the link serves, if known; the rate in force, and whether the queue is longer than it should be
    /// at that rate.
    pub(in super::super) fn compare(&mut self, served: Option<Rate>, overfull: bool, rate: Rate, now: Time) {
        if !self.is_valid(now) {
            return;
        }
        let is_more = served.is_some_and(|served| served > EXCEEDED * self.capacity);
        let more = f64::from(u8::from(is_more));
        self.exceeded += WEIGHT * (more - self.exceeded);
        if self.exceeded > 0.5 {
            (self.bound_from, self.exceeded) = (now + IGNORED, 0.0);
        }
        if overfull && rate <= self.capacity {
            self.hint_from = now + IGNORED;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn announced(mbps: f64, at: f64) -> Notice {
        let mut n = Notice::default();
        n.announce(Rate::bps(mbps * 1e6), Time::secs(at));
        n
    }

    /// Bound and hint in Mbit/s.
    fn advice(n: &Notice, at: f64) -> (Option<f64>, Option<f64>) {
        let mbps = |rate: Option<Rate>| rate.map(|r| r.as_bps() / 1e6);
        (mbps(n.bound(Time::secs(at))), mbps(n.hint(Time::secs(at))))
    }

    #[test]
    fn a_notice_bounds_and_hints_for_as_long_as_it_is_new() {
        assert_eq!(advice(&Notice::default(), 0.0), (None, None), "none yet");
        let n = announced(1.0, 5.0);
        assert_eq!(advice(&n, 6.0), (Some(0.95), Some(0.9)));
        assert_eq!(advice(&n, 16.0), (None, None));
    }

    #[test]
    fn a_link_that_serves_more_frees_the_bound_and_a_queue_the_hint() {
        let mut n = announced(1.0, 0.0);
        let serve = |n: &mut Notice| {
            (0..5).for_each(|_| n.compare(Some(Rate::bps(3e6)), false, Rate::bps(0.5e6), Time::secs(1.0)));
        };
        serve(&mut n);
        assert_eq!(advice(&n, 1.0).0, Some(0.95), "a few messages are not enough");
        serve(&mut n);
        assert_eq!(advice(&n, 1.0), (None, Some(0.9)));
        n.announce(Rate::bps(1e6), Time::secs(9.0));
        assert_eq!(advice(&n, 11.5).0, Some(0.95), "it is heeded again");
        n.compare(None, true, Rate::bps(2e6), Time::secs(12.0));
        assert_eq!(advice(&n, 12.0).1, Some(0.9), "the rate was beyond it");
        n.compare(None, true, Rate::bps(0.9e6), Time::secs(12.0));
        assert_eq!(advice(&n, 12.0), (Some(0.95), None));
    }
}
