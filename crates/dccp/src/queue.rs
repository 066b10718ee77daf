//! The send queue between the application and congestion control.
//!
//! Kernels had a queue of fixed length that refuses what does not fit; S. Jero, 2013, sections 3.2.1 and 5.2, finds that an
//! application wants to size it by its frames, wants old data to go first and key frames to be kept. All three are here.

use std::collections::VecDeque;
use weir_units::{DataSize, Timestamp};

/// What goes when the queue is full.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum QueuePolicy {
    /// New datagrams are refused, as the kernel's queue did: `send` returns that it would block.
    #[default]
    Refuse,
    /// What costs least goes, be it what comes: the least important first, of these the earliest deadline, of these what waits
    /// longest (S. Jero, 2013, section 5.2). What is handed over at the same time with the same deadline, as a frame is, does not
    /// drive itself out: then what comes is refused.
    DropOldest,
}

/// How the queue works. The application may change it at any time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueueConfig {
    /// Packets that may wait, at least 1; 5 was the Linux kernel's (`tx_qlen`).
    pub capacity: usize,
    /// What goes when it is full.
    pub policy: QueuePolicy,
}

impl Default for QueueConfig {
    fn default() -> Self {
        Self { capacity: 5, policy: QueuePolicy::Refuse }
    }
}

/// A datagram that the application hands over.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Message<'a> {
    /// Its bytes, or those of its beginning.
    pub bytes: &'a [u8],
    /// Bytes that belong behind them and are carried as a length only.
    pub payload: u32,
    /// How much its loss costs, 0 least: a queue that drops keeps what is above. Key frames are above others.
    pub importance: u8,
    /// After this it need not leave any more, and is dropped; `None` for never.
    pub deadline: Option<Timestamp>,
}

impl Message<'_> {
    /// Its length.
    pub fn size(&self) -> DataSize {
        DataSize::from_bytes(self.bytes.len() as u64 + u64::from(self.payload))
    }
}

/// A datagram that waits.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Queued {
    /// See [`Message::bytes`].
    pub bytes: Vec<u8>,
    /// See [`Message::payload`].
    pub payload: u32,
    /// See [`Message::importance`].
    pub importance: u8,
    /// See [`Message::deadline`].
    pub deadline: Option<Timestamp>,
    /// When it was handed over.
    pub queued_at: Timestamp,
}

impl Queued {
    /// Its length.
    pub fn size(&self) -> DataSize {
        DataSize::from_bytes(self.bytes.len() as u64 + u64::from(self.payload))
    }
}

/// What has become of datagrams in the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct QueueCounters {
    /// Taken in.
    pub accepted: u64,
    /// Refused: full.
    pub refused: u64,
    /// Dropped for others.
    pub displaced: u64,
    /// Dropped after their deadline.
    pub expired: u64,
}

/// See the top of this module.
#[derive(Clone, Debug, Default)]
pub struct SendQueue {
    config: QueueConfig,
    waiting: VecDeque<Queued>,
    size: u64,
    /// Buffers to use again.
    spare: Vec<Vec<u8>>,
    counters: QueueCounters,
}

/// Later than any deadline.
const NEVER: Timestamp = Timestamp::from_nanos(i64::MAX);
/// Buffers kept for later.
const MAX_SPARE: usize = 64;

impl SendQueue {
    /// An empty queue.
    pub fn new(config: QueueConfig) -> Self {
        Self { config, ..Self::default() }
    }
    /// How it works.
    pub fn config(&self) -> QueueConfig {
        self.config
    }
    /// Changes that. What waits beyond a smaller capacity stays until it leaves.
    pub fn set_config(&mut self, config: QueueConfig) {
        self.config = config;
    }
    /// Takes a datagram in; `false` where it is refused.
    pub fn push(&mut self, now: Timestamp, message: &Message<'_>) -> bool {
        self.expire(now);
        if self.waiting.len() >= self.config.capacity.max(1) && !self.make_room(now, message) {
            self.counters.refused += 1;
            return false;
        }
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.clear();
        bytes.extend_from_slice(message.bytes);
        let Message { payload, importance, deadline, .. } = *message;
        self.size += message.size().as_bytes();
        self.waiting.push_back(Queued { bytes, payload, importance, deadline, queued_at: now });
        self.counters.accepted += 1;
        true
    }
    /// Drops what costs less than what comes, where the policy is such; whether it has.
    fn make_room(&mut self, now: Timestamp, message: &Message<'_>) -> bool {
        if self.config.policy == QueuePolicy::Refuse {
            return false;
        }
        let cost = |importance, deadline: Option<Timestamp>, since| (importance, deadline.unwrap_or(NEVER), since);
        let costs = self.waiting.iter().map(|q| cost(q.importance, q.deadline, q.queued_at));
        let Some((least, at)) = costs.zip(0..).min() else { return false };
        if least >= cost(message.importance, message.deadline, now) {
            return false;
        }
        if let Some(q) = self.waiting.remove(at) {
            self.size -= q.size().as_bytes();
            self.recycle(q.bytes);
            self.counters.displaced += 1;
        }
        true
    }
    /// The datagram that leaves next, those past their deadline dropped.
    pub fn front(&mut self, now: Timestamp) -> Option<&Queued> {
        self.expire(now);
        self.waiting.front()
    }
    /// Takes it. Give its buffer back by [`Self::recycle`].
    pub fn pop(&mut self) -> Option<Queued> {
        let q = self.waiting.pop_front()?;
        self.size -= q.size().as_bytes();
        Some(q)
    }
    /// Takes a buffer to use again.
    pub fn recycle(&mut self, bytes: Vec<u8>) {
        if self.spare.len() < MAX_SPARE {
            self.spare.push(bytes);
        }
    }
    /// Drops all that waits.
    pub fn clear(&mut self) {
        while let Some(q) = self.pop() {
            self.recycle(q.bytes);
        }
    }
    /// Gives room back that a burst has taken.
    pub fn shrink(&mut self) {
        self.spare.clear();
        if self.waiting.is_empty() {
            self.waiting.shrink_to(8);
        }
    }
    fn expire(&mut self, now: Timestamp) {
        while self.waiting.front().is_some_and(|q| q.deadline.is_some_and(|d| d < now)) {
            if let Some(q) = self.pop() {
                self.recycle(q.bytes);
            }
            self.counters.expired += 1;
        }
    }
    /// Datagrams that wait.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }
    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
    /// Bytes that wait.
    pub fn size(&self) -> DataSize {
        DataSize::from_bytes(self.size)
    }
    /// What has become of datagrams here.
    pub fn counters(&self) -> QueueCounters {
        self.counters
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn queue(capacity: usize, policy: QueuePolicy) -> SendQueue {
        SendQueue::new(QueueConfig { capacity, policy })
    }
    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }
    /// Pushes a datagram of this name; whether it was taken.
    fn push(q: &mut SendQueue, now: i64, name: u8, importance: u8, deadline: Option<i64>) -> bool {
        q.push(at(now), &Message { bytes: &[name], payload: 9, importance, deadline: deadline.map(at) })
    }
    fn names(q: &mut SendQueue, now: i64) -> Vec<u8> {
        let mut all = Vec::new();
        while q.front(at(now)).is_some() {
            let front = q.pop().expect("there is one");
            all.push(front.bytes[0]);
            q.recycle(front.bytes);
        }
        all
    }

    #[test]
    fn a_full_queue_refuses_or_drops_the_oldest() {
        let mut q = queue(2, QueuePolicy::Refuse);
        assert_eq!([1, 2, 3].map(|n| push(&mut q, n.into(), n, n, None)), [true, true, false]);
        assert_eq!((q.len(), q.size().as_bytes(), q.counters().refused), (2, 20, 1));
        assert_eq!(names(&mut q, 3), [1, 2]);
        let mut q = queue(2, QueuePolicy::DropOldest);
        assert_eq!([1, 2, 3].map(|n| push(&mut q, n.into(), n, 0, None)), [true, true, true]);
        assert_eq!((q.len(), q.size().as_bytes(), q.counters().displaced), (2, 20, 1));
        assert_eq!(names(&mut q, 3), [2, 3]);
    }

    #[test]
    fn key_frames_stay_and_others_make_room_by_deadline() {
        let mut q = queue(3, QueuePolicy::DropOldest);
        // A key frame in front, then two others, the later one due sooner.
        assert!(push(&mut q, 0, 1, 2, Some(100)) && push(&mut q, 1, 2, 1, Some(90)) && push(&mut q, 2, 3, 1, Some(80)));
        assert!(push(&mut q, 3, 4, 1, Some(120)));
        // What is less important than all is refused, and so is what is due soonest of its kind.
        assert!(!push(&mut q, 4, 5, 0, None) && !push(&mut q, 4, 6, 1, Some(85)));
        // Another key frame drives the last others out, and then the first one.
        assert!(push(&mut q, 5, 7, 2, Some(140)) && push(&mut q, 5, 8, 2, Some(140)));
        assert!(push(&mut q, 5, 9, 2, Some(140)));
        assert!(!push(&mut q, 5, 10, 2, Some(140)), "a frame does not drive itself out");
        assert_eq!(names(&mut q, 6), [7, 8, 9]);
        let c = q.counters();
        assert_eq!((c.accepted, c.refused, c.displaced, c.expired), (7, 3, 4, 0));
    }

    #[test]
    fn what_is_past_its_deadline_goes() {
        let mut q = queue(2, QueuePolicy::Refuse);
        assert!(push(&mut q, 0, 1, 0, Some(10)) && push(&mut q, 0, 2, 0, Some(20)));
        assert!(!push(&mut q, 10, 3, 0, None));
        assert!(push(&mut q, 11, 4, 0, None));
        assert_eq!(names(&mut q, 20), [2, 4]);
        assert_eq!(q.counters().expired, 1);
    }

    #[derive(Clone, Debug)]
    enum Op {
        Push { importance: u8, deadline: Option<i64> },
        Pop,
        Wait(i64),
        Capacity(usize),
    }

    fn op() -> impl Strategy<Value = Op> {
        prop_oneof![
            8 => (0u8..4, prop::option::of(0i64..60)).prop_map(|(importance, deadline)| Op::Push { importance, deadline }),
            2 => Just(Op::Pop),
            2 => (0i64..20).prop_map(Op::Wait),
            1 => (0usize..12).prop_map(Op::Capacity),
        ]
    }

    proptest! {
        #[test]
        fn everything_has_one_fate_and_what_costs_least_goes(
            drops in any::<bool>(),
            ops in prop::collection::vec(op(), 1..300),
        ) {
            let policy = if drops { QueuePolicy::DropOldest } else { QueuePolicy::Refuse };
            let mut q = queue(5, policy);
            let (mut now, mut left, mut last) = (0, 0, None);
            for (n, op) in ops.into_iter().enumerate() {
                let cost = |q: &Queued| (q.importance, q.deadline.unwrap_or(NEVER), q.queued_at);
                match op {
                    Op::Push { importance, deadline } => {
                        // Expiry happens first in any case.
                        q.front(at(now));
                        let capacity = q.config().capacity.max(1);
                        let (before, counts) = (q.waiting.clone(), q.counters());
                        let deadline = deadline.map(|d| at(now + d));
                        let bytes = (n as u32).to_be_bytes();
                        let message = Message { bytes: &bytes, payload: 1_000, importance, deadline };
                        let own = (importance, deadline.unwrap_or(NEVER), at(now));
                        let (least, full) = (before.iter().map(cost).min(), before.len() >= capacity);
                        let taken = q.push(at(now), &message);
                        prop_assert_eq!(taken, !full || drops && least.is_some_and(|l| l < own));
                        prop_assert_eq!(q.counters().displaced - counts.displaced, u64::from(full && taken));
                        // The rest stays, in its order.
                        let gone = before.iter().find(|b| !q.waiting.iter().any(|w| w.bytes == b.bytes));
                        prop_assert_eq!(gone.map(cost), least.filter(|_| full && taken));
                    }
                    Op::Pop => {
                        if q.front(at(now)).is_some() {
                            let front = q.pop().expect("there is one");
                            prop_assert!(front.deadline.is_none_or(|d| d >= at(now)));
                            prop_assert!(last < Some(front.bytes.clone()), "first in, first out");
                            last = Some(front.bytes);
                            left += 1;
                        }
                    }
                    Op::Wait(ms) => now += ms,
                    Op::Capacity(capacity) => q.set_config(QueueConfig { capacity, policy }),
                }
                let c = q.counters();
                prop_assert_eq!(c.accepted, left + c.displaced + c.expired + q.len() as u64);
                prop_assert_eq!(q.size().as_bytes(), 1_004 * q.len() as u64);
                prop_assert!(q.waiting.iter().is_sorted_by(|a, b| a.bytes < b.bytes), "in order");
            }
        }
    }
}
