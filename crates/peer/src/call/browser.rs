//! The browser's statistics of a call, as a series beside this end's own.

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use weir_units::Timestamp;

/// Samples kept: twenty minutes of one a second.
const MAX_SAMPLES: usize = 1_200;
/// Samples in one answer.
const MAX_AT_ONCE: usize = 600;
/// Least distance of two samples, in s. What comes sooner replaces the sums alone.
const LEAST_S: f64 = 0.5;
/// Time between two reports from which rates are computed, by the browser's clock, in ms.
const PERIOD_MS: std::ops::RangeInclusive<f64> = 100.0..=30_000.0;
/// Greatest time that is believed, in ms, and greatest rate, in bit/s.
const MAX_MS: f64 = 1e6;
const MAX_BPS: f64 = 1e12;

/// The browser's statistics of the call (`getStats`), as its page passes it on: not to be relied upon. Names in quotes are those of
/// the W3C's statistics, sums are of video unless they say otherwise.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct BrowserNumbers {
    /// `packetsReceived` of `inbound-rtp`.
    pub packets_received: u64,
    /// `packetsLost`.
    pub packets_lost: i64,
    /// `bytesReceived`: of payload.
    pub bytes_received: u64,
    /// `framesDecoded`.
    pub frames_decoded: u64,
    /// `freezeCount`.
    pub freezes: u64,
    /// `packetsSent` of `outbound-rtp`.
    pub packets_sent: u64,
    /// `bytesSent`: of payload.
    pub bytes_sent: u64,
    /// `framesEncoded`.
    pub frames_encoded: u64,
    /// `packetsReceived` of audio.
    pub audio_packets_received: u64,
    /// `packetsSent` of audio.
    pub audio_packets_sent: u64,
    /// `currentRoundTripTime` of the candidate pair.
    pub round_trip_ms: Option<f64>,
    /// `timestamp` of these statistics.
    pub at_ms: Option<f64>,
    /// `bytesReceived` and `headerBytesReceived` of `inbound-rtp`, video and audio.
    pub all_bytes_received: u64,
    /// `bytesSent` and `headerBytesSent` of `outbound-rtp`, video and audio.
    pub all_bytes_sent: u64,
    /// `jitter` of `inbound-rtp`.
    pub jitter_ms: Option<f64>,
    /// `jitterBufferDelay`: the sum over frames.
    pub playout_delay_s: f64,
    /// `jitterBufferEmittedCount`: those frames.
    pub played: u64,
    /// `targetBitrate` of `outbound-rtp`.
    pub target_bps: Option<f64>,
    /// `retransmittedPacketsSent`.
    pub retransmitted: u64,
    /// `packetsLost` of `remote-inbound-rtp`, as Weir has reported it.
    pub remote_packets_lost: i64,
    /// `fractionLost`.
    pub remote_loss: Option<f64>,
    /// `roundTripTime`.
    pub remote_round_trip_ms: Option<f64>,
    /// `jitter`.
    pub remote_jitter_ms: Option<f64>,
    /// `availableOutgoingBitrate` of the candidate pair: the browser's own estimate.
    pub available_bps: Option<f64>,
    /// `bytesReceived` of the candidate pair: all datagrams.
    pub pair_bytes_received: u64,
    /// `bytesSent` of the candidate pair.
    pub pair_bytes_sent: u64,
}

/// A number that no browser would state.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[error("{field}: {value}; expected {least} to {most}")]
pub struct BadNumber {
    /// The field.
    pub field: &'static str,
    /// Its value.
    pub value: f64,
    /// Least value accepted.
    pub least: f64,
    /// Greatest value accepted.
    pub most: f64,
}

impl BrowserNumbers {
    /// Checks what was received.
    ///
    /// # Errors
    /// A field is outside its range.
    pub fn check(&self) -> Result<(), BadNumber> {
        let fields = [
            ("round_trip_ms", self.round_trip_ms, MAX_MS),
            // The year 2286.
            ("at_ms", self.at_ms, 1e13),
            ("jitter_ms", self.jitter_ms, MAX_MS),
            ("playout_delay_s", Some(self.playout_delay_s), 1e12),
            ("target_bps", self.target_bps, MAX_BPS),
            ("remote_loss", self.remote_loss, 1.0),
            ("remote_round_trip_ms", self.remote_round_trip_ms, MAX_MS),
            ("remote_jitter_ms", self.remote_jitter_ms, MAX_MS),
            ("available_bps", self.available_bps, MAX_BPS),
        ];
        for (field, value, most) in fields {
            if let Some(value) = value.filter(|v| !(0.0..=most).contains(v)) {
                return Err(BadNumber { field, value, least: 0.0, most });
            }
        }
        Ok(())
    }
}

/// The browser's statistics of the time since its last report, about a second; units in the names.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BrowserSample {
    /// When it was received, since the call began.
    pub t_s: f64,
    /// Received by `inbound-rtp`, video and audio with RTP headers.
    pub received_bps: Option<f64>,
    /// Sent by `outbound-rtp`, likewise.
    pub sent_bps: Option<f64>,
    /// Received on the candidate pair.
    pub pair_received_bps: Option<f64>,
    /// Sent on it.
    pub pair_sent_bps: Option<f64>,
    /// Its encoder's target (`outbound-rtp`).
    pub target_bps: Option<f64>,
    /// Its estimate of what it may send (`candidate-pair`).
    pub available_bps: Option<f64>,
    /// Round trip of ICE's checks (`candidate-pair`).
    pub rtt_ms: Option<f64>,
    /// Round trip by RTCP (`remote-inbound-rtp`).
    pub remote_rtt_ms: Option<f64>,
    /// Share of its packets that Weir has reported lost (`remote-inbound-rtp`).
    pub remote_loss: Option<f64>,
    /// Share of Weir's packets that it misses (`inbound-rtp`).
    pub loss: Option<f64>,
    /// Jitter of Weir's packets (`inbound-rtp`).
    pub jitter_ms: Option<f64>,
    /// Mean time that frames wait until they are played (`inbound-rtp`).
    pub playout_ms: Option<f64>,
    /// Frames decoded a second.
    pub decoded_fps: Option<f64>,
    /// Frames encoded a second.
    pub encoded_fps: Option<f64>,
}

/// The newest sums and a bounded series.
#[derive(Default)]
pub(super) struct BrowserLog {
    last: Option<BrowserNumbers>,
    /// The sums at the last sample.
    sampled: Option<BrowserNumbers>,
    /// Number of the first sample kept.
    first: u64,
    samples: VecDeque<BrowserSample>,
}

impl BrowserLog {
    pub(super) fn last(&self) -> Option<BrowserNumbers> {
        self.last
    }

    /// Takes what was received `now`, in a call that began at `began`.
    pub(super) fn push(&mut self, numbers: BrowserNumbers, began: Timestamp, now: Timestamp) {
        self.last = Some(numbers);
        let t_s = now.saturating_since(began).as_secs_f64();
        if self.samples.back().is_some_and(|last| t_s < last.t_s + LEAST_S) {
            return;
        }
        if self.samples.len() == MAX_SAMPLES {
            self.samples.pop_front();
            self.first += 1;
        }
        self.samples.push_back(sample(t_s, self.sampled.as_ref(), &numbers));
        self.sampled = Some(numbers);
    }

    /// The number of the first sample given, and the samples from the `from`-th on, at most so many as fit into an answer.
    pub(super) fn since(&self, from: u64) -> (u64, Vec<BrowserSample>) {
        let skip = usize::try_from(from.saturating_sub(self.first)).unwrap_or(usize::MAX).min(self.samples.len());
        (self.first + skip as u64, self.samples.range(skip..).take(MAX_AT_ONCE).copied().collect())
    }
    pub(super) fn all(&self) -> Vec<BrowserSample> {
        self.samples.iter().copied().collect()
    }
}

fn sample(t_s: f64, before: Option<&BrowserNumbers>, now: &BrowserNumbers) -> BrowserSample {
    let mut sample = BrowserSample {
        t_s,
        target_bps: now.target_bps,
        available_bps: now.available_bps,
        rtt_ms: now.round_trip_ms,
        remote_rtt_ms: now.remote_round_trip_ms,
        remote_loss: now.remote_loss,
        jitter_ms: now.jitter_ms,
        ..BrowserSample::default()
    };
    let Some(before) = before else { return sample };
    // Sums that fall are those of another connection.
    let grown = |of: fn(&BrowserNumbers) -> u64| of(now).checked_sub(of(before)).map(|n| n as f64);
    let lost = now.packets_lost.saturating_sub(before.packets_lost).max(0) as f64;
    let received = grown(|n| n.packets_received);
    sample.loss = received.filter(|r| r + lost > 0.0).map(|r| lost / (r + lost));
    let waited = 1e3 * (now.playout_delay_s - before.playout_delay_s);
    let played = grown(|n| n.played).filter(|n| *n > 0.0);
    sample.playout_ms = played.map(|n| waited / n).filter(|ms| (0.0..=MAX_MS).contains(ms));
    let period = now.at_ms.zip(before.at_ms).map(|(b, a)| b - a).filter(|ms| PERIOD_MS.contains(ms));
    let Some(seconds) = period.map(|ms| ms / 1e3) else { return sample };
    let rate = |of: fn(&BrowserNumbers) -> u64| grown(of).map(|n| 8.0 * n / seconds).filter(|bps| *bps <= MAX_BPS);
    sample.received_bps = rate(|n| n.all_bytes_received);
    sample.sent_bps = rate(|n| n.all_bytes_sent);
    sample.pair_received_bps = rate(|n| n.pair_bytes_received);
    sample.pair_sent_bps = rate(|n| n.pair_bytes_sent);
    sample.decoded_fps = grown(|n| n.frames_decoded).map(|n| n / seconds);
    sample.encoded_fps = grown(|n| n.frames_encoded).map(|n| n / seconds);
    sample
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_units::TimeDelta;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_secs(5) + TimeDelta::from_millis(ms)
    }

    #[test]
    fn rates_are_by_the_browsers_clock_and_sums_that_fall_have_none() {
        let mut log = BrowserLog::default();
        let numbers = |ms: f64, bytes: u64, packets: u64, lost: i64| BrowserNumbers {
            at_ms: Some(ms),
            all_bytes_received: bytes,
            packets_received: packets,
            packets_lost: lost,
            playout_delay_s: packets as f64 / 100.0,
            played: packets / 10,
            frames_decoded: packets / 10,
            ..BrowserNumbers::default()
        };
        log.push(numbers(1_000.0, 0, 0, 0), at(0), at(1_000));
        // Sooner than a sample may be: the sums alone are kept.
        log.push(numbers(1_100.0, 50_000, 50, 0), at(0), at(1_100));
        // 100,000 bytes in 0.8 s, although they were received after 1.5 s.
        log.push(numbers(1_800.0, 100_000, 90, 10), at(0), at(2_500));
        log.push(numbers(2_800.0, 10, 5, 0), at(0), at(3_500));
        let (first, samples) = log.since(0);
        assert_eq!((first, samples.len(), log.last().map(|l| l.packets_received)), (0, 3, Some(5)));
        assert_eq!((samples[0].received_bps, samples[0].loss), (None, None));
        let s = samples[1];
        assert_eq!((s.t_s, s.received_bps, s.loss), (2.5, Some(1e6), Some(0.1)));
        assert_eq!((s.playout_ms.map(f64::round), s.decoded_fps), (Some(100.0), Some(9.0 / 0.8)));
        assert_eq!((samples[2].received_bps, samples[2].loss, samples[2].playout_ms), (None, None, None));
        assert_eq!(log.since(2).1, samples[2..]);
    }

    #[test]
    fn what_a_stranger_says_has_bounds() {
        let mut log = BrowserLog::default();
        let numbers =
            BrowserNumbers { packets_lost: i64::MIN, packets_received: u64::MAX, ..BrowserNumbers::default() };
        let opposite = BrowserNumbers { packets_lost: i64::MAX, ..BrowserNumbers::default() };
        for n in 0..10_000 {
            let numbers = if n % 2 == 0 { numbers } else { opposite };
            log.push(
                BrowserNumbers { all_bytes_received: u64::MAX / 2 * (n % 2) as u64, ..numbers },
                at(0),
                at(600 * n),
            );
        }
        assert_eq!((log.samples.len(), log.first), (MAX_SAMPLES, 10_000 - MAX_SAMPLES as u64));
        assert_eq!(log.since(0).1.len(), MAX_AT_ONCE);
        assert!(log.all().iter().all(|s| s.loss.is_none_or(|l| (0.0..=1.0).contains(&l))));
        let wrong = |n: BrowserNumbers| n.check().expect_err("refused").field;
        assert_eq!(wrong(BrowserNumbers { remote_loss: Some(1.5), ..numbers }), "remote_loss");
        assert_eq!(wrong(BrowserNumbers { jitter_ms: Some(-1.0), ..numbers }), "jitter_ms");
        assert_eq!(wrong(BrowserNumbers { available_bps: Some(f64::NAN), ..numbers }), "available_bps");
        assert_eq!(numbers.check(), Ok(()));
    }
}
