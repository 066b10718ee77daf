//! A built-in clip of synthetic speech, so that everything runs without a download.

use crate::AUDIO_CLOCK_HZ;
use crate::audio::{Channels, PcmSource};
use core::f64::consts::TAU;

const RATE: f64 = AUDIO_CLOCK_HZ as f64;
/// Samples per syllable: five syllables a second.
const SYLLABLE: u64 = AUDIO_CLOCK_HZ as u64 / 5;
/// Syllables of a phrase including the pause after it.
const PHRASE: u64 = 12;
/// Bounds of the syllables spoken in it.
const SPOKEN: (u64, u64) = (4, 9);
/// First three formants in Hz of the vowels of "heed", "head", "had", "hod", "who'd" and "hud", spoken by men (Peterson and
/// Barney 1952, table II).
const VOWELS: [[f64; 3]; 6] = [
    [270.0, 2_290.0, 3_010.0],
    [530.0, 1_840.0, 2_480.0],
    [660.0, 1_720.0, 2_410.0],
    [730.0, 1_090.0, 2_440.0],
    [300.0, 870.0, 2_240.0],
    [640.0, 1_190.0, 2_390.0],
];
/// Amplitudes of the formants, and their widths in Hz.
const FORMANTS: [(f64, f64); 3] = [(1.0, 90.0), (0.45, 110.0), (0.2, 160.0)];
/// Upper end of the harmonics, in Hz.
const HIGHEST: f64 = 4_000.0;
/// Levels of the voice, a fricative and the room, relative to full scale.
const VOICE: f64 = 0.28;
const FRICATIVE: f64 = 0.06;
const ROOM: f64 = 0.000_4;

fn hash(a: u64, b: u64, seed: u64) -> u64 {
    let mut h = a.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ b.wrapping_mul(0xc2b2_ae3d_27d4_eb4f) ^ seed;
    h = (h ^ h >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    h = (h ^ h >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    h ^ h >> 31
}

/// A random number from 0 to 1.
fn unit(a: u64, b: u64, seed: u64) -> f64 {
    (hash(a, b, seed) >> 11) as f64 / (1u64 << 53) as f64
}

/// Synthetic speech: voiced syllables with the formants of vowels, fricatives at the beginning of some, and pauses
/// between phrases with room noise at -68 dBov.
///
/// Every sample is a pure function of its number and the seed, the same on every machine. One channel.
#[derive(Clone, Debug)]
pub struct SpeechClip {
    seed: u64,
    next: u64,
    syllable: Syllable,
}

/// The constants of a syllable.
#[derive(Clone, Debug)]
struct Syllable {
    number: u64,
    spoken: bool,
    fricative: bool,
    /// Initial pitch in Hz, and its fall per second.
    pitch: f64,
    fall: f64,
    /// Amplitudes of the harmonics.
    harmonics: Vec<f64>,
}

impl Syllable {
    fn new(number: u64, seed: u64) -> Self {
        let (phrase, place) = (number / PHRASE, number % PHRASE);
        let spoken = SPOKEN.0 + hash(phrase, 1, seed) % (SPOKEN.1 - SPOKEN.0 + 1);
        let vowel = VOWELS[(hash(number, 2, seed) % VOWELS.len() as u64) as usize];
        let pitch = 135.0 - 4.0 * place as f64 + 14.0 * unit(number, 3, seed);
        let strength = |f: f64| -> f64 {
            let formant = |(centre, (gain, width)): (&f64, &(f64, f64))| {
                let x = (f - centre) / width;
                gain / (1.0 + x * x)
            };
            vowel.iter().zip(&FORMANTS).map(formant).sum()
        };
        let count = (HIGHEST / pitch) as u64;
        let mut harmonics: Vec<f64> = (1..=count).map(|k| strength(k as f64 * pitch)).collect();
        // All vowels have the same level.
        let power: f64 = harmonics.iter().map(|h| h * h / 2.0).sum();
        let loud = VOICE * (0.6 + 0.4 * unit(number, 4, seed)) / libm::sqrt(power).max(1e-9) / 2.0;
        harmonics.iter_mut().for_each(|h| *h *= loud);
        Self {
            number,
            spoken: place < spoken,
            fricative: hash(number, 5, seed).is_multiple_of(3),
            pitch,
            fall: 30.0 * unit(number, 6, seed),
            harmonics,
        }
    }

    /// A sample `t` seconds into the syllable.
    fn voice(&self, t: f64) -> f64 {
        let length = SYLLABLE as f64 / RATE;
        let (rise, release) = (t / 0.03, (length - t) / 0.05);
        let envelope = rise.min(release).clamp(0.0, 1.0);
        let phase = TAU * (self.pitch * t - self.fall * t * t / 2.0);
        let sum: f64 = self.harmonics.iter().zip(1u32..).map(|(h, k)| h * libm::sin(f64::from(k) * phase)).sum();
        envelope * envelope * (3.0 - 2.0 * envelope) * sum
    }
}

impl SpeechClip {
    /// A clip from its first sample. Seeds give different speech.
    pub fn new(seed: u64) -> Self {
        Self { seed, next: 0, syllable: Syllable::new(0, seed) }
    }

    /// The number of the next sample.
    pub const fn position(&self) -> u64 {
        self.next
    }

    /// Whether the sample of this number is speech.
    pub fn is_spoken(&self, sample: u64) -> bool {
        Syllable::new(sample / SYLLABLE, self.seed).spoken
    }

    fn sample(&mut self) -> i16 {
        let n = self.next;
        self.next += 1;
        if n / SYLLABLE != self.syllable.number {
            self.syllable = Syllable::new(n / SYLLABLE, self.seed);
        }
        let noise = |n: u64| unit(n, 7, self.seed) * 2.0 - 1.0;
        let mut x = ROOM * noise(n);
        let t = (n % SYLLABLE) as f64 / RATE;
        if self.syllable.spoken {
            x += self.syllable.voice(t);
            if self.syllable.fricative && t < 0.06 {
                // High-pass by a difference.
                let envelope = libm::sin(t / 0.06 * core::f64::consts::PI);
                x += FRICATIVE * envelope * (noise(n) - noise(n.wrapping_sub(1)));
            }
        }
        libm::round(x.clamp(-1.0, 1.0) * 32_767.0) as i16
    }
}

impl PcmSource for SpeechClip {
    fn channels(&self) -> Channels {
        Channels::Mono
    }
    fn read(&mut self, pcm: &mut [i16]) {
        pcm.iter_mut().for_each(|s| *s = self.sample());
    }
    fn skip(&mut self, samples: u64) {
        self.next += samples;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audio::level_dbov;

    fn read(seed: u64, samples: usize) -> Vec<i16> {
        let mut pcm = vec![0; samples];
        SpeechClip::new(seed).read(&mut pcm);
        pcm
    }
    fn fnv(pcm: &[i16]) -> u64 {
        let bytes = pcm.iter().flat_map(|s| s.to_le_bytes());
        bytes.fold(0xcbf2_9ce4_8422_2325, |h: u64, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3))
    }

    #[test]
    fn the_same_on_every_machine() {
        assert_eq!(format!("{:016x}", fnv(&read(1, 48_000 * 3))), "e1cfeff7c8d8e776");
    }

    #[test]
    fn samples_depend_on_their_number_alone() {
        let whole = read(9, 48_000);
        let mut clip = SpeechClip::new(9);
        clip.skip(20_000);
        let mut part = vec![0; 5_000];
        clip.read(&mut part);
        assert_eq!((&part[..], clip.position()), (&whole[20_000..25_000], 25_000));
        assert_ne!(read(8, 9_600), read(9, 9_600));
    }

    #[test]
    fn it_speaks_and_pauses_at_the_levels_of_speech() {
        let clip = SpeechClip::new(1);
        let pcm = read(1, 48_000 * 20);
        let (mut spoken, mut silent) = (vec![], vec![]);
        for (n, chunk) in pcm.chunks(SYLLABLE as usize).enumerate() {
            let levels = if clip.is_spoken(n as u64 * SYLLABLE) { &mut spoken } else { &mut silent };
            levels.push(level_dbov(chunk));
        }
        assert!((35..=75).contains(&spoken.len()), "{}", spoken.len());
        assert!(spoken.iter().all(|l| (15..=30).contains(l)), "{spoken:?}");
        assert!(silent.iter().all(|l| (65..=80).contains(l)), "{silent:?}");
        assert!(pcm.iter().all(|s| s.unsigned_abs() < 32_767), "it clips");
    }
}
