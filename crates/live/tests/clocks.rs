//! Calls whose ends' clocks differ: the sessions that two processes agree on, driven in virtual time for three hours.

#![allow(clippy::unwrap_used)]

use std::collections::VecDeque;
use std::sync::atomic::AtomicBool;
use weir_cc::{Limits, Registry};
use weir_live::call::{CallConfig, Joined, JoinedEnd, Party, PartyCoding, PartyMedia, PlannedSource};
use weir_live::clock::Clock;
use weir_live::sdp::Direction;
use weir_live::signal::{Listener, Signalling, Trust};
use weir_media::audio::{AudioSlotContent, OpusParams};
use weir_media::{EncoderConfig, Frame, FrameKind, FrameSource, Payloads, ReceivedFrame, Source, VideoCodec};
use weir_session::allocation::{Demand, MediaKind};
use weir_session::{Datagram, IncomingId, Label};
use weir_units::{DataRate, DataSize, Ecn, TimeDelta, Timestamp};
use weir_wire::rtp::PacketView;

/// How much faster the second end's clock is, in parts of a million.
const DRIFT_PPM: i64 = 100;
const HOURS: i64 = 3;
const PART_MS: usize = 1_800_000;
const PARTS: usize = 2 * HOURS as usize;
/// One way, with up to `JITTER` on top.
const PATH: TimeDelta = TimeDelta::from_millis(30);
const JITTER: TimeDelta = TimeDelta::from_millis(5);
const FRAME: TimeDelta = TimeDelta::from_millis(100);
/// A packet of SILK, which may be this long.
const PACKET: TimeDelta = TimeDelta::from_millis(60);
const SILK_60_MS: u8 = 11 << 3;
/// Time for playout to adapt, from the beginning.
const SETTLED: TimeDelta = TimeDelta::from_secs(30);

/// Frames or packets of sound of one size, with content that any decoder would refuse.
struct Even {
    media: MediaKind,
    start: Timestamp,
    next: u64,
}

impl Even {
    const fn step(&self) -> TimeDelta {
        if matches!(self.media, MediaKind::Audio) { PACKET } else { FRAME }
    }
    fn ticks(&self, number: u64) -> u32 {
        (i128::from((self.step() * number as i64).as_nanos()) * i128::from(self.media.clock_hz()) / 1_000_000_000)
            as u32
    }
}

impl FrameSource for Even {
    fn on_target(&mut self, _: DataRate, _: Timestamp) {}
    fn next_frame_at(&self) -> Option<Timestamp> {
        Some(self.start + self.step() * self.next as i64)
    }
    fn poll_frame(&mut self, now: Timestamp) -> Option<Frame> {
        let captured = self.next_frame_at().filter(|at| *at <= now)?;
        let kind = if self.next == 0 { FrameKind::Key } else { FrameKind::Delta };
        let marker = matches!(self.media, MediaKind::Video);
        let frame = Frame::video(self.next, captured, DataSize::from_bytes(120), kind, self.ticks(self.next));
        self.next += 1;
        Some(Frame { marker, ..frame })
    }
    fn request_key_frame(&mut self, _: Timestamp) {}
    fn generated_rate(&self) -> DataRate {
        DataRate::from_kbps(20)
    }
    fn take_payloads(&mut self, _: DataSize, out: &mut Payloads) -> bool {
        let first = if matches!(self.media, MediaKind::Audio) { SILK_60_MS } else { 0x61 };
        out.push(&[&[first], &[7; 119]], false);
        true
    }
    fn media(&self) -> MediaKind {
        self.media
    }
}

fn party() -> Party {
    let call = CallConfig {
        limits: Limits { floor: DataRate::from_kbps(50), ceiling: DataRate::from_kbps(150) },
        start_rate: DataRate::from_kbps(100),
        ..CallConfig::default()
    };
    let of = |mid, coding| PartyMedia { mid: Label::new(mid), direction: Direction::SendReceive, coding };
    let pictures = EncoderConfig::live(320, 240);
    let video = PartyCoding::Video { codecs: vec![VideoCodec::H264], pictures, sends: vec![(320, 240)], receives: 1 };
    Party::new(
        call,
        vec![of("audio", PartyCoding::Audio(OpusParams::default())), of("camera", video)],
        Trust::default(),
    )
}

/// Both ends of an agreed call.
fn agree() -> [Joined; 2] {
    let (party, stop) = (party(), AtomicBool::new(false));
    let mut listener = Listener::bind(&Signalling::Tcp("127.0.0.1:0".into()), None, &Trust::default()).unwrap();
    let by = Signalling::Tcp(listener.local_addr().unwrap().to_string());
    let mut both = std::thread::scope(|scope| {
        let other = scope.spawn(|| party.listen(&mut listener, &stop, &mut |_| {}).unwrap());
        [party.connect(&by, &stop).unwrap(), other.join().unwrap()]
    });
    // Addresses of other machines (RFC 5737), so that the clocks are not taken for one. Nothing is sent to them.
    for (joined, to) in both.iter_mut().zip(["192.0.2.1:5000", "192.0.2.2:5000"]) {
        joined.agreement.remote = to.parse().unwrap();
        joined.agreement.paths = vec![joined.agreement.remote];
    }
    both
}

/// A stream as the network sees it: the source, and the timestamp of its first packet.
type Seen = (u32, u32);

/// Sums over what was played of a stream.
#[derive(Clone, Copy, Default, Debug)]
struct Played {
    units: u64,
    /// Frames that were incomplete or late.
    missing: u64,
    /// Time of sound that was made up or inserted, in ms.
    made: f64,
    /// Least and most time from capture to playout once it has adapted, in ms, in each half hour.
    least: [f64; PARTS],
    most: [f64; PARTS],
}

impl Played {
    fn note(&mut self, delay: TimeDelta, since: TimeDelta) {
        let ms = delay.as_millis_f64();
        self.units += 1;
        if since > SETTLED {
            let part = (since.as_millis() as usize / PART_MS).min(PARTS - 1);
            let (least, most) = (&mut self.least[part], &mut self.most[part]);
            *least = if *least > 0.0 { least.min(ms) } else { ms };
            *most = most.max(ms);
        }
    }
}

/// An end whose clock may be faster than the world's.
struct End {
    joined: JoinedEnd,
    ppm: i64,
    /// When the session began, by its own clock.
    began: Timestamp,
    /// Datagrams on their way to the other end, by the world's time.
    inside: VecDeque<(Timestamp, Vec<u8>)>,
    sent: Vec<Seen>,
    count: u64,
    played: [Played; 2],
    frame: ReceivedFrame,
}

impl End {
    fn new(joined: Joined, ppm: i64, clock: &Clock) -> Self {
        let config = party().call;
        let began = clock.now();
        let plans = joined.outgoing();
        let kinds = plans.iter().map(|p| joined.agreement.streams[p.stream].codec.media());
        let source = |media| PlannedSource {
            source: Source::Custom(Box::new(Even { media, start: began, next: 0 })),
            demand: Demand { media, ..Demand::default() },
        };
        let sources = kinds.map(source).collect();
        let joined = joined.into_end(&config, &Registry::builtin(), clock, sources).unwrap();
        assert!(!joined.synchronised_clocks);
        let (sent, frame) = (Vec::new(), ReceivedFrame::default());
        Self { joined, ppm, began, inside: VecDeque::new(), sent, count: 0, played: Default::default(), frame }
    }

    fn own(&self, world: Timestamp, zero: Timestamp) -> Timestamp {
        let since = world - zero;
        world + TimeDelta::from_nanos((i128::from(since.as_nanos()) * i128::from(self.ppm) / 1_000_000) as i64)
    }
    fn world(&self, own: Timestamp, zero: Timestamp) -> Timestamp {
        let since = i128::from((own - zero).as_nanos());
        // Rounded up, so that its own time has come then.
        zero + TimeDelta::from_nanos((since * 1_000_000 / i128::from(1_000_000 + self.ppm)) as i64 + 1)
    }

    /// A turn as of [`weir_live::call::LiveEnd::run`]; when the next one is due.
    fn turn(&mut self, world: Timestamp, zero: Timestamp, other: &[Seen], other_clock: (i64, Timestamp)) -> Timestamp {
        let now = self.own(world, zero);
        self.joined.end.endpoint_mut().handle_timeout(now);
        self.play(now, zero, other, other_clock);
        let mut out = Vec::new();
        let endpoint = self.joined.end.endpoint_mut();
        while let Some(t) = endpoint.poll_transmit(now, &mut out) {
            out.resize(out.len() + t.payload as usize, 0);
            if let Ok(rtp) = PacketView::parse_header(&out).map(|p| (p.ssrc(), p.timestamp()))
                && t.is_rtp()
                && self.sent.iter().all(|s| s.0 != rtp.0)
            {
                self.sent.push(rtp);
            }
            self.count += 1;
            let jitter = JITTER.mul_f64((self.count * 7 % 11) as f64 / 10.0);
            let at = self.inside.back().map_or(world, |p| p.0).max(world + PATH + jitter);
            self.inside.push_back((at, core::mem::take(&mut out)));
        }
        let next = endpoint.poll_timeout(now).unwrap_or(Timestamp::MAX);
        self.world(next.min(now + TimeDelta::from_millis(20)), zero)
    }

    fn play(&mut self, now: Timestamp, zero: Timestamp, other: &[Seen], (ppm, began): (i64, Timestamp)) {
        let own = self.ppm;
        // From capture by the other end's clock to playout by this one's, by the world's.
        let delay = |ssrc: u32, rtp: u32, hz: u32, at: Timestamp| {
            let first = other.iter().find(|s| s.0 == ssrc)?.1;
            let ticks = i128::from(rtp.wrapping_sub(first));
            let captured = began + TimeDelta::from_nanos((ticks * 1_000_000_000 / i128::from(hz)) as i64);
            let world = |t: Timestamp, ppm: i64| {
                (i128::from((t - zero).as_nanos()) * 1_000_000 / i128::from(1_000_000 + ppm)) as i64
            };
            Some(TimeDelta::from_nanos(world(at, own) - world(captured, ppm)))
        };
        let since = now - zero;
        let ids: Vec<IncomingId> = self.joined.incoming.clone();
        for (n, id) in ids.into_iter().enumerate() {
            let mut stream = self.joined.end.endpoint_mut().incoming(id).unwrap();
            let ssrc = stream.identity().ssrc;
            while let Some(e) = stream.poll_playout(now) {
                stream.take_frame(&e, &mut self.frame);
                match e.delay.and_then(|_| delay(ssrc, e.rtp_timestamp, MediaKind::Video.clock_hz(), e.at)) {
                    Some(delay) => self.played[n].note(delay, since),
                    None => self.played[n].missing += 1,
                }
            }
            while let Some(slot) = stream.poll_audio(now) {
                match slot.content {
                    AudioSlotContent::Packet(_) => {
                        if let Some(d) = delay(ssrc, slot.rtp_timestamp, MediaKind::Audio.clock_hz(), slot.at) {
                            self.played[n].note(d, since);
                        }
                    }
                    _ => self.played[n].made += f64::from(slot.samples) / 48.0,
                }
            }
        }
    }
}

#[test]
fn three_hours_with_clocks_that_differ_delay_and_lose_nothing() {
    let clock = Clock::starting_now();
    let [a, b] = agree();
    let mut ends = [End::new(a, 0, &clock), End::new(b, DRIFT_PPM, &clock)];
    let zero = clock.now();
    let end = zero + TimeDelta::from_secs(HOURS * 3_600);
    let mut world = zero;
    let mut due = [zero; 2];
    while world < end {
        for (n, due) in due.iter_mut().enumerate() {
            let (left, right) = ends.split_at_mut(1);
            let (own, other) = if n == 0 { (&mut left[0], &mut right[0]) } else { (&mut right[0], &mut left[0]) };
            let mut came = false;
            while other.inside.front().is_some_and(|p| p.0 <= world)
                && let Some((_, bytes)) = other.inside.pop_front()
            {
                let now = own.own(world, zero);
                own.joined.end.endpoint_mut().handle_datagram(now, &Datagram::new(&bytes, Ecn::NotEct));
                came = true;
            }
            if came || *due <= world {
                *due = own.turn(world, zero, &other.sent, (other.ppm, other.began)).max(world);
            }
        }
        let arrivals = ends.iter().filter_map(|e| e.inside.front().map(|p| p.0));
        world = due.into_iter().chain(arrivals).fold(end, Timestamp::min).max(world + TimeDelta::from_nanos(1));
    }
    for (name, e) in ["slower", "faster"].iter().zip(&ends) {
        for (what, p) in ["audio", "camera"].iter().zip(e.played) {
            eprintln!("at the {name} end, {what}: {p:?}");
        }
    }
    for e in &ends {
        let [sound, pictures] = e.played;
        let all = |step: TimeDelta| (HOURS * 3_600_000 / step.as_millis()) as u64;
        assert!(sound.units + 20 >= all(PACKET) && pictures.units + 20 >= all(FRAME), "{sound:?} {pictures:?}");
        // An end whose clock is faster has 1.08 s more to play than it gets, of which a packet at a time is made up.
        let apart = (HOURS * 3_600 * DRIFT_PPM) as f64 / 1e3;
        assert!(sound.made <= apart + 3.0 * PACKET.as_millis_f64() && pictures.missing <= 2, "{sound:?} {pictures:?}");
        for p in [sound, pictures] {
            // Path and jitter, a packet by which sound is stretched or cut, and what adaptation keeps in hand.
            assert!(p.least.iter().all(|d| *d >= PATH.as_millis_f64()) && p.most.iter().all(|d| *d <= 170.0), "{p:?}");
        }
    }
}
