//! Streams of a call beside its first, and what is seen of all of them.

use crate::measure::results::StreamSummary;
use crate::measure::scenario::{RtpFlow, RtpStream, StreamSource};
use weir_media::audio::{AudioConfig, AudioSource};
use weir_media::{MediaError, Packetiser, PerfectCodec, Source};
use weir_session::allocation::MediaKind;
use weir_session::{
    Endpoint, EndpointConfig, IncomingConfig, IncomingId, OutgoingConfig, OutgoingId, OutgoingStats, StreamIdentity,
};
use weir_sim::mix;
use weir_units::{DataRate, TimeDelta, Timestamp};

/// Payload types of the media: from here on, one a stream.
const FIRST_PAYLOAD_TYPE: u8 = 100;
/// Time from capture to playout of audio where the flow has none.
const AUDIO_DEADLINE: TimeDelta = TimeDelta::from_millis(200);

/// Where a stream's frames come from.
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

/// The first stream's part of both ends' configurations, which are alike in it.
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
    ends: (&mut Endpoint, &mut Endpoint),
    first: &EndpointConfig,
    rtp: &RtpFlow,
    seed: u64,
    now: Timestamp,
) -> Result<(), String> {
    let (sender, receiver) = ends;
    for (index, stream) in rtp.streams.iter().enumerate().skip(1) {
        let identity = identity(first, stream, index, seed);
        let source = source(stream, now, mix(seed, 8_000 + index as u64)).map_err(|e| e.to_string())?;
        let incoming = IncomingConfig {
            playout_deadline: deadline(rtp, stream),
            ..IncomingConfig::new(identity, stream.demand.media)
        };
        receiver.add_incoming(incoming, now).map_err(|e| e.to_string())?;
        let outgoing = OutgoingConfig {
            packetiser: Packetiser { max_payload: rtp.payload, ..Packetiser::default() },
            ..OutgoingConfig::new(identity, source, stream.demand)
        };
        sender.add_outgoing(outgoing, now).map_err(|e| e.to_string())?;
    }
    Ok(())
}

/// What has been seen of a call's streams so far.
#[derive(Clone, Default, Debug)]
pub(super) struct StreamLooks {
    looks: Vec<StreamLook>,
    last: Option<Timestamp>,
}

#[derive(Clone, Copy, Default, Debug)]
struct StreamLook {
    is_on: bool,
    on: TimeDelta,
    seen: TimeDelta,
    switches: u32,
    /// Bits: the stream's rate over time.
    bits: f64,
}

impl StreamLooks {
    /// Looks at the sending end; gives each stream's rate.
    pub(super) fn look(&mut self, sender: &Endpoint, now: Timestamp) -> Vec<DataRate> {
        let since = self.last.map_or(TimeDelta::ZERO, |last| now - last);
        let is_first = self.last.replace(now).is_none();
        let ids: Vec<OutgoingId> = sender.outgoing_ids().collect();
        self.looks.resize(ids.len(), StreamLook::default());
        let mut rates = Vec::with_capacity(ids.len());
        for (look, id) in self.looks.iter_mut().zip(ids) {
            let Some(OutgoingStats { is_on, rate, .. }) = sender.outgoing_stats(id) else { continue };
            look.switches += u32::from(!is_first && is_on != look.is_on);
            look.is_on = is_on;
            look.seen += since;
            look.bits += rate.as_bps_f64() * since.as_secs_f64();
            if is_on {
                look.on += since;
            }
            rates.push(rate);
        }
        rates
    }

    /// What there is to say of the streams at the end.
    pub(super) fn finish(&self, rtp: &RtpFlow, sender: &Endpoint, receiver: &Endpoint) -> Vec<StreamSummary> {
        let outgoing: Vec<OutgoingId> = sender.outgoing_ids().collect();
        let incoming: Vec<IncomingId> = receiver.incoming_ids().collect();
        let all = rtp.streams.iter().zip(&self.looks).zip(outgoing.into_iter().zip(incoming));
        all.filter_map(|((stream, look), (out, inc))| {
            let sent = sender.outgoing_stats(out)?.counters;
            let other = receiver.incoming_stats(inc)?;
            let seconds = look.seen.as_secs_f64().max(1e-9);
            let (expected, received) = (other.expected, other.received);
            Some(StreamSummary {
                name: stream.name.clone(),
                media: stream.demand.media.name().into(),
                share_bps: look.bits / seconds,
                sent_bps: sent.bytes as f64 * 8.0 / seconds,
                packets: sent.packets,
                loss: if expected > 0 { expected.saturating_sub(received) as f64 / expected as f64 } else { 0.0 },
                on: look.on.as_secs_f64() / seconds,
                switches: look.switches,
                concealed: other.audio.and_then(|s| s.concealed_share()),
            })
        })
        .collect()
    }
}
