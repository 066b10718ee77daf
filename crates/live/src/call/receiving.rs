//! Playout of an end's streams.

use crate::call::decode::ReceivingVideo;
use crate::call::observer::CallObserver;
use crate::call::streams_summary::{AudioSummary, Lips};
use weir_media::audio::{AudioDecoder, AudioSlotContent};
use weir_session::allocation::MediaKind;
use weir_session::{Endpoint, IncomingId};
use weir_units::Timestamp;

/// Plays audio.
pub(crate) struct Hearing {
    id: IncomingId,
    decoder: Option<Box<dyn AudioDecoder>>,
    pcm: Vec<i16>,
    summary: AudioSummary,
}

impl Hearing {
    /// Without a decoder, playout is counted and nothing is decoded.
    pub(crate) fn new(id: IncomingId, decoder: Option<Box<dyn AudioDecoder>>) -> Self {
        Self { id, decoder, pcm: Vec::new(), summary: AudioSummary::default() }
    }

    /// The playout statistics, after the call.
    pub(crate) fn finish(self, endpoint: &Endpoint) -> Option<AudioSummary> {
        Some(self.summary.with(&endpoint.stats().incoming(self.id)?.audio?))
    }

    fn on_turn(&mut self, now: Timestamp, endpoint: &mut Endpoint) {
        let Some(mut stream) = endpoint.incoming(self.id) else { return };
        while let Some(slot) = stream.poll_audio(now) {
            let Some(decoder) = &mut self.decoder else { continue };
            self.pcm.clear();
            let made = match &slot.content {
                AudioSlotContent::Packet(payload) => decoder.decode(payload, &mut self.pcm),
                AudioSlotContent::Recovered(next) => decoder.decode_fec(next, slot.samples, &mut self.pcm),
                AudioSlotContent::Concealed | AudioSlotContent::Silence => decoder.conceal(slot.samples, &mut self.pcm),
            };
            match made {
                Ok(samples) => self.summary.decoded_samples += u64::from(samples),
                Err(_) => self.summary.undecodable += 1,
            }
        }
    }
}

/// The player of a stream.
pub(crate) enum Player {
    Audio(Box<Hearing>),
    Video(Box<ReceivingVideo>),
}

/// Plays received frames, and compares the playout times of sound and pictures captured at the same time.
#[derive(Default)]
pub(crate) struct Receiving {
    pub(crate) players: Vec<Player>,
    pub(crate) lips: Option<Lips>,
}

impl CallObserver for Receiving {
    fn on_turn(&mut self, now: Timestamp, endpoint: &mut Endpoint) {
        for player in &mut self.players {
            match player {
                Player::Audio(a) => a.on_turn(now, endpoint),
                Player::Video(v) => v.on_turn(now, endpoint),
            }
        }
    }
    fn on_look(&mut self, now: Timestamp, endpoint: &mut Endpoint) {
        if let Some(lips) = &mut self.lips {
            lips.look(now, endpoint);
        }
    }
}

/// A received stream for lip synchronisation: its media, and the simulcast to which it belongs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Heard<G> {
    pub(crate) id: IncomingId,
    pub(crate) media: MediaKind,
    pub(crate) simulcast: Option<G>,
}

/// The first audio together with the encodings of the first simulcast, or the first video if there is none.
pub(crate) fn lips<G: PartialEq + Copy>(streams: &[Heard<G>]) -> Option<Lips> {
    let audio = streams.iter().find(|s| s.media == MediaKind::Audio)?.id;
    let videos = || streams.iter().filter(|s| s.media == MediaKind::Video);
    let group = videos().find_map(|s| s.simulcast);
    let first = videos().next()?.id;
    let camera = videos().filter(|s| if group.is_some() { s.simulcast == group } else { s.id == first });
    Some(Lips::new(audio, camera.map(|s| s.id).collect()))
}
