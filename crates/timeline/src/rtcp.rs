//! RTCP in the clear, as rows of the timeline.

use crate::recording::Recording;
use crate::schema::{BlockReport, Direction, Reported, Rtcp, RtcpKind};
use std::collections::VecDeque;
use weir_units::{RemoteTimestamp, TimeDelta, Timestamp};
use weir_wire::rtcp::ccfb::Metric;
use weir_wire::rtcp::twcc::ReferenceClock;
use weir_wire::rtcp::{Packet, RawPacket, ReportBlock, raw_packets};

/// Sender reports kept for the round-trip times of the reports that name them.
const KEPT_REPORTS: usize = 256;

/// State between the RTCP packets of a recording.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    /// Sent reports: the middle of their NTP time, and when.
    sent_reports: VecDeque<(u32, Timestamp)>,
    clocks: [ReferenceClock; 2],
}

impl Reader {
    /// Adds the rows of a compound packet.
    pub(crate) fn read(&mut self, out: &mut Recording, at: Timestamp, direction: Direction, bytes: &[u8]) {
        for raw in raw_packets(bytes) {
            match raw.and_then(|raw| Packet::parse(&raw).map(|packet| (raw, packet))) {
                Ok((raw, packet)) => self.row(out, at, direction, &raw, &packet),
                Err(_) => out.fault("RTCP packets that cannot be read"),
            }
        }
    }

    fn row(
        &mut self,
        out: &mut Recording,
        at: Timestamp,
        direction: Direction,
        raw: &RawPacket<'_>,
        packet: &Packet<'_>,
    ) {
        let sender_ssrc = raw.body().first_chunk().map_or(0, |b| u32::from_be_bytes(*b));
        let kind = match packet {
            Packet::SenderReport(r) => {
                if direction == Direction::Sent {
                    self.sent_reports.push_back((r.info.ntp.compact(), at));
                    if self.sent_reports.len() > KEPT_REPORTS {
                        self.sent_reports.pop_front();
                    }
                }
                r.blocks.iter().for_each(|b| self.block(out, at, direction, &b));
                RtcpKind::SenderReport
            }
            Packet::ReceiverReport(r) => {
                r.blocks.iter().for_each(|b| self.block(out, at, direction, &b));
                RtcpKind::ReceiverReport
            }
            Packet::Twcc(f) => {
                if out.room(f.status_count.into()) {
                    let clock = &mut self.clocks[usize::from(direction == Direction::Sent)];
                    let reference = clock.unwrap(f.reference);
                    out.reported.extend(f.statuses().map(|(sequence, after)| Reported {
                        at,
                        direction,
                        ssrc: None,
                        sequence,
                        arrival: after.map(|d| reference + d),
                    }));
                }
                RtcpKind::Twcc { count: f.feedback_count }
            }
            Packet::Ccfb(f) => {
                // Arrivals count back from the report's time: 16 bits of seconds and 16 of fractions.
                let report = RemoteTimestamp::from_secs_f64(f64::from(f.report_timestamp) / 65_536.0);
                for stream in f.streams() {
                    for (sequence, metric) in stream.packets() {
                        let arrival = match metric {
                            Metric::Received { offset, .. } => offset.as_time_delta().map(|d| report - d),
                            Metric::NotReceived => None,
                        };
                        if out.room(1) {
                            let ssrc = Some(stream.ssrc);
                            out.reported.push(Reported { at, direction, ssrc, sequence, arrival });
                        }
                    }
                }
                RtcpKind::Ccfb
            }
            Packet::Nack(n) => RtcpKind::Nack(n.sequences().count() as u32),
            Packet::Pli(_) => RtcpKind::Pli,
            Packet::Fir(_) => RtcpKind::Fir,
            Packet::Remb(r) => RtcpKind::Remb(r.rate.rate()),
            Packet::Tmmbr(t) => match t.entries.iter().next() {
                Some(limit) => RtcpKind::Tmmbr(limit.max_rate.rate()),
                None => RtcpKind::Other(raw.packet_type()),
            },
            _ => RtcpKind::Other(raw.packet_type()),
        };
        if out.room(1) {
            out.rtcp.push(Rtcp {
                at,
                number: out.record,
                direction,
                sender_ssrc,
                size: raw.as_bytes().len() as u32,
                kind,
                fingerprint: None,
            });
        }
    }

    fn block(&self, out: &mut Recording, at: Timestamp, direction: Direction, block: &ReportBlock) {
        let sent = self.sent_reports.iter().rev().find(|(middle, _)| *middle == block.last_sr && *middle != 0);
        let held = TimeDelta::from_secs_f64(f64::from(block.delay_since_last_sr) / 65_536.0);
        let rtt = sent.map(|(_, sent)| at - *sent - held).filter(|rtt| !rtt.is_negative());
        if out.room(1) {
            out.blocks.push(BlockReport {
                at,
                direction,
                ssrc: block.ssrc,
                fraction_lost: f64::from(block.fraction_lost) / 256.0,
                lost: block.cumulative_lost,
                rtt,
            });
        }
    }
}

/// A hash of bytes that is the same on every machine (FNV-1a, 64 bits).
pub(crate) fn fingerprint(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x100_0000_01b3))
}
