//! Capacity that a device on the path has announced ([`crate::cue::CapacityNotice`]): a bound and a hint, each ignored for a time
//! where the link shows that it is wrong.

/// Share of the capacity announced that media may use; the rest is for headers and repair.
const SHARE: f64 = 0.95;
/// Share to which the rate grows at once where there is room.
const HINT: f64 = 0.9;
/// Age beyond which a capacity announced says nothing, s: a device announces what changes, and some only that.
const VALID: f64 = 10.0;
/// Factor by which the link serves more than what was announced, from which that is too low: dispersion varies by less.
const EXCEEDED: f64 = 1.25;
/// Weight of each message in the share of messages that show it.
const WEIGHT: f64 = 0.1;
/// Time for which a notice that proved wrong is ignored, s.
const IGNORED: f64 = 10.0;

/// The last notice.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Notice {
    rate: f64,
    at: f64,
    /// Share of messages that show more than it.
    exceeded: f64,
    bound_from: f64,
    hint_from: f64,
}

impl Notice {
    /// A device announces a capacity, bit/s.
    pub(super) fn announce(&mut self, rate: f64, now: f64) {
        (self.rate, self.at) = (rate.max(0.0), now);
    }

    fn is_valid(&self, now: f64) -> bool {
        self.rate > 0.0 && now - self.at <= VALID
    }

    /// The greatest rate that it allows.
    pub(super) fn bound(&self, now: f64) -> f64 {
        if self.is_valid(now) && now >= self.bound_from { SHARE * self.rate } else { f64::INFINITY }
    }

    /// The rate to which growth may lead at once; zero for none.
    pub(super) fn hint(&self, now: f64) -> f64 {
        if self.is_valid(now) && now >= self.hint_from { HINT * self.rate } else { 0.0 }
    }

    /// What a message shows: the rate that the link serves, NaN if unknown; whether the queue is longer than it should be although the
    /// rate, in bit/s, is within the notice.
    pub(super) fn compare(&mut self, served: f64, overfull: bool, rate: f64, now: f64) {
        if !self.is_valid(now) {
            return;
        }
        let more = f64::from(u8::from(served > EXCEEDED * self.rate));
        self.exceeded += WEIGHT * (more - self.exceeded);
        if self.exceeded > 0.5 {
            (self.bound_from, self.exceeded) = (now + IGNORED, 0.0);
        }
        if overfull && rate <= self.rate {
            self.hint_from = now + IGNORED;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notice_bounds_and_hints_for_as_long_as_it_is_new() {
        let mut n = Notice::default();
        assert_eq!((n.bound(0.0), n.hint(0.0)), (f64::INFINITY, 0.0), "none yet");
        n.announce(1e6, 5.0);
        assert_eq!((n.bound(6.0), n.hint(6.0)), (0.95e6, 0.9e6));
        assert_eq!((n.bound(16.0), n.hint(16.0)), (f64::INFINITY, 0.0));
    }

    #[test]
    fn a_link_that_serves_more_frees_the_bound_and_a_queue_the_hint() {
        let mut n = Notice::default();
        n.announce(1e6, 0.0);
        (0..5).for_each(|_| n.compare(3e6, false, 0.5e6, 1.0));
        assert_eq!(n.bound(1.0), 0.95e6, "a few messages are not enough");
        (0..5).for_each(|_| n.compare(3e6, false, 0.5e6, 1.0));
        assert_eq!((n.bound(1.0), n.hint(1.0)), (f64::INFINITY, 0.9e6));
        n.announce(1e6, 9.0);
        assert_eq!(n.bound(11.5), 0.95e6, "it is heeded again");
        n.compare(f64::NAN, true, 2e6, 12.0);
        assert_eq!(n.hint(12.0), 0.9e6, "the rate was beyond it");
        n.compare(f64::NAN, true, 0.9e6, 12.0);
        assert_eq!((n.hint(12.0), n.bound(12.0)), (0.0, 0.95e6));
    }
}
