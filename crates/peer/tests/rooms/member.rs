//! A member of a room: made-up frames of VP8 in three encodings, and packets of audio; it checks what it gets.

use std::collections::{HashMap, HashSet};
use std::net::UdpSocket;
use std::sync::{Arc, Mutex};
use weir_cc::{FeedbackFormat, FeedbackPlan, Limits, Registry, Setup};
use weir_media::{CodedFrame, Frame, FrameKind, FrameSource, MediaKind, PayloadFormat, Payloads, Source, VideoCodec};
use weir_peer::caller::{Caller, EXTENSIONS, OPUS, streams};
use weir_session::allocation::Demand;
use weir_session::{
    Datagram, EndConfig, EndPlan, Endpoint, HeaderExtensions, IncomingConfig, Label, NackConfig, Observer,
    OutgoingConfig, OutgoingOptions, PathConfig, ReceivingPath, RetransmissionConfig, Seen, SendingPath,
    StreamIdentity,
};
use weir_units::{DataRate, DataSize, Ecn, PathId, TimeDelta, Timestamp};
use weir_wire::rtp::PacketView;

/// Rates of the encodings, kbit/s, and their pictures' interval.
pub(crate) const RATES: [u64; 3] = [20, 60, 180];
const INTERVAL: TimeDelta = TimeDelta::from_millis(100);
const AUDIO_INTERVAL: TimeDelta = TimeDelta::from_millis(60);
/// Bytes before what a frame says of itself: tag, start code and size of VP8's key frames.
const HEAD: usize = 10;

/// Frames of one encoding, or packets of audio.
struct Made {
    number: u8,
    encoding: Option<u8>,
    next: u32,
    key: bool,
    coded: CodedFrame,
}

impl Made {
    fn source(number: u8, encoding: Option<u8>) -> Source {
        Source::Custom(Box::new(Self { number, encoding, next: 0, key: true, coded: CodedFrame::default() }))
    }
    fn interval(&self) -> TimeDelta {
        if self.encoding.is_some() { INTERVAL } else { AUDIO_INTERVAL }
    }
}

impl FrameSource for Made {
    fn on_target(&mut self, _: DataRate, _: Timestamp) {}
    fn next_frame_at(&self) -> Option<Timestamp> {
        Some(Timestamp::ZERO + self.interval() * i64::from(self.next))
    }
    fn poll_frame(&mut self, now: Timestamp) -> Option<Frame> {
        let at = self.next_frame_at().filter(|at| *at <= now)?;
        self.next += 1;
        let Some(encoding) = self.encoding else {
            self.coded.data = vec![0xF8; 60];
            let ticks = (at.as_nanos() / 1_000 * 48 / 1_000) as u32;
            return Some(Frame {
                marker: false,
                ..Frame::video(0, at, DataSize::from_bytes(60), FrameKind::Delta, ticks)
            });
        };
        let key = std::mem::take(&mut self.key);
        let (w, h) = (160u16 << encoding, 90u16 << encoding);
        let mut data = vec![u8::from(!key), 0, 0, 0x9d, 0x01, 0x2a];
        data.extend(w.to_le_bytes().into_iter().chain(h.to_le_bytes()));
        data.extend([self.number, encoding]);
        data.extend(self.next.to_be_bytes());
        let size = RATES[usize::from(encoding)] as usize * 1_000 / 8 / 10;
        data.resize(size, 7);
        let size = DataSize::from_bytes(data.len() as u64);
        let picture_id = u64::from(self.next);
        self.coded = CodedFrame { data, key, picture_id, ..CodedFrame::default() };
        let kind = if key { FrameKind::Key } else { FrameKind::Delta };
        Some(Frame::video(0, at, size, kind, (at.as_nanos() / 1_000 * 9 / 100) as u32))
    }
    fn request_key_frame(&mut self, _: Timestamp) {
        self.key = true;
    }
    fn generated_rate(&self) -> DataRate {
        DataRate::ZERO
    }
    fn take_payloads(&mut self, max: DataSize, out: &mut Payloads) -> bool {
        match self.encoding {
            Some(_) => PayloadFormat::new(VideoCodec::Vp8).packetise(&self.coded, max, out),
            None => out.push(&[&self.coded.data], false),
        }
        true
    }
    fn media(&self) -> MediaKind {
        if self.encoding.is_some() { MediaKind::Video } else { MediaKind::Audio }
    }
}

/// Media that a member received from the others.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heard {
    pub(crate) frames: u64,
    pub(crate) audio: u64,
    /// Changes of the encoding at its places.
    pub(crate) changes: u64,
    /// Frames that a decoder could not take: another encoding's without a key frame, or behind a gap.
    pub(crate) broken: u64,
    /// Times that it has asked for a key frame for nothing.
    pub(crate) nagged: u64,
    /// Frames behind a gap that shows in sequence numbers or picture IDs: what was lost and not recovered, or dropped before it was sent.
    pub(crate) gaps: u64,
    /// By source: numbers of all packets.
    numbers: HashMap<u32, HashSet<u16>>,
    /// By source: frames.
    firsts: HashMap<u32, Vec<First>>,
}

/// A frame's first packet: sequence number and picture ID, member, encoding, the frame's number, whether it is a key frame.
type First = ((u16, u16), u8, u8, u32, bool);

struct Ears(Arc<Mutex<Heard>>);

impl Ears {
    fn take(&self, bytes: &[u8]) {
        let mut heard = self.0.lock().expect("no panic");
        let Ok(view) = PacketView::parse(bytes) else { return };
        if view.payload_type() == OPUS {
            heard.audio += u64::from(!view.payload().is_empty());
            return;
        }
        heard.numbers.entry(view.ssrc()).or_default().insert(view.sequence());
        // X and I with a picture ID of 15 bits, as forwarded: four bytes.
        let [first, _, high, low, frame @ ..] = view.payload() else { return };
        let Some([tag, .., member, encoding, a, b, c, d]) = frame.get(..HEAD + 6).filter(|_| first & 0x10 != 0) else {
            return;
        };
        let number = u32::from_be_bytes([*a, *b, *c, *d]);
        heard.frames += 1;
        let firsts = heard.firsts.entry(view.ssrc()).or_default();
        let picture = u16::from_be_bytes([*high, *low]) & 0x7fff;
        firsts.push(((view.sequence(), picture), *member, *encoding, number, tag & 1 == 0));
    }
}

impl Observer for Ears {
    fn on_rtp_received(&mut self, packet: &Seen<'_>) {
        self.take(packet.bytes);
    }
    fn on_rtp_recovered(&mut self, packet: &Seen<'_>) {
        self.take(packet.bytes);
    }
}

pub(crate) struct Member {
    caller: Caller,
    socket: UdpSocket,
    end: Option<Endpoint>,
    heard: Arc<Mutex<Heard>>,
    answer: String,
    number: u8,
    buffer: Vec<u8>,
    /// Whether it asks for key frames all the time.
    pub(crate) nags: bool,
}

fn identity(ssrc: u32, is_audio: bool, mid: &str, rid: Option<&str>) -> StreamIdentity {
    let (payload_type, clock_rate) = if is_audio { (OPUS, 48_000) } else { (96, 90_000) };
    StreamIdentity {
        ssrc,
        payload_type,
        clock_rate,
        parity_payload_type: 1,
        reed_solomon_payload_type: 1,
        rlc_payload_type: 1,
        retransmission_payload_type: 97,
        mid: Label::new(mid),
        rid: rid.and_then(Label::new),
        ..StreamIdentity::default()
    }
}

impl Member {
    pub(crate) fn new(caller: Caller, answer: &str, number: u8) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        socket.set_nonblocking(true).expect("set");
        let (answer, heard) = (answer.to_owned(), Arc::default());
        Self { caller, socket, end: None, heard, answer, number, buffer: vec![0; 2_048], nags: false }
    }

    /// Its session: what it sends begins now.
    fn begin(&self, now: Timestamp) -> Endpoint {
        let incoming = streams(&self.answer);
        let (first, base) = (&incoming[0], 0x0100_0000 * (1 + u32::from(self.number)));
        let video = |n: u8| identity(base + u32::from(n), false, "0", Some(["l", "m", "h"][usize::from(n)]));
        let limits = Limits { floor: DataRate::from_mbps(1), ceiling: DataRate::from_mbps(1) };
        let setup = Setup { limits, start_rate: limits.floor, now, seed: 1, params: Vec::new() };
        let controller = Registry::builtin().make("fixed", &setup).expect("built in").sender;
        let retransmission = Some(RetransmissionConfig::default());
        let extensions = HeaderExtensions {
            mid_id: EXTENSIONS.0,
            rid_id: EXTENSIONS.1,
            transport_sequence: true,
            ..HeaderExtensions::default()
        };
        let seed = u64::from(self.number);
        let config = EndConfig { ssrc: base, remote_ssrc: first.ssrc, extensions, seed, ..EndConfig::default() };
        let sending = Some(SendingPath { per_packet_feedback: true, ..SendingPath::new(controller) });
        let feedback = Some(FeedbackPlan { format: FeedbackFormat::TransportWide, ..FeedbackPlan::LIBWEBRTC });
        let nack = Some(NackConfig::default());
        let receiving = Some(ReceivingPath { feedback, ..ReceivingPath::default() });
        let mut plan = EndPlan::new(config).on(PathConfig { sending, receiving, number: None });
        let demand = Demand::default();
        for n in 0..3 {
            let config = OutgoingConfig::new(video(n), Made::source(self.number, Some(n)), demand);
            plan.outgoing.push(config.with(OutgoingOptions { retransmission, ..OutgoingOptions::default() }));
        }
        let demand = Demand { most: DataRate::from_kbps(64), media: MediaKind::Audio, ..demand };
        let audio = identity(0x2000, true, "1", None);
        plan.outgoing.push(OutgoingConfig::new(audio, Made::source(self.number, None), demand));
        for s in &incoming {
            let kind = if s.is_audio { MediaKind::Audio } else { MediaKind::Video };
            let config = IncomingConfig::new(identity(s.ssrc, s.is_audio, &s.mid, None), kind);
            let nack = nack.filter(|_| !s.is_audio);
            plan.incoming.push(IncomingConfig { nack, ..config });
        }
        let mut end = plan.make(now).expect("sources of their own");
        end.set_observer(Some(Box::new(Ears(Arc::clone(&self.heard)))));
        end
    }

    pub(crate) fn turn(&mut self, now: Timestamp) {
        let to = self.caller.remote().expect("called");
        self.caller.handle_timeout(now).expect("checks are sent");
        while let Ok((len, _)) = self.socket.recv_from(&mut self.buffer) {
            let media = self.caller.handle(now, &self.buffer[..len]).expect("the call goes on");
            if let (Some(bytes), Some(end)) = (media, &mut self.end) {
                end.handle_datagram(
                    now,
                    &Datagram { bytes: &bytes, payload: 0, ecn: Ecn::NotEct, path: PathId::FIRST },
                );
            }
        }
        while let Some(bytes) = self.caller.poll_transmit() {
            let _ = self.socket.send_to(&bytes, to);
        }
        if self.end.is_none() && self.caller.is_connected() {
            self.end = Some(self.begin(now));
        }
        let Some(end) = &mut self.end else { return };
        end.handle_timeout(now);
        let ids = if self.nags { end.stats().incoming_ids().collect() } else { Vec::new() };
        for id in ids {
            if let Some(mut stream) = end.incoming(id).filter(|s| s.counters().packets > 0) {
                // Answered or not: asked again.
                stream.on_decoded(0, true);
                stream.request_key_frame(now);
                self.heard.lock().expect("no panic").nagged += 1;
            }
        }
        let mut out = Vec::new();
        while let Some(t) = end.poll_transmit(now, &mut out) {
            out.resize(out.len() + t.payload as usize, 0);
            let protected = self.caller.protect(&out).expect("protected");
            let _ = self.socket.send_to(&protected, to);
        }
    }

    /// Returns the media received, checked by sequence numbers.
    pub(crate) fn finish(self) -> Heard {
        let mut heard = self.heard.lock().expect("no panic").clone();
        let numbers = std::mem::take(&mut heard.numbers);
        for (ssrc, mut frames) in std::mem::take(&mut heard.firsts) {
            let Some(&((origin, _), ..)) = frames.first() else { continue };
            frames.sort_by_key(|f| f.0.0.wrapping_sub(origin) as i16);
            let mut last: Option<((u16, u16), u8, u8, u32)> = None;
            for (sequence, member, encoding, number, key) in frames {
                let follows = last.is_some_and(|l| (l.1, l.2, l.3) == (member, encoding, number - 1));
                heard.changes += u64::from(last.is_some_and(|l| l.2 != encoding));
                let missing = |(before, picture): (u16, u16)| {
                    let skips = sequence.1 != picture.wrapping_add(1) & 0x7fff;
                    let between = sequence.0.wrapping_sub(before);
                    skips || (0..between).any(|n| !numbers[&ssrc].contains(&before.wrapping_add(n)))
                };
                match last.is_some_and(|l| missing(l.0)) {
                    _ if follows || key => {}
                    true => heard.gaps += 1,
                    false => heard.broken += 1,
                }
                last = Some((sequence, member, encoding, number));
            }
        }
        heard
    }
}
