//! Packets reported lost that may be only late: where packets overtake each other, a report that lacks one says little.

use super::super::quantity::{Span, Time};

/// Longest time for which a loss is not believed.
const LONGEST: Span = Span::secs(0.5);
/// Lateness below which packets count as in order.
const LEAST: Span = Span::secs(0.002);
/// Factor on the lateness.
const MARGIN: f64 = 1.25;
/// Time constant with which the lateness is forgotten.
const MEMORY: Span = Span::secs(60.0);

/// Losses that are not believed yet. They are once, or up to twice, the lateness of the packets that were late before; at once
/// where none was (the adaptive window of RACK, RFC 8985, section 6.2).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Late {
    /// Losses reported since `begun`, and in the time before.
    current: u32,
    previous: u32,
    begun: Time,
    /// Greatest delay, beyond the least, of packets reported lost that then arrived.
    lateness: Span,
    updated: Time,
}

/// Losses of one message, as far as they are believed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Losses {
    /// Packets lost.
    pub(super) lost: u32,
    /// Packets received that an earlier message's `lost` had counted.
    pub(super) revoked: u32,
}

impl Late {
    /// Takes a message at `now`, about each `interval`: its losses as reported, and the delay beyond the least of the latest of
    /// the packets that it takes back.
    pub(super) fn observe(&mut self, reported: Losses, lateness: Span, interval: Span, now: Time) -> Losses {
        let elapsed = (now - self.updated).max(Span::ZERO);
        self.updated = now;
        self.lateness = (self.lateness * libm::exp(-(elapsed / MEMORY))).max(lateness.min(LONGEST));
        let is_late = self.lateness > LEAST;
        let Losses { lost, revoked } = reported;
        let early = revoked.min(self.previous);
        self.previous -= early;
        let new = (revoked - early).min(self.current);
        self.current = self.current - new + lost;
        let revoked = revoked - early - new;
        let mut believed = 0;
        if !is_late {
            believed = core::mem::take(&mut self.current) + core::mem::take(&mut self.previous);
        } else if now - self.begun > MARGIN * self.lateness + 2.0 * interval {
            believed = core::mem::replace(&mut self.previous, core::mem::take(&mut self.current));
            self.begun = now;
        }
        Losses { lost: believed, revoked }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Messages each 25 ms from `from` on: losses reported and taken back in each. The sums of what is believed.
    fn drive(l: &mut Late, from: f64, messages: &[(u32, u32)]) -> [u32; 2] {
        let mut sums = [0; 2];
        for (k, &(lost, revoked)) in messages.iter().enumerate() {
            let lateness = if revoked > 0 { Span::secs(0.06) } else { Span::ZERO };
            let now = Time::secs(from + 0.025 * k as f64);
            let found = l.observe(Losses { lost, revoked }, lateness, Span::secs(0.025), now);
            sums = [sums[0] + found.lost, sums[1] + found.revoked];
        }
        sums
    }

    #[test]
    fn a_loss_is_believed_at_once_until_packets_have_been_late() {
        let mut l = Late::default();
        assert_eq!(drive(&mut l, 0.0, &[(3, 0)]), [3, 0]);
        assert_eq!(drive(&mut l, 0.1, &[(0, 2)]), [0, 2], "what was believed is taken back");
        assert_eq!(drive(&mut l, 0.2, &[(1, 0), (0, 0), (0, 1), (2, 0), (0, 0), (0, 2)]), [0, 0], "late packets");
        assert_eq!(drive(&mut l, 1.0, &[(4, 0), (0, 0), (0, 0)]), [0, 0], "not yet");
        assert_eq!(drive(&mut l, 1.1, &[(0, 0); 8]), [4, 0], "lost");
    }

    #[test]
    fn order_that_comes_back_is_believed_again() {
        let mut l = Late::default();
        drive(&mut l, 0.0, &[(2, 0), (0, 2)]);
        assert_eq!(drive(&mut l, 400.0, &[(3, 0)]), [3, 0]);
    }
}
