//! A controller in the slot of congestion control, with all that this slot shows.

use crate::core::{Core, Report};
use crate::sent_numbers::{Name, SentNumbers};
use crate::{Rates, Refused, Settings};
use rtc_interceptor::{Attribute, Interceptor, Packet, StreamInfo, TaggedPacket, convert_twcc};
use rtc_rtcp::transport_feedbacks::cc_feedback_report::CcFeedbackReport;
use rtc_rtcp::transport_feedbacks::transport_layer_cc::TransportLayerCc;
use rtc_shared::error::Error;
use rtc_shared::marshal::MarshalSize;
use sansio::Protocol;
use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};
use weir_units::DataRate;

/// URI of the header extension with transport-wide sequence numbers.
const TRANSPORT_CC: &str = "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01";
/// Arrival time offsets from here on have no time: too long ago, or after the report (RFC 8888, section 3.1).
const NO_OFFSET: u16 = 0x1FFE;

/// An interceptor for [`Slot::CongestionControl`](rtc_interceptor::Slot::CongestionControl): any controller by name, which sees
/// packets leave as well as their reports. The pacer above gets the controller's pacing rate, the application reads
/// [`Self::rates`].
///
/// It reads transport-wide feedback and RFC 8888's. A rate that a timeout has changed reaches the pacer with the next RTCP;
/// [`Rates`] has it at once.
pub struct CongestionControl {
    rates: Rates,
    /// Streams sent, with the number of the extension for transport-wide numbers, if they have it.
    streams: BTreeMap<u32, Option<u8>>,
    sent: SentNumbers,
    /// Number of the next packet.
    next: u64,
    /// Packets handed to the pacer.
    pacing_rate: Option<DataRate>,
    reports: Vec<Report>,
    read: VecDeque<TaggedPacket>,
    written: VecDeque<TaggedPacket>,
}

impl CongestionControl {
    /// A controller by name.
    ///
    /// # Errors
    /// An unknown name or parameter, a value outside its range, or a controller that needs more than per-packet feedback.
    pub fn new(name: &str, settings: &Settings) -> Result<Self, Refused> {
        Ok(Self {
            rates: Rates::new(Core::new(name, settings)?),
            streams: BTreeMap::new(),
            sent: SentNumbers::default(),
            next: 0,
            pacing_rate: None,
            reports: Vec::new(),
            read: VecDeque::new(),
            written: VecDeque::new(),
        })
    }
    /// The rates that the application reads.
    pub fn rates(&self) -> Rates {
        self.rates.clone()
    }

    fn on_twcc(&mut self, feedback: &TransportLayerCc, at: Instant) {
        for a in convert_twcc(feedback) {
            let Some(number) = self.sent.get(Name::TransportWide(a.sequence_number)) else { continue };
            self.reports.push(Report::transport_wide(number, a.arrived, a.arrival));
        }
        self.pass_reports(at, Duration::ZERO);
    }

    /// Unlike `convert_ccfb` of rtc-interceptor 0.21.1, which hands over the offsets before the report, this makes arrivals
    /// of them.
    fn on_ccfb(&mut self, feedback: &CcFeedbackReport, at: Instant) {
        // Middle 32 bits of an NTP timestamp.
        let stamp = Duration::from_secs_f64(f64::from(feedback.report_timestamp) / 65_536.0);
        let mut held = None::<Duration>;
        for block in &feedback.report_blocks {
            for (metric, n) in block.metric_blocks.iter().zip(0u16..) {
                let name = Name::Rtp(block.media_ssrc, block.begin_sequence.wrapping_add(n));
                let Some(number) = self.sent.get(name) else { continue };
                let offset = (metric.received && metric.arrival_time_offset < NO_OFFSET)
                    .then(|| Duration::from_secs_f64(f64::from(metric.arrival_time_offset) / 1_024.0));
                held = held.into_iter().chain(offset).min();
                self.reports.push(Report::rfc8888(number, metric.received, offset.map(|o| (stamp, o)), metric.ecn));
            }
        }
        self.pass_reports(at, held.unwrap_or_default());
    }

    fn pass_reports(&mut self, at: Instant, held: Duration) {
        self.reports.sort_by_key(|r| r.number);
        self.rates.core().on_reports(at, &self.reports, held);
        self.reports.clear();
    }
}

impl Protocol<TaggedPacket, TaggedPacket, ()> for CongestionControl {
    type Rout = TaggedPacket;
    type Wout = TaggedPacket;
    type Eout = ();
    type Error = Error;
    type Time = Instant;

    fn handle_read(&mut self, mut msg: TaggedPacket) -> Result<(), Error> {
        if let Packet::Rtcp(packets) = &msg.message.packet {
            for packet in packets.iter().map(|p| p.as_any()) {
                if let Some(feedback) = packet.downcast_ref() {
                    self.on_twcc(feedback, msg.now);
                } else if let Some(feedback) = packet.downcast_ref() {
                    self.on_ccfb(feedback, msg.now);
                }
            }
            let pacing = self.rates.pacing_rate();
            if self.pacing_rate != Some(pacing) {
                msg.message.add(Attribute::TargetBitrateChanged { bits_per_second: pacing.as_bps_f64() });
                self.pacing_rate = Some(pacing);
            }
        }
        self.read.push_back(msg);
        Ok(())
    }
    fn poll_read(&mut self) -> Option<TaggedPacket> {
        self.read.pop_front()
    }

    fn handle_write(&mut self, msg: TaggedPacket) -> Result<(), Error> {
        if let Packet::Rtp(rtp) = &msg.message.packet
            && let Some(extension) = self.streams.get(&rtp.header.ssrc)
        {
            let wide = extension.and_then(|id| rtp.header.get_extension(id));
            let name = match wide.as_deref() {
                Some(&[high, low, ..]) => Name::TransportWide(u16::from_be_bytes([high, low])),
                _ => Name::Rtp(rtp.header.ssrc, rtp.header.sequence_number),
            };
            self.sent.add(name, self.next);
            self.rates.core().on_sent(self.next, rtp.marshal_size(), msg.now);
            self.next += 1;
        }
        self.written.push_back(msg);
        Ok(())
    }
    fn poll_write(&mut self) -> Option<TaggedPacket> {
        self.written.pop_front()
    }

    fn handle_timeout(&mut self, now: Instant) -> Result<(), Error> {
        self.rates.core().on_timeout(now);
        Ok(())
    }
    fn poll_timeout(&mut self) -> Option<Instant> {
        self.rates.core().poll_timeout()
    }
}

impl Interceptor for CongestionControl {
    fn bind_local_stream(&mut self, info: &StreamInfo) {
        let extension = info.rtp_header_extensions.iter().find(|e| e.uri == TRANSPORT_CC);
        self.streams.insert(info.ssrc, extension.and_then(|e| u8::try_from(e.id).ok()));
    }
    fn unbind_local_stream(&mut self, info: &StreamInfo) {
        self.streams.remove(&info.ssrc);
    }
    fn bind_remote_stream(&mut self, _: &StreamInfo) {}
    fn unbind_remote_stream(&mut self, _: &StreamInfo) {}
}
