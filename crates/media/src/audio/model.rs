//! A model of an audio encoder: packets with a size and no content.

use crate::audio::{AudioLimits, AudioSettings, PacketTime, TalkConfig, TalkSpurts, choose};
use crate::frame::ticks_of;
use crate::laplace::Laplace;
use crate::{AUDIO_CLOCK_HZ, Frame, FrameKind, FrameSource, LayerId, MediaError, MediaKind};
use rand_pcg::Pcg64Mcg;
use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};

/// The largest frame of Opus, which a packet of up to 20 ms is (RFC 6716, section 3.2.1).
const MAX_FRAME: u64 = 1_275;
/// The least packet with something in it: TOC byte and a byte.
const LEAST_PACKET: u64 = 2;
/// Of a packet that updates comfort noise while nobody speaks (measured with libopus 1.3.1 at 24 kbit/s: 20 to 30 bytes).
const NOISE_PACKET: u64 = 25;
/// Noise is sent for so long behind a talk spurt, and then once in this time (libopus: `NB_SPEECH_FRAMES_BEFORE_DTX`,
/// `MAX_CONSECUTIVE_DTX`, 10 and 20 frames of 20 ms).
const BEFORE_DTX: TimeDelta = TimeDelta::from_millis(200);
const DTX_UPDATE: TimeDelta = TimeDelta::from_millis(400);
/// A source that is polled later than this has stood still: it goes on from now instead of catching up.
const LONGEST_LAG: TimeDelta = TimeDelta::from_secs(1);

/// What an [`AudioSource`] is made from.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct AudioConfig {
    /// Packet times and bit rates to choose from.
    pub limits: AudioLimits,
    /// Talk spurts and pauses; `None` for somebody who never stops, as music does.
    pub talk: Option<TalkConfig>,
    /// Whether pauses make no packets but one in 400 ms. Without it they are coded like speech.
    pub dtx: bool,
    /// Scale of the Laplacian deviation of packet sizes (0 to 1), 0.15; 0 for constant bit rate.
    pub size_scale: f64,
}

impl Default for AudioConfig {
    fn default() -> Self {
        Self { limits: AudioLimits::default(), talk: Some(TalkConfig::CONVERSATION), dtx: true, size_scale: 0.15 }
    }
}

/// An audio encoder as a model: a packet each packet time, whose bit rate and packet time [`choose`] takes from the target.
///
/// A packet is due when its last sample has been captured. A target of zero pauses it; below [`AudioLimits::least`] it gives
/// that all the same.
#[derive(Clone, Debug)]
pub struct AudioSource {
    config: AudioConfig,
    rng: Pcg64Mcg,
    talk: Option<TalkSpurts>,
    overhead: DataSize,
    target: DataRate,
    settings: AudioSettings,
    /// Capture time of the first sample of the next packet, and whether it follows a silence that was not sent.
    start: Timestamp,
    after_silence: bool,
    /// Since when nobody speaks, and when noise was sent last.
    silent_since: Option<Timestamp>,
    noise_at: Timestamp,
    next: Option<Next>,
    id: u64,
}

/// The packet that is due next.
#[derive(Clone, Copy, Debug)]
struct Next {
    captured: Timestamp,
    packet_time: PacketTime,
    talking: bool,
}

impl AudioSource {
    /// A source whose first sample is captured at `start`, once it has a target.
    ///
    /// # Errors
    /// Where a field of the configuration cannot be used.
    pub fn new(config: AudioConfig, start: Timestamp, seed: u64) -> Result<Self, MediaError> {
        config.limits.check()?;
        if !(0.0..=1.0).contains(&config.size_scale) {
            return Err(MediaError::new("audio source", "size_scale", config.size_scale, "a scale between 0 and 1"));
        }
        let talk = config.talk.map(|t| TalkSpurts::new(t, start, seed)).transpose()?;
        let settings = choose(DataRate::ZERO, DataSize::ZERO, &config.limits, None);
        Ok(Self {
            config,
            rng: Pcg64Mcg::new((u128::from(seed) << 64) | u128::from(seed ^ 0x9e37_79b9_7f4a_7c15)),
            talk,
            overhead: DataSize::ZERO,
            target: DataRate::ZERO,
            settings,
            start,
            after_silence: true,
            silent_since: None,
            noise_at: start,
            next: None,
            id: 0,
        })
    }

    /// The packet time and bit rate in force.
    pub const fn settings(&self) -> AudioSettings {
        self.settings
    }

    fn follow(&mut self) {
        if self.target > DataRate::ZERO {
            let current = (self.id > 0).then_some(self.settings);
            self.settings = choose(self.target, self.overhead, &self.config.limits, current);
        }
    }

    /// Finds the next packet that is sent.
    fn prepare(&mut self) {
        if self.next.is_some() || self.target == DataRate::ZERO {
            return;
        }
        let packet_time = self.settings.packet_time;
        loop {
            let captured = self.start;
            let talking = !self.config.dtx || self.talk.as_mut().is_none_or(|t| t.is_talking(captured));
            self.start += packet_time.duration();
            if talking {
                self.silent_since = None;
                self.next = Some(Next { captured, packet_time, talking });
                return;
            }
            let since = *self.silent_since.get_or_insert(captured);
            if captured - since < BEFORE_DTX || captured - self.noise_at >= DTX_UPDATE {
                self.noise_at = captured;
                self.next = Some(Next { captured, packet_time, talking });
                return;
            }
            self.after_silence = true;
        }
    }

    /// Draws the size of a packet.
    fn draw(&mut self, packet: Next) -> DataSize {
        let mean = self.settings.bit_rate.size_in(packet.packet_time.duration()).as_bytes();
        if !packet.talking {
            return DataSize::from_bytes(NOISE_PACKET.min(mean).max(LEAST_PACKET));
        }
        let factor = 1.0 + Laplace { scale: self.config.size_scale }.draw(&mut self.rng);
        let frames = u64::from(packet.packet_time.samples().div_ceil(PacketTime::Ms20.samples()));
        DataSize::from_bytes(((mean as f64 * factor + 0.5) as u64).clamp(LEAST_PACKET, MAX_FRAME * frames))
    }
}

impl FrameSource for AudioSource {
    fn on_target(&mut self, rate: DataRate, now: Timestamp) {
        if self.target == DataRate::ZERO && self.start < now {
            // Samples of a pause were never captured: on with the next on the grid.
            let time = self.settings.packet_time.duration();
            let missed = (now - self.start).as_nanos().div_euclid(time.as_nanos()) + 1;
            self.start += time * missed;
            self.after_silence = true;
        }
        self.target = rate;
        self.follow();
        if rate == DataRate::ZERO {
            self.next = None;
        }
        self.prepare();
    }

    fn next_frame_at(&self) -> Option<Timestamp> {
        self.next.map(|n| n.captured + n.packet_time.duration())
    }

    fn poll_frame(&mut self, now: Timestamp) -> Option<Frame> {
        let due = self.next_frame_at().filter(|&at| at <= now)?;
        if now - due > LONGEST_LAG {
            let target = core::mem::replace(&mut self.target, DataRate::ZERO);
            self.next = None;
            self.on_target(target, now);
            return None;
        }
        let next = self.next.take()?;
        let captured = next.captured;
        let marker = next.talking && core::mem::take(&mut self.after_silence);
        let frame = Frame {
            id: self.id,
            captured,
            size: self.draw(next),
            kind: FrameKind::Delta,
            rtp_timestamp: ticks_of(captured.as_nanos(), AUDIO_CLOCK_HZ) as u32,
            layer: LayerId::BASE,
            discardable: false,
            marker,
        };
        self.id += 1;
        self.prepare();
        Some(frame)
    }

    fn request_key_frame(&mut self, _: Timestamp) {}

    fn generated_rate(&self) -> DataRate {
        if self.target == DataRate::ZERO { DataRate::ZERO } else { self.settings.bit_rate }
    }

    fn media(&self) -> MediaKind {
        MediaKind::Audio
    }

    fn set_packet_overhead(&mut self, overhead: DataSize, _: Timestamp) {
        self.overhead = overhead;
        self.follow();
    }
}
