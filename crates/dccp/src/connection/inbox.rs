//! What has come and waits for the application.

use super::Received;
use std::collections::VecDeque;
use weir_units::Ecn;

/// Datagrams one behind the other in one ring of bytes, so that steady traffic allocates nothing.
#[derive(Clone, Debug)]
pub(super) struct Inbox {
    bytes: VecDeque<u8>,
    entries: VecDeque<Entry>,
    capacity: usize,
    max_bytes: usize,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    len: usize,
    payload: u32,
    ecn: Ecn,
}

/// Bytes of room that an empty ring keeps.
const KEPT: usize = 2_048;

impl Inbox {
    /// Room for so many datagrams, and so many bytes of them.
    pub(super) fn new(capacity: usize, max_bytes: usize) -> Self {
        Self { bytes: VecDeque::new(), entries: VecDeque::new(), capacity: capacity.max(1), max_bytes }
    }
    /// Takes one in; `false` where it is full.
    pub(super) fn push(&mut self, bytes: &[u8], payload: u32, ecn: Ecn) -> bool {
        let fits = self.entries.len() < self.capacity
            && (self.entries.is_empty() || self.bytes.len() + bytes.len() <= self.max_bytes);
        if fits {
            self.bytes.extend(bytes);
            self.entries.push_back(Entry { len: bytes.len(), payload, ecn });
        }
        fits
    }
    /// The oldest, into `out` in place of what is there.
    pub(super) fn pop(&mut self, out: &mut Vec<u8>) -> Option<Received> {
        let Entry { len, payload, ecn } = self.entries.pop_front()?;
        out.clear();
        let (front, back) = self.bytes.as_slices();
        let first = front.len().min(len);
        out.extend_from_slice(&front[..first]);
        out.extend_from_slice(&back[..len - first]);
        self.bytes.drain(..len);
        Some(Received { payload, ecn })
    }
    /// Whether it is more than half full.
    pub(super) fn is_filling(&self) -> bool {
        self.entries.len() > self.capacity / 2 || self.bytes.len() > self.max_bytes / 2
    }
    /// Gives room back that a burst has taken, once it is empty.
    pub(super) fn shrink(&mut self) {
        if self.entries.is_empty() {
            self.bytes.shrink_to(KEPT);
            self.entries.shrink_to(KEPT / size_of::<Entry>());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_went_in_comes_out_until_it_is_full() {
        let mut inbox = Inbox::new(3, 100);
        let mut out = Vec::new();
        for round in 0..50u8 {
            assert!(
                inbox.push(&[round; 40], 7, Ecn::Ce)
                    && inbox.push(&[], 0, Ecn::NotEct)
                    && inbox.push(&[1], 0, Ecn::NotEct)
            );
            assert!(inbox.is_filling() && !inbox.push(&[2], 0, Ecn::NotEct));
            assert_eq!(inbox.pop(&mut out), Some(Received { payload: 7, ecn: Ecn::Ce }));
            assert_eq!(out, [round; 40]);
            assert!(inbox.pop(&mut out).is_some() && out.is_empty());
            assert!(inbox.pop(&mut out).is_some() && out == [1] && inbox.pop(&mut out).is_none());
        }
        // A datagram longer than all the room still passes an empty ring, nothing behind it.
        assert!(inbox.push(&[0; 200], 0, Ecn::NotEct) && !inbox.push(&[0; 1], 0, Ecn::NotEct));
    }
}
