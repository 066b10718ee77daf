use crate::error::ConfigError;
use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};

/// Nanoseconds in a second, so that tokens in bits times this are whole numbers at any rate and time.
const SCALE: i128 = 1_000_000_000;

/// A token bucket, full at first: the traffic profile of a policer or a shaper (RFC 2475, section 2.3.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TokenBucket {
    /// Rate at which it fills.
    pub rate: DataRate,
    /// Its size.
    pub burst: DataSize,
}

impl TokenBucket {
    /// Rejects a rate or a size of zero; `fields` names both in the error.
    pub(crate) fn check(&self, fields: [&'static str; 2]) -> Result<(), ConfigError> {
        if self.rate == DataRate::ZERO {
            return Err(ConfigError::new(fields[0], self.rate, "a rate above zero"));
        }
        if self.burst.is_zero() {
            return Err(ConfigError::new(fields[1], self.burst, "a size above zero"));
        }
        Ok(())
    }
}

/// The state of a token bucket.
#[derive(Clone, Debug)]
pub(crate) struct Bucket {
    /// Bits a second.
    rate: i128,
    /// Tokens of the full bucket, and at `at`, in bits times [`SCALE`]. Below zero for a shaper that has sent more than
    /// there was.
    full: i128,
    tokens: i128,
    at: Timestamp,
}

impl Bucket {
    pub(crate) fn new(config: &TokenBucket) -> Self {
        let full = scaled(config.burst.as_bytes());
        Self { rate: config.rate.as_bps().into(), full, tokens: full, at: Timestamp::ZERO }
    }

    fn refill(&mut self, now: Timestamp) {
        let passed = now.saturating_since(self.at).as_nanos();
        self.tokens = self.full.min(self.tokens.saturating_add(self.rate.saturating_mul(passed.into())));
        self.at = self.at.max(now);
    }

    /// Takes a packet's tokens, if there are enough.
    pub(crate) fn take(&mut self, now: Timestamp, bytes: u32) -> bool {
        self.refill(now);
        let enough = self.tokens >= scaled(bytes.into());
        if enough {
            self.tokens -= scaled(bytes.into());
        }
        enough
    }

    /// Takes tokens even if there are not enough.
    pub(crate) fn charge(&mut self, now: Timestamp, bytes: u64) {
        self.refill(now);
        self.tokens -= scaled(bytes);
    }

    /// When no tokens are missing, from the last charge on.
    pub(crate) fn settled_at(&self) -> Timestamp {
        let missing = (-self.tokens).max(0);
        let time = (missing + self.rate - 1) / self.rate;
        self.at + TimeDelta::from_nanos(i64::try_from(time).unwrap_or(i64::MAX))
    }
}

fn scaled(bytes: u64) -> i128 {
    i128::from(bytes) * 8 * SCALE
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: i64) -> Timestamp {
        Timestamp::from_millis(n)
    }
    /// 8 kbit/s, so that a byte takes a millisecond.
    fn bucket(burst: u64) -> Bucket {
        let config = TokenBucket { rate: DataRate::from_kbps(8), burst: DataSize::from_bytes(burst) };
        config.check(["rate", "burst"]).expect("valid");
        Bucket::new(&config)
    }

    #[test]
    fn a_burst_passes_and_then_the_rate() {
        let mut b = bucket(3_000);
        let passed: Vec<_> = (0..100).filter(|i| b.take(ms(100 * i), 1_000)).collect();
        // 200 bytes are left after three packets, and 1,000 there again at 1,000 ms; then each second.
        assert_eq!(passed, [vec![0, 1, 2], (1..10).map(|k| 10 * k).collect()].concat());
        assert!(!bucket(999).take(ms(1_000_000), 1_000), "larger than the bucket");
        let mut b = bucket(3_000);
        assert_eq!((0..10).filter(|_| b.take(ms(5_000_000), 1_000)).count(), 3, "no more than full");
    }

    #[test]
    fn tokens_are_exact() {
        // At 2,666 bit/s a byte takes 3,000,750.2 ns.
        let config = TokenBucket { rate: DataRate::from_bps(8_000 / 3), burst: DataSize::from_bytes(1_000) };
        let mut b = Bucket::new(&config);
        assert!((0..1_000).all(|_| b.take(ms(0), 1)));
        assert!(!b.take(Timestamp::from_nanos(3_000_750), 1) && b.take(Timestamp::from_nanos(3_000_751), 1));
    }

    #[test]
    fn a_debt_is_paid_at_the_rate() {
        let mut b = bucket(1_000);
        b.charge(ms(0), 1_000);
        assert_eq!(b.settled_at(), ms(0));
        b.charge(ms(0), 500);
        assert_eq!(b.settled_at(), ms(500));
        b.charge(ms(500), u64::MAX);
        assert!(b.settled_at() > ms(1 << 40));
    }

    #[test]
    fn a_bucket_without_rate_or_size_is_refused() {
        let error = |rate, burst| {
            let bucket = TokenBucket { rate: DataRate::from_bps(rate), burst: DataSize::from_bytes(burst) };
            bucket.check(["policer.rate", "policer.burst"]).expect_err("unsound").field
        };
        assert_eq!((error(0, 1), error(1, 0)), ("policer.rate", "policer.burst"));
    }
}
