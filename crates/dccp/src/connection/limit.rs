//! Rate limit of replies that any packet can elicit (RFC 4340, sections 7.5.4 and 8.3.1).

use weir_units::{TimeDelta, Timestamp};

/// A bucket that holds one second's worth of replies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RateLimit {
    per_second: u32,
    left: u32,
    filled_at: Option<Timestamp>,
}

impl RateLimit {
    pub(crate) const fn new(per_second: u32) -> Self {
        Self { per_second, left: per_second, filled_at: None }
    }
    /// Whether one more may be sent now; it is then counted.
    pub(crate) fn take(&mut self, now: Timestamp) -> bool {
        let since = *self.filled_at.get_or_insert(now);
        let interval = TimeDelta::from_secs(1) / i64::from(self.per_second.max(1));
        let more = now.saturating_since(since).as_nanos() / interval.as_nanos().max(1);
        if more >= i64::from(self.per_second - self.left.min(self.per_second)) {
            (self.left, self.filled_at) = (self.per_second, Some(now));
        } else if more > 0 {
            self.left += more as u32;
            self.filled_at = Some(since + interval * more);
        }
        let may = self.left > 0;
        self.left -= u32::from(may);
        may
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_a_second_and_no_more() {
        let mut limit = RateLimit::new(8);
        let sent = |limit: &mut RateLimit, from: i64, to: i64| {
            (from..to).filter(|ms| limit.take(Timestamp::from_millis(*ms))).count()
        };
        // A burst of eight at once, then one every 125 ms.
        assert_eq!(sent(&mut limit, 0, 100), 8);
        assert_eq!(sent(&mut limit, 100, 1_100), 8);
        assert_eq!(sent(&mut limit, 1_100, 2_100), 8);
        assert_eq!(sent(&mut limit, 60_000, 60_100), 8);
    }
}
