//! RACK: loss detection by the times of transmission (RFC 8985, section 6).

mod reordering;
mod segments;
#[cfg(test)]
mod tests;

use super::scoreboard::Scoreboard;
use crate::tcp_segment::SackBlock;
use reordering::{Conditions, MinRtt, ReorderingWindow};
use segments::{Segment, Segments, State};
use weir_units::{TimeDelta, Timestamp};

/// An acknowledgement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ack<'a> {
    pub(super) now: Timestamp,
    /// The cumulative acknowledgement.
    pub(super) una: u64,
    /// End of what has been sent.
    pub(super) high: u64,
    /// SACK blocks, D-SACK included.
    pub(super) blocks: &'a [SackBlock],
    /// The echoed timestamp (TSecr), if there are timestamps.
    pub(super) echo: Option<Timestamp>,
    /// Whether a D-SACK block is present.
    pub(super) has_dsack: bool,
    /// Whether fast recovery or the recovery from a timeout ends with it.
    pub(super) ends_recovery: bool,
}

/// A segment that was marked as lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Lost {
    pub(super) start: u64,
    pub(super) end: u64,
    /// When it was last sent.
    pub(super) sent: Timestamp,
    /// Whether the transmission that was lost was not its first.
    pub(super) is_retransmission: bool,
}

/// The state of RACK (RFC 8985, sections 5.2 and 5.3).
#[derive(Clone, Default, Debug)]
pub(super) struct Rack {
    segments: Segments,
    /// Last transmission and end of the delivered segment that was sent last (RACK.xmit_ts, RACK.end_seq).
    latest: Option<(Timestamp, u64)>,
    /// Round-trip time of the segment delivered last (RACK.rtt).
    rtt: TimeDelta,
    /// Highest delivered byte (RACK.fack).
    fack: u64,
    min_rtt: MinRtt,
    window: ReorderingWindow,
    /// Those marked by the last call that marks losses.
    newly_lost: Vec<Lost>,
}

impl Rack {
    /// Bytes in flight: sent, neither acknowledged nor marked as lost since.
    pub(super) fn in_flight(&self) -> u64 {
        self.segments.in_flight()
    }
    /// Number of segments selectively acknowledged (RACK.segs_sacked).
    pub(super) fn sacked(&self) -> usize {
        self.segments.sacked()
    }
    /// Whether a segment is marked as lost and not yet retransmitted.
    pub(super) fn has_lost(&self) -> bool {
        self.segments.lost() > 0
    }
    /// The segments marked as lost by the last [`Self::detect`] or [`Self::on_timeout`].
    pub(super) fn newly_lost(&self) -> &[Lost] {
        &self.newly_lost
    }
    /// First byte and length of the first lost segment.
    pub(super) fn first_lost(&mut self) -> Option<(u64, u64)> {
        self.segments.first_lost().map(|s| (s.start, s.end - s.start))
    }
    /// First byte and length of the segment with the highest sequence number.
    pub(super) fn last_segment(&self) -> Option<(u64, u64)> {
        self.segments.last().map(|s| (s.start, s.end - s.start))
    }
    /// Forgets the segments; what is known of the path stays.
    pub(super) fn restart(&mut self) {
        self.segments.clear();
        self.newly_lost.clear();
    }

    /// The bytes of `start..end` were sent (section 6.1).
    pub(super) fn on_sent(&mut self, now: Timestamp, start: u64, end: u64) {
        self.segments.on_sent(now, start, end);
    }
    /// A round-trip time was measured by the rules of RFC 6298 or RFC 7323 (section 6.2, step 1).
    pub(super) fn on_rtt(&mut self, now: Timestamp, rtt: TimeDelta) {
        self.min_rtt.add(now, rtt);
    }

    /// Takes in an acknowledgement (section 6.2, steps 2 to 4). `board` has the SACK blocks of those before it.
    pub(super) fn on_ack(&mut self, ack: &Ack, board: &Scoreboard) {
        self.newly_lost.clear();
        let mut newest = None;
        while let Some(s) = self.segments.acknowledge(ack.una) {
            if s.state != State::Delivered {
                self.delivered(ack, &s, ack.echo, &mut newest);
            }
        }
        let mut blocks = [SackBlock::default(); 3];
        let blocks = &mut blocks[..ack.blocks.len().min(3)];
        blocks.copy_from_slice(&ack.blocks[..blocks.len()]);
        blocks.sort_unstable_by_key(|b| b.start);
        for b in blocks.iter().filter(|b| b.start > ack.una && b.start < b.end && b.end <= ack.high) {
            let mut from = b.start;
            // Only what the scoreboard does not have can be new.
            while let Some(hole) = board.hole(from, b.end) {
                let mut number = self.segments.above(hole.start);
                while self.segments.get(number).is_some_and(|s| s.start < hole.end && s.end <= b.end) {
                    let is_whole = self.segments.get(number).is_some_and(|s| s.start >= b.start);
                    if let Some(s) = is_whole.then(|| self.segments.deliver(number)).flatten() {
                        // An acknowledgement echoes the timestamp of a segment received in order (RFC 7323, section
                        // 4.3), which does not tell which copy of this one was received.
                        self.delivered(ack, &s, None, &mut newest);
                    }
                    number += 1;
                }
                from = hole.end;
            }
        }
        self.window.on_ack(ack.una, ack.high, ack.has_dsack, ack.ends_recovery);
    }

    /// RACK_update() and RACK_detect_reordering() for one segment. `newest` is that of this acknowledgement that was
    /// sent last.
    fn delivered(&mut self, ack: &Ack, s: &Segment, echo: Option<Timestamp>, newest: &mut Option<(Timestamp, u64)>) {
        if s.end > self.fack {
            self.fack = s.end;
        } else if s.end < self.fack && !s.is_retransmitted {
            self.window.is_seen = true;
        }
        let rtt = ack.now.saturating_since(s.sent);
        let is_ambiguous = s.is_retransmitted
            && (echo.is_some_and(|e| e < s.sent) || self.min_rtt.get().is_some_and(|least| rtt < least));
        if is_ambiguous {
            return;
        }
        let this = Some((s.sent, s.end));
        if this > *newest {
            *newest = this;
            self.rtt = rtt;
        }
        self.latest = self.latest.max(this);
    }

    /// Marks the segments that are lost by now (RACK_detect_loss, section 6.2, step 5). Returns when to look again:
    /// when all that were sent before the latest delivered one are lost.
    pub(super) fn detect(&mut self, now: Timestamp, srtt: Option<TimeDelta>, in_recovery: bool) -> Option<Timestamp> {
        self.newly_lost.clear();
        let wait = self.rtt + self.reordering_window(srtt, in_recovery);
        let (latest, end) = self.latest?;
        let mut deadline = None;
        let mut next = self.segments.oldest();
        while let Some(number) = next {
            next = self.segments.sent_after(number);
            let Some(s) = self.segments.get(number).copied().filter(|s| s.sent <= latest) else { break };
            if s.sent == latest && s.end >= end {
                continue;
            }
            if s.sent + wait <= now {
                self.lose(number, &s);
            } else {
                deadline = Some(s.sent + wait);
            }
        }
        deadline
    }

    /// The retransmission timer expired (RACK_mark_losses_on_RTO, section 6.3): the first segment is lost, and those
    /// that were sent a round-trip time and the reordering window ago.
    pub(super) fn on_timeout(&mut self, now: Timestamp, srtt: Option<TimeDelta>, in_recovery: bool) {
        self.newly_lost.clear();
        let wait = self.rtt + self.reordering_window(srtt, in_recovery);
        let first = self.segments.numbers().start;
        if self.segments.get(first).is_some_and(|s| s.state == State::Delivered) {
            self.renege();
        }
        for number in self.segments.numbers() {
            let Some(s) = self.segments.get(number).copied().filter(|s| s.state == State::InFlight) else { continue };
            if number == first || s.sent + wait <= now {
                self.lose(number, &s);
            }
        }
    }

    /// The receiver has discarded data that it had reported (RFC 2018, section 8): all of it is lost.
    pub(super) fn renege(&mut self) {
        for number in self.segments.numbers() {
            self.segments.renege(number);
        }
    }

    fn lose(&mut self, number: u64, s: &Segment) {
        self.segments.lose(number);
        self.newly_lost.push(Lost { start: s.start, end: s.end, sent: s.sent, is_retransmission: s.is_retransmitted });
    }

    /// RACK.reo_wnd.
    pub(super) fn reordering_window(&self, srtt: Option<TimeDelta>, in_recovery: bool) -> TimeDelta {
        let (min_rtt, sacked) = (self.min_rtt.get(), self.segments.sacked());
        self.window.get(&Conditions { min_rtt, srtt, sacked, in_recovery })
    }
}
