//! The other end's clocks, and its reports before.

use weir_cc::cue::ReportBlock;
use weir_units::{RemoteTimestamp, TimeDelta, Timestamp};
use weir_wire::ntp::{CompactClock, NtpTime, round_trip};
use weir_wire::rtcp::{ReportBlock as WireBlock, ccfb, twcc};

/// Clock rate of RTP video, which most streams have (RFC 3551, section 5), in Hz.
const VIDEO_CLOCK_HZ: u32 = 90_000;
/// Most sources whose receiver reports are kept separately.
const MAX_SOURCES: usize = 256;

/// State of the other end's clocks and reports.
pub(crate) struct Reader {
    /// NTP time at zero of the caller's clock, if it has one.
    ntp_zero: Option<NtpTime>,
    clock_hz: u32,
    twcc_clock: twcc::ReferenceClock,
    ccfb_clock: CompactClock,
    reporter: Option<u32>,
    /// Whether the next report is the first of another end's clock.
    restarted: bool,
    /// Added to the other end's clock, so that it continues where a previous end's stopped.
    offset: TimeDelta,
    /// The last report's time, and when it was received.
    last: Option<(RemoteTimestamp, Timestamp)>,
    /// Highest sequence number of the report before, by source.
    highest: Vec<(u32, u32)>,
}

impl Reader {
    pub(crate) fn new(ntp_zero: u64, clock_hz: u32) -> Self {
        Self {
            ntp_zero: (ntp_zero != 0).then(|| NtpTime::from_bits(ntp_zero)),
            clock_hz: if clock_hz == 0 { VIDEO_CLOCK_HZ } else { clock_hz },
            twcc_clock: twcc::ReferenceClock::new(),
            ccfb_clock: CompactClock::new(),
            reporter: None,
            restarted: false,
            offset: TimeDelta::ZERO,
            last: None,
            highest: Vec::new(),
        }
    }

    /// A new source of reports has another clock.
    fn on_reporter(&mut self, ssrc: u32) {
        if self.reporter.replace(ssrc).is_some_and(|before| before != ssrc) {
            (self.twcc_clock, self.ccfb_clock, self.restarted) = (Default::default(), Default::default(), true);
        }
    }
    fn continued(&mut self, at: RemoteTimestamp, now: Timestamp) -> RemoteTimestamp {
        if std::mem::take(&mut self.restarted) {
            self.offset = self.last.map_or(TimeDelta::ZERO, |(last, came)| last + now.saturating_since(came) - at);
        }
        let at = at + self.offset;
        self.last = Some((at, now));
        at
    }

    /// The reference time of a transport-wide message.
    pub(crate) fn twcc_reference(&mut self, f: &twcc::Feedback<'_>, now: Timestamp) -> RemoteTimestamp {
        self.on_reporter(f.sender_ssrc);
        let reference = self.twcc_clock.unwrap(f.reference);
        self.continued(reference, now)
    }
    /// The time of an RFC 8888 report.
    pub(crate) fn ccfb_time(&mut self, f: &ccfb::Feedback<'_>, now: Timestamp) -> RemoteTimestamp {
        self.on_reporter(f.sender_ssrc);
        // Away from zero of the clock, so that arrivals before the first report stay positive.
        let at = self.ccfb_clock.unwrap(f.report_timestamp) + TimeDelta::from_secs(64);
        self.continued(at, now)
    }

    /// Packets expected since the report before, about the same source.
    fn expected(&mut self, block: &WireBlock) -> u32 {
        match self.highest.iter_mut().find(|(ssrc, _)| *ssrc == block.ssrc) {
            Some((_, highest)) => {
                block.highest_sequence.wrapping_sub(std::mem::replace(highest, block.highest_sequence))
            }
            None => {
                if self.highest.len() == MAX_SOURCES {
                    self.highest.remove(0);
                }
                self.highest.push((block.ssrc, block.highest_sequence));
                0
            }
        }
    }

    /// A receiver report block as a cue.
    pub(crate) fn block(&mut self, block: &WireBlock, now: Timestamp) -> ReportBlock {
        let rtt =
            self.ntp_zero.and_then(|zero| round_trip(NtpTime::at(now, zero), block.last_sr, block.delay_since_last_sr));
        ReportBlock {
            now,
            fraction_lost: f64::from(block.fraction_lost) / 256.0,
            cumulative_lost: block.cumulative_lost.into(),
            highest_sequence: block.highest_sequence.into(),
            expected: self.expected(block).into(),
            jitter: TimeDelta::from_nanos(i64::from(block.jitter) * 1_000_000_000 / i64::from(self.clock_hz)),
            rtt,
        }
    }
}
