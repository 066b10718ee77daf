//! Interfaces of audio encoders and decoders: samples in, packets out, and back.

use crate::AUDIO_CLOCK_HZ;
use crate::audio::PacketTime;
use core::fmt;
use weir_units::DataRate;

/// Audio codecs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum AudioCodec {
    /// Opus (RFC 6716; RTP payload format: RFC 7587).
    Opus,
}

impl AudioCodec {
    /// All of them.
    pub const ALL: [Self; 1] = [Self::Opus];
    /// The encoding name in SDP.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Opus => "opus",
        }
    }
    /// The codec with this encoding name, case-insensitively.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|c| c.name().eq_ignore_ascii_case(name))
    }
    /// The value of `a=rtpmap` after the payload type: for Opus always 48 kHz and two channels (RFC 7587, section 7).
    pub fn rtpmap(self) -> String {
        match self {
            Self::Opus => format!("{}/{AUDIO_CLOCK_HZ}/2", self.name()),
        }
    }
}

impl fmt::Display for AudioCodec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Number of channels; samples of two are interleaved, left first.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Channels {
    /// One.
    #[default]
    Mono,
    /// Two.
    Stereo,
}

impl Channels {
    /// The number.
    pub const fn count(self) -> usize {
        match self {
            Self::Mono => 1,
            Self::Stereo => 2,
        }
    }
}

/// Configuration of an audio encoder, which can be changed while it runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AudioEncoderConfig {
    /// Channels of the samples.
    pub channels: Channels,
    /// Target bit rate of payloads, 24 kbit/s. Opus takes 6 to 510 kbit/s (RFC 6716, section 2.1.1).
    pub bit_rate: DataRate,
    /// Duration of a packet, 20 ms.
    pub packet_time: PacketTime,
    /// Whether the bit rate may vary with what is coded; it does by default (RFC 7587, section 3.1.2).
    pub variable_bit_rate: bool,
    /// Whether packets include a coarse copy of the previous packet, in case it is lost (in-band FEC, RFC 6716,
    /// section 2.1.7); off by default. It takes part of the bit rate, and is used if `expected_loss` is above zero.
    pub in_band_fec: bool,
    /// Expected packet loss in percent (0 to 100).
    pub expected_loss: u8,
    /// Whether silence is sent as occasional packets only (DTX); off by default.
    pub dtx: bool,
    /// Complexity, 0 to 10; 9 by default, as in libopus.
    pub complexity: u8,
}

impl Default for AudioEncoderConfig {
    fn default() -> Self {
        Self {
            channels: Channels::Mono,
            bit_rate: DataRate::from_kbps(24),
            packet_time: PacketTime::Ms20,
            variable_bit_rate: true,
            in_band_fec: false,
            expected_loss: 0,
            dtx: false,
            complexity: 9,
        }
    }
}

/// Error of an audio codec.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum AudioError {
    /// The codec does not support the configuration.
    #[error("{codec} ({library}): {field} is {value}: expected {expected}")]
    Config {
        /// The codec.
        codec: AudioCodec,
        /// Its library.
        library: &'static str,
        /// The field of the configuration.
        field: &'static str,
        /// The value of the field.
        value: String,
        /// The supported values.
        expected: String,
    },
    /// The program was built without a library for it.
    #[error("{codec} is not built in: {way_out}")]
    NotBuilt {
        /// The codec.
        codec: AudioCodec,
        /// How to build with it.
        way_out: &'static str,
    },
    /// A packet cannot be decoded.
    #[error("{codec}: packet of {length} bytes: {what}")]
    Packet {
        /// The codec.
        codec: AudioCodec,
        /// Its length in bytes.
        length: usize,
        /// The fault.
        what: String,
    },
    /// The library reported a failure.
    #[error("{codec} ({library}): {what} failed: {message}")]
    Library {
        /// The codec.
        codec: AudioCodec,
        /// Its library.
        library: &'static str,
        /// The call that failed.
        what: &'static str,
        /// The library's message or error number.
        message: String,
    },
}

/// A coded packet.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CodedAudio {
    /// Its bytes, used as the RTP payload.
    pub data: Vec<u8>,
    /// Whether it need not be sent: silence, which the receiver generates (DTX).
    pub silence: bool,
}

/// Encodes samples at [`AUDIO_CLOCK_HZ`], one packet per call.
pub trait AudioEncoder: Send {
    /// The codec.
    fn codec(&self) -> AudioCodec;
    /// Its library.
    fn library(&self) -> &'static str;
    /// The current configuration.
    fn config(&self) -> &AudioEncoderConfig;
    /// Sets the configuration from the next packet on: bit rate, packet time, in-band FEC, expected loss, DTX and
    /// complexity.
    ///
    /// # Errors
    /// The codec or the library does not support it, or the number of channels differs. The previous configuration then
    /// stays.
    fn set_config(&mut self, config: &AudioEncoderConfig) -> Result<(), AudioError>;
    /// Encodes one packet into `out`, which is overwritten. `pcm` holds the samples of the packet time for all
    /// channels.
    ///
    /// # Errors
    /// `pcm` has the wrong length, or the library fails.
    fn encode(&mut self, pcm: &[i16], out: &mut CodedAudio) -> Result<(), AudioError>;
}

/// Decodes packets to samples at [`AUDIO_CLOCK_HZ`]. Every call appends to `pcm` and returns the number of samples per
/// channel appended. Packets must be passed in order, and missing ones replaced by one of the last two methods.
pub trait AudioDecoder: Send {
    /// The codec.
    fn codec(&self) -> AudioCodec;
    /// Its library.
    fn library(&self) -> &'static str;
    /// Channels of the samples.
    fn channels(&self) -> Channels;
    /// Decodes a packet.
    ///
    /// # Errors
    /// The packet cannot be decoded: nothing is appended, and the decoder can continue.
    fn decode(&mut self, packet: &[u8], pcm: &mut Vec<i16>) -> Result<u32, AudioError>;
    /// Generates samples in place of a missing packet.
    ///
    /// # Errors
    /// The library fails.
    fn conceal(&mut self, samples: u32, pcm: &mut Vec<i16>) -> Result<u32, AudioError>;
    /// Generates samples in place of a missing packet from the copy in the next packet (in-band FEC), or by concealment
    /// if there is none.
    ///
    /// # Errors
    /// `next` cannot be decoded.
    fn decode_fec(&mut self, next: &[u8], samples: u32, pcm: &mut Vec<i16>) -> Result<u32, AudioError>;
}

/// A source of samples at [`AUDIO_CLOCK_HZ`]: a microphone, a file, a clip.
pub trait PcmSource {
    /// Channels of the samples.
    fn channels(&self) -> Channels;
    /// Fills `pcm` with the next samples, channels interleaved.
    fn read(&mut self, pcm: &mut [i16]);
    /// Skips this number of samples per channel, as time passes while paused.
    fn skip(&mut self, samples: u64);
}
