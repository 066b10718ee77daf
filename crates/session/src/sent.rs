//! Packets sent on each RTP stream: the mapping to transport-wide numbers, and the data to which run-length reports are
//! matched.

use std::collections::VecDeque;
use weir_cc::cue::{Fate, IntervalPacket};
use weir_units::{DataSize, PathId, TimeDelta, Timestamp};
use weir_wire::rtcp::xr::RleBlock;

/// Numbers after the last one sent that a report may have: no valid one has any.
const AHEAD: u64 = 1 << 11;
/// Most packets remembered: of RTP's sequence number space what is not ahead, so that a 16-bit number is unambiguous. Half of the space
/// is 0.63 s at 500 Mbit/s.
const MAX_PACKETS: usize = (1 << 16) - AHEAD as usize;
/// Packets are remembered for this long; reports arrive at most a few seconds later (RFC 4585, section 3.4, has
/// intervals of up to 5 s).
const REMEMBERED: TimeDelta = TimeDelta::from_secs(15);

/// A sent packet of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Sent {
    /// Transport-wide sequence number.
    pub transport: u64,
    pub departure: Timestamp,
    pub size: u32,
    pub path: PathId,
    pub is_padding: bool,
}

/// The packets of one stream by its own sequence numbers.
///
/// While a call sends only one stream both numbers are the same, and nothing is kept until [`Self::keep`].
#[derive(Clone, Debug)]
pub(crate) struct SentStream {
    packets: VecDeque<Sent>,
    keeps: bool,
    /// The stream's next number.
    next: u64,
    /// Packets before this one have the same number in both spaces.
    same_before: u64,
}

impl SentStream {
    /// A stream whose first packet has this number; if nothing is kept, both numbers are the same.
    pub(crate) fn new(first: u64, keeps: bool) -> Self {
        Self { packets: VecDeque::new(), keeps, next: first, same_before: first }
    }

    /// Remembers packets from the next one on.
    pub(crate) fn keep(&mut self) {
        if !self.keeps {
            (self.keeps, self.same_before) = (true, self.next);
        }
    }

    /// The next packet's number.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// The packet with number [`Self::next`] is sent; returns that number.
    #[inline]
    pub(crate) fn on_sent(&mut self, packet: Sent) -> u64 {
        let number = self.next;
        self.next += 1;
        if !self.keeps {
            return number;
        }
        let old = |p: &Sent| packet.departure - p.departure > REMEMBERED;
        while self.packets.len() == MAX_PACKETS || self.packets.front().is_some_and(old) {
            self.packets.pop_front();
        }
        self.packets.push_back(packet);
        number
    }

    /// The 64-bit form of a sequence number that a report has: up to [`AHEAD`] after the last one sent.
    pub(crate) fn nearest(&self, sequence: u16) -> u64 {
        nearest((self.next + AHEAD).saturating_sub((1 << 15) + 1), sequence)
    }

    /// A packet, if still remembered.
    pub(crate) fn get(&self, sequence: u64) -> Option<&Sent> {
        let first = self.next - self.packets.len() as u64;
        self.packets.get(usize::try_from(sequence.checked_sub(first)?).ok()?)
    }

    /// The transport-wide number of a packet; `None` if it is not yet sent or no longer remembered.
    pub(crate) fn transport(&self, sequence: u64) -> Option<u64> {
        let same = sequence < if self.keeps { self.same_before } else { self.next };
        if same { Some(sequence) } else { self.get(sequence).map(|s| s.transport) }
    }
}

/// The 64-bit form of a sequence number on the wire: the nearest to `last`.
pub(crate) fn nearest(last: u64, sequence: u16) -> u64 {
    last.saturating_add_signed(i64::from(sequence.wrapping_sub(last as u16) as i16))
}

/// The blocks of one extended report on this end's media.
#[derive(Clone, Copy, Default)]
pub(crate) struct Traces<'a> {
    pub loss: Option<RleBlock<'a>>,
    pub discard: Option<RleBlock<'a>>,
    pub post_repair: Option<RleBlock<'a>>,
}

/// Matches run-length reports to sent packets: every packet is reported at most once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Intervals {
    /// The stream's number of the first packet not yet reported.
    next: u64,
    packets: Vec<IntervalPacket>,
    /// Reports on packets never sent, or no longer remembered.
    pub unknown: u64,
}

impl Intervals {
    /// The media packets reported for the first time, in send order.
    pub(crate) fn resolve(&mut self, sent: &SentStream, traces: &Traces<'_>) -> &[IntervalPacket] {
        self.packets.clear();
        if !sent.keeps {
            return &self.packets;
        }
        for (s, received) in traces.loss.iter().flat_map(RleBlock::packets) {
            let sequence = sent.nearest(s);
            // A range longer than half the number space wraps, and no valid report exceeds what was sent.
            if sequence >= sent.next() {
                self.unknown += 1;
                break;
            }
            if sequence < self.next {
                continue;
            }
            self.next = sequence + 1;
            match sent.get(sequence) {
                None => self.unknown += 1,
                Some(p) if p.is_padding => {}
                Some(p) => self.packets.push(IntervalPacket {
                    sequence: p.transport,
                    departure: p.departure,
                    size: DataSize::from_bytes(p.size.into()),
                    fate: if received { Fate::Received } else { Fate::Lost },
                    repaired: false,
                }),
            }
        }
        self.mark(sent, traces.discard.as_ref(), |p| {
            if p.fate == Fate::Received {
                p.fate = Fate::Discarded;
            }
        });
        self.mark(sent, traces.post_repair.as_ref(), |p| p.repaired = p.fate == Fate::Lost);
        &self.packets
    }

    fn mark(&mut self, sent: &SentStream, trace: Option<&RleBlock<'_>>, mark: fn(&mut IntervalPacket)) {
        if self.packets.is_empty() {
            return;
        }
        for (s, _) in trace.iter().flat_map(|t| t.packets()).filter(|p| p.1) {
            let Some(number) = sent.get(sent.nearest(s)).map(|p| p.transport) else { continue };
            if let Ok(i) = self.packets.binary_search_by_key(&number, |p| p.sequence) {
                mark(&mut self.packets[i]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_wire::rtcp::xr::Chunk;

    fn packet(transport: u64, is_padding: bool) -> Sent {
        Sent {
            transport,
            departure: Timestamp::from_millis(transport as i64),
            size: 1_000,
            path: PathId::FIRST,
            is_padding,
        }
    }

    fn trace<'a>(begin: u16, bits: &[bool], chunks: &'a mut Vec<Chunk>) -> RleBlock<'a> {
        RleBlock::encode(1, begin, 0, bits.iter().copied(), 1_000, chunks)
    }

    #[test]
    fn numbers_part_when_a_second_stream_begins() {
        let mut s = SentStream::new(100, false);
        (100..110).for_each(|n| _ = s.on_sent(packet(n, false)));
        assert_eq!((s.transport(105), s.transport(110)), (Some(105), None));
        s.keep();
        (111..120).for_each(|n| _ = s.on_sent(packet(n, false)));
        assert_eq!([109, 110, 118, 119].map(|n| s.transport(n)), [Some(109), Some(111), Some(119), None]);
        assert_eq!(s.nearest(118), 118);
    }

    #[test]
    fn old_packets_are_forgotten() {
        let mut s = SentStream::new(0, true);
        for n in 0..80_000u64 {
            s.on_sent(Sent { departure: Timestamp::ZERO, ..packet(n, false) });
        }
        assert_eq!((s.get(80_000 - MAX_PACKETS as u64).is_some(), s.get(79_999 - MAX_PACKETS as u64)), (true, None));
        s.on_sent(Sent { departure: Timestamp::from_secs(16), ..packet(80_000, false) });
        assert_eq!((s.packets.len(), s.transport(80_000), s.transport(79_999)), (1, Some(80_000), None));
    }

    #[test]
    fn every_media_packet_is_reported_once() {
        // Stream numbers from 65,530 on; 65,534 is padding, and a packet of another stream precedes each.
        let mut s = SentStream::new(65_530, true);
        (0..12u64).for_each(|n| _ = s.on_sent(packet(200_001 + 2 * n, n == 4)));
        let mut all = Intervals::default();
        let (mut a, mut b, mut c) = (vec![], vec![], vec![]);
        let [x, o] = [true, false];
        let traces = Traces {
            loss: Some(trace(65_530, &[x, o, x, o, x, x], &mut a)),
            discard: Some(trace(65_530, &[x, o, o, o, o, o], &mut b)),
            post_repair: Some(trace(65_530, &[x, x, x, o, x, x], &mut c)),
        };
        let reported = all.resolve(&s, &traces).to_vec();
        let want = [
            (200_001, Fate::Discarded, false),
            (200_003, Fate::Lost, true),
            (200_005, Fate::Received, false),
            (200_007, Fate::Lost, false),
            (200_011, Fate::Received, false),
        ];
        assert_eq!(reported.iter().map(|p| (p.sequence, p.fate, p.repaired)).collect::<Vec<_>>(), want);
        assert_eq!(reported[1].departure, Timestamp::from_millis(200_003));
        // Repeated, and continued across the wrap, past what was sent.
        assert_eq!(all.resolve(&s, &traces), []);
        let next = Traces { loss: Some(trace(65_535, &[x; 20], &mut a)), ..Traces::default() };
        let reported: Vec<_> = all.resolve(&s, &next).iter().map(|p| p.sequence).collect();
        assert_eq!((reported, all.unknown), ((0..6).map(|n| 200_013 + 2 * n).collect(), 1));
    }
}
