//! Receipt times of packets (RFC 3611, section 4.3) and summary statistics (section 4.6).

use super::metric::{Fixed, pair, put};
use super::rle::{reported, sequences};
use crate::List;
use crate::read::{be16, be32};

/// When each packet of a range was received (RFC 3611, section 4.3). A range may have no losses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ReceiptTimes<'a> {
    /// The source of the packets.
    pub ssrc: u32,
    /// The first sequence number of the range.
    pub begin: u16,
    /// The one after the last.
    pub end: u16,
    /// Thinning, 0 to 15: only sequence numbers that are multiples of 2^thinning are reported.
    pub thinning: u8,
    /// Receipt times in units of the RTP timestamp, by the receiver's clock.
    pub times: List<'a, u32>,
}

impl<'a> ReceiptTimes<'a> {
    pub(super) fn from_body(type_specific: u8, body: &'a [u8]) -> Option<Self> {
        let (head, times) = body.split_at_checked(8)?;
        Some(Self {
            ssrc: be32(head, 0),
            begin: be16(head, 4),
            end: be16(head, 6),
            thinning: type_specific & 0xf,
            times: List::from_wire(times),
        })
    }
    pub(super) fn write_body(&self, out: &mut Vec<u8>) {
        put(out, [self.ssrc, pair(self.begin, self.end)]);
        self.times.write_into(out);
    }
    /// Number of packets in the range after thinning.
    pub const fn reported(&self) -> u16 {
        reported(self.begin, self.end, self.thinning)
    }
    /// Sequence number and time of every reported packet, in order. Times beyond the range are ignored; if some are
    /// missing it ends early.
    pub fn packets(&self) -> impl Iterator<Item = (u16, u32)> + use<'a> {
        sequences(self.begin, self.end, self.thinning).zip(self.times.iter())
    }
}

/// Losses, duplicates, jitter and hops over a range of packets (RFC 3611, section 4.6). `None` for values not reported.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StatisticsSummary {
    /// The source of the packets.
    pub ssrc: u32,
    /// The first sequence number of the range.
    pub begin: u16,
    /// The one after the last.
    pub end: u16,
    /// Packets lost.
    pub lost: Option<u32>,
    /// Packets received more than once.
    pub duplicates: Option<u32>,
    /// Relative transit times of packets.
    pub jitter: Option<JitterSummary>,
    /// TTL or hop limit of packets.
    pub hops: Option<HopSummary>,
}

/// Relative transit times between packets, in units of the RTP timestamp.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct JitterSummary {
    /// The least.
    pub min: u32,
    /// The largest.
    pub max: u32,
    /// Their mean.
    pub mean: u32,
    /// Their standard deviation.
    pub deviation: u32,
}

/// TTL (IPv4) or hop limit (IPv6) of packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HopSummary {
    /// Whether it is IPv6's hop limit.
    pub ipv6: bool,
    /// The least.
    pub min: u8,
    /// The largest.
    pub max: u8,
    /// Their mean.
    pub mean: u8,
    /// Their standard deviation.
    pub deviation: u8,
}

impl Fixed for StatisticsSummary {
    const TYPE: u8 = super::STATISTICS_SUMMARY;
    const BODY: usize = 36;
    fn read(flags: u8, body: &[u8]) -> Option<Self> {
        // A field flagged as not reported must be zero, or the block is ignored.
        let part = |flag: bool, words: core::ops::Range<usize>| {
            (flag || words.into_iter().all(|w| be32(body, 4 * w) == 0)).then_some(flag)
        };
        let (loss, duplicates) = (part(flags & 0x80 != 0, 2..3)?, part(flags & 0x40 != 0, 3..4)?);
        let jitter = part(flags & 0x20 != 0, 4..8)?;
        let kind = flags >> 3 & 3;
        let hops = part(kind != 0, 8..9)?;
        if kind == 3 {
            return None;
        }
        let [min, max, mean, deviation] = be32(body, 32).to_be_bytes();
        Some(Self {
            ssrc: be32(body, 0),
            begin: be16(body, 4),
            end: be16(body, 6),
            lost: loss.then(|| be32(body, 8)),
            duplicates: duplicates.then(|| be32(body, 12)),
            jitter: jitter.then(|| JitterSummary {
                min: be32(body, 16),
                max: be32(body, 20),
                mean: be32(body, 24),
                deviation: be32(body, 28),
            }),
            hops: hops.then_some(HopSummary { ipv6: kind == 2, min, max, mean, deviation }),
        })
    }
    fn type_specific(&self) -> u8 {
        let hops = self.hops.map_or(0, |h| 1 + u8::from(h.ipv6));
        u8::from(self.lost.is_some()) << 7
            | u8::from(self.duplicates.is_some()) << 6
            | u8::from(self.jitter.is_some()) << 5
            | hops << 3
    }
    fn write_body(&self, out: &mut Vec<u8>) {
        let (jitter, hops) = (self.jitter.unwrap_or_default(), self.hops.unwrap_or_default());
        put(out, [self.ssrc, pair(self.begin, self.end)]);
        put(out, [self.lost.unwrap_or(0), self.duplicates.unwrap_or(0)]);
        put(out, [jitter.min, jitter.max, jitter.mean, jitter.deviation]);
        put(out, [u32::from_be_bytes([hops.min, hops.max, hops.mean, hops.deviation])]);
    }
}

/// Voice quality metrics (RFC 3611, section 4.7). Fields have the packet's values; the RFC's sections define the
/// measurements.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct VoipMetrics {
    /// The source of the packets.
    pub ssrc: u32,
    /// Packets lost after repair, in 1/256 (section 4.7.1), as the next three.
    pub loss_rate: u8,
    /// Packets discarded.
    pub discard_rate: u8,
    /// Packets lost or discarded inside bursts (section 4.7.2).
    pub burst_density: u8,
    /// Packets lost or discarded inside gaps.
    pub gap_density: u8,
    /// Mean duration of bursts in ms.
    pub burst_duration: u16,
    /// Mean duration of gaps in ms.
    pub gap_duration: u16,
    /// Latest round-trip time in ms (section 4.7.3).
    pub round_trip_delay: u16,
    /// Latest delay inside the end in ms, 0 if unknown.
    pub end_system_delay: u16,
    /// Level of the voice in dBm0, 127 if unknown (section 4.7.4).
    pub signal_level: i8,
    /// Level of the background in dBm0, 127 if unknown.
    pub noise_level: i8,
    /// Residual echo return loss in dB, 127 if unknown.
    pub echo_return_loss: u8,
    /// Gmin: consecutive good packets required around a loss for it to be part of a gap (section 4.7.6).
    pub gap_threshold: u8,
    /// R factor, 0 to 100, 127 if unknown (section 4.7.5).
    pub r_factor: u8,
    /// R factor of a network beyond, likewise.
    pub external_r_factor: u8,
    /// Ten times the estimated mean opinion score of listening, 10 to 50, 127 if unknown.
    pub mos_listening: u8,
    /// The same of conversation.
    pub mos_conversational: u8,
    /// Concealment (2 bits), adaptive jitter buffer (2 bits) and its rate (4 bits) (section 4.7.6).
    pub receiver_config: u8,
    /// Nominal delay of the jitter buffer in ms (section 4.7.7).
    pub jitter_buffer_nominal: u16,
    /// Its current largest delay, in ms.
    pub jitter_buffer_max: u16,
    /// Its absolute largest delay, in ms.
    pub jitter_buffer_abs_max: u16,
}

impl Fixed for VoipMetrics {
    const TYPE: u8 = super::VOIP_METRICS;
    const BODY: usize = 32;
    fn read(_: u8, body: &[u8]) -> Option<Self> {
        let octets = |at| be32(body, at).to_be_bytes();
        let [loss_rate, discard_rate, burst_density, gap_density] = octets(4);
        let [signal_level, noise_level, echo_return_loss, gap_threshold] = octets(16);
        let [r_factor, external_r_factor, mos_listening, mos_conversational] = octets(20);
        Some(Self {
            ssrc: be32(body, 0),
            loss_rate,
            discard_rate,
            burst_density,
            gap_density,
            burst_duration: be16(body, 8),
            gap_duration: be16(body, 10),
            round_trip_delay: be16(body, 12),
            end_system_delay: be16(body, 14),
            signal_level: signal_level as i8,
            noise_level: noise_level as i8,
            echo_return_loss,
            gap_threshold,
            r_factor,
            external_r_factor,
            mos_listening,
            mos_conversational,
            receiver_config: (be16(body, 24) >> 8) as u8,
            jitter_buffer_nominal: be16(body, 26),
            jitter_buffer_max: be16(body, 28),
            jitter_buffer_abs_max: be16(body, 30),
        })
    }
    fn type_specific(&self) -> u8 {
        0
    }
    fn write_body(&self, out: &mut Vec<u8>) {
        let octets = u32::from_be_bytes;
        let (signal, noise) = (self.signal_level as u8, self.noise_level as u8);
        put(
            out,
            [
                self.ssrc,
                octets([self.loss_rate, self.discard_rate, self.burst_density, self.gap_density]),
                pair(self.burst_duration, self.gap_duration),
                pair(self.round_trip_delay, self.end_system_delay),
                octets([signal, noise, self.echo_return_loss, self.gap_threshold]),
                octets([self.r_factor, self.external_r_factor, self.mos_listening, self.mos_conversational]),
                pair(u16::from(self.receiver_config) << 8, self.jitter_buffer_nominal),
                pair(self.jitter_buffer_max, self.jitter_buffer_abs_max),
            ],
        );
    }
}
