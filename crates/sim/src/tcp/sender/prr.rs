//! Proportional rate reduction (RFC 6937), with the slow-start reduction bound.

/// The counts of a recovery, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Prr {
    /// Delivered since recovery began (prr_delivered).
    delivered: u64,
    /// Sent since then (prr_out).
    out: u64,
    /// In flight when it began (RecoverFS).
    flight: u64,
}

impl Prr {
    pub(super) fn begin(flight: u64) -> Self {
        Self { flight, ..Self::default() }
    }

    #[inline]
    pub(super) fn on_sent(&mut self, bytes: u64) {
        self.out += bytes;
    }

    /// The window after an acknowledgement that delivered `delivered` bytes.
    pub(super) fn window(&mut self, delivered: u64, pipe: u64, ssthresh: u64, mss: u64) -> u64 {
        self.delivered += delivered;
        let send = if pipe > ssthresh {
            let share = u128::from(self.delivered) * u128::from(ssthresh);
            let due = u64::try_from(share.div_ceil(u128::from(self.flight.max(1)))).unwrap_or(u64::MAX);
            due.saturating_sub(self.out)
        } else {
            let limit = self.delivered.saturating_sub(self.out).max(delivered) + mss;
            (ssthresh - pipe).min(limit)
        };
        pipe + send
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_the_window_leaves_over_the_round_trip() {
        // 20 segments, one lost, to 10: of each two delivered, one is sent (RFC 6937, section 4's example).
        let (mss, ssthresh) = (1_000, 10_000);
        let mut prr = Prr::begin(20_000);
        let (mut pipe, mut sent) = (19_000u64, vec![]);
        for _ in 0..18 {
            pipe -= mss;
            let cwnd = prr.window(mss, pipe, ssthresh, mss);
            let mut n = 0;
            while pipe + mss <= cwnd {
                pipe += mss;
                prr.on_sent(mss);
                n += 1;
            }
            sent.push(n);
        }
        assert!(sent.windows(2).all(|w| w[0] + w[1] <= 2), "{sent:?}");
        assert!(pipe.abs_diff(ssthresh) <= mss, "{pipe} {sent:?}");
    }

    #[test]
    fn after_heavy_loss_the_window_grows_as_in_slow_start() {
        let mut prr = Prr::begin(20_000);
        // 15 of 20 were lost: below the threshold at once.
        assert_eq!(prr.window(1_000, 4_000, 10_000, 1_000), 6_000);
    }
}
