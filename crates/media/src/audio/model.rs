//! A model of an audio encoder: packets with a size and without content.

use crate::audio::{AudioLimits, AudioSettings, PacketTime, TalkConfig, TalkSpurts, choose};
use crate::frame::ticks_of;
use crate::laplace::Laplace;
use crate::{AUDIO_CLOCK_HZ, Frame, FrameKind, FrameSource, LayerId, MediaError, MediaKind};
use rand_pcg::Pcg64Mcg;
use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};

/// The largest frame of Opus, and so the largest packet of up to 20 ms (RFC 6716, section 3.2.1).
const MAX_FRAME: u64 = 1_275;
/// Least size of a packet with audio: the TOC byte and two more. Up to two bytes are silence.
const LEAST_PACKET: u64 = 3;
/// Size of a packet that signals silence: a TOC byte.
const SILENCE: u64 = 1;
/// Size of a comfort-noise packet relative to the bit rate, of at most 20 ms (ropus 0.12 with the built-in clip, at 6
/// to 48 kbit/s and 20 and 60 ms: 0.6 to 0.85).
const NOISE: f64 = 0.7;
/// A pause is coded as speech for the first time span; then noise is sent once in the second (libopus:
/// `NB_SPEECH_FRAMES_BEFORE_DTX`, `MAX_CONSECUTIVE_DTX`, 10 and 20 frames of 20 ms).
const BEFORE_DTX: TimeDelta = TimeDelta::from_millis(200);
const DTX_UPDATE: TimeDelta = TimeDelta::from_millis(400);
/// A source not polled for longer than this skips the time since instead of catching up.
const LONGEST_LAG: TimeDelta = TimeDelta::from_secs(1);

/// Configuration of an [`AudioSource`].
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct AudioConfig {
    /// Bounds of packet time and bit rate.
    pub limits: AudioLimits,
    /// Talk spurts and pauses; `None` for continuous audio, such as music.
    pub talk: Option<TalkConfig>,
    /// Whether pauses are not sent except for a packet that signals silence and two every 400 ms, as in Opus. Otherwise
    /// they are coded like speech.
    pub dtx: bool,
    /// Scale of the Laplacian deviation of packet sizes (0 to 1), 0.15 (its mean in ropus 0.12 with the built-in clip
    /// is 0.12 to 0.16 at 12 to 48 kbit/s and 20 ms); 0 for constant bit rate.
    pub size_scale: f64,
}

impl Default for AudioConfig {
    fn default() -> Self {
        Self { limits: AudioLimits::default(), talk: Some(TalkConfig::CONVERSATION), dtx: true, size_scale: 0.15 }
    }
}

/// A model of an audio encoder: one packet per packet time; [`choose`] derives bit rate and packet time from the
/// target.
///
/// A packet is due when its last sample has been captured. A target of zero pauses the source; its rate is at least
/// [`AudioLimits::least`] otherwise.
#[derive(Clone, Debug)]
pub struct AudioSource {
    config: AudioConfig,
    rng: Pcg64Mcg,
    talk: Option<TalkSpurts>,
    overhead: DataSize,
    target: DataRate,
    settings: AudioSettings,
    /// Capture time of the next packet's first sample, and whether it follows silence that was not sent.
    start: Timestamp,
    after_silence: bool,
    /// Start of the current silence, when noise was last sent, and whether silence has been signalled.
    silent_since: Option<Timestamp>,
    noise_at: Timestamp,
    said: bool,
    next: Option<Next>,
    id: u64,
}

/// The next packet.
#[derive(Clone, Copy, Debug)]
struct Next {
    captured: Timestamp,
    packet_time: PacketTime,
    content: Content,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Content {
    Speech,
    Noise,
    Silence,
}

impl AudioSource {
    /// A source whose first sample is captured at `start`, once it has a target.
    ///
    /// # Errors
    /// A field of the configuration is invalid.
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
            said: false,
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

    /// Finds the next packet to send.
    fn prepare(&mut self) {
        if self.next.is_some() || self.target == DataRate::ZERO {
            return;
        }
        let packet_time = self.settings.packet_time;
        loop {
            let captured = self.start;
            let talking = !self.config.dtx || self.talk.as_mut().is_none_or(|t| t.is_talking(captured));
            self.start += packet_time.duration();
            let content = if talking {
                self.silent_since = None;
                Some(Content::Speech)
            } else {
                self.pause(captured)
            };
            if let Some(content) = content {
                self.next = Some(Next { captured, packet_time, content });
                return;
            }
            self.after_silence = true;
        }
    }

    /// The contents of a packet in a pause, if it is sent.
    fn pause(&mut self, captured: Timestamp) -> Option<Content> {
        let since = *self.silent_since.get_or_insert(captured);
        if captured - since < BEFORE_DTX {
            (self.noise_at, self.said) = (captured, false);
            Some(Content::Speech)
        } else if captured - self.noise_at >= DTX_UPDATE {
            (self.noise_at, self.said) = (captured, false);
            Some(Content::Noise)
        } else {
            (!core::mem::replace(&mut self.said, true)).then_some(Content::Silence)
        }
    }

    /// Draws the size of a packet at random.
    fn draw(&mut self, packet: Next) -> DataSize {
        let most = packet.packet_time.min(PacketTime::Ms20).duration();
        match packet.content {
            Content::Silence => return DataSize::from_bytes(SILENCE),
            Content::Noise => {
                let size = (self.settings.bit_rate.size_in(most).as_bytes() as f64 * NOISE) as u64;
                return DataSize::from_bytes(size.clamp(LEAST_PACKET, MAX_FRAME));
            }
            Content::Speech => {}
        }
        let mean = self.settings.bit_rate.size_in(packet.packet_time.duration()).as_bytes();
        let factor = 1.0 + Laplace { scale: self.config.size_scale }.draw(&mut self.rng);
        let frames = u64::from(packet.packet_time.samples().div_ceil(PacketTime::Ms20.samples()));
        DataSize::from_bytes(((mean as f64 * factor + 0.5) as u64).clamp(LEAST_PACKET, MAX_FRAME * frames))
    }
}

impl FrameSource for AudioSource {
    fn on_target(&mut self, rate: DataRate, now: Timestamp) {
        if self.target == DataRate::ZERO && self.start < now {
            // Samples of a pause are not captured: continue with the next packet on the time grid.
            let time = self.settings.packet_time.duration();
            let missed = ((now - self.start).as_nanos() - 1).div_euclid(time.as_nanos()) + 1;
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
        let marker = next.content == Content::Speech && core::mem::take(&mut self.after_silence);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audio::{AudioDelay, AudioPacket, AudioPlayout};

    fn kbps(n: u64) -> DataRate {
        DataRate::from_kbps(n)
    }
    fn source(change: impl FnOnce(&mut AudioConfig)) -> AudioSource {
        let mut c = AudioConfig::default();
        change(&mut c);
        AudioSource::new(c, Timestamp::ZERO, 5).unwrap()
    }
    fn until(s: &mut AudioSource, end: Timestamp) -> Vec<Frame> {
        std::iter::from_fn(|| {
            let at = s.next_frame_at().filter(|&at| at < end)?;
            s.poll_frame(at)
        })
        .collect()
    }
    fn bytes(frames: &[Frame]) -> u64 {
        frames.iter().map(|f| f.size.as_bytes()).sum()
    }

    #[test]
    fn packets_come_when_their_last_sample_is_captured() {
        let mut s = source(|c| (c.talk, c.size_scale) = (None, 0.0));
        assert_eq!((s.next_frame_at(), s.generated_rate()), (None, DataRate::ZERO));
        s.on_target(kbps(24), Timestamp::ZERO);
        assert_eq!(s.next_frame_at(), Some(Timestamp::from_millis(20)));
        let frames = until(&mut s, Timestamp::from_millis(110));
        let seen: Vec<_> =
            frames.iter().map(|f| (f.captured.as_millis(), f.rtp_timestamp, f.size.as_bytes())).collect();
        assert_eq!(seen, [(0, 0, 60), (20, 960, 60), (40, 1_920, 60), (60, 2_880, 60), (80, 3_840, 60)]);
        assert!(frames.iter().enumerate().all(|(n, f)| f.marker == (n == 0) && f.kind == FrameKind::Delta));
        assert_eq!(s.media(), MediaKind::Audio);
        // Packets of a pause are not sent later.
        s.on_target(DataRate::ZERO, Timestamp::from_millis(110));
        assert_eq!(s.next_frame_at(), None);
        s.on_target(kbps(24), Timestamp::from_millis(500));
        let next = until(&mut s, Timestamp::from_millis(530))[0];
        assert!(next.marker && next.captured >= Timestamp::from_millis(500), "{next:?}");
        assert_eq!(next.rtp_timestamp % 960, 0);
    }

    #[test]
    fn rate_and_packet_time_follow_the_target_with_headers() {
        let headers = DataSize::from_bytes(40);
        let mut s = source(|c| c.talk = None);
        s.set_packet_overhead(headers, Timestamp::ZERO);
        let mut from = Timestamp::ZERO;
        for (share, packet_time) in [(60, PacketTime::Ms20), (30, PacketTime::Ms40), (14, PacketTime::Ms60)] {
            s.on_target(kbps(share), from);
            let end = from + TimeDelta::from_secs(100);
            let frames = until(&mut s, end);
            assert_eq!(s.settings().packet_time, packet_time);
            let rate = (bytes(&frames) + 40 * frames.len() as u64) as f64 * 8.0 / 100_000.0;
            let wanted = share.min(48) as f64;
            assert!((0.97..1.01).contains(&(rate / wanted)), "{rate} of {wanted}");
            assert!(frames.windows(2).all(|w| w[1].captured > w[0].captured));
            from = end;
        }
    }

    #[test]
    fn pauses_cost_nearly_nothing_and_a_receiver_knows_them() {
        let (mut with, mut without) = (source(|_| {}), source(|c| c.dtx = false));
        let end = Timestamp::from_secs(500);
        for s in [&mut with, &mut without] {
            s.on_target(kbps(24), Timestamp::ZERO);
        }
        let (frames, all) = (until(&mut with, end), until(&mut without, end));
        assert_eq!(all.len(), 24_999);
        // 38.8 % of the time is speech; 200 ms of each pause are coded too.
        let share = bytes(&frames) as f64 / bytes(&all) as f64;
        assert!((0.4..0.55).contains(&share), "{share}");
        let spurts = frames.iter().filter(|f| f.marker).count();
        // One every 2.59 s, except for pauses below 200 ms.
        assert!((140..=195).contains(&spurts), "{spurts}");
        assert!(frames.iter().any(|f| f.size.as_bytes() == SILENCE));
        let mut p = AudioPlayout::new(AudioDelay::fixed(TimeDelta::from_millis(100)));
        p.set_capture_time(0, Timestamp::ZERO);
        for (n, f) in frames.iter().enumerate() {
            let now = f.captured + TimeDelta::from_millis(50);
            while p.poll(now).is_some() {}
            p.on_packet(now, &AudioPacket::sized(n as u64, f.rtp_timestamp, f.size));
        }
        let s = p.stats();
        assert_eq!((s.concealed_samples, s.late), (0, 0), "{s:?}");
        let spoken = s.played_samples as f64 / (s.played_samples + s.silent_samples) as f64;
        assert!((0.42..0.6).contains(&spoken), "{spoken}");
    }

    #[test]
    fn the_same_seed_gives_the_same_packets() {
        let run = |seed| {
            let mut s = AudioSource::new(AudioConfig::default(), Timestamp::ZERO, seed).unwrap();
            s.on_target(kbps(30), Timestamp::ZERO);
            until(&mut s, Timestamp::from_secs(20))
        };
        assert_eq!(run(1), run(1));
        assert_ne!(run(1), run(2));
        let wrong = AudioConfig { size_scale: 2.0, ..AudioConfig::default() };
        assert!(AudioSource::new(wrong, Timestamp::ZERO, 1).unwrap_err().to_string().contains("size_scale is 2"));
    }

    #[test]
    fn a_source_left_alone_does_not_catch_up() {
        let mut s = source(|c| c.talk = None);
        s.on_target(kbps(24), Timestamp::ZERO);
        let now = Timestamp::from_secs(60);
        let frames: Vec<_> = std::iter::from_fn(|| s.poll_frame(now)).collect();
        assert!(frames.len() <= 1, "{}", frames.len());
        assert!(s.next_frame_at().is_some_and(|at| at > now && at <= now + TimeDelta::from_millis(40)));
    }
}
