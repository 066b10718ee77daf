//! A call of several streams under one controller, both ends in one process: audio, encodings of a camera, a shared
//! screen.

use crate::call::config::{CallConfig, FirstStream, adaptive, endpoints_with};
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
use weir_media::audio::AudioDecoder;
use weir_media::{Packetiser, Source};
use weir_session::allocation::{Demand, MediaKind};
use weir_session::{
    Endpoint, EndpointConfig, IncomingConfig, IncomingId, Label, OutgoingConfig, OutgoingId, StreamError,
    StreamIdentity,
};
use weir_units::{TimeDelta, Timestamp};

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

/// A stream after both endpoints have added it.
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
    let (mut made, mut ends) = (Vec::new(), None);
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
            if media == MediaKind::Audio { AUDIO_PAYLOAD_TYPE } else { EndpointConfig::default().payload_type };
        let (identity, ids) = match &mut ends {
            None => {
                let first = FirstStream { source, demand, content, payload_type, mid: s.mid };
                let (mut a, b) = endpoints_with(config, registry, &clock, random()?, first)?;
                let identity = a.outgoing(OutgoingId::FIRST).map(|o| o.identity()).ok_or(CallError::NoStreams)?;
                ends = Some((a, b));
                (identity, (OutgoingId::FIRST, IncomingId::FIRST))
            }
            Some((a, b)) => {
                let identity = StreamIdentity {
                    ssrc: random()? as u32,
                    payload_type,
                    clock_rate: media.clock_hz(),
                    mid: s.mid,
                    rid: s.rid,
                    ..EndpointConfig::default().outgoing()
                };
                let ids = NewStream { identity, source, demand, content }
                    .add_to(a, b, config, clock.now())
                    .map_err(|source| CallError::Stream { name: s.name.clone(), source })?;
                (identity, ids)
            }
        };
        if let (Ends::Video(sent, _), Some((a, _))) = (&end, &mut ends)
            && let Some(outgoing) = a.outgoing(ids.0)
        {
            sent.captures().set_offset(outgoing.rtp_timestamp_offset());
        }
        made.push((Stream { name: s.name, simulcast: demand.simulcast, identity, ids, media }, end));
    }
    let (mut a, mut b) = join(config, registry, ends.ok_or(CallError::NoStreams)?, &clock)?;
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
        let incoming = b.endpoint().incoming_stats(s.ids.1);
        let (expected, received) = incoming.map_or((0, 0), |i| (i.expected, i.received));
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

/// A stream to be added to both ends.
struct NewStream {
    identity: StreamIdentity,
    source: Source,
    demand: Demand,
    /// Whether the receiver keeps received content.
    content: bool,
}

impl NewStream {
    fn add_to(
        self,
        a: &mut Endpoint,
        b: &mut Endpoint,
        config: &CallConfig,
        now: Timestamp,
    ) -> Result<(OutgoingId, IncomingId), StreamError> {
        let incoming = IncomingConfig {
            playout_deadline: Some(config.playout_deadline),
            adaptive_playout: adaptive(config, false),
            content: self.content,
            ..IncomingConfig::new(self.identity, self.demand.media)
        };
        let outgoing = OutgoingConfig {
            packetiser: Packetiser { max_payload: config.payload, ..Packetiser::default() },
            max_queue_age: self.content.then_some(config.playout_deadline),
            ..OutgoingConfig::new(self.identity, self.source, self.demand)
        };
        let incoming = b.add_incoming(incoming, now)?;
        Ok((a.add_outgoing(outgoing, now)?, incoming))
    }
}
