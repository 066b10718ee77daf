//! Received datagrams waiting for the application.

use super::Received;
use std::collections::VecDeque;
use weir_units::{Ecn, Seq48};

/// Consecutive datagrams in one ring of bytes, so that steady traffic allocates nothing.
#[derive(Clone, Debug)]
pub(super) struct ReceiveQueue {
    bytes: VecDeque<u8>,
    entries: VecDeque<Datagram>,
    capacity: usize,
    max_bytes: usize,
}

#[derive(Clone, Copy, Debug)]
struct Datagram {
    len: usize,
    payload: u32,
    ecn: Ecn,
    sequence: Seq48,
}

/// Bytes of capacity kept by an empty ring.
const KEPT: usize = 2_048;

impl ReceiveQueue {
    /// Capacity for this many datagrams, and this many bytes of them.
    pub(super) fn new(capacity: usize, max_bytes: usize) -> Self {
        Self { bytes: VecDeque::new(), entries: VecDeque::new(), capacity: capacity.max(1), max_bytes }
    }
    /// Appends a datagram; returns `false` if it is full.
    pub(super) fn push(&mut self, bytes: &[u8], payload: u32, ecn: Ecn, sequence: Seq48) -> bool {
        let fits = self.entries.len() < self.capacity
            && (self.entries.is_empty() || self.bytes.len() + bytes.len() <= self.max_bytes);
        if fits {
            self.bytes.extend(bytes);
            self.entries.push_back(Datagram { len: bytes.len(), payload, ecn, sequence });
        }
        fits
    }
    /// Writes the oldest into `out`, replacing its contents.
    pub(super) fn pop(&mut self, out: &mut Vec<u8>) -> Option<Received> {
        let Datagram { len, payload, ecn, sequence } = self.entries.pop_front()?;
        out.clear();
        let (front, back) = self.bytes.as_slices();
        let first = front.len().min(len);
        out.extend_from_slice(&front[..first]);
        out.extend_from_slice(&back[..len - first]);
        self.bytes.drain(..len);
        Some(Received { payload, ecn, sequence })
    }
    /// Whether it is more than half full.
    pub(super) fn is_filling(&self) -> bool {
        self.entries.len() > self.capacity / 2 || self.bytes.len() > self.max_bytes / 2
    }
    /// Releases memory used by a burst, once it is empty.
    pub(super) fn shrink(&mut self) {
        if self.entries.is_empty() {
            self.bytes.shrink_to(KEPT);
            self.entries.shrink_to(KEPT / size_of::<Datagram>());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_went_in_comes_out_until_it_is_full() {
        let mut queue = ReceiveQueue::new(3, 100);
        let mut out = Vec::new();
        let put = |queue: &mut ReceiveQueue, bytes: &[u8]| queue.push(bytes, 7, Ecn::Ce, Seq48::new(9));
        for round in 0..50u8 {
            assert!(put(&mut queue, &[round; 40]) && put(&mut queue, &[]) && put(&mut queue, &[1]));
            assert!(queue.is_filling() && !put(&mut queue, &[2]));
            let expected = Received { payload: 7, ecn: Ecn::Ce, sequence: Seq48::new(9) };
            assert_eq!(queue.pop(&mut out), Some(expected));
            assert_eq!(out, [round; 40]);
            assert!(queue.pop(&mut out).is_some() && out.is_empty());
            assert!(queue.pop(&mut out).is_some() && out == [1] && queue.pop(&mut out).is_none());
        }
        // A datagram longer than the capacity still passes an empty ring, with none behind it.
        assert!(put(&mut queue, &[0; 200]) && !put(&mut queue, &[0; 1]));
    }
}
