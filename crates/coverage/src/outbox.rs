use crate::Update;
use std::collections::VecDeque;
use weir_units::{TimeDelta, Timestamp};

/// How a reporter sends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OutboxConfig {
    /// Most updates that wait; beyond that the oldest are dropped. Default: 20,000, five hours at one a second.
    pub capacity: usize,
    /// Most updates of a batch. Default: 500, half of what a service takes.
    pub max_batch: usize,
    /// Time between batches, so that the radio can sleep. Default: 20 s.
    pub interval: TimeDelta,
    /// First pause after a failure; each further one doubles it. Default: 5 s.
    pub first_pause: TimeDelta,
    /// Longest pause. Default: 10 minutes.
    pub longest_pause: TimeDelta,
}

impl Default for OutboxConfig {
    fn default() -> Self {
        Self {
            capacity: 20_000,
            max_batch: 500,
            interval: TimeDelta::from_secs(20),
            first_pause: TimeDelta::from_secs(5),
            longest_pause: TimeDelta::from_secs(600),
        }
    }
}

/// Outcome of a reporter's updates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct OutboxStats {
    /// Acknowledged by the service.
    pub acknowledged: u64,
    /// Dropped since too many waited.
    pub dropped: u64,
    /// Refused by the service for good.
    pub refused: u64,
    /// Batches that failed, and were kept.
    pub failures: u64,
}

/// The updates of a reporter that wait to be sent: a bounded queue that gives batches, and keeps each until it is acknowledged.
#[derive(Clone, Debug)]
pub struct Outbox {
    config: OutboxConfig,
    waiting: VecDeque<Update>,
    /// Updates at the front that are being sent.
    in_flight: usize,
    next: Timestamp,
    pause: TimeDelta,
    stats: OutboxStats,
}

impl Outbox {
    /// An empty one, whose first batch is due at once.
    pub fn new(config: OutboxConfig) -> Self {
        Self {
            config,
            waiting: VecDeque::new(),
            in_flight: 0,
            next: Timestamp::from_nanos(i64::MIN),
            pause: config.first_pause,
            stats: OutboxStats::default(),
        }
    }

    /// Takes an update. If too many wait, the oldest that is not being sent is dropped.
    pub fn push(&mut self, update: Update) {
        if self.waiting.len() >= self.config.capacity.max(self.in_flight + 1) {
            self.waiting.remove(self.in_flight);
            self.stats.dropped += 1;
        }
        self.waiting.push_back(update);
    }

    /// The batch to send now, if one is due and none is being sent.
    pub fn poll_batch(&mut self, now: Timestamp) -> Option<Vec<Update>> {
        if self.in_flight > 0 || self.waiting.is_empty() || now < self.next {
            return None;
        }
        self.in_flight = self.waiting.len().min(self.config.max_batch);
        Some(self.waiting.iter().take(self.in_flight).cloned().collect())
    }

    /// When the next batch is due, or `None` if nothing waits or a batch is being sent.
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        (self.in_flight == 0 && !self.waiting.is_empty()).then_some(self.next)
    }

    /// The batch was acknowledged; `refused` of it are acceptable at no time.
    pub fn on_acknowledged(&mut self, refused: usize, now: Timestamp) {
        let sent = std::mem::take(&mut self.in_flight);
        self.waiting.drain(..sent);
        let refused = refused.min(sent);
        self.stats.acknowledged += (sent - refused) as u64;
        self.stats.refused += refused as u64;
        self.pause = self.config.first_pause;
        // Updates that wait after a time without network follow at once.
        let more = self.waiting.len() >= self.config.max_batch;
        self.next = if more { now } else { now + self.config.interval };
    }

    /// The batch is refused as a whole and would be again, and is dropped.
    pub fn on_refused(&mut self, now: Timestamp) {
        let sent = self.in_flight;
        self.on_acknowledged(sent, now);
    }

    /// The batch was not acknowledged, and will be sent again, after a time that the service asked for, or a pause that
    /// doubles.
    pub fn on_failure(&mut self, wait: Option<TimeDelta>, now: Timestamp) {
        self.in_flight = 0;
        self.stats.failures += 1;
        let wait = wait.unwrap_or(self.pause).min(self.config.longest_pause);
        self.next = now + wait;
        self.pause = self.pause.mul_f64(2.0).min(self.config.longest_pause);
    }

    /// Updates that wait, with those being sent.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Returns the outcome of the updates so far.
    pub fn stats(&self) -> OutboxStats {
        self.stats
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Position, Technology, WallTime};
    use proptest::prelude::*;
    use weir_units::DataRate;

    fn update(id: u64) -> Update {
        let at = Position::new(60.0, 24.0).expect("valid");
        let time = WallTime::from_unix_millis(id);
        Update::new(id, time, at, "244-91".parse().expect("valid"), Technology::Lte, DataRate::from_kbps(1))
    }

    fn at(s: i64) -> Timestamp {
        Timestamp::from_millis(s * 1_000)
    }

    fn outbox(capacity: usize) -> Outbox {
        Outbox::new(OutboxConfig { capacity, max_batch: 3, ..OutboxConfig::default() })
    }

    fn ids(batch: Option<Vec<Update>>) -> Vec<u64> {
        batch.unwrap_or_default().iter().map(|u| u.id).collect()
    }

    #[test]
    fn a_batch_is_kept_until_it_is_acknowledged() {
        let mut out = outbox(10);
        (0..7).for_each(|id| out.push(update(id)));
        assert_eq!(ids(out.poll_batch(at(0))), [0, 1, 2]);
        assert_eq!((out.poll_batch(at(0)), out.poll_timeout()), (None, None));
        out.on_failure(None, at(1));
        assert_eq!((out.poll_batch(at(5)), out.poll_timeout()), (None, Some(at(6))));
        assert_eq!(ids(out.poll_batch(at(6))), [0, 1, 2]);
        out.on_failure(None, at(7));
        assert_eq!(out.poll_timeout(), Some(at(17)), "the pause doubles");
        assert_eq!(ids(out.poll_batch(at(17))), [0, 1, 2]);
        out.on_failure(Some(TimeDelta::from_secs(3)), at(18));
        assert_eq!(ids(out.poll_batch(at(21))), [0, 1, 2]);
        out.on_acknowledged(1, at(22));
        assert_eq!(ids(out.poll_batch(at(22))), [3, 4, 5], "what is left is a whole batch");
        out.on_acknowledged(0, at(23));
        assert_eq!(out.poll_timeout(), Some(at(43)));
        assert_eq!(ids(out.poll_batch(at(43))), [6]);
        out.on_refused(at(43));
        let expected = OutboxStats { acknowledged: 5, dropped: 0, refused: 2, failures: 3 };
        assert!(out.is_empty() && out.stats() == expected, "{:?}", out.stats());
    }

    #[test]
    fn the_oldest_give_way_but_not_those_being_sent() {
        let mut out = outbox(5);
        (0..5).for_each(|id| out.push(update(id)));
        assert_eq!(ids(out.poll_batch(at(0))), [0, 1, 2]);
        (5..8).for_each(|id| out.push(update(id)));
        assert_eq!((out.len(), out.stats().dropped), (5, 3));
        out.on_acknowledged(0, at(0));
        assert_eq!(ids(out.poll_batch(at(20))), [6, 7]);
    }

    proptest! {
        #[test]
        fn nothing_is_lost_but_what_is_dropped(steps in prop::collection::vec(0_u8..5, 1..200)) {
            let mut out = outbox(6);
            let (mut pushed, mut now) = (0, 0);
            for step in steps {
                now += 7;
                match step {
                    0 | 1 => { out.push(update(pushed)); pushed += 1; }
                    2 => { out.poll_batch(at(now)); }
                    3 => out.on_failure(None, at(now)),
                    _ => out.on_acknowledged(0, at(now)),
                }
                let s = out.stats();
                prop_assert_eq!(s.acknowledged + s.dropped + out.len() as u64, pushed);
                prop_assert!(out.len() <= 6);
            }
        }
    }
}
