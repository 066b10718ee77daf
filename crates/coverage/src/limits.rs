//! Limits of rates, by token buckets in a table of bounded size.

use std::collections::BTreeMap;
use weir_units::{TimeDelta, Timestamp};

/// A rate that is permitted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// Tokens gained a second.
    pub per_second: f64,
    /// Tokens that can be saved up.
    pub burst: f64,
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    tokens: f64,
    filled: Timestamp,
}

/// Token buckets by a key. A key without a bucket has a full one; when the table is full, the bucket that has waited
/// longest is dropped.
#[derive(Clone, Debug)]
pub struct Limiter<K> {
    rate: Rate,
    most: usize,
    buckets: BTreeMap<K, Bucket>,
    /// By the time of last use, then by key.
    order: BTreeMap<(Timestamp, K), ()>,
}

impl<K: Ord + Clone> Limiter<K> {
    /// A limiter of keys, each to `rate`, that remembers up to `most` of them.
    pub fn new(rate: Rate, most: usize) -> Self {
        Self { rate, most: most.max(1), buckets: BTreeMap::new(), order: BTreeMap::new() }
    }

    /// Takes `tokens` of a key, or returns after which time that many are there. More than the burst are never there:
    /// they are taken from a full bucket, as a debt.
    ///
    /// # Errors
    /// The time to wait.
    pub fn take(&mut self, key: &K, tokens: f64, now: Timestamp) -> Result<(), TimeDelta> {
        let full = Bucket { tokens: self.rate.burst, filled: now };
        let mut bucket = self.buckets.get(key).copied().unwrap_or(full);
        let before = bucket.filled;
        let passed = now.saturating_since(bucket.filled).as_secs_f64().max(0.0);
        bucket.tokens = (bucket.tokens + passed * self.rate.per_second).min(self.rate.burst);
        bucket.filled = now.max(before);
        let needed = tokens.min(self.rate.burst);
        let result = if bucket.tokens >= needed {
            bucket.tokens -= tokens;
            Ok(())
        } else {
            Err(TimeDelta::from_secs_f64(((needed - bucket.tokens) / self.rate.per_second.max(1e-9)).min(86_400.0)))
        };
        self.order.remove(&(before, key.clone()));
        self.order.insert((bucket.filled, key.clone()), ());
        self.buckets.insert(key.clone(), bucket);
        if self.buckets.len() > self.most
            && let Some(((_, oldest), ())) = self.order.pop_first()
        {
            self.buckets.remove(&oldest);
        }
        result
    }

    /// Keys remembered.
    pub fn len(&self) -> usize {
        self.buckets.len()
    }

    /// Whether no key is remembered.
    pub fn is_empty(&self) -> bool {
        self.buckets.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_gets_its_rate_and_its_burst() {
        let mut limiter = Limiter::new(Rate { per_second: 10.0, burst: 20.0 }, 100);
        let at = |ms| Timestamp::from_millis(ms);
        assert_eq!(limiter.take(&1, 20.0, at(0)), Ok(()));
        assert_eq!(limiter.take(&1, 5.0, at(0)), Err(TimeDelta::from_millis(500)));
        assert_eq!(limiter.take(&2, 5.0, at(0)), Ok(()), "another key");
        assert_eq!(limiter.take(&1, 5.0, at(500)), Ok(()));
        // A clock that goes back gives nothing and takes nothing.
        assert!(limiter.take(&1, 1.0, at(100)).is_err());
        let taken = (0..1_000).filter(|i| limiter.take(&1, 1.0, at(500 + i * 10)).is_ok()).count();
        assert!((99..=101).contains(&taken), "10 s at 10 a second: {taken}");
        // More than the burst at once is a debt.
        assert_eq!(limiter.take(&3, 50.0, at(0)), Ok(()));
        assert_eq!(limiter.take(&3, 1.0, at(3_000)), Err(TimeDelta::from_millis(100)));
    }

    #[test]
    fn the_table_is_bounded() {
        let mut limiter = Limiter::new(Rate { per_second: 1.0, burst: 1.0 }, 8);
        for key in 0..1_000 {
            let _ = limiter.take(&key, 1.0, Timestamp::from_millis(key));
        }
        assert_eq!((limiter.len(), limiter.order.len()), (8, 8));
        assert!(limiter.take(&999, 1.0, Timestamp::from_millis(1_000)).is_err(), "the newest are remembered");
    }
}
