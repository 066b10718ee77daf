//! What an audio encoder and a decoder are to the rest: samples in, packets out, and back.

use crate::AUDIO_CLOCK_HZ;
use crate::audio::PacketTime;
use core::fmt;
use weir_units::DataRate;

/// How audio is coded.
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
    /// The codec of this encoding name, in any case.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|c| c.name().eq_ignore_ascii_case(name))
    }
    /// The value of `a=rtpmap` behind the payload type: of Opus always 48 kHz and two channels (RFC 7587, section 7).
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

/// How many channels samples have; those of two take turns, left first.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Channels {
    /// One.
    #[default]
    Mono,
    /// Two.
    Stereo,
}

impl Channels {
    /// How many they are.
    pub const fn count(self) -> usize {
        match self {
            Self::Mono => 1,
            Self::Stereo => 2,
        }
    }
}

/// What an audio encoder is made from, and what can be changed while it runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AudioEncoderConfig {
    /// Channels of the samples.
    pub channels: Channels,
    /// Target bit rate of payloads, 24 kbit/s. Opus takes 6 to 510 kbit/s (RFC 6716, section 2.1.1).
    pub bit_rate: DataRate,
    /// How much a packet holds, 20 ms.
    pub packet_time: PacketTime,
    /// Whether the bit rate may vary with what is coded; it does by default (RFC 7587, section 3.1.2).
    pub variable_bit_rate: bool,
    /// Whether packets hold a coarse copy of what the packet before has, for the case that it is lost (in-band FEC, RFC
    /// 6716, section 2.1.7); off by default. It takes some of the bit rate and is used where `expected_loss` is above zero.
    pub in_band_fec: bool,
    /// Packets that are expected to be lost, in percent (0 to 100).
    pub expected_loss: u8,
    /// Whether silence makes no packets but one now and then (DTX); off by default.
    pub dtx: bool,
    /// How much computing is spent, 0 to 10; 9 by default, as in libopus.
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

/// What an audio codec cannot do, or has failed in.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum AudioError {
    /// The codec does not have what the configuration asks for.
    #[error("{codec} ({library}): {field} is {value}: expected {expected}")]
    Config {
        /// The codec.
        codec: AudioCodec,
        /// The library behind it.
        library: &'static str,
        /// The field of the configuration.
        field: &'static str,
        /// What stands there.
        value: String,
        /// What may stand there.
        expected: String,
    },
    /// The program was built without a library for it.
    #[error("{codec} is not built in: {way_out}")]
    NotBuilt {
        /// The codec.
        codec: AudioCodec,
        /// What to build with.
        way_out: &'static str,
    },
    /// A packet cannot be decoded.
    #[error("{codec}: packet of {length} bytes: {what}")]
    Packet {
        /// The codec.
        codec: AudioCodec,
        /// Its length.
        length: usize,
        /// What is wrong with it.
        what: String,
    },
    /// The library reports a failure.
    #[error("{codec} ({library}): {what} failed: {message}")]
    Library {
        /// The codec.
        codec: AudioCodec,
        /// The library behind it.
        library: &'static str,
        /// The call that failed.
        what: &'static str,
        /// What the library says, or its number.
        message: String,
    },
}

/// A coded packet.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CodedAudio {
    /// Its bytes, which are an RTP payload.
    pub data: Vec<u8>,
    /// Whether it need not be sent: silence, which the receiver makes by itself (DTX).
    pub silence: bool,
}

/// Makes packets of samples at [`AUDIO_CLOCK_HZ`], one call after the other.
pub trait AudioEncoder: Send {
    /// What it makes.
    fn codec(&self) -> AudioCodec;
    /// The library behind it.
    fn library(&self) -> &'static str;
    /// Its configuration, as changed since.
    fn config(&self) -> &AudioEncoderConfig;
    /// A new configuration, from the next packet on: bit rate, packet time, in-band FEC, expected loss, DTX and complexity.
    ///
    /// # Errors
    /// Where the codec does not have it or the library refuses it, or the channels differ. The one before holds then.
    fn set_config(&mut self, config: &AudioEncoderConfig) -> Result<(), AudioError>;
    /// Codes one packet into `out`, which is overwritten. `pcm` holds the samples of the packet time, for all channels.
    ///
    /// # Errors
    /// Where `pcm` has another length, or the library fails.
    fn encode(&mut self, pcm: &[i16], out: &mut CodedAudio) -> Result<(), AudioError>;
}

/// Makes samples at [`AUDIO_CLOCK_HZ`] of packets. Every call appends to `pcm` and gives how many samples of a channel it
/// appended; packets must be given in order, those that are missing by one of the last two.
pub trait AudioDecoder: Send {
    /// What it reads.
    fn codec(&self) -> AudioCodec;
    /// The library behind it.
    fn library(&self) -> &'static str;
    /// Channels of the samples.
    fn channels(&self) -> Channels;
    /// Decodes a packet.
    ///
    /// # Errors
    /// Where it cannot be decoded, whatever it holds: nothing is appended then, and the decoder goes on.
    fn decode(&mut self, packet: &[u8], pcm: &mut Vec<i16>) -> Result<u32, AudioError>;
    /// Makes so many samples of a channel in place of a packet that is missing.
    ///
    /// # Errors
    /// Where the library fails.
    fn conceal(&mut self, samples: u32, pcm: &mut Vec<i16>) -> Result<u32, AudioError>;
    /// Makes so many samples in place of a packet that is missing, from what the packet behind it holds of it (in-band FEC);
    /// where that holds nothing, it is concealed.
    ///
    /// # Errors
    /// Where `next` cannot be decoded.
    fn decode_fec(&mut self, next: &[u8], samples: u32, pcm: &mut Vec<i16>) -> Result<u32, AudioError>;
}

/// Samples in order at [`AUDIO_CLOCK_HZ`]: a microphone, a file, a clip.
pub trait PcmSource {
    /// Channels of the samples.
    fn channels(&self) -> Channels;
    /// Fills `pcm` with the next samples; channels take turns.
    fn read(&mut self, pcm: &mut [i16]);
    /// Leaves out so many samples of a channel, as time passes while nobody listens.
    fn skip(&mut self, samples: u64);
}
