//! Sound of a call: speech that this end makes, and what it hears.

use super::StartError;
use crate::sdp::{Section, further_ssrc};
use weir_fec::Protection;
use weir_media::AdaptivePlayout;
use weir_media::audio::{
    AudioCodec, AudioDecoder, AudioEncoder, AudioEncoderConfig, AudioLimits, AudioSlotContent, Channels, EncodedAudio,
    OpusParams, SpeechClip, level_dbov,
};
use weir_session::allocation::{Demand, MediaKind};
use weir_session::{
    Endpoint, IncomingConfig, IncomingId, OutgoingConfig, OutgoingId, OutgoingOptions, ParityFormat, RepairChoice,
    StreamIdentity,
};
use weir_units::{DataRate, TimeDelta, Timestamp};

/// Rates with headers: of 6 kbit/s in packets of 60 ms, and of 32 kbit/s in packets of 20 ms (`AudioLimits`).
const LEAST: DataRate = DataRate::from_kbps(16);
const MOST: DataRate = DataRate::from_kbps(64);
/// Longest time from capture to playout of what the browser sends.
const DEADLINE: TimeDelta = TimeDelta::from_millis(400);
/// Longest time in the queue of the pacer.
const QUEUE: TimeDelta = TimeDelta::from_millis(300);
/// Level from which a slot counts as audible, in -dBov (RFC 6464): speech is at 20 to 40.
const AUDIBLE: u8 = 60;
const UNUSED: u8 = 1;

/// Whether there is a codec for it.
pub(super) fn is_built_in() -> bool {
    weir_codecs::audio_list().iter().any(|l| l.codec == AudioCodec::Opus && l.built_in)
}

/// Encoder and decoder before the call begins.
pub(super) struct SoundPlan {
    encoder: Option<Box<dyn AudioEncoder>>,
    decoder: Option<Box<dyn AudioDecoder>>,
}

impl SoundPlan {
    pub(super) fn new(section: &Section) -> Result<Self, StartError> {
        // Formats that the other end would receive. Parameters that do not parse are those of another format.
        let params: OpusParams = section.format.as_deref().and_then(|f| f.parse().ok()).unwrap_or_default();
        let config = AudioEncoderConfig {
            in_band_fec: params.useinbandfec.unwrap_or(false),
            dtx: params.usedtx.unwrap_or(false),
            ..AudioEncoderConfig::default()
        };
        let encoder =
            section.direction.sends.then(|| weir_codecs::audio_encoder(AudioCodec::Opus, &config)).transpose()?;
        let decoder = || weir_codecs::audio_decoder(AudioCodec::Opus, Channels::Mono);
        Ok(Self { encoder, decoder: section.direction.receives.then(decoder).transpose()? })
    }

    /// Adds its streams to a session; `n` is the section's number among the further ones.
    pub(super) fn begin(
        self,
        (n, section): (usize, &Section),
        ssrc: u32,
        endpoint: &mut Endpoint,
        now: Timestamp,
    ) -> Result<Sound, StartError> {
        let identity = |ssrc| StreamIdentity {
            ssrc,
            payload_type: section.payload_type,
            clock_rate: MediaKind::Audio.clock_hz(),
            parity_payload_type: UNUSED,
            parity_format: ParityFormat::default(),
            reed_solomon_payload_type: UNUSED,
            rlc_payload_type: UNUSED,
            retransmission_payload_type: UNUSED,
            repair_ssrc: None,
            retransmission_ssrc: None,
            mid: None,
            rid: None,
        };
        let mut sound = Sound { sent: None, hears: None, heard: Heard::default() };
        if let Some(encoder) = self.encoder {
            let source = EncodedAudio::new(Box::new(SpeechClip::new(1)), encoder, AudioLimits::default(), now)
                .map_err(|e| StartError::Sound(e.to_string()))?;
            let demand = Demand { least: LEAST, most: MOST, media: MediaKind::Audio, ..Demand::default() };
            let identity = identity(further_ssrc(ssrc, n));
            let options = OutgoingOptions {
                max_queue_age: Some(QUEUE),
                // Opus has its own.
                repair: RepairChoice::Fixed(Protection::Off),
                ..OutgoingOptions::default()
            };
            let config = OutgoingConfig::new(identity, source.into_source(), demand).with(options);
            sound.sent = endpoint.add_outgoing(config, now).ok();
        }
        if let Some(decoder) = self.decoder {
            let config = IncomingConfig {
                adaptive_playout: Some(AdaptivePlayout::up_to(DEADLINE)),
                content: true,
                ..IncomingConfig::new(identity(section.sources.0.unwrap_or(0)), MediaKind::Audio)
            };
            let id = endpoint.add_incoming(config, now).ok();
            sound.hears = id.map(|id| Hears { id, decoder, pcm: Vec::new() });
        }
        Ok(sound)
    }
}

/// Statistics of the sound received.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Heard {
    /// Packets decoded, or recovered from in-band FEC.
    pub(super) decoded: u64,
    /// Slots of lost packets.
    pub(super) concealed: u64,
    /// Slots decoded that were audible.
    pub(super) audible: u64,
}

struct Hears {
    id: IncomingId,
    decoder: Box<dyn AudioDecoder>,
    pcm: Vec<i16>,
}

/// While the call runs.
pub(super) struct Sound {
    sent: Option<OutgoingId>,
    hears: Option<Hears>,
    pub(super) heard: Heard,
}

impl Sound {
    /// Decodes what is due.
    pub(super) fn on_turn(&mut self, now: Timestamp, endpoint: &mut Endpoint) {
        let Some(hears) = &mut self.hears else { return };
        let Some(mut stream) = endpoint.incoming(hears.id) else { return };
        while let Some(slot) = stream.poll_audio(now) {
            hears.pcm.clear();
            let made = match &slot.content {
                AudioSlotContent::Packet(payload) => hears.decoder.decode(payload, &mut hears.pcm),
                AudioSlotContent::Recovered(next) => hears.decoder.decode_fec(next, slot.samples, &mut hears.pcm),
                AudioSlotContent::Concealed | AudioSlotContent::Silence => {
                    hears.decoder.conceal(slot.samples, &mut hears.pcm)
                }
            };
            match &slot.content {
                AudioSlotContent::Packet(_) | AudioSlotContent::Recovered(_) if made.is_ok() => {
                    self.heard.decoded += 1;
                    // Concealment may be audible for seconds after the last packet.
                    self.heard.audible += u64::from(level_dbov(&hears.pcm) < AUDIBLE);
                }
                AudioSlotContent::Silence => {}
                _ => self.heard.concealed += 1,
            }
        }
    }

    /// Packets sent.
    pub(super) fn sent(&self, endpoint: &Endpoint) -> u64 {
        self.sent.and_then(|id| endpoint.stats().outgoing(id)).map_or(0, |s| s.counters.packets)
    }
}
