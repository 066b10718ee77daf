//! The send queue between the application and congestion control.
//!
//! Kernels had a queue of fixed length that refuses what does not fit; S. Jero, 2013, sections 3.2.1 and 5.2, finds
//! that an application should size it by its frames, drop old data first and keep key frames. All three are supported.

use std::collections::VecDeque;
use weir_units::{DataSize, Timestamp};

/// Choice of the message to drop when the queue is full.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum QueuePolicy {
    /// New datagrams are refused, as the kernel's queue did: `send` returns that it would block.
    #[default]
    Refuse,
    /// The datagram with the least cost is dropped, possibly the new one: the least important first, of these the
    /// earliest deadline, of these the longest waiting (S. Jero, 2013, section 5.2). Datagrams submitted at the same
    /// time with the same deadline, as those of a frame, do not displace each other: then the new one is refused.
    DropOldest,
}

/// How the queue works. The application may change it at any time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueueConfig {
    /// Packets that may wait, at least 1; 5 was the Linux kernel's (`tx_qlen`).
    pub capacity: usize,
    /// Choice of the message to drop when it is full.
    pub policy: QueuePolicy,
}

impl Default for QueueConfig {
    fn default() -> Self {
        Self { capacity: 5, policy: QueuePolicy::Refuse }
    }
}

/// A datagram submitted by the application.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Message<'a> {
    /// Its bytes, or those of its beginning.
    pub bytes: &'a [u8],
    /// Bytes after them that are carried as a length only.
    pub payload: u32,
    /// Cost of its loss, 0 being the least: a queue that drops keeps the greater. Key frames are above others.
    pub importance: u8,
    /// After this time it need not be sent and is dropped; `None` for never.
    pub deadline: Option<Timestamp>,
}

impl Message<'_> {
    /// Its length.
    pub fn size(&self) -> DataSize {
        DataSize::from_bytes(self.bytes.len() as u64 + u64::from(self.payload))
    }
}

/// A waiting datagram.
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
    /// When it was submitted.
    pub queued_at: Timestamp,
}

impl Queued {
    /// Its length.
    pub fn size(&self) -> DataSize {
        DataSize::from_bytes(self.bytes.len() as u64 + u64::from(self.payload))
    }
}

/// Counters of a queue.
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

/// See the module documentation.
#[derive(Clone, Debug, Default)]
pub struct SendQueue {
    config: QueueConfig,
    waiting: VecDeque<Queued>,
    size: u64,
    /// Buffers for reuse.
    spare: Vec<Vec<u8>>,
    counters: QueueCounters,
}

/// Later than any deadline.
const NEVER: Timestamp = Timestamp::from_nanos(i64::MAX);
/// Maximum buffers kept.
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
    /// Sets the limits. Datagrams beyond a smaller capacity stay until they are sent.
    pub fn set_config(&mut self, config: QueueConfig) {
        self.config = config;
    }
    /// Appends a datagram; returns `false` if it is refused.
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
    /// Drops a datagram with less cost than the new one, if the policy allows it; returns whether it did.
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
    /// The datagram to be sent next, after dropping those past their deadline.
    pub fn front(&mut self, now: Timestamp) -> Option<&Queued> {
        self.expire(now);
        self.waiting.front()
    }
    /// Removes it. Return its buffer by [`Self::recycle`].
    pub fn pop(&mut self) -> Option<Queued> {
        let q = self.waiting.pop_front()?;
        self.size -= q.size().as_bytes();
        Some(q)
    }
    /// Takes a buffer for reuse.
    pub fn recycle(&mut self, bytes: Vec<u8>) {
        if self.spare.len() < MAX_SPARE {
            self.spare.push(bytes);
        }
    }
    /// Drops all waiting datagrams.
    pub fn clear(&mut self) {
        while let Some(q) = self.pop() {
            self.recycle(q.bytes);
        }
    }
    /// Releases memory used by a burst.
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
    /// Number of waiting datagrams.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }
    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
    /// Bytes waiting.
    pub fn size(&self) -> DataSize {
        DataSize::from_bytes(self.size)
    }
    /// Its counters.
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
        // A datagram less important than all is refused, and so is the one due soonest of its kind.
        assert!(!push(&mut q, 4, 5, 0, None) && !push(&mut q, 4, 6, 1, Some(85)));
        // Another key frame displaces the last others, and then the first one.
        assert!(push(&mut q, 5, 7, 2, Some(140)) && push(&mut q, 5, 8, 2, Some(140)));
        assert!(push(&mut q, 5, 9, 2, Some(140)));
        assert!(!push(&mut q, 5, 10, 2, Some(140)), "a frame does not drive itself out");
        assert_eq!(names(&mut q, 6), [7, 8, 9]);
        let c = q.counters();
        assert_eq!((c.accepted, c.refused, c.displaced, c.expired), (7, 3, 4, 0));
    }

    #[test]
    fn expired_datagrams_are_dropped() {
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
        fn everything_has_one_fate_and_the_least_important_is_dropped(
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
