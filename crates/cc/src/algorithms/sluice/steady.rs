//! The share of a source that has sent in bursts for long, and the error of the queue that is expected of it.
//!
//! Beside others the share follows each burst, and an encoder begins another where its target changes by a tenth (RFC 8593): a steadier
//! rate is answered by a steadier source. The queue expected is reckoned over the loop and cannot be negative, so that bursts and an uneven
//! share make it too long, more in a longer loop: such a flow would yield to those of shorter ones. What is seen of the queue tells.

use super::quantity::{Rate, Span, Time};

/// Time constant of the mean share: measured beside 1 s (`docs/sluice-tried.md`).
const SHARE_TIME: Span = Span::secs(1.5);
/// Time constant of the mean error: the fairness of rates that take as long to meet.
const ERROR_TIME: Span = Span::secs(5.0);
/// Greatest error of one message.
const MOST_ERROR: Span = Span::secs(0.1);
/// Queue beyond the one wanted from which others may hold it: what it does then says nothing of this flow's reckoning.
const OTHERS: Span = Span::secs(0.016);
/// Longest time that one message stands for.
const LONGEST: Span = Span::secs(0.25);
/// Least and greatest use that the share is divided by the root of: a source that uses less does not want the rate.
const USED: (f64, f64) = (0.9, 1.1);
/// Factor on the time of the correction: less of each burst and of each short flow beside it comes back in the rate.
pub(super) const SLOWER: f64 = 2.0;

/// Means over messages of such a source.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Steady {
    share: Option<Rate>,
    shared_at: Time,
    /// The queue expected less the one seen.
    error: Span,
    erred_at: Time,
}

impl Steady {
    /// The source does not send in bursts, or has not for long.
    pub(super) fn interrupt(&mut self) {
        self.share = None;
    }

    /// The mean of the shares. `used` is what the source has sent of late over what the rate allowed: beside others less of a rate that is
    /// used in part is served.
    pub(super) fn share(&mut self, share: Rate, used: f64, now: Time) -> Rate {
        let share = share / libm::sqrt(used.clamp(USED.0, USED.1));
        let mean = self.share.unwrap_or(share);
        let mean = mean + weight(now - self.shared_at, SHARE_TIME) * (share - mean);
        (self.share, self.shared_at) = (Some(mean), now);
        mean
    }

    /// The queue expected, less its mean error. A message counts for that if the rate `is_held`; `standing` is the queue seen.
    pub(super) fn expected(
        &mut self,
        expected: Span,
        (standing, wanted): (Span, Span),
        is_held: bool,
        now: Time,
    ) -> Span {
        let weight = weight(now - self.erred_at, ERROR_TIME);
        self.erred_at = now;
        if is_held && standing < wanted + OTHERS {
            let error = (expected - standing).clamp(Span::ZERO - MOST_ERROR, MOST_ERROR);
            self.error += weight * (error - self.error);
        }
        (expected - self.error).max(Span::ZERO)
    }
}

fn weight(elapsed: Span, time: Span) -> f64 {
    1.0 - libm::exp(-(elapsed.clamp(Span::ZERO, LONGEST) / time))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_that_alternates_is_its_mean_until_the_source_is_even() {
        let mut s = Steady::default();
        let mut mean = Rate::ZERO;
        for k in 0..200 {
            let share = Rate::bps(if k % 2 == 0 { 0.8e6 } else { 1.2e6 });
            mean = s.share(share, 1.0, Time::secs(0.05 * f64::from(k)));
        }
        assert!((0.97e6..1.03e6).contains(&mean.as_bps()), "{mean:?}");
        s.interrupt();
        assert_eq!(s.share(Rate::bps(2e6), 1.0, Time::secs(10.0)), Rate::bps(2e6));
        // Of a rate that is used by 0.96, and by half, which counts as 0.9.
        let mut of = |used: f64| {
            s.interrupt();
            s.share(Rate::bps(1e6), used, Time::secs(11.0)).as_bps()
        };
        assert!((of(0.96) - 1e6 / 0.96_f64.sqrt()).abs() < 1.0 && (of(0.5) - 1e6 / 0.9_f64.sqrt()).abs() < 1.0);
    }

    #[test]
    fn an_error_that_stays_is_taken_off_the_queue_expected() {
        let ms = |ms: f64| Span::secs(ms * 1e-3);
        let run = |standing: f64, is_held: bool| {
            let mut s = Steady::default();
            let at = |k: i32| Time::secs(0.05 * f64::from(k));
            for k in 0..400 {
                s.expected(ms(34.0), (ms(standing), ms(30.0)), is_held, at(k));
            }
            s.expected(ms(34.0), (ms(standing), ms(30.0)), is_held, at(400)).as_millis()
        };
        // Four time constants.
        assert!((24.0..24.3).contains(&run(24.0, true)), "{}", run(24.0, true));
        assert!((43.7..44.0).contains(&run(44.0, true)));
        assert_eq!((run(24.0, false), run(47.0, true)), (34.0, 34.0), "the rate is not held; others hold the queue");
    }
}
