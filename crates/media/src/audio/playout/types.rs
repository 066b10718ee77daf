//! What playout takes in, and what it gives.

use crate::audio::{AudioError, OpusPacket};
use crate::playout::DelayStats;
use weir_units::{DataSize, TimeDelta, Timestamp};

/// From capture to playout.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AudioDelay {
    /// The least delay.
    pub min: TimeDelta,
    /// The most. Where it is `min`, the delay is fixed, and what comes later is discarded.
    pub max: TimeDelta,
}

impl AudioDelay {
    /// A fixed delay.
    pub const fn fixed(delay: TimeDelta) -> Self {
        Self { min: delay, max: delay }
    }
    /// A delay that follows jitter up to `max`.
    pub const fn up_to(max: TimeDelta) -> Self {
        Self { min: TimeDelta::ZERO, max }
    }
}

/// What playout has to know of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AudioPacket<'a> {
    /// Sequence number that never wraps.
    pub sequence: u64,
    /// RTP timestamp: of its first sample.
    pub rtp_timestamp: u32,
    /// How many samples of a channel it holds; `None` where only the steps of timestamps tell.
    pub samples: Option<u32>,
    /// Whether it says that nobody speaks, after which nothing need come (DTX).
    pub silence: bool,
    /// Whether it holds a copy of what the packet before has (in-band FEC).
    pub has_fec: bool,
    /// How loud it is in -dBov, where its header extension tells (RFC 6464).
    pub level: Option<u8>,
    /// Size of the payload.
    pub size: DataSize,
    /// The payload; empty where only its size is known.
    pub payload: &'a [u8],
}

impl<'a> AudioPacket<'a> {
    /// A packet of Opus.
    ///
    /// # Errors
    /// Where the payload is none.
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

    /// A packet of which only the size is known, as of an [`AudioSource`](crate::audio::AudioSource). Up to two bytes are
    /// silence.
    pub const fn sized(sequence: u64, rtp_timestamp: u32, size: DataSize) -> Self {
        let silence = size.as_bytes() <= 2;
        Self { sequence, rtp_timestamp, samples: None, silence, has_fec: false, level: None, size, payload: &[] }
    }
}

/// What is heard in a slot.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AudioSlotContent {
    /// A packet, with its payload.
    Packet(Vec<u8>),
    /// A packet is lost, and this payload of the one behind it holds a copy of it.
    Recovered(Vec<u8>),
    /// A packet is lost or late: something is made up in its place.
    Concealed,
    /// Nobody speaks.
    Silence,
}

/// A stretch of what is heard. Slots follow each other without a gap in time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AudioSlot {
    /// When its first sample is heard.
    pub at: Timestamp,
    /// RTP timestamp of its first sample; of what is put in that of what follows.
    pub rtp_timestamp: u32,
    /// Samples of a channel.
    pub samples: u32,
    /// What it is.
    pub content: AudioSlotContent,
}

/// What playout has seen. Samples are those of one channel, at [`AUDIO_CLOCK_HZ`](crate::AUDIO_CLOCK_HZ).
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct AudioPlayoutStats {
    /// Packets received, without duplicates.
    pub packets: u64,
    /// Their payload bytes.
    pub size: DataSize,
    /// Packets that came again.
    pub duplicates: u64,
    /// Packets that could not be placed: with a timestamp that is not believed, or too many.
    pub unusable: u64,
    /// Packets that came when their turn was over.
    pub late: u64,
    /// Packets played.
    pub played: u64,
    /// Samples of packets played.
    pub played_samples: u64,
    /// Samples recovered by in-band FEC.
    pub recovered_samples: u64,
    /// Samples concealed.
    pub concealed_samples: u64,
    /// Samples of silence that the sender did not send.
    pub silent_samples: u64,
    /// Samples of quiet packets left out to make the delay shorter.
    pub skipped_samples: u64,
    /// From capture to playout, over packets played.
    pub delay: DelayStats,
}

impl AudioPlayoutStats {
    /// The share of speech that was concealed; `None` of nothing.
    pub fn concealed_share(&self) -> Option<f64> {
        let all = self.played_samples + self.recovered_samples + self.concealed_samples;
        (all > 0).then(|| self.concealed_samples as f64 / all as f64)
    }
}
