//! Audio: models and real codecs as sources of packets, the Opus payload format, playout and quality.
//!
//! An [`AudioSource`] is a [`FrameSource`](crate::FrameSource) like those of video. Each of its frames is one RTP
//! packet, due when its last sample has been captured; its timestamps tick at
//! [`AUDIO_CLOCK_HZ`](crate::AUDIO_CLOCK_HZ). Headers are a large part of audio's rate, so [`choose`] selects fewer and
//! longer packets at low rates.
//!
//! At the other end an [`AudioPlayout`] orders packets and determines what is played at each time: a packet, a lost
//! packet recovered from the in-band FEC of the next one, or concealment. An [`AudioReceiver`] decodes that, and an
//! [`AudioMeter`] compares levels with the original. [`emodel`] rates delay and loss by the E-model.
//!
//! ```
//! use weir_media::audio::{AudioLimits, PacketTime, choose};
//! use weir_units::{DataRate, DataSize};
//! // IPv4, UDP and RTP are 40 bytes per packet: 16 kbit/s of every 50 packets per second.
//! let headers = DataSize::from_bytes(40);
//! let settings = choose(DataRate::from_kbps(48), headers, &AudioLimits::default(), None);
//! assert_eq!((settings.packet_time, settings.bit_rate), (PacketTime::Ms20, DataRate::from_kbps(32)));
//! ```
//!
//! Audio has one packet per frame, of variable length: headers are a third to a half of audio at low rates, so packet
//! time and bit rate follow the share including headers (`audio::choose`). It has its own playout, since sound
//! continues over missing packets.

mod choose;
mod codec;
pub mod emodel;
mod encoded;
mod fmtp;
mod level;
mod meter;
mod model;
mod opus;
mod playout;
mod receiver;
mod speech;
mod talk;
#[cfg(test)]
mod toy;

pub use choose::{AudioLimits, AudioSettings, PacketTime, choose};
pub use codec::{
    AudioCodec, AudioDecoder, AudioEncoder, AudioEncoderConfig, AudioError, Channels, CodedAudio, PcmSource,
};
pub use encoded::{AudioTap, EncodedAudio, EncodedAudioStats};
pub use fmtp::OpusParams;
pub use level::level_dbov;
pub use meter::{AudioMeter, AudioScore};
pub use model::{AudioConfig, AudioSource};
pub use opus::{OpusBandwidth, OpusMode, OpusPacket, OpusToc, depacketise, packetise};
pub use playout::{AudioDelay, AudioPacket, AudioPlayout, AudioPlayoutStats, AudioSlot, AudioSlotContent};
pub use receiver::{AudioReceiver, AudioReceiverStats, Heard, HeardContent};
pub use speech::SpeechClip;
pub use talk::{TalkConfig, TalkSpurts};
