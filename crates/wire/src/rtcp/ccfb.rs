//! Congestion control feedback (RFC 8888).
//!
//! By section 3.1 a block covers begin_seq to "begin_seq+num_reports inclusive", and num_reports may also be 0 for no
//! packet, which is contradictory. As in libwebrtc (as of 2024), num_reports is the number of packets.

use super::{MAX_PACKET, RTPFB, RawPacket};
use crate::read::{Reader, be16, be32};
use crate::{Entry, Error, List};
use core::fmt;
use weir_units::{Ecn, TimeDelta, Timestamp};

/// The message's FMT value.
pub const FMT: u8 = 11;
/// Most packets in one block (section 3.1).
pub const MAX_REPORTS: usize = 16_384;
/// Largest arrival time offset that is a measurement, 8,189/1024 s.
const MAX_OFFSET: u16 = 0x1ffd;
const OVER_RANGE: u16 = 0x1ffe;
const UNAVAILABLE: u16 = 0x1fff;

/// Time from a packet's arrival to the report.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ArrivalOffset {
    /// In units of 1/1024 s, at most 8,189.
    Ticks(u16),
    /// Longer than can be reported.
    OverRange,
    /// Not measured, or after the report.
    Unavailable,
}

impl ArrivalOffset {
    /// The offset of an arrival before `report`, to the nearest 1/1024 s.
    #[inline]
    pub const fn between(arrival: Timestamp, report: Timestamp) -> Self {
        let ns = report.as_nanos().saturating_sub(arrival.as_nanos());
        if ns < 0 {
            return Self::Unavailable;
        }
        // Above a minute the result is known, and below it the product does not overflow.
        let ticks = if ns > 60_000_000_000 { i64::MAX } else { (ns * 1_024 + 500_000_000) / 1_000_000_000 };
        if ticks > MAX_OFFSET as i64 { Self::OverRange } else { Self::Ticks(ticks as u16) }
    }
    /// The offset as a time, if there is one.
    #[inline]
    pub const fn as_time_delta(self) -> Option<TimeDelta> {
        match self {
            Self::Ticks(t) => Some(TimeDelta::from_nanos((t as i64 * 1_000_000_000 + 512) >> 10)),
            _ => None,
        }
    }
    const fn from_bits(bits: u16) -> Self {
        match bits & UNAVAILABLE {
            OVER_RANGE => Self::OverRange,
            UNAVAILABLE => Self::Unavailable,
            ticks => Self::Ticks(ticks),
        }
    }
    const fn bits(self) -> u16 {
        match self {
            Self::Ticks(t) => {
                if t > MAX_OFFSET {
                    OVER_RANGE
                } else {
                    t
                }
            }
            Self::OverRange => OVER_RANGE,
            Self::Unavailable => UNAVAILABLE,
        }
    }
}

/// The report on one packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Metric {
    /// Not received yet.
    NotReceived,
    /// Received.
    Received {
        /// Its ECN field.
        ecn: Ecn,
        /// Its arrival before the report.
        offset: ArrivalOffset,
    },
}

impl Metric {
    /// The metric of a packet with this ECN field and arrival, or of one not received, in a report of that time.
    #[inline]
    const fn of(received: Option<(Ecn, Timestamp)>, report: Timestamp) -> Self {
        match received {
            None => Self::NotReceived,
            Some((ecn, arrival)) => Self::Received { ecn, offset: ArrivalOffset::between(arrival, report) },
        }
    }
    /// The metric as in the packet.
    #[inline]
    pub const fn bits(self) -> u16 {
        match self {
            Self::NotReceived => 0,
            Self::Received { ecn, offset } => 0x8000 | (ecn.bits() as u16) << 13 | offset.bits(),
        }
    }
    /// The metric of 16 bits; bits after a clear R bit are ignored.
    #[inline]
    pub const fn from_bits(bits: u16) -> Self {
        if bits & 0x8000 == 0 {
            Self::NotReceived
        } else {
            Self::Received { ecn: Ecn::from_bits((bits >> 13) as u8), offset: ArrivalOffset::from_bits(bits) }
        }
    }
}

impl Entry for Metric {
    const SIZE: usize = 2;
    #[inline]
    fn read(bytes: &[u8]) -> Self {
        Self::from_bits(be16(bytes, 0))
    }
    #[inline]
    fn write_into(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.bits().to_be_bytes());
    }
}

/// A received message.
#[derive(Clone, Copy)]
pub struct Feedback<'a> {
    /// The sender of the feedback.
    pub sender_ssrc: u32,
    /// The time from which offsets count back: middle 32 bits of an NTP time of the feedback's sender.
    pub report_timestamp: u32,
    blocks: &'a [u8],
}

impl<'a> Feedback<'a> {
    /// Parses a message and checks that every block is complete.
    pub fn parse(raw: &RawPacket<'a>) -> Result<Self, Error> {
        let mut r = raw.reader();
        let sender_ssrc = r.u32("CCFB sender SSRC")?;
        let Some(length) = r.len().checked_sub(4) else {
            return Err(Error::Truncated {
                field: "CCFB report timestamp",
                offset: r.offset(),
                needed: 4,
                available: r.len(),
            });
        };
        let offset = r.offset();
        let blocks = r.take("CCFB report blocks", length)?;
        let report_timestamp = r.u32("CCFB report timestamp")?;
        let mut b = Reader::new(blocks, offset);
        while !b.is_empty() {
            b.take("CCFB block header", 6)?;
            let at = b.offset();
            let reports = usize::from(b.u16("CCFB number of reports")?);
            if reports > MAX_REPORTS {
                return Err(Error::Value {
                    field: "CCFB number of reports",
                    offset: at,
                    value: reports as u64,
                    expected: "at most 16384",
                });
            }
            b.take("CCFB packet metric blocks", reports.next_multiple_of(2) * 2)?;
        }
        Ok(Self { sender_ssrc, report_timestamp, blocks })
    }
    /// The streams reported on.
    pub const fn streams(&self) -> Streams<'a> {
        Streams(self.blocks)
    }
    /// Appends the message.
    pub fn write_into(&self, out: &mut Vec<u8>) {
        let mut w = Writer::new(out, self.sender_ssrc, Timestamp::ZERO, self.report_timestamp);
        for s in self.streams() {
            w.stream(s.ssrc, s.begin_sequence);
            for m in s.metrics {
                w.push_metric(m);
            }
        }
        w.finish();
    }
}

impl PartialEq for Feedback<'_> {
    fn eq(&self, other: &Self) -> bool {
        (self.sender_ssrc, self.report_timestamp) == (other.sender_ssrc, other.report_timestamp)
            && self.streams().eq(other.streams())
    }
}
impl Eq for Feedback<'_> {}
impl fmt::Debug for Feedback<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut s = f.debug_struct("Feedback");
        s.field("sender_ssrc", &self.sender_ssrc).field("report_timestamp", &self.report_timestamp);
        s.field("streams", &Listed(self.streams())).finish()
    }
}

struct Listed<'a>(Streams<'a>);

impl fmt::Debug for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0).finish()
    }
}

/// The packets of one stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stream<'a> {
    /// The stream.
    pub ssrc: u32,
    /// Sequence number of the first packet reported on.
    pub begin_sequence: u16,
    /// The packets from there.
    pub metrics: List<'a, Metric>,
}

impl<'a> Stream<'a> {
    /// Each packet's RTP sequence number and metric.
    #[inline]
    pub fn packets(&self) -> impl Iterator<Item = (u16, Metric)> + use<'a> {
        let begin = self.begin_sequence;
        self.metrics.iter().enumerate().map(move |(i, m)| (begin.wrapping_add(i as u16), m))
    }
}

/// Iterator over [`Feedback::streams`].
#[derive(Clone, Copy, Debug)]
pub struct Streams<'a>(&'a [u8]);

impl<'a> Iterator for Streams<'a> {
    type Item = Stream<'a>;
    #[inline]
    fn next(&mut self) -> Option<Stream<'a>> {
        let (head, rest) = self.0.split_at_checked(8)?;
        let reports = usize::from(be16(head, 6));
        let (metrics, rest) = rest.split_at_checked(reports.next_multiple_of(2) * 2)?;
        self.0 = rest;
        Some(Stream {
            ssrc: be32(head, 0),
            begin_sequence: be16(head, 4),
            metrics: List::from_wire(&metrics[..reports * 2]),
        })
    }
}

/// Writes a message directly into the caller's bytes: streams one after the other, and in each, packets in sequence
/// order.
///
/// ```
/// use weir_units::{Ecn, Timestamp};
/// use weir_wire::rtcp::ccfb::Writer;
/// let mut out = Vec::new();
/// let mut writer = Writer::new(&mut out, 1, Timestamp::from_millis(500), 0x8000);
/// writer.stream(2, 1_000);
/// writer.push(Some((Ecn::NotEct, Timestamp::from_millis(490))));
/// writer.push(None);
/// writer.finish();
/// assert_eq!(out.len(), 24);
/// ```
#[derive(Debug)]
#[must_use = "finish() completes the message"]
pub struct Writer<'o> {
    out: &'o mut Vec<u8>,
    start: usize,
    report: Timestamp,
    report_timestamp: u32,
    /// Offset of the open block.
    block: Option<usize>,
}

impl<'o> Writer<'o> {
    /// Starts a message whose offsets count back from `report`; `report_timestamp` is the same time as the middle 32
    /// bits of an NTP time ([`NtpTime::compact`](crate::ntp::NtpTime::compact)).
    pub fn new(out: &'o mut Vec<u8>, sender_ssrc: u32, report: Timestamp, report_timestamp: u32) -> Self {
        let start = out.len();
        out.extend_from_slice(&[0x80 | FMT, RTPFB, 0, 0]);
        out.extend_from_slice(&sender_ssrc.to_be_bytes());
        Self { out, start, report, report_timestamp, block: None }
    }
    /// Starts the block of a stream, with packets from `begin_sequence`. Returns `false`, with no stream open, if the
    /// packet is full (256 kB).
    pub fn stream(&mut self, ssrc: u32, begin_sequence: u16) -> bool {
        self.close_block();
        if self.size() + 8 > MAX_PACKET {
            return false;
        }
        self.block = Some(self.out.len());
        self.out.extend_from_slice(&ssrc.to_be_bytes());
        self.out.extend_from_slice(&begin_sequence.to_be_bytes());
        self.out.extend_from_slice(&[0, 0]);
        true
    }
    /// Adds the next packet of the stream: ECN field and arrival, or `None` if it was not received. Returns `false`,
    /// with nothing added, if no stream is open or its block is full.
    #[inline]
    pub fn push(&mut self, received: Option<(Ecn, Timestamp)>) -> bool {
        self.push_metric(Metric::of(received, self.report))
    }
    /// As [`Writer::push`], of a metric.
    #[inline]
    pub fn push_metric(&mut self, metric: Metric) -> bool {
        let Some(block) = self.block else { return false };
        let length = self.out.len() + Metric::SIZE;
        let size = (length - self.start).next_multiple_of(4) + 4;
        if length - block > 8 + Metric::SIZE * MAX_REPORTS || size > MAX_PACKET {
            return false;
        }
        metric.write_into(self.out);
        true
    }
    /// Adds the next packets of the stream, each as by [`Writer::push`], as far as a message of at most `max_size` bytes
    /// holds them; returns how many.
    #[inline]
    pub fn push_all(
        &mut self,
        received: impl ExactSizeIterator<Item = Option<(Ecn, Timestamp)>>,
        max_size: usize,
    ) -> usize {
        let Some(block) = self.block else { return 0 };
        let used = self.out.len() - self.start;
        // The last word of the metrics may be half empty, and the report timestamp follows.
        let most = max_size.min(MAX_PACKET).saturating_sub(6) / 4 * 4 + 2;
        let room = (most.saturating_sub(used) / Metric::SIZE).min(MAX_REPORTS.saturating_sub(self.reports(block)));
        let count = received.len().min(room);
        let from = self.out.len();
        self.out.resize(from + count * Metric::SIZE, 0);
        for (bytes, received) in self.out[from..].chunks_exact_mut(Metric::SIZE).zip(received) {
            bytes.copy_from_slice(&Metric::of(received, self.report).bits().to_be_bytes());
        }
        count
    }
    /// Size of the message if finished now.
    pub fn size(&self) -> usize {
        (self.out.len() - self.start).next_multiple_of(4) + 4
    }
    /// Completes the message.
    pub fn finish(mut self) {
        self.close_block();
        self.out.extend_from_slice(&self.report_timestamp.to_be_bytes());
        super::set_length(self.out, self.start);
    }

    /// Metrics in the block that begins at this offset.
    fn reports(&self, block: usize) -> usize {
        (self.out.len() - block - 8) / Metric::SIZE
    }

    fn close_block(&mut self) {
        let Some(block) = self.block.take() else { return };
        let reports = self.reports(block) as u16;
        self.out[block + 6..block + 8].copy_from_slice(&reports.to_be_bytes());
        if !reports.is_multiple_of(2) {
            self.out.extend_from_slice(&[0, 0]);
        }
    }
}

#[cfg(test)]
mod tests;
