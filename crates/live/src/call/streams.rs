//! A call of several streams under one controller, both ends in one process: audio, encodings of a camera, a shared screen.

use crate::call::config::{CallConfig, FirstStream, adaptive, endpoints_with};
use crate::call::decode::{ReceivingVideo, VideoReceive};
use crate::call::encode::{SendingVideo, VideoSend};
use crate::call::end::RunUntil;
use crate::call::loopback::{VideoSummary, join, run_both, summary};
use crate::call::observer::{CallObserver, LivePacket};
use crate::call::streams_summary::{AudioSummary, Lips, StreamSummary, StreamsSummary};
use crate::call::{CallError, random};
use crate::clock::Clock;
use crate::udp::Waker;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use weir_cc::Registry;
use weir_media::audio::{AudioDecoder, AudioSlotContent};
use weir_media::{Packetiser, Source};
use weir_session::allocation::{Demand, MediaKind};
use weir_session::{
    Endpoint, EndpointConfig, IncomingConfig, IncomingId, Label, OutgoingConfig, OutgoingId, StreamError,
    StreamIdentity,
};
use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};
use weir_wire::rtp::PacketView;

/// Payload type of audio; dynamic (RFC 3551, section 3). That of Opus in the offers of libwebrtc.
const AUDIO_PAYLOAD_TYPE: u8 = 111;

/// One stream of a call: audio, one encoding of a simulcast, or a shared screen.
pub struct StreamSend {
    /// What the results name it by.
    pub name: String,
    /// Its media section (RFC 9143); encodings of a simulcast share it.
    pub mid: Option<Label>,
    /// The encoding of a simulcast (RFC 8852).
    pub rid: Option<Label>,
    /// What it asks for of the controller's target. [`Demand::media`] is set from the source.
    pub demand: Demand,
    /// Where it comes from and what the receiver does with it.
    pub source: StreamSource,
}

/// Where a stream comes from and what the receiver does with it.
pub enum StreamSource {
    /// An encoder of audio or a model of one, and the decoder. Without a decoder playout is counted and nothing is heard,
    /// as with a model.
    Audio(Source, Option<Box<dyn AudioDecoder>>),
    /// Camera, encoder and decoder, each on a thread of its own.
    Video(VideoSend, VideoReceive),
}

/// Least and most useful rate of video of this size: those of libwebrtc's simulcast encodings (video/config/simulcast.cc,
/// `kSimulcastFormatsVP8`, 2024), of the largest that has no more pixels.
pub fn video_demand(width: u32, height: u32) -> (DataRate, DataRate) {
    const KBPS: [(u64, u64, u64); 6] = [
        (1_920 * 1_080, 800, 5_000),
        (1_280 * 720, 600, 2_500),
        (960 * 540, 350, 1_200),
        (640 * 360, 150, 700),
        (480 * 270, 150, 450),
        (0, 30, 200),
    ];
    let pixels = u64::from(width) * u64::from(height);
    let row = KBPS.iter().find(|r| pixels >= r.0).unwrap_or(&KBPS[5]);
    (DataRate::from_kbps(row.1), DataRate::from_kbps(row.2))
}

/// A stream once both endpoints have it.
struct Stream {
    name: String,
    simulcast: Option<u8>,
    identity: StreamIdentity,
    ids: (OutgoingId, IncomingId),
    media: MediaKind,
    is_on: bool,
    switches: u64,
    sent_packets: u64,
    sent: DataSize,
}

/// Sees what each stream sends, and when the share-out switches it on or off.
struct Sending {
    streams: Vec<Stream>,
}

impl CallObserver for Sending {
    fn on_packet(&mut self, packet: &LivePacket<'_>) {
        let Some(view) =
            Some(packet).filter(|p| p.sent && p.is_rtp).and_then(|p| PacketView::parse_header(p.bytes).ok())
        else {
            return;
        };
        if let Some(s) = self.streams.iter_mut().find(|s| s.identity.has(view.ssrc())) {
            s.sent_packets += 1;
            s.sent += packet.size;
        }
    }
    fn on_look(&mut self, _: Timestamp, endpoint: &mut Endpoint) {
        for s in &mut self.streams {
            let is_on = endpoint.outgoing(s.ids.0).is_some_and(|o| o.is_on());
            s.switches += u64::from(is_on != s.is_on);
            s.is_on = is_on;
        }
    }
}

/// Plays audio.
struct Hearing {
    id: IncomingId,
    decoder: Option<Box<dyn AudioDecoder>>,
    pcm: Vec<i16>,
    summary: AudioSummary,
}

impl Hearing {
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

/// Plays what arrives, and compares when sound and pictures of one instant come out.
struct Receiving {
    audio: Vec<Hearing>,
    videos: Vec<ReceivingVideo>,
    lips: Option<Lips>,
}

impl CallObserver for Receiving {
    fn on_turn(&mut self, now: Timestamp, endpoint: &mut Endpoint) {
        self.audio.iter_mut().for_each(|a| a.on_turn(now, endpoint));
        self.videos.iter_mut().for_each(|v| v.on_turn(now, endpoint));
    }
    fn on_look(&mut self, now: Timestamp, endpoint: &mut Endpoint) {
        if let Some(lips) = &mut self.lips {
            lips.look(now, endpoint);
        }
    }
}

/// A stream's ends in this process.
enum Ends {
    Audio(Option<Box<dyn AudioDecoder>>),
    Video(SendingVideo, VideoReceive),
}

/// Runs a call of these streams between two sockets of this machine's loopback device, for a time or until the flag is
/// raised. Encodings of a simulcast go from the lowest up. All streams share the target of one controller.
///
/// # Errors
/// As [`loopback`](crate::call::loopback()); [`CallError::NoStreams`] and [`CallError::Stream`]; and where threads cannot be had.
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
        // A model's packets have nothing to keep.
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
                let ids = add((a, b), config, (identity, source, demand, content), clock.now())
                    .map_err(|source| CallError::Stream { name: s.name.clone(), source })?;
                (identity, ids)
            }
        };
        if let (Ends::Video(sent, _), Some((a, _))) = (&end, &mut ends)
            && let Some(outgoing) = a.outgoing(ids.0)
        {
            sent.captures().set_offset(outgoing.rtp_timestamp_offset());
        }
        let (is_on, sent) = (true, DataSize::ZERO);
        let simulcast = demand.simulcast;
        let stream =
            Stream { name: s.name, simulcast, identity, ids, media, is_on, switches: 0, sent_packets: 0, sent };
        made.push((stream, end));
    }
    let (mut a, mut b) = join(config, registry, ends.ok_or(CallError::NoStreams)?, &clock)?;
    a.set_waker(Some(wake_sender));
    b.set_waker(Some(wake_receiver.clone()));
    a.meter_cpu();
    b.meter_cpu();
    let mut encoders = Vec::new();
    let mut receiving = Receiving { audio: Vec::new(), videos: Vec::new(), lips: None };
    let mut sender = Sending { streams: Vec::new() };
    for (stream, end) in made {
        match end {
            Ends::Audio(decoder) => {
                let (id, summary) = (stream.ids.1, AudioSummary::default());
                receiving.audio.push(Hearing { id, decoder, pcm: Vec::new(), summary });
            }
            Ends::Video(sent, receive) => {
                let captures = Some(sent.captures().clone());
                let video = ReceivingVideo::start_beside(receive, clock, wake_receiver.clone(), captures)?;
                receiving.videos.push(video.with_stream(stream.ids.1));
                encoders.push(sent);
            }
        }
        sender.streams.push(stream);
    }
    receiving.lips = lips(&sender.streams);
    let until = RunUntil { at: duration.map(|d| clock.now() + d), stop, ended: None, bye: false };
    let mut watched = (sending, sender);
    run_both((&mut a, &mut watched), (&mut b, &mut receiving), &clock, &until)?;
    let ends = summary(&a, &b, clock.now(), None);
    let mut video = (encoders.into_iter().zip(receiving.videos))
        .map(|(sent, received)| Ok(VideoSummary { sent: sent.finish()?, received: received.finish()? }))
        .collect::<Result<Vec<_>, CallError>>()?
        .into_iter();
    let mut audio = receiving.audio.into_iter();
    let mut told = Vec::new();
    for s in watched.1.streams {
        let incoming = b.endpoint().incoming_stats(s.ids.1);
        let (expected, received) = incoming.map_or((0, 0), |i| (i.expected, i.received));
        let mut heard = || Some(audio.next()?.summary.with(&incoming?.audio?));
        let (audio, video) = match s.media {
            MediaKind::Audio => (heard(), None),
            MediaKind::Video => (None, video.next()),
        };
        told.push(StreamSummary {
            name: s.name,
            sent_packets: s.sent_packets,
            sent_rate_bps: s.sent.as_bytes() as f64 * 8.0 / ends.sender.duration_s.max(1e-9),
            lost_packets: expected.saturating_sub(received),
            switches: s.switches,
            audio,
            video,
        });
    }
    Ok(StreamsSummary {
        sender: ends.sender,
        receiver: ends.receiver,
        streams: told,
        lips: receiving.lips.and_then(Lips::summary),
    })
}

/// Adds a stream to both ends.
fn add(
    (a, b): (&mut Endpoint, &mut Endpoint),
    config: &CallConfig,
    (identity, source, demand, content): (StreamIdentity, Source, Demand, bool),
    now: Timestamp,
) -> Result<(OutgoingId, IncomingId), StreamError> {
    let incoming = IncomingConfig {
        playout_deadline: Some(config.playout_deadline),
        adaptive_playout: adaptive(config, false),
        content,
        ..IncomingConfig::new(identity, demand.media)
    };
    let outgoing = OutgoingConfig {
        packetiser: Packetiser { max_payload: config.payload, ..Packetiser::default() },
        max_queue_age: content.then_some(config.playout_deadline),
        ..OutgoingConfig::new(identity, source, demand)
    };
    let incoming = b.add_incoming(incoming, now)?;
    Ok((a.add_outgoing(outgoing, now)?, incoming))
}

/// The first audio beside the encodings of the first simulcast, or the first video where there is none.
fn lips(streams: &[Stream]) -> Option<Lips> {
    let audio = streams.iter().find(|s| s.media == MediaKind::Audio)?.ids.1;
    let videos = || streams.iter().filter(|s| s.media == MediaKind::Video);
    let group = videos().find_map(|s| s.simulcast);
    let first = videos().next()?.ids.1;
    let camera = videos().filter(|s| if group.is_some() { s.simulcast == group } else { s.ids.1 == first });
    Some(Lips::new(audio, camera.map(|s| s.ids.1).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn larger_pictures_ask_for_more() {
        let kbps = |w, h| {
            let (least, most) = video_demand(w, h);
            (least.as_kbps_f64() as u64, most.as_kbps_f64() as u64)
        };
        assert_eq!([kbps(160, 120), kbps(320, 240), kbps(640, 480)], [(30, 200), (30, 200), (150, 700)]);
        assert_eq!([kbps(1_280, 720), kbps(4_096, 4_096)], [(600, 2_500), (800, 5_000)]);
    }
}
