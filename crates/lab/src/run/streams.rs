//! Streams of a call after its first.

use crate::scenario::{RtpFlow, RtpStream, StreamSource};
use weir_media::audio::{
    AudioCodec, AudioConfig, AudioEncoderConfig, AudioError, AudioLimits, AudioSource, EncodedAudio, SpeechClip,
};
use weir_media::{AdaptivePlayout, AdjustedSource, CappedSource, Caps, MediaError, PerfectCodec, Source};
use weir_session::allocation::MediaKind;
use weir_session::{
    CallPlan, FrameRepair, OutgoingOptions, RepairChoice, ResilienceConfig, SenderModel, StreamIdentity,
};
use weir_sim::mix;
use weir_units::{DataRate, TimeDelta, Timestamp};

/// RTP payload types of repair packets, parity, Reed-Solomon, retransmission and sliding windows; the media's is 96.
pub const REPAIR_PAYLOAD_TYPES: [u8; 4] = [97, 98, 99, 127];
/// Payload types of the media: from here on, one per stream.
const FIRST_PAYLOAD_TYPE: u8 = 100;
/// Time from capture to playout of audio if the flow has none.
const AUDIO_DEADLINE: TimeDelta = TimeDelta::from_millis(200);

/// The source of a stream's frames.
pub(super) fn source(
    stream: &RtpStream,
    sender: SenderModel,
    start: Timestamp,
    seed: u64,
) -> Result<Source, MediaError> {
    Ok(match stream.source {
        StreamSource::Pictures => {
            return Err(MediaError::new("stream", "source", &stream.name, "the first stream of a flow"));
        }
        StreamSource::Speech => {
            let failed = |e: AudioError| MediaError::new("stream", "source", &stream.name, e);
            let encoder =
                weir_codecs::audio_encoder(AudioCodec::Opus, &AudioEncoderConfig::default()).map_err(failed)?;
            EncodedAudio::new(Box::new(SpeechClip::new(seed)), encoder, AudioLimits::default(), start)?.into_source()
        }
        StreamSource::Audio { dtx, packet_time } => {
            let defaults = AudioConfig::default();
            let talk = defaults.talk.filter(|_| dtx);
            let limits = packet_time.map_or(defaults.limits, |time| AudioLimits {
                min_packet_time: time,
                max_packet_time: time,
                ..defaults.limits
            });
            Source::Audio(Box::new(AudioSource::new(AudioConfig { dtx, talk, limits, ..defaults }, start, seed)?))
        }
        StreamSource::Frames { fps, rise, most } => {
            let frames = PerfectCodec::frames(TimeDelta::from_secs_f64(1.0 / fps.max(0.01)), start).rising_in(rise);
            return frames_of(frames, fps, most, (sender, seed), start);
        }
    })
}

/// Frames of a model of an encoder of this target at most, in this program, with this seed.
pub(super) fn frames_of(
    frames: PerfectCodec,
    fps: f64,
    most: Option<DataRate>,
    (sender, seed): (SenderModel, u64),
    start: Timestamp,
) -> Result<Source, MediaError> {
    Ok(match most {
        _ if sender == SenderModel::Chromium => {
            let most = most.unwrap_or(DataRate::from_bps(u64::MAX));
            AdjustedSource::new(frames.as_vp8(seed).into(), fps, most, start).into()
        }
        Some(most) => CappedSource::new(frames.into(), Caps::new(vec![(TimeDelta::ZERO, most)], None)?, start).into(),
        None => frames.into(),
    })
}

/// The payload types of a flow's packets beside the media.
pub(super) fn numbered(ssrc: u32) -> StreamIdentity {
    let [parity_payload_type, reed_solomon_payload_type, retransmission_payload_type, rlc_payload_type] =
        REPAIR_PAYLOAD_TYPES;
    StreamIdentity {
        parity_payload_type,
        reed_solomon_payload_type,
        retransmission_payload_type,
        rlc_payload_type,
        ..StreamIdentity::of(ssrc)
    }
}

/// How stream number `index` of a call of several appears in RTP.
pub(super) fn identity(ssrc: u32, stream: &RtpStream, index: usize) -> StreamIdentity {
    let payload_type = FIRST_PAYLOAD_TYPE + (index % 27) as u8;
    StreamIdentity { payload_type, clock_rate: stream.demand.media.clock_hz(), ..numbered(ssrc) }
}

/// Time from capture to playout of a stream; none for video of a flow without one.
pub(super) fn deadline(rtp: &RtpFlow, stream: &RtpStream) -> Option<TimeDelta> {
    let is_audio = stream.demand.media == MediaKind::Audio;
    rtp.playout_deadline.or(is_audio.then_some(AUDIO_DEADLINE))
}

/// Playout of a stream with this deadline, if its delay adapts.
pub(super) fn adaptive_playout(rtp: &RtpFlow, deadline: Option<TimeDelta>) -> Option<AdaptivePlayout> {
    deadline.filter(|_| rtp.adaptive_playout).map(AdaptivePlayout::up_to)
}

/// How a stream of this media is sent: libwebrtc protects video alone.
pub(super) fn sending(rtp: &RtpFlow, media: MediaKind) -> OutgoingOptions {
    let is_spared = media == MediaKind::Audio && rtp.sending.repair == RepairChoice::ByFrames(FrameRepair::Libwebrtc);
    let repair = if is_spared { RepairChoice::Controller } else { rtp.sending.repair };
    OutgoingOptions { repair, ..rtp.sending }
}

/// A stream's error resilience: Chromium requests no packets of sound.
pub(super) fn resilience_of(
    rtp: &RtpFlow,
    media: MediaKind,
    flow: Option<ResilienceConfig>,
) -> Option<ResilienceConfig> {
    flow.filter(|_| media != MediaKind::Audio || rtp.sending.sender != SenderModel::Chromium)
}

/// Adds all streams but the first to both ends of a call, with the flow's error resilience.
pub(super) fn add(
    plan: &mut CallPlan,
    rtp: &RtpFlow,
    resilience: Option<ResilienceConfig>,
    seed: u64,
    now: Timestamp,
) -> Result<(), MediaError> {
    for (index, stream) in rtp.streams.iter().enumerate().skip(1) {
        let identity = identity(mix(seed, 7_000 + index as u64) as u32, stream, index);
        let source = source(stream, rtp.sending.sender, now, mix(seed, 8_000 + index as u64))?;
        let (outgoing, incoming) = plan.add_stream(identity, source, stream.demand);
        let resilience = resilience_of(rtp, stream.demand.media, resilience);
        outgoing.options = OutgoingOptions { resilience, utility: None, ..sending(rtp, stream.demand.media) };
        incoming.resilience = resilience;
        incoming.playout_deadline = deadline(rtp, stream);
        incoming.adaptive_playout = adaptive_playout(rtp, incoming.playout_deadline);
    }
    Ok(())
}
