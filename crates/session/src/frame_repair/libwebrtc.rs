//! Repair packets as libwebrtc plans them beside requests, where RED and ULPFEC are negotiated, as by Chromium for VP8 (its branch 7871 of June
//! 2026 by these files, of which nothing is copied):
//!
//! - `modules/video_coding/fec_controller_default.cc` and `media_opt_util.cc`: the share by the greatest loss of the last ten seconds
//!   (`kMaxFilter`), the rate of a frame and its pictures' size; none below 20 ms of round trip (`kLowRttNackMs`), nor for frames of few bytes.
//! - `modules/rtp_rtcp/source/ulpfec_generator.cc`: the frames of a group, up to those of two round trips, and their repair packets.
//!
//! The session takes repair packets and retransmissions out of the encoder's rate, up to a half of it, as `UpdateFecRates` does
//! (`kProtectionOverheadRateThreshold`): for ten seconds after a loss the encoder has about half of the target.
//!
//! Differences from libwebrtc:
//! - Its table of shares, `kFecRateTable`, is [`share`], a closed form fitted to it: 4.0 of 255 off in the root mean square over the table, 25 at most.
//! - Pictures have 640x480 pixels where the source knows no size. Key frames are protected as others.
//! - Repair packets are random combinations (RFC 8681) on a stream of their own, where it has exclusive ors on the media's: as many of them, and
//!   each recovers at least as much.

use super::policy::{FramePolicy, Network, Order, SentFrame};
use std::collections::VecDeque;
use weir_fec::Coverage;
use weir_units::{DataRate, TimeDelta, Timestamp};

/// Reports whose greatest loss counts, and the span of each (`kLossPrHistorySize`, `kLossPrShortFilterWinMs`).
const REPORTS: usize = 10;
const SPAN: TimeDelta = TimeDelta::from_secs(1);
/// Round trip below which requests alone repair (`kLowRttNackMs`).
const LEAST_ROUND_TRIP: TimeDelta = TimeDelta::from_millis(20);
/// Bytes of a frame below which there is no repair, up to so many pixels and for more, at round trips below the last number
/// (`kMaxBytesPerFrameForFecLow`, `kMaxBytesPerFrameForFec`, `kMaxBytesPerFrameForFecHigh`; `kMaxRttTurnOffFec`).
const LEAST_FRAMES: [(u32, f64); 2] = [(352 * 288, 400.0), (640 * 480, 700.0)];
const LEAST_LARGE_FRAME: f64 = 1_000.0;
const LONG_ROUND_TRIP: TimeDelta = TimeDelta::from_millis(200);
/// Pixels of a picture where the source knows none.
const PIXELS: u32 = 640 * 480;
/// Pixels to which the rates of the table relate, and the power of a picture's share of them by which a frame counts as larger.
const TABLE_PIXELS: f64 = 704.0 * 576.0;
const TABLE_POWER: f64 = -0.3;
/// Shares of 255: the least for frames of more than a packet (`firstPartitionProt`), and the greatest.
const LEAST_SHARE: f64 = 51.0;
const MOST_SHARE: f64 = 128.0;
/// Bytes of a packet by which its controller counts (`_maxPayloadSize`).
const PACKET: f64 = 1_460.0;
/// Most frames of a group (`kUpperLimitFramesFec`), and packets of it (`kUlpfecMaxMediaPackets`).
const MOST_FRAMES: u32 = 6;
const MOST_PACKETS: usize = 48;
/// A group ends before its greatest number of frames where rounding adds less than this to the share (`kMaxExcessOverhead`), and it has so many
/// packets: four above the first share (`kHighProtectionThreshold`, `kMinMediaPackets`), and one more where frames have at least two.
const MOST_EXCESS: i64 = 50;
const HIGH_SHARE: i64 = 80;
const LEAST_PACKETS: usize = 4;
/// Frames over which their number a second is measured.
const RECENT: usize = 30;

/// Share of repair packets among all, of 255, at a loss of `loss` of 255 with frames of `kilobits`: libwebrtc's table as a closed form.
fn share(loss: f64, kilobits: f64) -> f64 {
    let scale = 14.2 * libm::pow(kilobits.max(1.0) / 50.0, -1.455) + 7.7;
    let steepness = 1.21 + 0.43 * libm::exp(-kilobits / 25.0);
    127.0 * (1.0 - libm::exp(-libm::pow(loss.min(128.0) / scale, steepness)))
}

#[derive(Debug, Default)]
pub(super) struct LibwebrtcPolicy {
    /// Greatest loss of each second with reports, and when the first of them came; the newest last.
    losses: VecDeque<(Timestamp, f64)>,
    group: Option<Coverage>,
    frames: u32,
}

impl LibwebrtcPolicy {
    fn greatest_loss(&self, now: Timestamp) -> f64 {
        let recent = self.losses.iter().filter(|(at, _)| now - *at <= SPAN * REPORTS as i64);
        recent.map(|(_, loss)| *loss).fold(0.0, f64::max)
    }

    /// Repair packets for 255 packets of media (`ProtectionFactor`, `BitRateTooLowForFec`, `ConvertFECRate`).
    fn factor(&self, rate: DataRate, fps: f64, pixels: u32, rtt: TimeDelta, now: Timestamp) -> i64 {
        let loss = libm::floor(255.0 * self.greatest_loss(now));
        let bytes = rate.as_bps_f64() / fps.max(1.0) / 8.0;
        let enough =
            LEAST_FRAMES.iter().find(|(most, _)| pixels <= *most).map_or(LEAST_LARGE_FRAME, |(_, bytes)| *bytes);
        let is_small = bytes < enough && rtt < LONG_ROUND_TRIP;
        if loss < 1.0 || rtt < LEAST_ROUND_TRIP || is_small {
            return 0;
        }
        let least = if bytes >= PACKET / 2.0 { LEAST_SHARE } else { 0.0 };
        let size = libm::pow(f64::from(pixels.max(1)) / TABLE_PIXELS, TABLE_POWER);
        let share = share(loss, size * bytes * 8.0 / 1_000.0).clamp(least, MOST_SHARE);
        (0.5 + 255.0 * share / (255.0 - share)).min(255.0) as i64
    }
}

/// Frames a second by the times at which the last ones were captured.
fn frame_rate(frames: &VecDeque<SentFrame>) -> f64 {
    let recent = frames.len().min(RECENT);
    let (Some(first), Some(last)) = (frames.get(frames.len() - recent), frames.back()) else { return 1.0 };
    let span = (last.captured - first.captured).as_secs_f64();
    if recent > 1 && span > 0.0 { (recent - 1) as f64 / span } else { RECENT as f64 }
}

impl FramePolicy for LibwebrtcPolicy {
    fn on_frame(
        &mut self,
        frames: &VecDeque<SentFrame>,
        network: &Network,
        now: Timestamp,
        order: &mut dyn FnMut(Order),
    ) {
        let Some(frame) = frames.back() else { return };
        let Some((rtt, _)) = network.round_trip() else { return };
        let fps = frame_rate(frames);
        let factor = self.factor(network.rate(), fps, network.pixels().unwrap_or(PIXELS), rtt, now);
        if factor == 0 {
            (self.group, self.frames) = (None, 0);
            return;
        }
        let group = self.group.get_or_insert_with(|| Coverage::new(frame.packets.base()));
        for packet in frame.packets.iter() {
            if group.len() < MOST_PACKETS {
                group.insert(packet);
            }
        }
        self.frames += 1;
        let most = (2.0 * fps * rtt.as_secs_f64() + 0.5).clamp(1.0, f64::from(MOST_FRAMES)) as u32;
        let packets = group.len();
        let count = ((packets as i64 * factor + 128) >> 8).clamp(1, packets.max(1) as i64);
        let excess = (count << 8) / packets.max(1) as i64 - factor;
        let many = usize::from(packets >= 2 * self.frames as usize);
        let least = if factor > HIGH_SHARE { LEAST_PACKETS } else { 1 } + many;
        if self.frames >= most || excess < MOST_EXCESS && packets >= least {
            order(Order { packets: *group, count: count as u16 });
            (self.group, self.frames) = (None, 0);
        }
    }

    fn is_measured(&self) -> bool {
        true
    }

    fn on_report(&mut self, lost: f64, now: Timestamp) {
        let lost = if lost.is_finite() { lost.clamp(0.0, 1.0) } else { 0.0 };
        match self.losses.back_mut().filter(|(since, _)| now - *since < SPAN) {
            Some((_, greatest)) => *greatest = greatest.max(lost),
            None => {
                if self.losses.len() >= REPORTS {
                    self.losses.pop_front();
                }
                self.losses.push_back((now, lost));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cells of libwebrtc's table: loss of 255, kilobits of a frame, share of 255 with its least value of 51.
    const TABLE: [(f64, f64, f64); 12] = [
        (8.0, 12.5, 51.0),
        (60.0, 12.5, 65.0),
        (20.0, 27.5, 58.0),
        (40.0, 27.5, 77.0),
        (25.0, 37.5, 72.0),
        (25.0, 57.5, 94.0),
        (16.0, 87.5, 86.0),
        (20.0, 107.5, 116.0),
        (12.0, 157.5, 85.0),
        (8.0, 207.5, 75.0),
        (40.0, 107.5, 127.0),
        (100.0, 57.5, 127.0),
    ];

    #[test]
    fn shares_are_near_the_table() {
        for (loss, kilobits, expected) in TABLE {
            let found = share(loss, kilobits).clamp(LEAST_SHARE, MOST_SHARE);
            assert!((found - expected).abs() <= 14.5, "{loss} {kilobits}: {found}, {expected}");
        }
        let off = TABLE.map(|(l, k, e)| (share(l, k).clamp(LEAST_SHARE, MOST_SHARE) - e) / 12.0);
        assert!(off.iter().sum::<f64>().abs() < 4.0, "{off:?}");
    }

    #[test]
    fn factors_follow_loss_round_trip_and_size() {
        let (at, ms, kbps) = (Timestamp::from_millis, TimeDelta::from_millis, DataRate::from_kbps);
        let mut p = LibwebrtcPolicy::default();
        let of = |p: &LibwebrtcPolicy, rate, rtt, now| p.factor(kbps(rate), 30.0, PIXELS, ms(rtt), at(now));
        assert_eq!(of(&p, 2_000, 40, 0), 0, "no loss");
        p.on_report(0.1, at(1_000));
        p.on_report(0.0, at(2_000));
        // A tenth lost at 2 Mbit/s: two repair packets for three of media, 162 of 255 by the table.
        assert!((155..=185).contains(&of(&p, 2_000, 40, 2_000)), "{}", of(&p, 2_000, 40, 2_000));
        // At 300 kbit/s the least share, a fifth of all.
        assert_eq!(of(&p, 300, 40, 2_000), 64);
        assert_eq!(of(&p, 2_000, 19, 2_000), 0, "requests suffice");
        assert_eq!(
            (of(&p, 150, 40, 2_000), of(&p, 150, 250, 2_000) > 0),
            (0, true),
            "few bytes, but for long round trips"
        );
        let small = p.factor(kbps(150), 30.0, 320 * 240, ms(40), at(2_000));
        assert!(small > 0, "625 bytes are enough for a small picture");
        // Ten seconds after the last loss.
        assert!(of(&p, 2_000, 40, 11_000) > 0);
        assert_eq!(of(&p, 2_000, 40, 11_001), 0);
    }
}
