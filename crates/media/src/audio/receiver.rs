//! Decodes audio packets to samples.

use crate::Verdict;
use crate::audio::{AudioDecoder, AudioError, AudioPacket, AudioPlayout, AudioSlot, AudioSlotContent, level_dbov};
use core::fmt;
use weir_units::Timestamp;

/// How a slot's samples were made.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum HeardContent {
    /// A packet was decoded.
    Decoded,
    /// A lost packet was recovered from the in-band FEC of the next one.
    Recovered,
    /// The packet is lost, late or undecodable, and was concealed.
    Concealed,
    /// Silence.
    Silence,
}

/// Played samples. They follow those of the previous slot without a gap.
#[derive(Clone, Copy, Debug)]
pub struct Heard<'a> {
    /// When the first sample is played.
    pub at: Timestamp,
    /// RTP timestamp of the first sample.
    pub rtp_timestamp: u32,
    /// How they were made.
    pub content: HeardContent,
    /// Samples at [`AUDIO_CLOCK_HZ`](crate::AUDIO_CLOCK_HZ), channels interleaved.
    pub pcm: &'a [i16],
    /// Audio level in -dBov (RFC 6464).
    pub level: u8,
}

/// Counters of an [`AudioReceiver`]. Those of playout are in [`AudioPlayout::stats`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AudioReceiverStats {
    /// Payloads that are not packets of the codec.
    pub malformed: u64,
    /// Slots decoded.
    pub decoded: u64,
    /// Slots recovered by in-band FEC.
    pub recovered: u64,
    /// Slots concealed.
    pub concealed: u64,
    /// Slots of silence.
    pub silent: u64,
    /// Packets that the decoder rejected; they are also concealed.
    pub undecodable: u64,
}

/// Orders, decodes and conceals. Sans-IO: pass it packets as they arrive, and take samples at [`Self::next_event`].
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
    /// A receiver with this playout and decoder.
    pub fn new(playout: AudioPlayout, decoder: Box<dyn AudioDecoder>) -> Self {
        Self { playout, decoder, pcm: Vec::new(), stats: AudioReceiverStats::default() }
    }
    /// Its playout.
    pub const fn playout(&self) -> &AudioPlayout {
        &self.playout
    }
    /// Its playout, mutably, for instance to set capture times.
    pub const fn playout_mut(&mut self) -> &mut AudioPlayout {
        &mut self.playout
    }
    /// Its counters.
    pub const fn stats(&self) -> &AudioReceiverStats {
        &self.stats
    }

    /// Takes a packet's payload with its unwrapped sequence number and RTP timestamp.
    ///
    /// # Errors
    /// The payload is not a packet of the codec: it is counted and not played.
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

    /// When the next samples are due; `None` while nothing is playing.
    pub fn next_event(&self) -> Option<Timestamp> {
        self.playout.next_event()
    }

    /// The samples of the slot that begins by `now`; call it until it returns `None`.
    pub fn poll(&mut self, now: Timestamp) -> Option<Heard<'_>> {
        let slot = self.playout.poll(now)?;
        self.pcm.clear();
        let content = self.fill(&slot);
        let wanted = slot.samples as usize * self.decoder.channels().count();
        // If the decoder fails the samples are silence. A packet has the length that it states, which the decoder keeps
        // to.
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
            // Decoders continue with the noise of the last packet.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audio::AudioDelay;
    use crate::audio::toy::ToyAudioDecoder;
    use weir_units::TimeDelta;

    #[test]
    fn packets_are_decoded_or_concealed() {
        let playout = AudioPlayout::new(AudioDelay::fixed(TimeDelta::from_millis(60)));
        let mut r = AudioReceiver::new(playout, Box::new(ToyAudioDecoder { poison: Some(3) }));
        r.playout_mut().set_capture_time(0, Timestamp::ZERO);
        // CELT, fullband, 20 ms: each packet contains its number.
        for n in [0u8, 1, 3, 5] {
            let at = Timestamp::from_millis(20 + 20 * i64::from(n));
            let verdict = r.on_packet(at, n.into(), u32::from(n) * 960, &[31 << 3, n, 0]);
            assert_eq!(verdict, Ok(Verdict::InTime));
        }
        let broken = r.on_packet(Timestamp::from_millis(130), 4, 4 * 960, &[31 << 3 | 1, 0]);
        assert!(broken.unwrap_err().to_string().contains("R3"));
        let mut heard = vec![];
        while let Some(h) = r.poll(Timestamp::from_millis(161)) {
            assert_eq!(h.pcm.len(), 960);
            heard.push((h.content, h.pcm[0], h.level));
        }
        use HeardContent::{Concealed, Decoded};
        assert_eq!(
            heard.iter().map(|h| (h.0, h.1)).collect::<Vec<_>>(),
            [(Decoded, 0), (Decoded, 256), (Concealed, -1), (Concealed, -1), (Concealed, -1), (Decoded, 5 << 8),]
        );
        assert_eq!((heard[0].2, heard[1].2), (127, 42));
        let s = r.stats();
        assert_eq!((s.malformed, s.decoded, s.concealed, s.undecodable), (1, 3, 3, 1));
    }

    #[test]
    fn the_next_packet_gives_back_a_lost_one_where_it_holds_a_copy() {
        let playout = AudioPlayout::new(AudioDelay::fixed(TimeDelta::from_millis(60)));
        let mut r = AudioReceiver::new(playout, Box::new(ToyAudioDecoder::default()));
        r.playout_mut().set_capture_time(0, Timestamp::ZERO);
        // SILK, wideband, 20 ms; the second has the flag of a copy.
        for (n, flags) in [(0u32, 0x80), (2, 0xc0)] {
            r.on_packet(Timestamp::from_millis(20), n.into(), n * 960, &[9 << 3, flags, 0]).unwrap();
        }
        let mut seen = vec![];
        while let Some(h) = r.poll(Timestamp::from_millis(100)) {
            seen.push((h.content, h.pcm[0]));
        }
        assert_eq!(seen[1], (HeardContent::Recovered, -2));
        assert_eq!((seen.len(), r.stats().recovered), (3, 1));
    }
}
