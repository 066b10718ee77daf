//! Fates of the media packets of a reporting interval: the receiver's side of run-length reports.
//!
//! Run-length reports cover each packet once. An interval ends at the newest packet; a packet received after its
//! report counts as lost. A lost report is not repeated.

use crate::identity::FeedbackSsrcs;
use crate::session_params::XrBlocks;
use std::collections::VecDeque;
use weir_wire::rtcp::xr::{Block, Blocks, Chunk, RleBlock, Xr};

/// Most packets of one interval; earlier ones are no longer reported. Half of RTP's sequence number space, which avoids
/// ambiguity.
const MAX_PACKETS: usize = 1 << 15;
/// A sequence number this far behind the newest indicates a restarted source: receive statistics reject older ones.
const RESTART: u64 = 128;
/// Greatest size of one run-length block in bytes, so that three of them and a report fit into a datagram.
const MAX_BLOCK: usize = 320;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Missing,
    Received,
    Discarded,
    /// Lost, and recovered in time.
    Repaired,
}

/// Packets since the last report, reported once each.
#[derive(Clone, Debug, Default)]
pub(crate) struct IntervalLog {
    states: VecDeque<State>,
    /// First sequence number; zero before the first packet.
    begin: u64,
    /// Whether since the last report per packet was found missing or was discarded.
    news: bool,
    /// Chunks of the three blocks.
    chunks: [Vec<Chunk>; 3],
}

impl IntervalLog {
    /// A packet has arrived or was recovered. Packets already reported do not change.
    pub(crate) fn on_packet(&mut self, sequence: u64, discarded: bool) {
        self.note(sequence, if discarded { State::Discarded } else { State::Received });
        self.news |= discarded;
    }

    /// A lost packet was recovered in time; it may be the newest packet so far.
    pub(crate) fn on_repaired(&mut self, sequence: u64) {
        let range = self.range();
        if (range.end..range.end + RESTART).contains(&sequence) && range.end > 0 {
            self.note(sequence, State::Repaired);
            self.news = true;
        } else if let Some(state) = self.state_mut(sequence).filter(|s| **s == State::Missing) {
            *state = State::Repaired;
        }
    }

    /// Whether a packet was lost or discarded since the last report.
    pub(crate) fn has_news(&self) -> bool {
        self.news
    }

    /// The packets not yet reported, from the first to the one after the newest.
    pub(crate) fn range(&self) -> core::ops::Range<u64> {
        self.begin..self.begin + self.states.len() as u64
    }

    fn state_mut(&mut self, sequence: u64) -> Option<&mut State> {
        self.states.get_mut(usize::try_from(sequence.checked_sub(self.begin)?).ok()?)
    }

    fn note(&mut self, sequence: u64, state: State) {
        let end = self.range().end;
        if end == 0 || sequence + RESTART < end || sequence - end.min(sequence) > MAX_PACKETS as u64 {
            self.states.clear();
            self.begin = sequence;
        }
        let end = self.range().end;
        if sequence < end {
            if let Some(s) = self.state_mut(sequence) {
                // The first copy counts.
                if matches!(s, State::Missing | State::Repaired) {
                    *s = state;
                }
            }
            return;
        }
        self.news |= sequence > end;
        self.states.extend((end..sequence).map(|_| State::Missing));
        self.states.push_back(state);
        let over = self.states.len().saturating_sub(MAX_PACKETS);
        self.states.drain(..over);
        self.begin += over as u64;
    }

    /// Drops the pending interval, if run lengths are not wanted.
    pub(crate) fn skip(&mut self) -> (u16, u16) {
        let range = self.range();
        self.begin = range.end;
        self.states.clear();
        self.news = false;
        (range.start as u16, range.end as u16)
    }

    /// Appends an extended report of loss, of discards if there are any, and of loss after repair if `repair` is set,
    /// as far as these are `wanted`. What does not fit is left to the next report. Returns the range covered.
    pub(crate) fn write(
        &mut self,
        ssrcs: FeedbackSsrcs,
        wanted: &XrBlocks,
        repair: bool,
        out: &mut Vec<u8>,
    ) -> (u16, u16) {
        let FeedbackSsrcs { sender: ssrc, media: source } = ssrcs;
        let repair = repair && wanted.post_repair_loss_rle;
        let [loss, discard, post] = &mut self.chunks;
        let begin = self.begin as u16;
        let states = &self.states;
        let trace = |count: usize, bit: fn(State) -> bool, chunks: &mut Vec<Chunk>| {
            let bits = states.iter().take(count).map(|&s| bit(s));
            let end = RleBlock::encode(source, begin, 0, bits, MAX_BLOCK, chunks).end;
            usize::from(end.wrapping_sub(begin))
        };
        let received: fn(State) -> bool = |s| matches!(s, State::Received | State::Discarded);
        let discarded: fn(State) -> bool = |s| s == State::Discarded;
        let mut count = trace(states.len(), received, loss);
        let discards = wanted.discard_rle && states.iter().take(count).any(|&s| discarded(s));
        if discards {
            count = trace(count, discarded, discard);
        }
        if repair {
            count = trace(count, |s| s != State::Missing, post);
        }
        // The block with the fewest packets determines the range of the report.
        trace(count, received, loss);
        if discards {
            trace(count, discarded, discard);
        }
        let end = begin.wrapping_add(count as u16);
        let range = RleBlock { ssrc: source, begin, end, ..RleBlock::default() };
        let mut blocks = [Block::LossRle(RleBlock { chunks: (&*loss).into(), ..range }); 3];
        let mut used = usize::from(wanted.loss_rle);
        if discards {
            blocks[used] = Block::DiscardRle { early: false, trace: RleBlock { chunks: (&*discard).into(), ..range } };
            used += 1;
        }
        if repair {
            blocks[used] = Block::PostRepairLossRle(RleBlock { chunks: (&*post).into(), ..range });
            used += 1;
        }
        Xr { ssrc, blocks: Blocks::Own(&blocks[..used]) }.write_into(out);
        self.states.drain(..count);
        self.begin += count as u64;
        self.news = false;
        (begin, end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_wire::rtcp::{Packet, parse_compound};

    /// Sequence numbers and bits of each block written: loss, discard, post-repair.
    fn written(log: &mut IntervalLog, repair: bool) -> [Option<Vec<(u16, bool)>>; 3] {
        let mut out = Vec::new();
        log.write(FeedbackSsrcs { sender: 7, media: 9 }, &XrBlocks::ALL, repair, &mut out);
        let mut got = [None, None, None];
        let Some(Ok(Packet::Xr(xr))) = parse_compound(&out).next() else { panic!("{out:?}") };
        for block in xr.blocks.iter() {
            let (i, trace) = match block {
                Block::LossRle(t) => (0, t),
                Block::DiscardRle { early: false, trace } => (1, trace),
                Block::PostRepairLossRle(t) => (2, t),
                other => panic!("{other:?}"),
            };
            assert_eq!((xr.ssrc, trace.ssrc), (7, 9));
            got[i] = Some(trace.packets().collect());
        }
        got
    }

    #[test]
    fn each_packet_is_reported_once_with_its_fate() {
        let mut log = IntervalLog::default();
        // 65,534 is received, 65,535 lost and repaired, 0 discarded, 1 lost, 2 received.
        log.on_packet(131_070, false);
        log.on_packet(131_072, true);
        log.on_packet(131_074, false);
        log.on_repaired(131_071);
        log.on_repaired(131_072);
        assert!(log.has_news());
        let numbers = |bits: [bool; 5]| Some([65_534, 65_535, 0, 1, 2].into_iter().zip(bits).collect::<Vec<_>>());
        let [loss, discard, post] = written(&mut log, true);
        assert_eq!(loss, numbers([true, false, true, false, true]));
        assert_eq!(discard, numbers([false, false, true, false, false]));
        assert_eq!(post, numbers([true, true, true, false, true]));
        assert!(!log.has_news());
        log.on_repaired(131_075);
        assert!(log.has_news());
        assert_eq!(written(&mut log, true), [Some(vec![(3, false)]), None, Some(vec![(3, true)])]);
        // Late packets are not revoked, and a report of nothing is empty.
        log.on_packet(131_073, false);
        assert_eq!(written(&mut log, false), [Some(vec![]), None, None]);
        log.on_packet(131_076, false);
        assert_eq!(written(&mut log, false), [Some(vec![(4, true)]), None, None]);
    }

    #[test]
    fn a_packet_that_comes_late_within_its_interval_is_received() {
        let mut log = IntervalLog::default();
        for s in [100_000, 100_002, 100_001, 100_001] {
            log.on_packet(s, false);
        }
        assert_eq!(written(&mut log, false)[0].as_ref().map(|l| l.iter().all(|p| p.1)), Some(true));
    }

    #[test]
    fn overflow_is_reported_in_the_next_interval_and_memory_is_bounded() {
        let mut log = IntervalLog::default();
        // No runs: 154 chunks of 15 packets.
        (0..5_000u64).for_each(|s| log.on_packet(100_000 + s * 2 - s % 7 / 5, s % 3 == 0));
        let mut reported = 0;
        while !log.range().is_empty() {
            let [loss, discard, post] = written(&mut log, true).map(Option::unwrap_or_default);
            assert!((2_000..3_000).contains(&loss.len()) || log.range().is_empty(), "{}", loss.len());
            assert!(loss.len() == discard.len() && post.len() == loss.len());
            reported += loss.len() as u64;
        }
        assert_eq!(reported, 9_999);
        (0..100_000u64).for_each(|s| log.on_packet(200_000 + s, false));
        assert_eq!(log.range(), 300_000 - MAX_PACKETS as u64..300_000);
        // A restarted source, forwards or backwards.
        log.on_packet(90_000, false);
        assert_eq!(log.range(), 90_000..90_001);
        log.on_packet(900_000, false);
        assert_eq!(log.range(), 900_000..900_001);
    }
}
