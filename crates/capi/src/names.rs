//! Identification of the packet that feedback means: by its transport-wide number, or by stream and RTP sequence number.

use crate::failure::{Failure, Status};
use std::collections::VecDeque;
use weir_units::SeqUnwrapper;

/// Most packets kept of each numbering: half of what 16 bits can number.
const MAX_PACKETS: usize = 1 << 15;
/// Most streams of one controller.
const MAX_STREAMS: usize = 256;

/// Numbers of packets by a sequence number of 16 bits that grows.
#[derive(Default)]
struct Ring {
    unwrapper: SeqUnwrapper,
    /// Unwrapped sequence number of the first entry.
    first: u64,
    entries: VecDeque<Option<u64>>,
}

impl Ring {
    /// A sequence number that comes back means the newer packet. One from before all that are kept starts over.
    fn add(&mut self, sequence: u16, number: u64) {
        if self.unwrapper.peek(sequence) < self.first {
            *self = Self::default();
        }
        let full = self.unwrapper.unwrap(sequence);
        let end = self.first + self.entries.len() as u64;
        if self.entries.is_empty() || full >= end + MAX_PACKETS as u64 {
            self.entries.clear();
            self.first = full;
        } else if full < end {
            if let Some(place) = self.entries.get_mut((full - self.first) as usize) {
                *place = Some(number);
            }
            return;
        } else {
            self.entries.extend((end..full).map(|_| None));
        }
        self.entries.push_back(Some(number));
        while self.entries.len() > MAX_PACKETS {
            self.entries.pop_front();
            self.first += 1;
        }
    }
    /// Whether a sequence number is the one after the highest.
    fn is_next(&self, sequence: u16) -> bool {
        self.unwrapper.peek(sequence) == self.first + self.entries.len() as u64
    }
    fn get(&self, sequence: u16) -> Option<u64> {
        let index = self.unwrapper.peek(sequence).checked_sub(self.first)?;
        *self.entries.get(usize::try_from(index).ok()?)?
    }
}

struct Stream {
    ssrc: u32,
    numbers: Ring,
}

/// The packets of one controller by what feedback calls them.
#[derive(Default)]
pub(crate) struct SentNumbers {
    /// Of packets with transport-wide numbers of the caller's; without any, those are the packets' own numbers.
    transport: Option<Ring>,
    streams: Vec<Stream>,
}

impl SentNumbers {
    /// A packet has this transport-wide number.
    pub(crate) fn add_transport(&mut self, sequence: u16, number: u64) {
        self.transport.get_or_insert_default().add(sequence, number);
    }
    /// A packet belongs to this stream. Failure: a stream too many.
    pub(crate) fn add_rtp(&mut self, ssrc: u32, sequence: u16, number: u64) -> Result<(), Failure> {
        let known = self.streams.iter().position(|s| s.ssrc == ssrc);
        let index = match known {
            Some(index) => index,
            None if self.streams.len() < MAX_STREAMS => {
                self.streams.push(Stream { ssrc, numbers: Ring::default() });
                self.streams.len() - 1
            }
            None => {
                let text =
                    format!("ssrc is {ssrc}: this controller has {MAX_STREAMS} streams already, the most it keeps");
                return Err(Failure::new(Status::TooMany, text));
            }
        };
        self.streams[index].numbers.add(sequence, number);
        Ok(())
    }
    /// The packet of a transport-wide number; `next` is the number after the last packet's. `None` if none of those kept
    /// has it.
    pub(crate) fn by_transport(&self, sequence: u16, next: u64) -> Option<u64> {
        match &self.transport {
            Some(ring) => ring.get(sequence),
            None => {
                let last = next.checked_sub(1)?;
                last.checked_sub(u64::from((last as u16).wrapping_sub(sequence)))
            }
        }
    }
    /// The packet of a stream's sequence number.
    pub(crate) fn by_rtp(&self, ssrc: u32, sequence: u16) -> Option<u64> {
        self.streams.iter().find(|s| s.ssrc == ssrc)?.numbers.get(sequence)
    }
    /// The packet of a stream's sequence number, which may be that of the packet that it sends next; `next` is the number
    /// after the last packet's.
    pub(crate) fn by_rtp_or_next(&self, ssrc: u32, sequence: u16, next: u64) -> Option<u64> {
        let numbers = &self.streams.iter().find(|s| s.ssrc == ssrc)?.numbers;
        numbers.get(sequence).or_else(|| numbers.is_next(sequence).then_some(next))
    }
    /// Whether packets of this source were sent.
    pub(crate) fn has_sent(&self, ssrc: u32) -> bool {
        self.streams.iter().any(|s| s.ssrc == ssrc)
    }
    /// Whether RTCP about a source concerns this controller: all does while no stream is known.
    pub(crate) fn concerns(&self, ssrc: u32) -> bool {
        self.streams.is_empty() || self.streams.iter().any(|s| s.ssrc == ssrc)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_wrap_and_few_are_kept() {
        let mut sent = SentNumbers::default();
        for number in 0..200_000u64 {
            sent.add_transport((number + 9) as u16, number);
        }
        assert_eq!(sent.by_transport(200_008u64 as u16, 200_000), Some(199_999));
        assert_eq!(sent.by_transport((200_008 - MAX_PACKETS as u64) as u16, 200_000), None);
        let kept = sent.transport.as_ref().map(|r| r.entries.len());
        assert_eq!(kept, Some(MAX_PACKETS));
    }

    #[test]
    fn without_the_callers_numbers_the_packets_own_are_meant() {
        let sent = SentNumbers::default();
        assert_eq!(sent.by_transport(3, 0), None);
        assert_eq!(sent.by_transport(3, 10), Some(3));
        assert_eq!(sent.by_transport(9, 65_546), Some(65_545));
        assert_eq!(sent.by_transport(10, 65_546), Some(10));
        assert_eq!(sent.by_transport(11, 10), None, "never sent");
    }

    #[test]
    fn streams_have_their_own_numbers_gaps_and_jumps() {
        let mut sent = SentNumbers::default();
        for (number, (ssrc, sequence)) in
            [(1, 65_534), (2, 7), (1, 65_535), (1, 2), (1, 40_000)].into_iter().enumerate()
        {
            sent.add_rtp(ssrc, sequence, number as u64).expect("two streams");
        }
        assert_eq!([sent.by_rtp(1, 40_000), sent.by_rtp(2, 7), sent.by_rtp(2, 8)], [Some(4), Some(1), None]);
        assert_eq!(sent.by_rtp(1, 2), None, "a jump forgets what was before");
        assert!(sent.concerns(1) && !sent.concerns(3) && sent.has_sent(2) && !sent.has_sent(3));
        let next = |sequence| sent.by_rtp_or_next(1, sequence, 5);
        assert_eq!([next(40_000), next(40_001), next(40_002)], [Some(4), Some(5), None]);
        // Repeated numbers are those of the newer packet.
        sent.add_rtp(2, 7, 9).expect("known");
        assert_eq!(sent.by_rtp(2, 7), Some(9));
        let full: Result<(), Failure> = (10..400).try_for_each(|ssrc| sent.add_rtp(ssrc, 0, 0));
        assert_eq!(full.expect_err("too many").status, Status::TooMany);
    }
}
