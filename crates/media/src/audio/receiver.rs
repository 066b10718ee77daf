//! From packets of audio to samples.

use crate::Verdict;
use crate::audio::{AudioDecoder, AudioError, AudioPacket, AudioPlayout, AudioSlot, AudioSlotContent, level_dbov};
use core::fmt;
use weir_units::Timestamp;

/// What was made of a slot.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum HeardContent {
    /// A packet was decoded.
    Decoded,
    /// A lost packet was recovered from the in-band FEC of the next one.
    Recovered,
    /// Something was made up in place of a packet that is lost or late or cannot be decoded.
    Concealed,
    /// Nobody speaks.
    Silence,
}

/// Samples that are heard. They follow those of the slot before without a gap.
#[derive(Clone, Copy, Debug)]
pub struct Heard<'a> {
    /// When the first one is heard.
    pub at: Timestamp,
    /// RTP timestamp of the first one.
    pub rtp_timestamp: u32,
    /// What they are made of.
    pub content: HeardContent,
    /// Samples at [`AUDIO_CLOCK_HZ`](crate::AUDIO_CLOCK_HZ); channels take turns.
    pub pcm: &'a [i16],
    /// How loud they are, in -dBov (RFC 6464).
    pub level: u8,
}

/// What an [`AudioReceiver`] has made of its slots. What playout did is in [`AudioPlayout::stats`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AudioReceiverStats {
    /// Payloads that are no packets of the codec.
    pub malformed: u64,
    /// Slots decoded.
    pub decoded: u64,
    /// Slots recovered by in-band FEC.
    pub recovered: u64,
    /// Slots concealed.
    pub concealed: u64,
    /// Slots of silence.
    pub silent: u64,
    /// Packets that the decoder refused; they are concealed, too.
    pub undecodable: u64,
}

/// Orders, decodes and conceals. Sans-IO: give it packets as they come, and take samples when [`Self::next_event`] says.
pub struct AudioReceiver {
    playout: AudioPlayout,
    decoder: Box<dyn AudioDecoder>,
    pcm: Vec<i16>,
    stats: AudioReceiverStats,
}

impl fmt::Debug for AudioReceiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AudioReceiver").field("stats", &self.stats).finish_non_exhaustive()
    }
}

impl AudioReceiver {
    /// A receiver of what this decoder reads.
    pub fn new(playout: AudioPlayout, decoder: Box<dyn AudioDecoder>) -> Self {
        Self { playout, decoder, pcm: Vec::new(), stats: AudioReceiverStats::default() }
    }
    /// Its playout.
    pub const fn playout(&self) -> &AudioPlayout {
        &self.playout
    }
    /// The same, as to tell capture times.
    pub const fn playout_mut(&mut self) -> &mut AudioPlayout {
        &mut self.playout
    }
    /// What it has made of its slots.
    pub const fn stats(&self) -> &AudioReceiverStats {
        &self.stats
    }

    /// Takes the payload of a packet, by its sequence number, unwrapped, and its RTP timestamp.
    ///
    /// # Errors
    /// Where the payload is no packet of the codec: it is counted and not played.
    pub fn on_packet(
        &mut self,
        now: Timestamp,
        sequence: u64,
        rtp_timestamp: u32,
        payload: &[u8],
    ) -> Result<Verdict, AudioError> {
        let packet = AudioPacket::opus(sequence, rtp_timestamp, payload).inspect_err(|_| self.stats.malformed += 1)?;
        Ok(self.playout.on_packet(now, &packet))
    }

    /// When the next samples are heard; `None` while nothing is playing.
    pub fn next_event(&self) -> Option<Timestamp> {
        self.playout.next_event()
    }

    /// The samples of the slot that begins by `now`; ask again until there are none.
    pub fn poll(&mut self, now: Timestamp) -> Option<Heard<'_>> {
        let slot = self.playout.poll(now)?;
        self.pcm.clear();
        let content = self.fill(&slot);
        let wanted = slot.samples as usize * self.decoder.channels().count();
        // A decoder that fails leaves silence; packets hold what they say, which a decoder keeps to.
        self.pcm.resize(wanted, 0);
        match content {
            HeardContent::Decoded => self.stats.decoded += 1,
            HeardContent::Recovered => self.stats.recovered += 1,
            HeardContent::Concealed => self.stats.concealed += 1,
            HeardContent::Silence => self.stats.silent += 1,
        }
        let level = level_dbov(&self.pcm);
        Some(Heard { at: slot.at, rtp_timestamp: slot.rtp_timestamp, content, pcm: &self.pcm, level })
    }

    fn fill(&mut self, slot: &AudioSlot) -> HeardContent {
        let (decoder, pcm, n) = (&mut self.decoder, &mut self.pcm, slot.samples);
        let (made, content) = match &slot.content {
            AudioSlotContent::Packet(packet) => (decoder.decode(packet, pcm), HeardContent::Decoded),
            AudioSlotContent::Recovered(next) => (decoder.decode_fec(next, n, pcm), HeardContent::Recovered),
            AudioSlotContent::Concealed => (decoder.conceal(n, pcm), HeardContent::Concealed),
            // Decoders go on with the noise of the last packet.
            AudioSlotContent::Silence => (decoder.conceal(n, pcm), HeardContent::Silence),
        };
        if made.is_ok() {
            return content;
        }
        self.stats.undecodable += u64::from(matches!(content, HeardContent::Decoded | HeardContent::Recovered));
        pcm.clear();
        let _ = decoder.conceal(n, pcm);
        HeardContent::Concealed
    }
}
