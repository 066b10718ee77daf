//! Compares played audio with the original.

use super::level::mean_power;
use crate::audio::Channels;
use std::collections::VecDeque;

/// Samples per channel over which levels are measured: 20 ms, so that the delay of codecs (6.5 ms in Opus, RFC 6716,
/// section 2) shifts little into the next chunk.
const CHUNK: usize = 960;
/// Most original chunks waiting for comparison: 20 s.
const MAX_WAITING: usize = 1_000;
/// Levels are not compared where the original is softer: -50 dBov.
const ACTIVE: f64 = 1e-5;
/// Lower bound of levels: -80 dBov.
const FLOOR: f64 = 1e-8;

/// The score of an [`AudioMeter`].
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct AudioScore {
    /// Chunks of 20 ms compared, in which the original is above -50 dBov.
    pub chunks: u64,
    /// Chunks of the original that were not played.
    pub unheard: u64,
    /// Sum of the level differences, in dB.
    sum: f64,
}

impl AudioScore {
    /// Mean absolute level difference in dB; `None` without chunks.
    pub fn mean_level_difference(&self) -> Option<f64> {
        (self.chunks > 0).then(|| self.sum / self.chunks as f64)
    }
}

/// Compares levels of played audio with those of the original, by RTP timestamp. This is no measure of perceived
/// quality: it shows how much of the audio is missing or concealed.
///
/// Pass originals in order, then played audio in order. Memory is bounded.
#[derive(Clone, Debug)]
pub struct AudioMeter {
    channels: usize,
    original: Chunker,
    heard: Chunker,
    waiting: VecDeque<(u32, f64)>,
    score: AudioScore,
}

/// Splits samples into chunks aligned to multiples of the chunk size in timestamps.
#[derive(Clone, Debug, Default)]
struct Chunker {
    start: u32,
    pcm: Vec<i16>,
}

impl Chunker {
    /// Returns the powers of complete chunks.
    fn push(&mut self, timestamp: u32, pcm: &[i16], channels: usize, mut each: impl FnMut(u32, f64)) {
        let expected = self.start.wrapping_add((self.pcm.len() / channels) as u32);
        let mut rest = pcm;
        if self.pcm.is_empty() || timestamp != expected {
            self.pcm.clear();
            // Samples before the first aligned timestamp are skipped.
            let off = timestamp % CHUNK as u32;
            let skip = if off == 0 { 0 } else { CHUNK as u32 - off };
            self.start = timestamp.wrapping_add(skip);
            rest = rest.get(skip as usize * channels..).unwrap_or_default();
        }
        let whole = CHUNK * channels;
        while !rest.is_empty() {
            let (now, behind) = rest.split_at(rest.len().min(whole - self.pcm.len()));
            self.pcm.extend_from_slice(now);
            rest = behind;
            if self.pcm.len() == whole {
                each(self.start, mean_power(&self.pcm));
                self.start = self.start.wrapping_add(CHUNK as u32);
                self.pcm.clear();
            }
        }
    }
}

impl AudioMeter {
    /// A meter for this number of channels.
    pub fn new(channels: Channels) -> Self {
        Self {
            channels: channels.count(),
            original: Chunker::default(),
            heard: Chunker::default(),
            waiting: VecDeque::new(),
            score: AudioScore::default(),
        }
    }

    /// Takes original samples.
    pub fn on_original(&mut self, rtp_timestamp: u32, pcm: &[i16]) {
        let (waiting, score) = (&mut self.waiting, &mut self.score);
        self.original.push(rtp_timestamp, pcm, self.channels, |t, power| {
            if waiting.len() == MAX_WAITING {
                waiting.pop_front();
                score.unheard += 1;
            }
            waiting.push_back((t, power));
        });
    }

    /// Takes played samples, with timestamps as counted by the source.
    pub fn on_heard(&mut self, rtp_timestamp: u32, pcm: &[i16]) {
        let (waiting, score) = (&mut self.waiting, &mut self.score);
        self.heard.push(rtp_timestamp, pcm, self.channels, |t, power| {
            while let Some(&(at, original)) = waiting.front().filter(|(at, _)| t.wrapping_sub(*at) as i32 >= 0) {
                waiting.pop_front();
                if at != t {
                    score.unheard += 1;
                } else if original >= ACTIVE {
                    score.chunks += 1;
                    score.sum += 10.0 * libm::log10(power.max(FLOOR) / original).abs();
                }
            }
        });
    }

    /// The score so far.
    pub const fn score(&self) -> &AudioScore {
        &self.score
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audio::{PcmSource, SpeechClip};

    #[test]
    fn the_same_differs_by_nothing_and_half_as_loud_by_six_decibels() {
        let mut pcm = vec![0; 48_000 * 3];
        SpeechClip::new(1).read(&mut pcm);
        let mut same = AudioMeter::new(Channels::Mono);
        let mut half = same.clone();
        for (n, packet) in pcm.chunks(480).enumerate() {
            let t = 4_000_000_000u32.wrapping_add(320 + n as u32 * 480);
            for meter in [&mut same, &mut half] {
                meter.on_original(t, packet);
            }
            same.on_heard(t, packet);
            half.on_heard(t, &packet.iter().map(|s| s / 2).collect::<Vec<_>>());
        }
        assert_eq!(same.score().mean_level_difference(), Some(0.0));
        assert!(same.score().chunks > 50, "{:?}", same.score());
        let six = half.score().mean_level_difference().unwrap();
        assert!((six - 6.02).abs() < 0.05, "{six}");
    }

    #[test]
    fn unplayed_audio_is_counted_and_memory_is_bounded() {
        let mut m = AudioMeter::new(Channels::Mono);
        for n in 0..2_000u32 {
            m.on_original(n * 960, &[9_000; 960]);
        }
        assert_eq!((m.waiting.len(), m.score().unheard), (MAX_WAITING, 1_000));
        m.on_heard(1_999 * 960, &[0; 960]);
        assert_eq!((m.score().unheard, m.score().chunks), (1_999, 1));
        assert!(m.score().mean_level_difference().unwrap() > 60.0);
    }
}
