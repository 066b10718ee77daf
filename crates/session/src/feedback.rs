//! Per-packet feedback: from arrivals to messages at the receiver, from messages to reports at the sender.

use crate::arrivals::ArrivalLog;
use weir_cc::ReportedPacket;
use weir_units::{Ecn, RemoteTimestamp, TimeDelta, Timestamp};
use weir_wire::ntp::{CompactClock, NtpTime};
use weir_wire::rtcp::{ccfb, twcc};

/// Upper bound of a feedback datagram in bytes, so that it fits any path (RFC 8899's floor less headers).
pub(crate) const MAX_FEEDBACK: usize = 1_200;
/// The same of feedback on a subflow, which shares a block of 1,020 bytes with reports of at most 120.
pub(crate) const MAX_SUBFLOW_FEEDBACK: usize = 900;

/// Writes TWCC messages and counts them.
#[derive(Debug)]
pub(crate) struct TwccWriter {
    builder: twcc::Builder,
    count: u8,
}

impl TwccWriter {
    pub(crate) fn new(ssrc: u32, remote_ssrc: u32) -> Self {
        Self::with_max_size(ssrc, remote_ssrc, MAX_FEEDBACK)
    }
    /// Writes messages of at most `max_size` bytes.
    pub(crate) fn with_max_size(ssrc: u32, remote_ssrc: u32, max_size: usize) -> Self {
        let builder = twcc::Builder::new(ssrc, remote_ssrc, 0, 0, Timestamp::ZERO).with_max_size(max_size);
        Self { builder, count: 0 }
    }

    /// Appends one message; returns the sequence number after the last packet reported.
    /// Arrivals are stated by a clock that is `offset` ahead of the log's.
    pub(crate) fn write(&mut self, log: &ArrivalLog, offset: TimeDelta, out: &mut Vec<u8>) -> u64 {
        let range = log.range();
        // A message must begin with a received packet, whose arrival is the time reference.
        let Some(first) = range.clone().find(|&s| log.arrival(s).is_some()) else { return range.end };
        let reference = log.arrival(first).map_or(Timestamp::ZERO, |a| a.0 + offset);
        self.builder.reset(self.count, range.start as u16, reference);
        let mut upto = range.start;
        for s in range {
            if !self.builder.push(s as u16, log.arrival(s).map(|a| a.0 + offset)) {
                break;
            }
            upto = s + 1;
        }
        self.builder.finish_into(out);
        self.count = self.count.wrapping_add(1);
        upto
    }
}

/// Fields of a CCFB message beside arrivals, and its limit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CcfbContext {
    /// This end's source.
    pub ssrc: u32,
    pub zero: NtpTime,
    pub now: Timestamp,
    pub max_size: usize,
}

/// Appends one CCFB message about some streams.
pub(crate) struct CcfbWriter<'o> {
    message: ccfb::Writer<'o>,
    max_size: usize,
}

impl<'o> CcfbWriter<'o> {
    pub(crate) fn new(context: CcfbContext, out: &'o mut Vec<u8>) -> Self {
        let CcfbContext { ssrc, zero, now, max_size } = context;
        Self { message: ccfb::Writer::new(out, ssrc, now, NtpTime::at(now, zero).compact()), max_size }
    }

    /// Reports a stream's packets, as far as the message holds them; returns the sequence number after the last one reported.
    #[inline(never)]
    pub(crate) fn add(&mut self, source: u32, log: &ArrivalLog) -> u64 {
        let range = log.range();
        self.message.stream(source, range.start as u16);
        let packets = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
        let arrival = |i| log.arrival(range.start + i as u64).map(|(at, ecn)| (ecn, at));
        range.start + self.message.push_all((0..packets).map(arrival), self.max_size) as u64
    }

    pub(crate) fn finish(self) {
        self.message.finish();
    }
}

/// Converts both formats to one form.
#[derive(Debug, Default)]
pub(crate) struct FeedbackReader {
    twcc_clock: twcc::ReferenceClock,
    ccfb_clock: CompactClock,
    /// Offset added to the other end's clock, so that it continues where a previous end's clock stopped.
    offset: TimeDelta,
    /// The last report's time, and when it was received.
    last: Option<(RemoteTimestamp, Timestamp)>,
    restarted: bool,
    reporter: Option<u32>,
}

impl FeedbackReader {
    /// Another end reports from now on, with its own clock.
    pub(crate) fn restart(&mut self) {
        (self.twcc_clock, self.ccfb_clock, self.restarted) = Default::default();
        self.restarted = true;
    }

    /// Sets the source of reports; a new one has another clock.
    fn on_reporter(&mut self, ssrc: u32) {
        if self.reporter.replace(ssrc).is_some_and(|before| before != ssrc) {
            self.restart();
        }
    }

    fn continued(&mut self, at: RemoteTimestamp, now: Timestamp) -> RemoteTimestamp {
        if core::mem::take(&mut self.restarted) {
            self.offset = self.last.map_or(TimeDelta::ZERO, |(last, came)| last + now.saturating_since(came) - at);
        }
        let at = at + self.offset;
        self.last = Some((at, now));
        at
    }

    /// The packets of a TWCC message; `unwrap` returns their 64-bit sequence numbers.
    pub(crate) fn twcc<'a, F: Fn(u16) -> u64>(
        &mut self,
        f: &twcc::Feedback<'a>,
        unwrap: F,
        now: Timestamp,
    ) -> impl Iterator<Item = ReportedPacket> + use<'a, F> {
        self.on_reporter(f.sender_ssrc);
        let reference = self.twcc_clock.unwrap(f.reference);
        let reference = self.continued(reference, now);
        f.statuses().map(move |(s, since)| ReportedPacket {
            sequence: unwrap(s),
            arrival: since.map(|d| reference + d),
            ecn: Ecn::NotEct,
        })
    }

    /// The report's own time, from which the receiver's holding time follows.
    pub(crate) fn ccfb_report_time(&mut self, f: &ccfb::Feedback<'_>, now: Timestamp) -> RemoteTimestamp {
        self.on_reporter(f.sender_ssrc);
        // Away from zero of the clock, so that arrivals before the first report stay positive.
        let at = self.ccfb_clock.unwrap(f.report_timestamp) + TimeDelta::from_secs(64);
        self.continued(at, now)
    }
}

/// The packets of a CCFB stream block. An arrival time out of range counts as the longest offset of the format; one
/// without a time as the time of the report.
pub(crate) fn ccfb_packets<'a, F: Fn(u16) -> u64>(
    stream: &ccfb::Stream<'a>,
    report: RemoteTimestamp,
    unwrap: F,
) -> impl Iterator<Item = ReportedPacket> + use<'a, F> {
    stream.packets().map(move |(s, metric)| {
        let sequence = unwrap(s);
        match metric {
            ccfb::Metric::NotReceived => ReportedPacket { sequence, arrival: None, ecn: Ecn::NotEct },
            ccfb::Metric::Received { ecn, offset } => {
                let back = match offset {
                    ccfb::ArrivalOffset::OverRange => TimeDelta::from_secs(8),
                    other => other.as_time_delta().unwrap_or(TimeDelta::ZERO),
                };
                ReportedPacket { sequence, arrival: Some(report - back), ecn }
            }
        }
    })
}
