//! The send queue between the application and congestion control.
//!
//! Kernels had a queue of fixed length that refuses what does not fit; S. Jero, 2013, sections 3.2.1 and 5.2, finds that an
//! application wants to size it by its frames, wants old data to go first and key frames to be kept. All three are here.

use std::collections::VecDeque;
use weir_units::{DataSize, Timestamp};

/// What goes when the queue is full.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum QueuePolicy {
    /// What comes is refused, as the kernel's queue did: the application is told that it would block.
    #[default]
    Refuse,
    /// What waits longest goes, the least important first: data below the importance of what comes, or of its own importance
    /// with an earlier deadline; where there is none, what comes is refused.
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
        if self.waiting.len() >= self.config.capacity.max(1) {
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
