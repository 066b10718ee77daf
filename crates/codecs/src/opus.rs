//! Opus by ropus, a port of libopus in fixed point to Rust.

use std::panic::{AssertUnwindSafe, catch_unwind};
use weir_media::AUDIO_CLOCK_HZ;
use weir_media::audio::{
    AudioCodec, AudioDecoder, AudioEncoder, AudioEncoderConfig, AudioError, Channels, CodedAudio, OpusPacket,
    PacketTime,
};

pub(crate) const LIBRARY: &str = "ropus";
/// Bit rates supported by Opus (RFC 6716, section 2.1.1).
const RATES: core::ops::RangeInclusive<u64> = 6_000..=510_000;
/// Highest complexity of the library.
const MAX_COMPLEXITY: u8 = 10;
/// Largest packet of up to 60 ms in bytes: three frames of 1,275 bytes and their lengths (RFC 6716, section 3.2).
const MAX_PACKET: usize = 3 * 1_275 + 7;
/// Samples per channel in the longest packet, 120 ms.
const MAX_SAMPLES: u32 = AUDIO_CLOCK_HZ / 1_000 * 120;
/// Granularity of the library's concealment, 2.5 ms.
const CONCEAL_STEP: u32 = AUDIO_CLOCK_HZ / 400;

/// The library's version, which it does not report itself.
pub(crate) fn version() -> String {
    "0.12".into()
}

fn refusal(field: &'static str, value: impl ToString, expected: impl ToString) -> AudioError {
    let (value, expected) = (value.to_string(), expected.to_string());
    AudioError::Config { codec: AudioCodec::Opus, library: LIBRARY, field, value, expected }
}

fn failure(what: &'static str, message: impl ToString) -> AudioError {
    AudioError::Library { codec: AudioCodec::Opus, library: LIBRARY, what, message: message.to_string() }
}

const fn channels(channels: Channels) -> ropus::Channels {
    match channels {
        Channels::Mono => ropus::Channels::Mono,
        Channels::Stereo => ropus::Channels::Stereo,
    }
}

fn check(config: &AudioEncoderConfig) -> Result<(), AudioError> {
    if !RATES.contains(&config.bit_rate.as_bps()) {
        let expected = format!("{} to {} bit/s", RATES.start(), RATES.end());
        return Err(refusal("bit_rate", config.bit_rate.as_bps(), expected));
    }
    if config.complexity > MAX_COMPLEXITY {
        return Err(refusal("complexity", config.complexity, format!("0 to {MAX_COMPLEXITY}")));
    }
    if config.expected_loss > 100 {
        return Err(refusal("expected_loss", config.expected_loss, "0 to 100 %"));
    }
    Ok(())
}

/// Encodes Opus in speech mode.
pub(crate) struct Encoder {
    inner: ropus::Encoder,
    config: AudioEncoderConfig,
}

impl Encoder {
    pub(crate) fn new(config: &AudioEncoderConfig) -> Result<Self, AudioError> {
        check(config)?;
        let inner = ropus::Encoder::builder(AUDIO_CLOCK_HZ, channels(config.channels), ropus::Application::Voip)
            .build()
            .map_err(|e| failure("Encoder::build", e))?;
        let mut encoder = Self { inner, config: *config };
        encoder.apply(config)?;
        Ok(encoder)
    }

    fn apply(&mut self, c: &AudioEncoderConfig) -> Result<(), AudioError> {
        let fec = if c.in_band_fec { ropus::InbandFec::Enabled } else { ropus::InbandFec::Disabled };
        let e = &mut self.inner;
        e.set_bitrate(ropus::Bitrate::Bits(c.bit_rate.as_bps() as u32)).map_err(|e| failure("set_bitrate", e))?;
        e.set_vbr(c.variable_bit_rate).map_err(|e| failure("set_vbr", e))?;
        e.set_inband_fec(fec).map_err(|e| failure("set_inband_fec", e))?;
        e.set_packet_loss_perc(c.expected_loss).map_err(|e| failure("set_packet_loss_perc", e))?;
        e.set_dtx(c.dtx).map_err(|e| failure("set_dtx", e))?;
        e.set_complexity(c.complexity).map_err(|e| failure("set_complexity", e))
    }
}

impl AudioEncoder for Encoder {
    fn codec(&self) -> AudioCodec {
        AudioCodec::Opus
    }
    fn library(&self) -> &'static str {
        LIBRARY
    }
    fn config(&self) -> &AudioEncoderConfig {
        &self.config
    }

    fn set_config(&mut self, config: &AudioEncoderConfig) -> Result<(), AudioError> {
        check(config)?;
        if config.channels != self.config.channels {
            let expected = format!("{:?}, as the encoder was made", self.config.channels);
            return Err(refusal("channels", format!("{:?}", config.channels), expected));
        }
        if let Err(e) = self.apply(config) {
            // The library has already accepted the previous configuration.
            let before = self.config;
            self.apply(&before)?;
            return Err(e);
        }
        self.config = *config;
        Ok(())
    }

    fn encode(&mut self, pcm: &[i16], out: &mut CodedAudio) -> Result<(), AudioError> {
        (out.silence, out.data) = (false, core::mem::take(&mut out.data));
        let wanted = self.config.packet_time.samples() as usize * self.config.channels.count();
        if pcm.len() != wanted {
            out.data.clear();
            return Err(refusal(
                "pcm",
                pcm.len(),
                format!("{wanted} samples, {} of all channels", self.config.packet_time),
            ));
        }
        out.data.resize(MAX_PACKET, 0);
        let coded = self.inner.encode(pcm, &mut out.data);
        out.data.truncate(*coded.as_ref().unwrap_or(&0));
        coded.map_err(|e| failure("encode", e))?;
        out.silence = self.config.dtx && OpusPacket::parse(&out.data).is_ok_and(|p| p.is_silence());
        Ok(())
    }
}

/// Decodes Opus.
pub(crate) struct Decoder {
    inner: ropus::Decoder,
    channels: Channels,
}

fn open(of: Channels) -> Result<ropus::Decoder, AudioError> {
    ropus::Decoder::new(AUDIO_CLOCK_HZ, channels(of)).map_err(|e| failure("Decoder::new", e))
}

impl Decoder {
    pub(crate) fn new(channels: Channels) -> Result<Self, AudioError> {
        Ok(Self { inner: open(channels)?, channels })
    }

    /// Appends up to this many samples of a packet, or of concealment if it is empty.
    fn run(
        &mut self,
        packet: &[u8],
        samples: u32,
        mode: ropus::DecodeMode,
        pcm: &mut Vec<i16>,
    ) -> Result<u32, AudioError> {
        let (start, count) = (pcm.len(), self.channels.count());
        pcm.resize(start + samples as usize * count, 0);
        let (inner, room) = (&mut self.inner, &mut pcm[start..]);
        // The library is plain Rust: if a packet makes it panic, only that packet is lost.
        let made = catch_unwind(AssertUnwindSafe(|| inner.decode(packet, room, mode)));
        let decoded = match made {
            Ok(Ok(n)) => Ok((n as u32).min(samples)),
            Ok(Err(e)) => Err(e.to_string()),
            Err(_) => {
                self.inner = open(self.channels)?;
                Err("the library panicked".into())
            }
        };
        pcm.truncate(start + decoded.as_ref().map_or(0, |n| *n as usize) * count);
        decoded.map_err(|what| AudioError::Packet { codec: AudioCodec::Opus, length: packet.len(), what })
    }
}

impl AudioDecoder for Decoder {
    fn codec(&self) -> AudioCodec {
        AudioCodec::Opus
    }
    fn library(&self) -> &'static str {
        LIBRARY
    }
    fn channels(&self) -> Channels {
        self.channels
    }

    fn decode(&mut self, packet: &[u8], pcm: &mut Vec<i16>) -> Result<u32, AudioError> {
        OpusPacket::parse(packet)?;
        self.run(packet, MAX_SAMPLES, ropus::DecodeMode::Normal, pcm)
    }

    fn conceal(&mut self, samples: u32, pcm: &mut Vec<i16>) -> Result<u32, AudioError> {
        let (mut left, count) = (samples, self.channels.count());
        while left > 0 {
            let now = left.min(MAX_SAMPLES);
            let made = self.run(&[], now.next_multiple_of(CONCEAL_STEP), ropus::DecodeMode::Normal, pcm)?;
            let surplus = made.saturating_sub(now);
            pcm.truncate(pcm.len() - surplus as usize * count);
            if made == 0 {
                return Err(failure("decode", "nothing concealed"));
            }
            left -= made.min(now);
        }
        Ok(samples)
    }

    fn decode_fec(&mut self, next: &[u8], samples: u32, pcm: &mut Vec<i16>) -> Result<u32, AudioError> {
        let packet = OpusPacket::parse(next)?;
        if !packet.has_fec() || PacketTime::of_samples(samples).is_none() {
            return self.conceal(samples, pcm);
        }
        self.run(next, samples, ropus::DecodeMode::Fec, pcm)
    }
}
