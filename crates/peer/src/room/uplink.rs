//! Media that a member sends: packets of its session become frames for the others.

use super::Encoding;
use super::assembly::{Assembly, Packet, size_of};
use super::feed::Coded;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use weir_media::VideoCodec;
use weir_session::{Endpoint, IncomingId, Observer, Seen};
use weir_units::{TimeDelta, Timestamp};
use weir_wire::rtp::PacketView;

/// Packets that a datagram can bring: itself, and what was recovered by it.
const MAX_PACKETS: usize = 64;
/// Time over which rates are measured, and parts of it.
const WINDOW: TimeDelta = TimeDelta::from_secs(2);
const PART: TimeDelta = TimeDelta::from_millis(250);
/// Least interval of requests for a key frame of an encoding.
const REQUESTS: TimeDelta = TimeDelta::from_millis(500);
/// Headers of a packet of audio: RTP with its extensions, SRTP's tag.
const AUDIO_HEADERS: usize = 38;

/// Collects the packets that the session accepts.
struct Collector(Arc<Mutex<Vec<Vec<u8>>>>);

impl Collector {
    fn add(&self, bytes: &[u8]) {
        let mut packets = super::lock(&self.0);
        if packets.len() < MAX_PACKETS {
            packets.push(bytes.to_vec());
        }
    }
}

impl Observer for Collector {
    fn on_rtp_received(&mut self, packet: &Seen<'_>) {
        self.add(packet.bytes);
    }
    fn on_rtp_recovered(&mut self, packet: &Seen<'_>) {
        self.add(packet.bytes);
    }
}

/// Rate over the last two seconds.
#[derive(Default)]
struct Meter {
    parts: VecDeque<(Timestamp, usize)>,
}

impl Meter {
    fn add(&mut self, now: Timestamp, bytes: usize) {
        match self.parts.back_mut().filter(|(at, _)| now - *at < PART) {
            Some((_, sum)) => *sum += bytes,
            None => self.parts.push_back((now, bytes)),
        }
    }
    fn rate(&mut self, now: Timestamp) -> f64 {
        while self.parts.front().is_some_and(|(at, _)| now - *at > WINDOW) {
            self.parts.pop_front();
        }
        // A stream that has just begun is not spread over the whole time.
        let since = self.parts.front().map_or(WINDOW, |(at, _)| (now - *at).max(PART));
        let bytes: usize = self.parts.iter().map(|(_, b)| b).sum();
        8.0 * bytes as f64 / since.as_secs_f64()
    }
}

/// Ticks of an RTP clock, unwrapped, and their distance from this end's clock.
#[derive(Default)]
struct Ticks {
    last: Option<i64>,
    lead: Option<i64>,
}

impl Ticks {
    fn unwrap(&mut self, rtp_timestamp: u32, clock: u32, now: Timestamp) -> (i64, i64) {
        let ticks = self
            .last
            .map_or(i64::from(rtp_timestamp), |last| last + i64::from(rtp_timestamp.wrapping_sub(last as u32) as i32));
        self.last = Some(ticks);
        // That of the packet with the least delay.
        let arrival = (i128::from(now.as_nanos()) * i128::from(clock) / 1_000_000_000) as i64;
        let lead = self.lead.map_or(arrival - ticks, |lead| lead.min(arrival - ticks));
        self.lead = Some(lead);
        (ticks, lead)
    }
}

/// One of its encodings.
struct Encoder {
    id: IncomingId,
    assembly: Assembly,
    meter: Meter,
    ticks: Ticks,
    size: Option<(u16, u16)>,
    asked: Option<Timestamp>,
}

/// Its microphone.
struct Microphone {
    id: IncomingId,
    meter: Meter,
    ticks: Ticks,
    highest: Option<u16>,
    packets: u64,
}

/// All that a member sends.
pub(super) struct Uplink {
    codec: VideoCodec,
    packets: Arc<Mutex<Vec<Vec<u8>>>>,
    encoders: Vec<Encoder>,
    microphone: Option<Microphone>,
    /// Sources of RTP and whose they are.
    sources: Vec<(u32, IncomingId)>,
    data: Vec<u8>,
    pub(super) key_frames_requested: u64,
}

impl Uplink {
    /// Observes the session.
    pub(super) fn new(
        codec: VideoCodec,
        encodings: &[IncomingId],
        audio: Option<IncomingId>,
        endpoint: &mut Endpoint,
    ) -> Self {
        let packets = Arc::<Mutex<Vec<Vec<u8>>>>::default();
        endpoint.set_observer(Some(Box::new(Collector(Arc::clone(&packets)))));
        let encoder = |&id: &IncomingId| Encoder {
            id,
            assembly: Assembly::new(codec),
            meter: Meter::default(),
            ticks: Ticks::default(),
            size: None,
            asked: None,
        };
        let microphone = |id| {
            let (meter, ticks) = (Meter::default(), Ticks::default());
            Microphone { id, meter, ticks, highest: None, packets: 0 }
        };
        Self {
            codec,
            packets,
            encoders: encodings.iter().map(encoder).collect(),
            microphone: audio.map(microphone),
            sources: Vec::new(),
            data: Vec::new(),
            key_frames_requested: 0,
        }
    }

    fn stream_of(&mut self, ssrc: u32, endpoint: &mut Endpoint) -> Option<IncomingId> {
        let known = |sources: &[(u32, IncomingId)]| sources.iter().find(|s| s.0 == ssrc).map(|s| s.1);
        known(&self.sources).or_else(|| {
            let ids = self.encoders.iter().map(|e| e.id).chain(self.microphone.as_ref().map(|m| m.id));
            let source = |id| Some((endpoint.incoming(id)?.identity().ssrc, id));
            self.sources = ids.filter_map(source).collect();
            known(&self.sources)
        })
    }

    /// The session has taken a datagram: frames that are whole now are passed on.
    pub(super) fn on_datagram(&mut self, now: Timestamp, endpoint: &mut Endpoint, mut pass_on: impl FnMut(Coded)) {
        let packets = std::mem::take(&mut *super::lock(&self.packets));
        for bytes in &packets {
            let Ok(view) = PacketView::parse_header(bytes) else { continue };
            let Some(id) = self.stream_of(view.ssrc(), endpoint) else { continue };
            // Padding that `parse_header` leaves at the end.
            let payload = PacketView::parse(bytes).map_or(&[][..], |v| &bytes[v.header_len()..][..v.payload().len()]);
            if let Some(m) = self.microphone.as_mut().filter(|m| m.id == id) {
                m.take(&view, payload, now, &mut pass_on);
                continue;
            }
            if let Some(n) = self.encoders.iter().position(|e| e.id == id) {
                let (sequence, rtp_timestamp, marker) = (view.sequence(), view.timestamp(), view.marker());
                self.encoders[n].meter.add(now, payload.len());
                self.encoders[n].assembly.add(&Packet { sequence, rtp_timestamp, marker, payload });
                self.assemble(n, now, endpoint, &mut pass_on);
            }
        }
    }

    fn assemble(&mut self, n: usize, now: Timestamp, endpoint: &mut Endpoint, pass_on: &mut impl FnMut(Coded)) {
        let e = &mut self.encoders[n];
        while let Some(whole) = e.assembly.poll(now, &mut self.data) {
            let (ticks, lead) = e.ticks.unwrap(whole.rtp_timestamp, 90_000, now);
            let unpacked = whole.unpacked;
            if unpacked.key {
                e.size = size_of(self.codec, &self.data).or(e.size);
                e.asked = None;
                if let Some(mut incoming) = endpoint.incoming(e.id) {
                    incoming.on_decoded(whole.rtp_timestamp, true);
                }
            }
            pass_on(Coded {
                data: self.data.clone(),
                encoding: Some(n),
                key: unpacked.key,
                discardable: unpacked.discardable,
                layer: unpacked.layer,
                marker: true,
                ticks,
                lead,
            });
        }
    }

    /// Asks for key frames that are wanted: by others (a bit for each encoding), or since frames are missing.
    pub(super) fn ask(&mut self, wanted: u64, now: Timestamp, endpoint: &mut Endpoint) {
        for (n, e) in self.encoders.iter_mut().enumerate() {
            let is_sent = !e.meter.parts.is_empty();
            if wanted & (1 << n) == 0 && !(is_sent && e.assembly.needs_key()) {
                continue;
            }
            if e.asked.is_some_and(|at| now.saturating_since(at) < REQUESTS) {
                continue;
            }
            if let Some(mut incoming) = endpoint.incoming(e.id).filter(|i| i.identity().ssrc != 0) {
                self.key_frames_requested += 1;
                e.asked = Some(now);
                incoming.request_key_frame(now);
            }
        }
    }

    /// Frames that wait for what was never sent again are given up.
    pub(super) fn on_timeout(&mut self, now: Timestamp, endpoint: &mut Endpoint, mut pass_on: impl FnMut(Coded)) {
        for n in 0..self.encoders.len() {
            self.assemble(n, now, endpoint, &mut pass_on);
        }
    }

    pub(super) fn encodings(&mut self, now: Timestamp) -> Vec<Encoding> {
        let encoding = |e: &mut Encoder| Encoding { rate_bps: e.meter.rate(now), size: e.size };
        self.encoders.iter_mut().map(encoding).collect()
    }
    /// Its rate with headers, and packets.
    pub(super) fn audio(&mut self, now: Timestamp) -> (f64, u64) {
        self.microphone.as_mut().map_or((0.0, 0), |m| (m.meter.rate(now), m.packets))
    }
    pub(super) fn lost(&self) -> u64 {
        self.encoders.iter().map(|e| e.assembly.lost).sum()
    }
}

impl Microphone {
    fn take(&mut self, view: &PacketView<'_>, payload: &[u8], now: Timestamp, pass_on: &mut impl FnMut(Coded)) {
        // Packets keep their order: one that comes after a later one is not passed on.
        let sequence = view.sequence();
        let is_late = self.highest.is_some_and(|h| sequence.wrapping_sub(h) as i16 <= 0);
        if payload.is_empty() || is_late {
            return;
        }
        self.highest = Some(sequence);
        self.packets += 1;
        self.meter.add(now, payload.len() + AUDIO_HEADERS);
        let (ticks, lead) = self.ticks.unwrap(view.timestamp(), 48_000, now);
        pass_on(Coded {
            data: payload.to_vec(),
            encoding: None,
            key: false,
            discardable: false,
            layer: None,
            marker: view.marker(),
            ticks,
            lead,
        });
    }
}
