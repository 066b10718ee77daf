//! Real audio encoders as sources, in real or simulated time.

use crate::audio::{
    AudioEncoder, AudioEncoderConfig, AudioLimits, AudioSettings, CodedAudio, PcmSource, choose, packetise,
};
use crate::frame::ticks_of;
use crate::{AUDIO_CLOCK_HZ, Frame, FrameKind, FrameSource, LayerId, MediaError, MediaKind, Payloads, SourceFeedback};
use core::fmt;
use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};

/// A source not polled for longer than this skips the time since instead of catching up.
const LONGEST_LAG: TimeDelta = TimeDelta::from_secs(1);

/// Counters of an [`EncodedAudio`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EncodedAudioStats {
    /// Packets encoded.
    pub encoded: u64,
    /// Packets sent.
    pub packets: u64,
    /// Packets of silence, of which only the first of each run is sent (DTX).
    pub silent: u64,
    /// Failures of the encoder; the packet is then lost.
    pub encoder_errors: u64,
}

/// Called with the samples of each packet when it is encoded, and their RTP timestamp without the session's random
/// offset.
pub type AudioTap = Box<dyn FnMut(u32, &[i16]) + Send>;

/// Samples and a real encoder: a packet is encoded when time reaches its last sample, by any clock.
///
/// Bit rate and packet time follow the target by [`choose`]. A target of zero pauses the source; samples of a pause are
/// skipped. The fraction lost in receivers' reports ([`SourceFeedback::FractionLost`]) becomes the loss for which
/// in-band FEC is dimensioned. Failures are counted and do not stop the source.
pub struct EncodedAudio {
    pcm: Box<dyn PcmSource + Send>,
    encoder: Box<dyn AudioEncoder>,
    tap: Option<AudioTap>,
    limits: AudioLimits,
    overhead: DataSize,
    target: DataRate,
    settings: AudioSettings,
    config: AudioEncoderConfig,
    start: Timestamp,
    /// First sample of the next packet, relative to `start`.
    position: u64,
    after_silence: bool,
    /// Whether the last packet was silence.
    silent: bool,
    samples: Vec<i16>,
    coded: CodedAudio,
    id: u64,
    stats: EncodedAudioStats,
}

impl fmt::Debug for EncodedAudio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut f = f.debug_struct("EncodedAudio");
        f.field("codec", &self.encoder.codec()).field("config", self.encoder.config()).field("stats", &self.stats);
        f.finish_non_exhaustive()
    }
}

impl EncodedAudio {
    /// A source whose first sample is captured at `start`, once it has a target.
    ///
    /// # Errors
    /// The samples and the encoder have different channels, or the limits are invalid.
    pub fn new(
        pcm: Box<dyn PcmSource + Send>,
        encoder: Box<dyn AudioEncoder>,
        limits: AudioLimits,
        start: Timestamp,
    ) -> Result<Self, MediaError> {
        limits.check()?;
        let config = *encoder.config();
        if pcm.channels() != config.channels {
            let expected = format!("{:?}, as the samples", pcm.channels());
            return Err(MediaError::new("audio encoder", "channels", format!("{:?}", config.channels), expected));
        }
        let settings = AudioSettings { packet_time: config.packet_time, bit_rate: config.bit_rate };
        Ok(Self {
            pcm,
            encoder,
            tap: None,
            limits,
            overhead: DataSize::ZERO,
            target: DataRate::ZERO,
            settings,
            config,
            start,
            position: 0,
            after_silence: true,
            silent: false,
            samples: Vec::new(),
            coded: CodedAudio::default(),
            id: 0,
            stats: EncodedAudioStats::default(),
        })
    }

    /// Sets a callback for the samples of each packet.
    pub fn set_tap(&mut self, tap: AudioTap) {
        self.tap = Some(tap);
    }
    /// The counters.
    pub const fn stats(&self) -> &EncodedAudioStats {
        &self.stats
    }
    /// The encoder.
    pub fn encoder(&self) -> &dyn AudioEncoder {
        &*self.encoder
    }
    /// The packet time and bit rate in force.
    pub const fn settings(&self) -> AudioSettings {
        self.settings
    }

    fn follow(&mut self) {
        if self.target == DataRate::ZERO {
            return;
        }
        let current = (self.stats.encoded > 0).then_some(self.settings);
        self.settings = choose(self.target, self.overhead, &self.limits, current);
        self.config.bit_rate = self.settings.bit_rate;
        self.config.packet_time = self.settings.packet_time;
    }

    fn time_of(&self, position: u64) -> Timestamp {
        let ns = u128::from(position) * 1_000_000_000 / u128::from(AUDIO_CLOCK_HZ);
        self.start + TimeDelta::from_nanos(i64::try_from(ns).unwrap_or(i64::MAX))
    }

    /// Skips the samples captured before `at`, in whole packets.
    fn skip_to(&mut self, at: Timestamp) {
        let passed = ticks_of((at - self.time_of(self.position)).as_nanos(), AUDIO_CLOCK_HZ);
        let step = u64::from(self.settings.packet_time.samples());
        let skipped = u64::try_from(passed).unwrap_or(0).div_ceil(step) * step;
        self.pcm.skip(skipped);
        self.position += skipped;
        self.after_silence |= skipped > 0;
    }

    /// Encodes the next packet; returns whether it is sent.
    fn encode(&mut self, rtp_timestamp: u32) -> bool {
        if self.config != *self.encoder.config() && self.encoder.set_config(&self.config).is_err() {
            self.stats.encoder_errors += 1;
            self.config = *self.encoder.config();
            self.settings = AudioSettings { packet_time: self.config.packet_time, bit_rate: self.config.bit_rate };
        }
        let count = self.settings.packet_time.samples() as usize * self.config.channels.count();
        self.samples.resize(count, 0);
        self.pcm.read(&mut self.samples);
        if let Some(tap) = &mut self.tap {
            tap(rtp_timestamp, &self.samples);
        }
        self.stats.encoded += 1;
        if self.encoder.encode(&self.samples, &mut self.coded).is_err() {
            self.stats.encoder_errors += 1;
            return false;
        }
        if !self.coded.silence && !self.coded.data.is_empty() {
            self.silent = false;
            return true;
        }
        self.stats.silent += 1;
        // The first one is sent, so that receivers can distinguish a pause from a loss (libwebrtc, as of 2024:
        // `WebRtcOpus_Encode`).
        let first = !core::mem::replace(&mut self.silent, true) && !self.coded.data.is_empty();
        self.after_silence |= !first;
        first
    }
}

impl FrameSource for EncodedAudio {
    fn on_target(&mut self, rate: DataRate, now: Timestamp) {
        if self.target == DataRate::ZERO {
            self.skip_to(now);
        }
        self.target = rate;
        self.follow();
    }

    fn next_frame_at(&self) -> Option<Timestamp> {
        let end = self.position + u64::from(self.settings.packet_time.samples());
        (self.target > DataRate::ZERO).then(|| self.time_of(end))
    }

    fn poll_frame(&mut self, now: Timestamp) -> Option<Frame> {
        loop {
            let due = self.next_frame_at().filter(|&at| at <= now)?;
            if now - due > LONGEST_LAG {
                self.skip_to(now);
                return None;
            }
            let captured = self.time_of(self.position);
            let rtp_timestamp =
                (ticks_of(self.start.as_nanos(), AUDIO_CLOCK_HZ) as u32).wrapping_add(self.position as u32);
            let sent = self.encode(rtp_timestamp);
            self.position += u64::from(self.settings.packet_time.samples());
            if !sent {
                continue;
            }
            self.stats.packets += 1;
            let frame = Frame {
                id: self.id,
                captured,
                size: DataSize::from_bytes(self.coded.data.len() as u64),
                kind: FrameKind::Delta,
                rtp_timestamp,
                layer: LayerId::BASE,
                discardable: false,
                marker: core::mem::take(&mut self.after_silence),
            };
            self.id += 1;
            return Some(frame);
        }
    }

    fn request_key_frame(&mut self, _: Timestamp) {}

    fn generated_rate(&self) -> DataRate {
        if self.target == DataRate::ZERO { DataRate::ZERO } else { self.settings.bit_rate }
    }

    fn take_payloads(&mut self, max: DataSize, out: &mut Payloads) -> bool {
        // A packet above the payload limit is not sent; at 60 ms and 510 kbit/s that is above 1,500 bytes.
        if packetise(&self.coded.data, max, out).is_err() {
            self.stats.encoder_errors += 1;
        }
        true
    }

    fn on_feedback(&mut self, feedback: SourceFeedback, _: Timestamp) -> bool {
        let SourceFeedback::FractionLost(lost) = feedback else { return false };
        self.config.expected_loss = (u32::from(lost) * 100).div_ceil(256) as u8;
        true
    }

    fn media(&self) -> MediaKind {
        MediaKind::Audio
    }

    fn set_packet_overhead(&mut self, overhead: DataSize, _: Timestamp) {
        self.overhead = overhead;
        self.follow();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audio::toy::{Stairs, ToyAudioEncoder};
    use crate::audio::{Channels, OpusPacket, PacketTime};

    fn source(encoder: ToyAudioEncoder) -> EncodedAudio {
        let pcm = Box::new(Stairs::default());
        EncodedAudio::new(pcm, Box::new(encoder), AudioLimits::default(), Timestamp::ZERO).unwrap()
    }
    fn until(s: &mut EncodedAudio, end: i64) -> Vec<(Frame, Vec<u8>)> {
        let mut all = vec![];
        while let Some(at) = s.next_frame_at().filter(|&at| at < Timestamp::from_millis(end)) {
            // None for silence.
            let Some(f) = s.poll_frame(at) else { continue };
            let mut out = Payloads::default();
            assert!(s.take_payloads(DataSize::from_bytes(1_200), &mut out));
            all.push((f, out.iter().next().map(|p| p.0.to_vec()).unwrap_or_default()));
        }
        all
    }
    /// The steps of [`Stairs`] in a packet's frames.
    fn steps(payload: &[u8]) -> Vec<u8> {
        OpusPacket::parse(payload).unwrap().frames().map(|f| f[0]).collect()
    }

    #[test]
    fn samples_are_encoded_when_their_time_has_come() {
        let mut s = source(ToyAudioEncoder::default());
        assert_eq!((s.next_frame_at(), s.generated_rate()), (None, DataRate::ZERO));
        s.set_packet_overhead(DataSize::from_bytes(40), Timestamp::ZERO);
        s.on_target(DataRate::from_kbps(48), Timestamp::ZERO);
        let seen = until(&mut s, 61);
        assert_eq!(
            seen.iter().map(|(f, p)| (f.captured.as_millis(), f.rtp_timestamp, steps(p))).collect::<Vec<_>>(),
            [(0, 0, vec![0]), (20, 960, vec![1]), (40, 1_920, vec![2]),]
        );
        // 32 kbit/s make 80 bytes in 20 ms.
        assert!(seen.iter().all(|(f, p)| f.size.as_bytes() == 80 && p.len() == 80));
        // At a lower rate packets become longer, from the next on.
        s.on_target(DataRate::from_kbps(16), Timestamp::from_millis(61));
        let seen = until(&mut s, 181);
        assert_eq!(
            seen.iter().map(|(f, p)| (f.rtp_timestamp, steps(p))).collect::<Vec<_>>(),
            [(2_880, vec![3, 4, 5]), (5_760, vec![6, 7, 8]),]
        );
        assert_eq!(s.settings().packet_time, PacketTime::Ms60);
        assert!(s.settings().with_headers(DataSize::from_bytes(40)) <= DataRate::from_kbps(16));
    }

    #[test]
    fn a_pause_skips_samples_not_captured() {
        let mut s = source(ToyAudioEncoder::default());
        s.on_target(DataRate::from_kbps(24), Timestamp::ZERO);
        assert_eq!(until(&mut s, 41).len(), 2);
        s.on_target(DataRate::ZERO, Timestamp::from_millis(41));
        assert!(until(&mut s, 500).is_empty());
        s.on_target(DataRate::from_kbps(24), Timestamp::from_millis(990));
        let seen = until(&mut s, 1_045);
        assert_eq!(
            seen.iter().map(|(f, p)| (f.captured.as_millis(), f.marker, steps(p))).collect::<Vec<_>>(),
            [(1_000, true, vec![50]), (1_020, false, vec![51]),]
        );
        // After a minute without polling it does not catch up either.
        assert_eq!(s.poll_frame(Timestamp::from_secs(60)), None);
        assert!(s.next_frame_at().is_some_and(|at| at > Timestamp::from_secs(60)));
    }

    #[test]
    fn of_a_silence_the_first_packet_is_sent_and_failures_are_counted() {
        let mut s = source(ToyAudioEncoder { silent: 3..8, fails: vec![10], ..ToyAudioEncoder::default() });
        s.on_target(DataRate::from_kbps(24), Timestamp::ZERO);
        let seen = until(&mut s, 281);
        let at: Vec<_> = seen.iter().map(|(f, p)| (f.rtp_timestamp / 960, p.len(), f.marker)).collect();
        assert_eq!(
            at,
            [
                (0, 60, true),
                (1, 60, false),
                (2, 60, false),
                (3, 1, false),
                (8, 60, true),
                (9, 60, false),
                (11, 60, false),
                (12, 60, false),
                (13, 60, false),
            ]
        );
        let s = s.stats();
        assert_eq!((s.encoded, s.packets, s.silent, s.encoder_errors), (14, 9, 5, 1));
    }

    #[test]
    fn reported_loss_reaches_the_encoder_and_refused_values_change_nothing() {
        let mut s = source(ToyAudioEncoder::default());
        s.on_target(DataRate::from_kbps(24), Timestamp::ZERO);
        assert!(s.on_feedback(SourceFeedback::FractionLost(26), Timestamp::ZERO));
        assert!(!s.on_feedback(SourceFeedback::SliceSize(None), Timestamp::ZERO));
        until(&mut s, 21);
        assert_eq!(s.encoder().config().expected_loss, 11);
        s.on_feedback(SourceFeedback::FractionLost(255), Timestamp::ZERO);
        until(&mut s, 41);
        assert_eq!((s.encoder().config().expected_loss, s.stats().encoder_errors), (11, 1));
        let stereo = AudioEncoderConfig { channels: Channels::Stereo, ..AudioEncoderConfig::default() };
        let encoder = Box::new(ToyAudioEncoder { config: stereo, ..ToyAudioEncoder::default() });
        let made = EncodedAudio::new(Box::new(Stairs::default()), encoder, AudioLimits::default(), Timestamp::ZERO);
        assert!(made.unwrap_err().to_string().contains("channels is Stereo"));
    }
}
