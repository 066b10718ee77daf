//! A call of several streams under one controller, both ends in one process: audio, encodings of a camera, a shared
//! screen.

use crate::call::config::{CallConfig, StreamPlan, endpoints_with};
use crate::call::decode::{ReceivingVideo, VideoReceive};
use crate::call::encode::{EncodeSummary, SendingVideo, VideoSend};
use crate::call::end::RunUntil;
use crate::call::loopback::{VideoSummary, join, run_both, summary};
use crate::call::observer::CallObserver;
use crate::call::receiving::{Heard, Hearing, Player, Receiving, lips};
use crate::call::sending::{Sending, SendingStream};
use crate::call::streams_summary::{Lips, StreamSummary, StreamsSummary};
use crate::call::{CallError, random};
use crate::clock::Clock;
use crate::udp::Waker;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use weir_cc::Registry;
use weir_media::Source;
use weir_media::audio::AudioDecoder;
use weir_session::allocation::{Demand, MediaKind};
use weir_session::{IncomingId, Label, OutgoingId, StreamIdentity};
use weir_units::TimeDelta;

/// Payload type of audio; dynamic (RFC 3551, section 3). That of Opus in the offers of libwebrtc.
pub(crate) const AUDIO_PAYLOAD_TYPE: u8 = 111;

/// One stream of a call: audio, one encoding of a simulcast, or a shared screen.
pub struct StreamSend {
    /// Its name in the results.
    pub name: String,
    /// Its media section (RFC 9143); encodings of a simulcast share it.
    pub mid: Option<Label>,
    /// The encoding of a simulcast (RFC 8852).
    pub rid: Option<Label>,
    /// Its demand on the controller's target. [`Demand::media`] is set from the source.
    pub demand: Demand,
    /// Its source and its handling at the receiver.
    pub source: StreamSource,
}

/// The source of a stream and its handling at the receiver.
pub enum StreamSource {
    /// An encoder of audio or a model of one, and the decoder. Without a decoder, as with a model, playout is counted
    /// and nothing is decoded.
    Audio(Source, Option<Box<dyn AudioDecoder>>),
    /// Camera, encoder and decoder, each on its own thread.
    Video(VideoSend, VideoReceive),
}

/// A stream that both endpoints have.
struct Stream {
    name: String,
    simulcast: Option<u8>,
    identity: StreamIdentity,
    ids: (OutgoingId, IncomingId),
    media: MediaKind,
}

/// A stream's ends in this process.
enum Ends {
    Audio(Option<Box<dyn AudioDecoder>>),
    Video(SendingVideo, VideoReceive),
}

/// Runs a call of these streams between two sockets of this machine's loopback device, for a time or until the flag is
/// raised. Encodings of a simulcast are ordered from the lowest up. All streams share the target of one controller.
///
/// # Errors
/// As for [`loopback`](crate::call::loopback()); [`CallError::NoStreams`] and [`CallError::Stream`]; or no thread could
/// be started.
pub fn loopback_streams<A: CallObserver>(
    config: &CallConfig,
    streams: Vec<StreamSend>,
    registry: &Registry,
    duration: Option<TimeDelta>,
    stop: &AtomicBool,
    sending: &mut A,
) -> Result<StreamsSummary, CallError> {
    let clock = Clock::of_day();
    let waker = || Waker::new().map(Arc::new).map_err(CallError::socket("making a descriptor to wake a thread by"));
    let (wake_sender, wake_receiver) = (waker()?, waker()?);
    let seed = random()?;
    let (mut made, mut plans) = (Vec::new(), Vec::new());
    for s in streams {
        let (source, end) = match s.source {
            StreamSource::Audio(source, decoder) => (source, Ends::Audio(decoder)),
            StreamSource::Video(send, receive) => {
                let (source, sent) = SendingVideo::start(send, clock, wake_sender.clone(), receive.quality)?;
                (Source::Custom(Box::new(source)), Ends::Video(sent, receive))
            }
        };
        let media = source.media();
        let demand = Demand { media, ..s.demand };
        // A model's packets have no content to keep.
        let content = !matches!(end, Ends::Audio(None));
        let payload_type =
            if media == MediaKind::Audio { AUDIO_PAYLOAD_TYPE } else { StreamIdentity::default().payload_type };
        let identity = StreamIdentity {
            payload_type,
            clock_rate: media.clock_hz(),
            mid: s.mid,
            rid: s.rid,
            ..StreamIdentity::of(if made.is_empty() { seed } else { random()? } as u32)
        };
        plans.push(StreamPlan { identity, source, demand, content });
        made.push((s.name, demand.simulcast, identity, media, end));
    }
    let (mut sender, receiver) = endpoints_with(config, registry, &clock, seed, plans)?;
    let ids: Vec<_> = sender.stats().outgoing_ids().zip(receiver.stats().incoming_ids()).collect();
    let mut streams = Vec::new();
    for ((name, simulcast, identity, media, end), ids) in made.into_iter().zip(ids) {
        if let (Ends::Video(sent, _), Some(outgoing)) = (&end, sender.outgoing(ids.0)) {
            sent.captures().set_offset(outgoing.rtp_timestamp_offset());
        }
        streams.push((Stream { name, simulcast, identity, ids, media }, end));
    }
    let made = streams;
    let (mut a, mut b) = join(config, registry, (sender, receiver), &clock)?;
    a.set_waker(Some(wake_sender));
    b.set_waker(Some(wake_receiver.clone()));
    a.meter_cpu();
    b.meter_cpu();
    let (mut encoders, mut streams) = (Vec::new(), Vec::new());
    let (mut receiving, mut sender) = (Receiving::default(), Sending::default());
    for (stream, end) in made {
        sender.streams.push(SendingStream::new(stream.ids.0, stream.identity));
        let player = match end {
            Ends::Audio(decoder) => Player::Audio(Box::new(Hearing::new(stream.ids.1, decoder))),
            Ends::Video(sent, receive) => {
                let captures = Some(sent.captures().clone());
                let video = ReceivingVideo::start_beside(receive, clock, wake_receiver.clone(), captures)?;
                encoders.push(sent);
                Player::Video(Box::new(video.with_stream(stream.ids.1)))
            }
        };
        receiving.players.push(player);
        streams.push(stream);
    }
    let heard = |s: &Stream| Heard { id: s.ids.1, media: s.media, simulcast: s.simulcast };
    receiving.lips = lips(&streams.iter().map(heard).collect::<Vec<_>>());
    let until =
        RunUntil { at: duration.map(|d| clock.now() + d), stop, ended: None, bye: false, silence: config.silence };
    let mut watched = (sending, sender);
    run_both((&mut a, &mut watched), (&mut b, &mut receiving), &clock, &until)?;
    let ends = summary(&a, &b, clock.now(), None);
    let mut encoders = encoders.into_iter();
    let mut summaries = Vec::new();
    for ((s, sent), player) in streams.into_iter().zip(watched.1.streams).zip(receiving.players) {
        let incoming = b.endpoint().stats().incoming(s.ids.1);
        let (expected, received) = incoming.map_or((0, 0), |i| (i.expected, i.received));
        let padding = a.endpoint().stats().outgoing(s.ids.0).map_or(0, |o| o.counters.padding_bytes);
        let (audio, video) = match player {
            Player::Audio(hearing) => (hearing.finish(b.endpoint()), None),
            Player::Video(video) => {
                let sent = encoders.next().map_or_else(|| Ok(EncodeSummary::default()), SendingVideo::finish)?;
                (None, Some(VideoSummary { sent, received: video.finish()? }))
            }
        };
        summaries.push(StreamSummary {
            name: s.name,
            sent_packets: sent.packets,
            sent_rate_bps: sent.rate_bps(ends.sender.duration_s),
            padding_rate_bps: padding as f64 * 8.0 / ends.sender.duration_s.max(1e-9),
            lost_packets: expected.saturating_sub(received),
            switches: sent.switches,
            audio,
            video,
        });
    }
    Ok(StreamsSummary {
        sender: ends.sender,
        receiver: ends.receiver,
        streams: summaries,
        lips: receiving.lips.and_then(Lips::summary),
    })
}
