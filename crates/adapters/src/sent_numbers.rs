//! Finds the packet that a report names, by its transport-wide number, or by stream and RTP sequence number.

use std::collections::{HashMap, VecDeque};

/// Most packets kept: half of what 16 bits can tell apart.
const MAX: usize = 1 << 15;

/// How feedback names a packet.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Name {
    /// draft-holmer-rmcat-transport-wide-cc-extensions-01.
    TransportWide(u16),
    /// RFC 8888: SSRC and RTP sequence number.
    Rtp(u32, u16),
}

/// The numbers of packets by what feedback calls them.
#[derive(Default)]
pub(crate) struct SentNumbers {
    by_name: HashMap<Name, u64>,
    /// All names in the order of sending.
    order: VecDeque<(Name, u64)>,
}

impl SentNumbers {
    /// A packet left as the `number`-th. A name that comes back means the newer packet.
    pub(crate) fn add(&mut self, name: Name, number: u64) {
        if self.order.len() == MAX
            && let Some((old, its)) = self.order.pop_front()
            && self.by_name.get(&old) == Some(&its)
        {
            self.by_name.remove(&old);
        }
        self.by_name.insert(name, number);
        self.order.push_back((name, number));
    }
    /// The packet of this name; `None` if none of those kept has it.
    pub(crate) fn get(&self, name: Name) -> Option<u64> {
        self.by_name.get(&name).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_wrap_and_few_are_kept() {
        let mut sent = SentNumbers::default();
        for number in 0..200_000u64 {
            sent.add(Name::TransportWide(number as u16), number);
        }
        assert_eq!(sent.get(Name::TransportWide(199_999u64 as u16)), Some(199_999));
        assert_eq!(sent.get(Name::TransportWide((200_000u64 - MAX as u64 - 1) as u16)), None);
        assert_eq!(sent.get(Name::Rtp(1, 199_999u64 as u16)), None);
        assert!(sent.by_name.len() <= MAX && sent.order.len() <= MAX);
        // A stream that repeats its numbers at once.
        for number in 200_000..300_000 {
            sent.add(Name::Rtp(1, 5), number);
        }
        assert_eq!(sent.get(Name::Rtp(1, 5)), Some(299_999));
        assert!(sent.by_name.len() <= MAX && sent.order.len() <= MAX);
    }
}
