//! Run lengths of RTCP's extended reports become one cue: the fate of each media packet of an interval.

use crate::names::SentNumbers;
use std::collections::VecDeque;
use weir_cc::cue::{Fate, IntervalPacket, OneWayDelay, SentPacket};
use weir_units::{DataSize, TimeDelta, Timestamp};
use weir_wire::rtcp::xr::{Block, RleBlock, Xr};

/// Most packets remembered, and looked at in one kind of block of a datagram: half of RTP's sequence numbers.
const MAX_PACKETS: usize = 1 << 15;
/// Packets are remembered for this long, as in `weir-session`: reports come every 5 s at the least (RFC 4585, section 3.4).
const REMEMBERED: TimeDelta = TimeDelta::from_secs(15);

/// The blocks of a datagram about one source.
#[derive(Default)]
struct Traces<'a> {
    ssrc: u32,
    loss: Option<RleBlock<'a>>,
    discard: Option<RleBlock<'a>>,
    post_repair: Option<RleBlock<'a>>,
}

/// The place of one kind of block.
type Kind = for<'t, 'a> fn(&'t mut Traces<'a>) -> &'t mut Option<RleBlock<'a>>;

/// A datagram's report on an interval.
#[derive(Default)]
pub(crate) struct Interval<'a> {
    sources: Vec<Traces<'a>>,
    pub one_way_delay: Option<OneWayDelay>,
}

impl<'a> Interval<'a> {
    /// An extended report. The first block of a kind counts for each source, of those that packets were sent from.
    pub(crate) fn add(&mut self, xr: &Xr<'a>, names: &SentNumbers) {
        for block in xr.blocks.iter() {
            let (trace, kind): (RleBlock<'a>, Kind) = match block {
                Block::LossRle(t) => (t, |all| &mut all.loss),
                Block::DiscardRle { early: false, trace } => (trace, |all| &mut all.discard),
                Block::PostRepairLossRle(t) => (t, |all| &mut all.post_repair),
                _ => continue,
            };
            if !names.has_sent(trace.ssrc) {
                continue;
            }
            let known = self.sources.iter().position(|s| s.ssrc == trace.ssrc);
            let index = known.unwrap_or_else(|| {
                self.sources.push(Traces { ssrc: trace.ssrc, ..Traces::default() });
                self.sources.len() - 1
            });
            kind(&mut self.sources[index]).get_or_insert(trace);
        }
    }
    /// Whether it reports on packets at all.
    pub(crate) fn has_losses(&self) -> bool {
        self.sources.iter().any(|s| s.loss.is_some())
    }
}

/// A sent packet, by its number.
struct Sent {
    departure: Timestamp,
    size: DataSize,
    /// Neither padding, repair nor a retransmission, and not reported yet.
    is_awaited: bool,
}

/// Packets sent, for controllers that want run lengths.
#[derive(Default)]
pub(crate) struct Runs {
    /// Number of the first of them.
    first: u64,
    sent: VecDeque<Sent>,
    /// Reused between reports.
    packets: Vec<IntervalPacket>,
}

impl Runs {
    /// A packet has been sent: the one after that before.
    pub(crate) fn on_sent(&mut self, p: &SentPacket) {
        let is_old = |s: &Sent| p.now - s.departure > REMEMBERED;
        while self.sent.len() == MAX_PACKETS || self.sent.front().is_some_and(is_old) {
            self.sent.pop_front();
            self.first += 1;
        }
        let is_awaited = !(p.is_padding || p.is_repair || p.is_retransmission);
        self.sent.push_back(Sent { departure: p.now, size: p.size, is_awaited });
    }

    /// The media packets that a datagram reports for the first time, in the order of sending.
    pub(crate) fn resolve(&mut self, interval: &Interval<'_>, names: &SentNumbers) -> &[IntervalPacket] {
        self.packets.clear();
        let losses = interval.sources.iter().filter_map(|s| s.loss);
        for (number, received) in numbers(losses, names) {
            let place = number.checked_sub(self.first).and_then(|i| usize::try_from(i).ok());
            let Some(sent) = place.and_then(|i| self.sent.get_mut(i)).filter(|s| s.is_awaited) else { continue };
            sent.is_awaited = false;
            self.packets.push(IntervalPacket {
                sequence: number,
                departure: sent.departure,
                size: sent.size,
                fate: if received { Fate::Received } else { Fate::Lost },
                repaired: false,
            });
        }
        self.packets.sort_unstable_by_key(|p| p.sequence);
        let discards = interval.sources.iter().filter_map(|s| s.discard);
        self.mark(numbers(discards, names), |p| {
            if p.fate == Fate::Received {
                p.fate = Fate::Discarded;
            }
        });
        let repaired = interval.sources.iter().filter_map(|s| s.post_repair);
        self.mark(numbers(repaired, names), |p| p.repaired = p.fate == Fate::Lost);
        &self.packets
    }

    fn mark(&mut self, marked: impl Iterator<Item = (u64, bool)>, mark: fn(&mut IntervalPacket)) {
        for (number, _) in marked.filter(|m| m.1) {
            if let Ok(i) = self.packets.binary_search_by_key(&number, |p| p.sequence) {
                mark(&mut self.packets[i]);
            }
        }
    }
}

/// The packets that traces of several sources mean, with their bits.
fn numbers<'a>(traces: impl Iterator<Item = RleBlock<'a>>, names: &SentNumbers) -> impl Iterator<Item = (u64, bool)> {
    let all = traces.flat_map(|t| t.packets().map(move |(sequence, bit)| (t.ssrc, sequence, bit)));
    all.take(MAX_PACKETS).filter_map(|(ssrc, sequence, bit)| Some((names.by_rtp(ssrc, sequence)?, bit)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_wire::rtcp::xr::Blocks;
    use weir_wire::rtcp::{Packet, parse_compound};

    /// Packets from two sources in turn, the first's numbers from 65,530 on; every fifth is padding.
    fn sent() -> (Runs, SentNumbers) {
        let (mut runs, mut names) = (Runs::default(), SentNumbers::default());
        for n in 0..20u64 {
            let (ssrc, sequence) = (1 + (n % 2) as u32, (65_530 + n / 2) as u16);
            names.add_rtp(ssrc, sequence, n).expect("two sources");
            let at = Timestamp::from_millis(10 * n as i64);
            runs.on_sent(&SentPacket {
                is_padding: n % 5 == 4,
                ..SentPacket::media(at, n, DataSize::from_bytes(500 + n))
            });
        }
        (runs, names)
    }

    /// An extended report of these traces: the block's number, its source, its first sequence number and its bits.
    fn report(traces: &[(u8, u32, u16, &[bool])]) -> Vec<u8> {
        let mut out = Vec::new();
        for (kind, ssrc, begin, bits) in traces {
            let mut chunks = Vec::new();
            let trace = RleBlock::encode(*ssrc, *begin, 0, bits.iter().copied(), 1_000, &mut chunks);
            let block = match kind {
                1 => Block::LossRle(trace),
                10 => Block::PostRepairLossRle(trace),
                _ => Block::DiscardRle { early: false, trace },
            };
            Xr { ssrc: 9, blocks: Blocks::Own(&[block]) }.write_into(&mut out);
        }
        out
    }

    fn resolved(bytes: &[u8], runs: &mut Runs, names: &SentNumbers) -> Vec<(u64, Fate, bool)> {
        let mut interval = Interval::default();
        for packet in parse_compound(bytes) {
            let Ok(Packet::Xr(xr)) = packet else { panic!("{packet:?}") };
            interval.add(&xr, names);
        }
        runs.resolve(&interval, names).iter().map(|p| (p.sequence, p.fate, p.repaired)).collect()
    }

    #[test]
    fn each_media_packet_of_all_sources_is_reported_once_with_its_fate() {
        let (mut runs, names) = sent();
        let [x, o] = [true, false];
        let bytes = report(&[
            (1, 1, 65_530, &[x, o, x, x]),
            (25, 1, 65_530, &[x, x, o, o]),
            (1, 2, 65_530, &[x, x, o]),
            (10, 2, 65_530, &[x, x, x]),
            // A source of others, and a second block of one kind.
            (1, 3, 65_530, &[o, o, o, o]),
            (1, 1, 65_534, &[o; 9]),
        ]);
        // The first's are 0, 2, 4 (padding) and 6, the second's 1, 3 and 5.
        let want = [
            (0, Fate::Discarded, false),
            (1, Fate::Received, false),
            (2, Fate::Lost, false),
            (3, Fate::Received, false),
            (5, Fate::Lost, true),
            (6, Fate::Received, false),
        ];
        assert_eq!(resolved(&bytes, &mut runs, &names), want);
        assert_eq!(resolved(&bytes, &mut runs, &names), []);
        // On over the wrap, and past what was sent: 8, 10, 12, 14 (padding), 16 and 18.
        let rest = resolved(&report(&[(1, 1, 65_534, &[o; 5_000])]), &mut runs, &names);
        assert_eq!(rest.iter().map(|p| p.0).collect::<Vec<_>>(), [8, 10, 12, 16, 18]);
    }

    #[test]
    fn few_packets_are_remembered_and_looked_at() {
        let (mut runs, names) = sent();
        runs.on_sent(&SentPacket::media(Timestamp::from_secs(16), 20, DataSize::from_bytes(1)));
        assert_eq!((runs.first, runs.sent.len()), (20, 1));
        for n in 21..2 * MAX_PACKETS as u64 {
            runs.on_sent(&SentPacket::media(Timestamp::from_secs(16), n, DataSize::from_bytes(1)));
        }
        assert_eq!(runs.sent.len(), MAX_PACKETS);
        assert_eq!(resolved(&report(&[(1, 1, 65_530, &[true; 5])]), &mut runs, &names), []);
        let trace = RleBlock { ssrc: 1, begin: 0, end: 65_535, ..RleBlock::default() };
        let mut chunks = vec![weir_wire::rtcp::xr::Chunk::run(true, 16_383).expect("a run"); 4];
        chunks.push(weir_wire::rtcp::xr::Chunk::vector(1));
        let trace = RleBlock { chunks: (&chunks[..]).into(), ..trace };
        let looked = std::cell::Cell::new(0);
        let counted = std::iter::from_fn(|| {
            looked.set(looked.get() + 1);
            Some(trace)
        });
        assert_eq!(numbers(counted, &names).count(), 4);
        assert_eq!(looked.get(), 1, "half of the numbers of one block are the most");
    }
}
