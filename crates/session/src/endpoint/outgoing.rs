//! What an endpoint sends: RTP from the pacer, RTCP by its timer.

use super::{Bye, Endpoint, Transmit};
use crate::feedback::write_ccfb;
use crate::receiver::MediaReceiver;
use crate::rtcp::{Compound, report_block, write_bye, write_report};
use crate::sender::PADDING_SIZE;
use weir_cc::{FeedbackFormat, Report};
use weir_units::{DataSize, Ecn, Timestamp};
use weir_wire::ntp::NtpTime;
use weir_wire::rtcp::SenderInfo;
use weir_wire::rtp::{Header, extension::abs_send_time, write_padding};

impl Endpoint {
    /// Writes the next datagram into `out`, which is cleared, and tells what it is; `None` where nothing is due.
    pub fn poll_transmit(&mut self, now: Timestamp, out: &mut Vec<u8>) -> Option<Transmit> {
        out.clear();
        if self.bye == Bye::Sent {
            return None;
        }
        self.poll_rtcp(now, out).or_else(|| self.poll_rtp(now, out))
    }

    fn poll_rtp(&mut self, now: Timestamp, out: &mut Vec<u8>) -> Option<Transmit> {
        let sender = self.sender.as_mut()?;
        let packet = sender.poll_packet(self.rtp_overhead, now)?;
        let c = &self.config;
        let (timestamp, marker) =
            packet.media.map_or((sender.last_rtp_timestamp, false), |m| (m.rtp_timestamp, m.marker));
        Header {
            payload_type: c.payload_type,
            marker,
            sequence: packet.sequence as u16,
            timestamp,
            ssrc: c.ssrc,
            transport_sequence: c.transport_sequence.then_some((c.transport_sequence_id, packet.transport as u16)),
            abs_send_time: c.abs_send_time.then(|| (c.abs_send_time_id, abs_send_time(now))),
            padding: if packet.media.is_none() { PADDING_SIZE } else { 0 },
            ..Header::default()
        }
        .write_into(out);
        let payload = match packet.media {
            Some(m) => u32::from(m.payload),
            None => {
                write_padding(out, PADDING_SIZE);
                0
            }
        };
        let size = DataSize::from_bytes(out.len() as u64 + u64::from(payload));
        Some(Transmit { payload, size, ecn: c.ecn, is_rtp: true })
    }

    fn poll_rtcp(&mut self, now: Timestamp, out: &mut Vec<u8>) -> Option<Transmit> {
        let regular = self.timer.next_regular() <= now || self.bye == Bye::Wanted;
        let feedback = self.receiver.as_ref().is_some_and(|r| r.feedback_due(now));
        // NADA's report is its per-interval feedback; the others are events under the rules of early feedback.
        let periodic = matches!(self.report, Some(Report::Nada { .. }));
        let early = self.report.is_some() && (periodic || self.timer.may_send_early(now));
        let urgent = self.receiver.as_ref().is_some_and(MediaReceiver::is_urgent) && self.timer.may_send_early(now);
        if !(regular || feedback || early || urgent) {
            return None;
        }
        if regular || urgent {
            self.write_compound(now, out);
        }
        let ssrcs = (self.config.ssrc, self.config.remote_ssrc);
        let mut upto = None;
        if let Some(r) = &self.receiver
            && let Some(log) = r.log.as_ref().filter(|l| feedback || (regular && l.news() > 0))
        {
            upto = Some(match r.format() {
                Some(FeedbackFormat::TransportWide) => self.twcc.write(log, out),
                _ => write_ccfb(log, ssrcs, self.zero, now, out),
            });
        }
        if let Some(report) = self.report.take_if(|_| regular || early) {
            let next = self.receiver.as_ref().map_or((0, None), |r| r.next_to_decode(now));
            write_report(&report, ssrcs, self.config.header_overhead, next, out);
        }
        if self.bye == Bye::Wanted {
            write_bye(self.config.ssrc, out);
            self.bye = Bye::Sent;
        }
        let size = DataSize::from_bytes(out.len() as u64);
        let on_wire = size + DataSize::from_bytes(u64::from(self.config.header_overhead));
        if let (Some(r), Some(upto)) = (&mut self.receiver, upto) {
            r.on_feedback_sent(upto, on_wire, now);
        }
        if regular {
            self.timer.on_regular_sent(on_wire, &mut self.rng, now);
        } else if urgent || (early && !periodic) {
            self.timer.on_early_sent(on_wire, &mut self.rng, now);
        } else {
            self.timer.on_packet(on_wire);
        }
        self.counters.rtcp_sent += 1;
        self.counters.rtcp_bytes += on_wire.as_bytes();
        Some(Transmit { payload: 0, size, ecn: Ecn::NotEct, is_rtp: false })
    }

    fn write_compound(&mut self, now: Timestamp, out: &mut Vec<u8>) {
        let ntp = NtpTime::at(now, self.zero);
        let info = self.sender.as_ref().filter(|s| s.counters.packets > 0).map(|s| SenderInfo {
            ntp,
            rtp_timestamp: s.rtp_timestamp_at(now, self.config.clock_rate),
            packets: s.counters.packets as u32,
            octets: s.counters.payload as u32,
        });
        let started = self.receiver.as_mut().filter(|r| r.stats.is_started());
        let block = started.map(|r| {
            let numbers = r.stats.take_block();
            report_block(self.config.remote_ssrc, &numbers, self.last_sr, now)
        });
        let wants_rtt = self.receiver.as_ref().is_some_and(MediaReceiver::wants_round_trip) && info.is_none();
        Compound {
            ssrc: self.config.ssrc,
            cname: &self.config.cname,
            info,
            block,
            reference: wants_rtt.then_some(ntp),
            reference_heard: self.reference_heard.take(),
        }
        .write_into(now, out);
        if let Some(r) = &mut self.receiver {
            r.write_interval((self.config.ssrc, self.config.remote_ssrc), out);
        }
    }
}
