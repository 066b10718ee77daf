//! A call of several streams with another process.

use crate::call::CallError;
use crate::call::config::CallConfig;
use crate::call::decode::{DecodeSummary, ReceivingVideo, VideoReceive};
use crate::call::encode::{EncodeSummary, SendingVideo, VideoSend};
use crate::call::end::RunUntil;
use crate::call::joined::{IncomingPlan, Joined, JoinedEnd, OutgoingPlan, PlannedSource};
use crate::call::observer::{CallObserver, EndSummary};
use crate::call::receiving::{Heard, Hearing, Player, Receiving, lips};
use crate::call::sending::{Sending, SendingStream};
use crate::call::streams_summary::{AudioSummary, LipSummary, Lips};
use crate::clock::Clock;
use crate::udp::Waker;
use serde::Serialize;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use weir_cc::Registry;
use weir_media::Source;
use weir_media::audio::AudioDecoder;
use weir_session::allocation::{Demand, MediaKind};
use weir_units::TimeDelta;

/// A stream, or one encoding of a simulcast, that an end could send.
pub struct PartySend {
    /// The place of its stream in [`Party::media`](crate::call::Party::media).
    pub own: usize,
    /// The place of its encoding among those listed there; 0 without simulcast.
    pub encoding: usize,
    /// Its name in the results.
    pub name: String,
    /// Its demand on the controller's target. [`Demand::media`] and [`Demand::simulcast`] are set by the agreement.
    pub demand: Demand,
    /// Its source.
    pub source: PartySource,
}

/// The source of a stream.
pub enum PartySource {
    /// An encoder of audio.
    Audio(Source),
    /// Camera and encoder.
    Video(VideoSend),
}

/// Handling of a received stream.
pub enum PartyReceive {
    /// It is played.
    Audio(Box<dyn AudioDecoder>),
    /// It is shown.
    Video(VideoReceive),
}

/// An end's report on a call of several streams with another process.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PartyStreamsSummary {
    /// Packets.
    pub end: EndSummary,
    /// Streams sent.
    pub sent: Vec<SentStream>,
    /// Streams received.
    pub received: Vec<ReceivedStream>,
    /// Sections of the offer that were refused.
    pub refused: Vec<String>,
    /// The lag between sound and camera, if both are received.
    pub lips: Option<LipSummary>,
}

/// One stream sent by an end.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SentStream {
    /// Its name.
    pub name: String,
    /// RTP packets sent.
    pub packets: u64,
    /// Mean rate sent, as UDP payload.
    pub rate_bps: f64,
    /// Times that the share-out switched it on or off.
    pub switches: u64,
    /// The encoder, of video.
    pub video: Option<EncodeSummary>,
}

/// One stream received by an end.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReceivedStream {
    /// Its section, and the name of its encoding.
    pub name: String,
    /// Packets received, duplicates included.
    pub packets: u64,
    /// Packets lost, by their sequence numbers (RFC 3550, appendix A.3).
    pub lost_packets: u64,
    /// Playout, of audio.
    pub audio: Option<AudioSummary>,
    /// The decoder, of video.
    pub video: Option<DecodeSummary>,
}

/// Inputs to an end of a call of several streams.
pub struct PartyRun<'a> {
    /// Controller, rates and playout.
    pub config: &'a CallConfig,
    /// Controllers.
    pub registry: &'a Registry,
    /// The streams that it could send; those agreed on are sent.
    pub sends: Vec<PartySend>,
    /// Players of received streams, in the order of [`Joined::incoming`].
    pub receives: Vec<PartyReceive>,
    /// Its maximum duration.
    pub duration: Option<TimeDelta>,
    /// Ends it when raised.
    pub stop: &'a AtomicBool,
}

/// Streams by the plan that they follow, with their names and encoders.
struct Sender {
    names: Vec<String>,
    encoders: Vec<Option<SendingVideo>>,
    sources: Vec<PlannedSource>,
}

/// Runs an agreed call of several streams until the time is over, the flag is raised, or the other end sends a BYE.
///
/// # Errors
/// The end cannot be constructed, a thread cannot be started, or its socket fails.
pub fn run_party_streams<O: CallObserver>(
    joined: Joined,
    run: PartyRun<'_>,
    observer: &mut O,
) -> Result<PartyStreamsSummary, CallError> {
    let clock = Clock::of_day();
    let waker = Waker::new().map(Arc::new).map_err(CallError::socket("making a descriptor to wake a thread by"))?;
    let (plans, refused) = (joined.incoming(), joined.agreement.refused.clone());
    let sender = start(&joined.outgoing(), run.sends, &clock, &waker)?;
    let JoinedEnd { mut end, outgoing, incoming, synchronised_clocks } =
        joined.into_end(run.config, run.registry, &clock, sender.sources)?;
    end.set_waker(Some(waker.clone()));
    end.meter_cpu();
    let sending =
        Sending { streams: outgoing.iter().map(|(id, identity)| SendingStream::new(*id, *identity)).collect() };
    let heard = |(id, plan): (&_, &IncomingPlan)| Heard {
        id: *id,
        media: plan.codec.media(),
        simulcast: plan.rid.map(|_| plan.stream),
    };
    let heard: Vec<_> = incoming.iter().zip(&plans).map(heard).collect();
    let mut receiving = Receiving { players: Vec::new(), lips: lips(&heard) };
    for (id, player) in incoming.iter().zip(run.receives) {
        receiving.players.push(match player {
            PartyReceive::Audio(decoder) => Player::Audio(Box::new(Hearing::new(*id, Some(decoder)))),
            PartyReceive::Video(video) => {
                let video = ReceivingVideo::start(video, clock, waker.clone())?.with_stream(*id);
                Player::Video(Box::new(if synchronised_clocks { video.with_sender_clock() } else { video }))
            }
        });
    }
    let at = run.duration.map(|d| clock.now() + d);
    let until = RunUntil { at, stop: run.stop, ended: None, bye: true, silence: run.config.silence };
    let mut watched = (observer, (sending, receiving));
    let done = end.run(&clock, &until, &mut watched);
    let (sending, receiving) = watched.1;
    let summary = end.summary(clock.now());
    let mut sent = Vec::new();
    for ((name, encoder), s) in sender.names.into_iter().zip(sender.encoders).zip(sending.streams) {
        let (packets, rate_bps, switches) = (s.packets, s.rate_bps(summary.duration_s), s.switches);
        let video = encoder.map(SendingVideo::finish).transpose()?;
        sent.push(SentStream { name, packets, rate_bps, switches, video });
    }
    let mut received = Vec::new();
    for ((player, plan), id) in receiving.players.into_iter().zip(&plans).zip(incoming) {
        let stats = end.endpoint().stats().incoming(id);
        let (expected, packets) = stats.map_or((0, 0), |i| (i.expected, i.received));
        let (audio, video) = match player {
            Player::Audio(hearing) => (hearing.finish(end.endpoint()), None),
            Player::Video(video) => (None, Some(video.finish()?)),
        };
        let lost_packets = expected.saturating_sub(packets);
        received.push(ReceivedStream { name: name(plan), packets, lost_packets, audio, video });
    }
    let lips = receiving.lips.and_then(Lips::summary);
    done.map(|()| PartyStreamsSummary { end: summary, sent, received, refused, lips })
}

fn name(plan: &IncomingPlan) -> String {
    let names: Vec<String> = [plan.mid, plan.rid].into_iter().flatten().map(|l| l.to_string()).collect();
    if names.is_empty() { plan.codec.to_string() } else { names.join(" ") }
}

/// Starts the encoders of the agreed streams, in that order.
fn start(
    plans: &[OutgoingPlan],
    mut sends: Vec<PartySend>,
    clock: &Clock,
    waker: &Arc<Waker>,
) -> Result<Sender, CallError> {
    let mut started = Sender { names: Vec::new(), encoders: Vec::new(), sources: Vec::new() };
    for plan in plans {
        let Some(at) = sends.iter().position(|s| (s.own, s.encoding) == (plan.own, plan.encoding)) else { break };
        let send = sends.swap_remove(at);
        let (source, encoder, media) = match send.source {
            PartySource::Audio(source) => (source, None, MediaKind::Audio),
            PartySource::Video(video) => {
                let (pushed, encoder) = SendingVideo::start(video, *clock, waker.clone(), false)?;
                (Source::Custom(Box::new(pushed)), Some(encoder), MediaKind::Video)
            }
        };
        let simulcast = plan.rid.and(u8::try_from(plan.stream).ok());
        let most = plan.most.map_or(send.demand.most, |most| most.min(send.demand.most));
        started.sources.push(PlannedSource { source, demand: Demand { media, simulcast, most, ..send.demand } });
        started.names.push(send.name);
        started.encoders.push(encoder);
    }
    Ok(started)
}
