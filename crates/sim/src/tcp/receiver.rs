//! The receiving end: reassembly, acknowledgements and SACK blocks.

use super::ecn::{EcnFeedback, MarkEcho};
use super::{TcpConfig, TcpConfigError};
use crate::agent::Agent;
use crate::packet::{Body, Packet};
use crate::tcp_segment::{SackBlock, TcpSegment};
use weir_units::{DataSize, Ecn, Timestamp};

/// Most out-of-order ranges kept; data beyond them is dropped like data beyond the window.
const MAX_RANGES: usize = 8_192;

/// The receiving end of a TCP connection. Its reader takes data at once, so the advertised window never closes.
#[derive(Clone, Debug)]
pub struct Receiver {
    config: TcpConfig,
    /// The next expected byte.
    next: u64,
    /// Disjoint ranges above `next`, most recently changed first (RFC 2018, section 4).
    ranges: Vec<SackBlock>,
    /// Segments waiting for an acknowledgement, and its deadline.
    waiting: u32,
    ack_at: Option<Timestamp>,
    ack_now: bool,
    syn_ack: bool,
    /// The timestamp to echo (RFC 7323, section 4.3).
    echo: Timestamp,
    /// Range that the last segment repeated, to be reported by D-SACK.
    duplicate: Option<SackBlock>,
    last_ack: u64,
    marks: MarkEcho,
    /// DCTCP: what was waiting when the mark changed is acknowledged first, up to this byte and with this mark.
    before: Option<(u64, bool)>,
    stats: ReceiverStats,
}

/// Counters of a receiver.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ReceiverStats {
    /// Segments with data received, duplicates included.
    pub segments: u64,
    /// Segments without new data, or out of the window.
    pub useless: u64,
    /// Data delivered to the reader in order.
    pub delivered: DataSize,
    /// Acknowledgements sent.
    pub acks: u64,
    /// Segments received with a CE mark.
    pub marked: u64,
}

impl Receiver {
    /// A receiver in its initial state.
    ///
    /// Errors: as for [`TcpConfig::check`].
    pub fn new(config: TcpConfig) -> Result<Self, TcpConfigError> {
        config.check()?;
        Ok(Self {
            config,
            next: 0,
            ranges: Vec::new(),
            waiting: 0,
            ack_at: None,
            ack_now: false,
            syn_ack: false,
            echo: Timestamp::ZERO,
            duplicate: None,
            last_ack: 0,
            marks: MarkEcho::default(),
            before: None,
            stats: ReceiverStats::default(),
        })
    }

    /// The counters.
    pub const fn stats(&self) -> ReceiverStats {
        self.stats
    }
    /// Data delivered to the reader in order.
    pub const fn delivered(&self) -> DataSize {
        self.stats.delivered
    }
    /// Number of out-of-order ranges.
    pub fn out_of_order(&self) -> usize {
        self.ranges.len()
    }

    fn on_segment(&mut self, now: Timestamp, s: &TcpSegment) {
        // A SYN uses one sequence number and has no data.
        let taken = if s.is_syn { 1 } else { u64::from(s.len) };
        if taken == 0 {
            return;
        }
        self.stats.segments += 1;
        let end = s.seq.saturating_add(taken);
        if s.seq <= self.last_ack && s.timestamp > self.echo {
            self.echo = s.timestamp;
        }
        self.syn_ack |= s.is_syn;
        if self.config.dsack && !s.is_syn {
            self.duplicate = self.find_duplicate(SackBlock { start: s.seq, end });
            self.ack_now |= self.duplicate.is_some();
        }
        let window_end = self.next.saturating_add(self.config.receive_window.as_bytes());
        if end <= self.next || end > window_end {
            self.stats.useless += 1;
            self.ack_now = true;
        } else if s.seq <= self.next {
            let had_holes = !self.ranges.is_empty();
            let before = self.next;
            self.next = end;
            if had_holes {
                self.close_holes();
            }
            self.stats.delivered += DataSize::from_bytes(self.next - before - u64::from(s.is_syn));
            self.waiting += 1;
            if had_holes || s.is_syn || s.is_push || self.waiting >= self.config.ack_every {
                self.ack_now = true;
            } else if self.ack_at.is_none() {
                self.ack_at = Some(now + self.config.ack_delay);
            }
        } else {
            self.keep(SackBlock { start: s.seq, end });
            self.ack_now = true;
        }
    }

    /// The first part of a segment that has already been received (RFC 2883, section 4).
    #[cold]
    #[inline(never)]
    fn find_duplicate(&self, given: SackBlock) -> Option<SackBlock> {
        if given.start < self.next {
            return Some(SackBlock { end: given.end.min(self.next), ..given });
        }
        let met = self.ranges.iter().filter(|r| r.start < given.end && given.start < r.end).min_by_key(|r| r.start)?;
        Some(SackBlock { start: met.start.max(given.start), end: met.end.min(given.end) })
    }

    /// Delivers ranges that `next` has reached.
    fn close_holes(&mut self) {
        loop {
            let before = self.next;
            self.ranges.retain(|r| {
                let reached = r.start <= self.next;
                if reached {
                    self.next = self.next.max(r.end);
                }
                !reached
            });
            if self.next == before {
                return;
            }
        }
    }

    /// Keeps an out-of-order range, merged with those that it touches, in front.
    fn keep(&mut self, mut block: SackBlock) {
        let given = block;
        let mut useless = false;
        self.ranges.retain(|r| {
            let touches = r.start <= block.end && block.start <= r.end;
            if touches {
                useless |= r.start <= given.start && given.end <= r.end;
                block = SackBlock { start: r.start.min(block.start), end: r.end.max(block.end) };
            }
            !touches
        });
        if useless {
            self.stats.useless += 1;
        }
        if self.ranges.len() < MAX_RANGES {
            self.ranges.insert(0, block);
        } else {
            self.stats.useless += 1;
        }
    }
}

impl Agent for Receiver {
    fn on_packet(&mut self, now: Timestamp, packet: &Packet) {
        let Body::Tcp(segment) = &packet.body else { return };
        if segment.is_ack {
            return;
        }
        if self.config.ecn != EcnFeedback::Off {
            self.on_mark(packet.ecn == Ecn::Ce, segment.is_cwr);
        }
        self.on_segment(now, segment);
    }

    fn on_timeout(&mut self, now: Timestamp) {
        if self.ack_at.is_some_and(|t| t <= now) {
            self.ack_at = None;
            self.ack_now = true;
        }
    }

    #[inline]
    fn poll_timeout(&mut self) -> Option<Timestamp> {
        self.ack_at
    }

    #[inline(always)]
    fn poll_transmit(&mut self, now: Timestamp, packet: &mut Packet) -> bool {
        if self.before.is_some() {
            return self.acknowledge_before(now, packet);
        }
        if !self.ack_now {
            return false;
        }
        self.write_ack(now, packet, self.next, None);
        self.ack_now = false;
        self.syn_ack = false;
        self.waiting = 0;
        self.ack_at = None;
        true
    }

    #[inline]
    fn is_settled(&self) -> bool {
        !self.ack_now && self.ack_at.is_none() && self.before.is_none()
    }
}

impl Receiver {
    fn on_mark(&mut self, is_marked: bool, is_cwr: bool) {
        self.stats.marked += u64::from(is_marked);
        let previous = self.marks.is_congested();
        if self.marks.on_segment(self.config.ecn, is_marked, is_cwr) && self.waiting > 0 {
            self.before = Some((self.next, previous));
            (self.waiting, self.ack_at) = (0, None);
        }
    }

    /// DCTCP: acknowledges what was waiting when the mark changed, with the mark before.
    #[cold]
    fn acknowledge_before(&mut self, now: Timestamp, packet: &mut Packet) -> bool {
        let Some((end, mark)) = self.before.take() else { return false };
        self.write_ack(now, packet, end, Some(mark));
        true
    }

    /// SACK blocks, with the D-SACK block before the others (RFC 2883, section 4) if `is_latest`: the acknowledgement
    /// answers the last segment.
    #[inline(never)]
    fn write_blocks(&mut self, s: &mut TcpSegment, is_latest: bool) {
        let duplicate = if is_latest { self.duplicate.take() } else { None };
        let mut n = 0;
        for block in duplicate.iter().chain(&self.ranges).take(s.sack.len()) {
            s.sack[n] = *block;
            n += 1;
        }
        s.sack_count = n as u8;
    }

    #[inline]
    fn write_ack(&mut self, now: Timestamp, packet: &mut Packet, ack: u64, mark: Option<bool>) {
        let mut s = TcpSegment {
            ack,
            timestamp: now,
            echo: self.echo,
            window: self.config.receive_window.as_bytes(),
            is_syn: self.syn_ack,
            is_ack: true,
            has_timestamps: self.config.timestamps,
            ..TcpSegment::default()
        };
        if self.config.ecn != EcnFeedback::Off {
            self.marks.write(self.config.ecn, mark, &mut s);
        }
        if self.config.sack && (!self.ranges.is_empty() || self.duplicate.is_some()) {
            self.write_blocks(&mut s, mark.is_none());
        }
        packet.size = s.wire_size();
        packet.body = Body::Tcp(s);
        self.last_ack = ack;
        self.stats.acks += 1;
    }
}
