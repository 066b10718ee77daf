//! Streams of a call after its first.

use super::ends::Ends;
use crate::measure::scenario::{RtpFlow, RtpStream, StreamSource};
use weir_media::audio::{AudioConfig, AudioSource};
use weir_media::{MediaError, Packetiser, PerfectCodec, Source};
use weir_session::allocation::MediaKind;
use weir_session::{Endpoint, EndpointConfig, IncomingConfig, OutgoingConfig, StreamIdentity};
use weir_sim::mix;
use weir_units::{TimeDelta, Timestamp};

/// Payload types of the media: from here on, one per stream.
const FIRST_PAYLOAD_TYPE: u8 = 100;
/// Time from capture to playout of audio if the flow has none.
const AUDIO_DEADLINE: TimeDelta = TimeDelta::from_millis(200);

/// The source of a stream's frames.
pub(super) fn source(stream: &RtpStream, start: Timestamp, seed: u64) -> Result<Source, MediaError> {
    Ok(match stream.source {
        StreamSource::Audio { dtx } => {
            let defaults = AudioConfig::default();
            let talk = defaults.talk.filter(|_| dtx);
            Source::Audio(Box::new(AudioSource::new(AudioConfig { dtx, talk, ..defaults }, start, seed)?))
        }
        StreamSource::Frames { fps } => {
            PerfectCodec::frames(TimeDelta::from_secs_f64(1.0 / fps.max(0.01)), start).into()
        }
    })
}

/// How stream number `index` of a call appears in RTP.
fn identity(first: &EndpointConfig, stream: &RtpStream, index: usize, seed: u64) -> StreamIdentity {
    let payload_type = FIRST_PAYLOAD_TYPE + (index % 28) as u8;
    let ssrc = if index == 0 { first.ssrc } else { mix(seed, 7_000 + index as u64) as u32 };
    StreamIdentity { ssrc, payload_type, clock_rate: stream.demand.media.clock_hz(), ..first.outgoing() }
}

/// The first stream's part of both ends' configurations, which have it in common.
pub(super) fn configure(config: &mut EndpointConfig, rtp: &RtpFlow) {
    if let Some(first) = rtp.streams.first() {
        config.payload_type = FIRST_PAYLOAD_TYPE;
        config.clock_rate = first.demand.media.clock_hz();
    }
}

/// Time from capture to playout of a stream.
pub(super) fn deadline(rtp: &RtpFlow, stream: &RtpStream) -> Option<TimeDelta> {
    let is_audio = stream.demand.media == MediaKind::Audio;
    is_audio.then(|| rtp.playout_deadline.unwrap_or(AUDIO_DEADLINE))
}

/// Adds all streams but the first to both ends of a call.
pub(super) fn add(
    ends: Ends<&mut Endpoint>,
    first: &EndpointConfig,
    rtp: &RtpFlow,
    seed: u64,
    now: Timestamp,
) -> Result<(), String> {
    for (index, stream) in rtp.streams.iter().enumerate().skip(1) {
        let identity = identity(first, stream, index, seed);
        let source = source(stream, now, mix(seed, 8_000 + index as u64)).map_err(|e| e.to_string())?;
        let incoming = IncomingConfig {
            playout_deadline: deadline(rtp, stream),
            ..IncomingConfig::new(identity, stream.demand.media)
        };
        ends.receiver.add_incoming(incoming, now).map_err(|e| e.to_string())?;
        let outgoing = OutgoingConfig {
            packetiser: Packetiser { max_payload: rtp.payload, ..Packetiser::default() },
            ..OutgoingConfig::new(identity, source, stream.demand)
        };
        ends.sender.add_outgoing(outgoing, now).map_err(|e| e.to_string())?;
    }
    Ok(())
}
