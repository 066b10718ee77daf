//! Inputs and outputs of audio playout.

use crate::audio::{AudioError, OpusPacket};
use crate::playout::DelayStats;
use weir_units::{DataSize, TimeDelta, Timestamp};

/// Bounds of the delay from capture to playout.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AudioDelay {
    /// The least delay.
    pub min: TimeDelta,
    /// The greatest delay. If equal to `min` the delay is fixed, and later packets are discarded.
    pub max: TimeDelta,
}

impl AudioDelay {
    /// A fixed delay.
    pub const fn fixed(delay: TimeDelta) -> Self {
        Self { min: delay, max: delay }
    }
    /// An adaptive delay of up to `max`.
    pub const fn up_to(max: TimeDelta) -> Self {
        Self { min: TimeDelta::ZERO, max }
    }
}

/// A packet's properties for playout.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AudioPacket<'a> {
    /// Unwrapped sequence number.
    pub sequence: u64,
    /// RTP timestamp of its first sample.
    pub rtp_timestamp: u32,
    /// Samples per channel; `None` if only the step of timestamps shows it.
    pub samples: Option<u32>,
    /// Whether it signals silence, after which packets may stop (DTX).
    pub silence: bool,
    /// Whether it includes a copy of the previous packet (in-band FEC).
    pub has_fec: bool,
    /// Audio level in -dBov from its header extension, if any (RFC 6464).
    pub level: Option<u8>,
    /// Size of the payload.
    pub size: DataSize,
    /// The payload; empty if only its size is known.
    pub payload: &'a [u8],
}

impl<'a> AudioPacket<'a> {
    /// A packet of Opus.
    ///
    /// # Errors
    /// The payload is not an Opus packet.
    pub fn opus(sequence: u64, rtp_timestamp: u32, payload: &'a [u8]) -> Result<Self, AudioError> {
        let packet = OpusPacket::parse(payload)?;
        Ok(Self {
            sequence,
            rtp_timestamp,
            samples: Some(packet.samples()),
            silence: packet.is_silence(),
            has_fec: packet.has_fec(),
            level: None,
            size: DataSize::from_bytes(payload.len() as u64),
            payload,
        })
    }

    /// A packet with a size only, as from an [`AudioSource`](crate::audio::AudioSource). Up to two bytes are silence.
    pub const fn sized(sequence: u64, rtp_timestamp: u32, size: DataSize) -> Self {
        let silence = size.as_bytes() <= 2;
        Self { sequence, rtp_timestamp, samples: None, silence, has_fec: false, level: None, size, payload: &[] }
    }
}

/// The content of a slot.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AudioSlotContent {
    /// A packet, with its payload.
    Packet(Vec<u8>),
    /// The packet is lost, and this payload of the next one includes a copy.
    Recovered(Vec<u8>),
    /// The packet is lost or late: it is concealed.
    Concealed,
    /// Silence.
    Silence,
}

/// A span of playout. Slots follow each other without gaps in time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AudioSlot {
    /// When its first sample is played.
    pub at: Timestamp,
    /// RTP timestamp of its first sample; for inserted samples that of the next packet.
    pub rtp_timestamp: u32,
    /// Samples per channel.
    pub samples: u32,
    /// Its content.
    pub content: AudioSlotContent,
}

/// Statistics of playout. Samples are per channel, at [`AUDIO_CLOCK_HZ`](crate::AUDIO_CLOCK_HZ).
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct AudioPlayoutStats {
    /// Packets received, without duplicates.
    pub packets: u64,
    /// Their payload bytes.
    pub size: DataSize,
    /// Duplicate packets.
    pub duplicates: u64,
    /// Packets rejected for their timestamp or for lack of room.
    pub unusable: u64,
    /// Packets received after their playout time.
    pub late: u64,
    /// Packets played.
    pub played: u64,
    /// Samples of packets played.
    pub played_samples: u64,
    /// Samples recovered by in-band FEC.
    pub recovered_samples: u64,
    /// Samples concealed.
    pub concealed_samples: u64,
    /// Samples of silence not sent by the sender.
    pub silent_samples: u64,
    /// Samples of quiet packets skipped to shorten the delay.
    pub skipped_samples: u64,
    /// Longest time from the end of a packet played to the next one.
    pub longest_silence: TimeDelta,
    /// Delay from capture to playout, over packets played.
    pub delay: DelayStats,
}

impl AudioPlayoutStats {
    /// The share of speech that was concealed; `None` without speech.
    pub fn concealed_share(&self) -> Option<f64> {
        let all = self.played_samples + self.recovered_samples + self.concealed_samples;
        (all > 0).then(|| self.concealed_samples as f64 / all as f64)
    }
}
