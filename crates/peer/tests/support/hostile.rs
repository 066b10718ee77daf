//! Offers and datagrams of an end that means harm, driven by bytes, and what must hold whatever they are. For the tests here and for the fuzz
//! targets.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::sync::LazyLock;
use std::time::Instant;
use weir_cc::{FeedbackPlan, Limits, Registry, Setup};
use weir_media::{PerfectCodec, Source, VideoCodec};
use weir_peer::caller::{Caller, Offer};
use weir_peer::dtls::Identity;
use weir_peer::ice::{Credentials, check};
use weir_peer::sdp::{Answer, Codecs, Direction, MAX_OFFER, Wanted, negotiate, write};
use weir_peer::transport::{Received, Transport};
use weir_session::allocation::{Demand, MediaKind};
use weir_session::{
    Datagram, EndConfig, EndPlan, Endpoint, HeaderExtensions, IncomingConfig, NackConfig, OutgoingConfig,
    OutgoingOptions, ParityFormat, PathConfig, ReceivingPath, Red, RetransmissionConfig, SendingPath, StreamIdentity,
};
use weir_units::{DataRate, Ecn, PathId, TimeDelta, Timestamp};

const BOTH: Direction = Direction { sends: true, receives: true };
const ALL: Codecs = Codecs { vp8: true, h264: true };
/// The caller's sources: of its media, and of the packets by which the call shows that it goes on.
const MEDIA: u32 = 5;
const PROOF: u32 = 7;
/// Most datagrams at one instant.
const MOST_AT_ONCE: usize = 2_000;

/// Certificates take long to make.
static IDENTITY: LazyLock<Identity> = LazyLock::new(|| Identity::new().expect("a certificate"));

fn here() -> SocketAddr {
    ([127, 0, 0, 1], 7_000).into()
}
fn caller_at() -> SocketAddr {
    ([10, 0, 0, 1], 9).into()
}
fn stranger_at(n: u8) -> SocketAddr {
    ([10, 0, 1, n], 9).into()
}

/// Reads an offer in every way that the service does, and writes the answers.
pub(crate) fn offer(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    for (codec, direction) in [
        (VideoCodec::Vp8, BOTH),
        (VideoCodec::H264, Direction { receives: false, ..BOTH }),
        (VideoCodec::H264, Direction { sends: false, ..BOTH }),
    ] {
        let n = match negotiate(text, Wanted { codec, built_in: ALL, direction }) {
            Ok(n) => n,
            Err(e) => {
                let said = e.to_string();
                assert!(said.len() < 1_000 && !said.contains(char::is_control), "{said:?}");
                continue;
            }
        };
        assert!(data.len() <= MAX_OFFER);
        assert!((n.direction.sends <= direction.sends) && (n.direction.receives <= direction.receives));
        let credentials = Credentials { name: "abcdefgh".into(), password: "0123456789abcdefghijkl".into() };
        let a = Answer {
            session: 7,
            credentials: &credentials,
            fingerprint: IDENTITY.fingerprint(),
            address: here(),
            ssrc: (1, 2),
            cname: "me",
        };
        let answer = write(&n, &a);
        // Nothing of the offer makes lines of its own in the answer, or makes it long.
        assert!(answer.ends_with("\r\n") && answer.len() < 4_000 + 2 * data.len(), "{answer}");
        for line in answer.split_terminator("\r\n") {
            assert!(line.as_bytes().get(1) == Some(&b'=') && !line.contains(char::is_control), "{line:?}");
        }
        let ours = ["a=ice-lite", "a=setup:active", "a=rtcp-mux"];
        assert!(ours.iter().all(|line| answer.lines().any(|l| l == *line)), "{answer}");
        assert_eq!(
            answer.matches("a=fingerprint:").count(),
            answer.matches(&IDENTITY.fingerprint().to_string()).count()
        );
    }
}

/// Bytes consumed in order; zeros after the end.
struct Script<'a>(&'a [u8]);

impl<'a> Script<'a> {
    fn byte(&mut self) -> u8 {
        let Some((&byte, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        byte
    }
    /// A length, and so many bytes: 255 stands for all that follow.
    fn bytes(&mut self) -> &'a [u8] {
        let len = self.byte();
        let len = if len == 255 { self.0.len() } else { usize::from(len).min(self.0.len()) };
        let (taken, rest) = self.0.split_at(len);
        self.0 = rest;
        taken
    }
    /// Changes a datagram at a few places, or its length.
    fn spoil(&mut self, datagram: &mut Vec<u8>) {
        for _ in 0..self.byte() % 4 {
            let at = usize::from(self.byte()) % datagram.len().max(1);
            let with = self.byte();
            if let Some(byte) = datagram.get_mut(at) {
                *byte ^= with;
            }
        }
        if let longer @ 1..=64 = self.byte() {
            datagram.resize(usize::from(longer) * 8, 0xA5);
        }
    }
}

/// A call's transport and session, and the caller at the other end of it.
pub(crate) struct Target {
    caller: Caller,
    username: String,
    password: String,
    transport: Transport,
    endpoint: Endpoint,
    now: Timestamp,
    /// Of the packets that the caller sends.
    sequence: u16,
    last: Vec<u8>,
}

impl Target {
    /// A call that has its answer, and that nobody has connected to yet.
    fn waiting() -> Self {
        static ZERO: LazyLock<Instant> = LazyLock::new(|| {
            #[expect(clippy::disallowed_methods, reason = "an Instant has no other origin")]
            Instant::now()
        });
        let mut caller = Caller::new(*ZERO).expect("a caller");
        let offer = Offer { codec: VideoCodec::Vp8, direction: BOTH, ssrc: (MEDIA, 6), transport_wide: true };
        let wanted = Wanted { codec: VideoCodec::Vp8, built_in: ALL, direction: BOTH };
        let n = negotiate(&caller.offer(&offer), wanted).expect("accepted");
        let own = Credentials::random().expect("random");
        let (username, password) = (format!("{}:{}", own.name, n.ice_name), own.password.clone());
        let fingerprint = IDENTITY.fingerprint();
        let a = Answer { session: 1, credentials: &own, fingerprint, address: here(), ssrc: (1, 2), cname: "w" };
        caller.accept(&write(&n, &a)).expect("an answer");
        let now = Timestamp::from_secs(1);
        let transport = Transport::new(&IDENTITY, own, &n.ice_name, n.fingerprint, *ZERO, now).expect("a transport");
        let endpoint = endpoint(now);
        Self { caller, username, password, transport, endpoint, now, sequence: 0, last: Vec::new() }
    }

    /// One that is connected.
    pub(crate) fn connected() -> Self {
        let mut target = Self::waiting();
        while !(target.caller.is_connected() && target.transport.is_connected()) {
            assert!(target.now < Timestamp::from_secs(10), "no handshake");
            target.exchange();
        }
        target
    }

    /// Exchange of both ends, once.
    fn exchange(&mut self) {
        self.now += TimeDelta::from_millis(10);
        let _ = self.caller.handle_timeout(self.now);
        let _ = self.transport.handle_timeout(self.now);
        self.deliver();
    }

    /// Delivers what either end has to send to the other.
    fn deliver(&mut self) {
        while let Some(bytes) = self.caller.poll_transmit() {
            let _ = self.transport.handle(self.now, caller_at(), &bytes);
        }
        while let Some((_, bytes)) = self.transport.poll_transmit() {
            let _ = self.caller.handle(self.now, &bytes);
        }
    }

    /// A packet of the caller's.
    fn packet(&mut self, ssrc: u32, payload: &[u8]) -> Vec<u8> {
        self.sequence = self.sequence.wrapping_add(1);
        let [high, low] = self.sequence.to_be_bytes();
        let head = [0x80, 96, high, low, 0, 0, self.sequence.to_be_bytes()[0], 1];
        [&head[..], &ssrc.to_be_bytes(), payload].concat()
    }

    fn receive(&mut self, from: SocketAddr, datagram: &[u8]) {
        let connected = self.transport.is_connected();
        let received = self.transport.handle(self.now, from, datagram);
        // A handshake may fail by what is forged; a call does not end by it.
        assert!(received.is_ok() || !connected, "{received:?}");
        if let Ok(Received::Media(opened)) = received {
            let datagram = Datagram { bytes: &opened, payload: 0, ecn: Ecn::NotEct, path: PathId::FIRST };
            self.endpoint.handle_datagram(self.now, &datagram);
        }
        self.drain();
    }

    /// Takes what there is to send; it is lost on its way.
    fn drain(&mut self) {
        let mut count = 0;
        while self.transport.poll_transmit().is_some() {
            count += 1;
        }
        let mut out = Vec::new();
        while self.endpoint.poll_transmit(self.now, &mut out).is_some() {
            out.clear();
            count += 1;
        }
        assert!(count < MOST_AT_ONCE, "{count} datagrams at once");
        while self.endpoint.poll_playout(self.now).is_some() {}
    }

    fn step(&mut self, script: &mut Script<'_>) {
        let what = script.byte();
        // Of somebody else, for half of them.
        let from = if what & 16 == 0 { caller_at() } else { stranger_at(what >> 5) };
        match what % 8 {
            0 => self.receive(from, script.bytes()),
            1 => {
                // By somebody who knows the password, unless it is spoilt: from the caller's own address.
                let username = if what & 8 == 0 { self.username.clone() } else { "other:name".into() };
                let mut datagram =
                    check(&username, &self.password, what & 32 == 0, &*IDENTITY.crypto()).expect("a check");
                script.spoil(&mut datagram);
                self.receive(caller_at(), &datagram);
            }
            2 => {
                let attributes = script.bytes();
                let length = (attributes.len() as u16).to_be_bytes();
                let head = [0, script.byte() & 1, length[0], length[1], 0x21, 0x12, 0xA4, 0x42];
                self.receive(from, &[&head[..], &[7; 12], attributes].concat());
            }
            3 => {
                let packet = self.packet(MEDIA, script.bytes());
                let Ok(mut datagram) = self.caller.protect(&packet) else { return };
                self.last.clone_from(&datagram);
                script.spoil(&mut datagram);
                self.receive(from, &datagram);
            }
            4 => {
                // Of the caller itself: what nobody in between can forge may still be anything.
                let content = script.bytes();
                let is_proof = content.get(8..12) == Some(&PROOF.to_be_bytes()[..]);
                // Not even protected: that would move the caller's own count of sequence numbers on.
                if !is_proof && let Ok(datagram) = self.caller.protect(content) {
                    self.receive(caller_at(), &datagram);
                }
            }
            5 => {
                let body = script.bytes();
                let length = (body.len() as u16).to_be_bytes();
                let head = [
                    20 + script.byte() % 6,
                    0xFE,
                    0xFD,
                    0,
                    what >> 6,
                    0,
                    0,
                    0,
                    0,
                    0,
                    script.byte(),
                    length[0],
                    length[1],
                ];
                self.receive(from, &[&head[..], body].concat());
            }
            6 => {
                let datagram = self.last.clone();
                self.receive(from, &datagram);
            }
            _ => {
                self.now += TimeDelta::from_millis(i64::from(script.byte()));
                if self.transport.is_connected() {
                    // The caller goes on checking, so that its consent lasts however long the script is.
                    let _ = self.caller.handle_timeout(self.now);
                    self.deliver();
                }
                let ended = self.transport.handle_timeout(self.now);
                assert!(ended.is_ok() || !self.transport.is_connected(), "{ended:?}");
                self.endpoint.handle_timeout(self.now);
                self.drain();
            }
        }
    }

    fn run(&mut self, data: &[u8]) {
        let mut script = Script(data);
        while !script.0.is_empty() {
            self.step(&mut script);
        }
    }

    /// Plays a script against a call that runs, which goes on afterwards.
    fn play(&mut self, data: &[u8]) {
        self.exchange();
        // Whatever the caller said of itself, it is another call's business.
        self.endpoint = endpoint(self.now);
        self.run(data);
        // An address that has proved itself is not forgotten by what strangers send.
        let packet = self.packet(PROOF, b"still there");
        let protected = self.caller.protect(&packet).expect("protected");
        match self.transport.handle(self.now, caller_at(), &protected) {
            Ok(Received::Media(opened)) => assert_eq!(opened[..], packet),
            other => panic!("the call does not go on: {other:?}"),
        }
    }
}

fn endpoint(now: Timestamp) -> Endpoint {
    let limits = Limits { floor: DataRate::from_kbps(50), ceiling: DataRate::from_kbps(500) };
    let setup = Setup { limits, start_rate: DataRate::from_kbps(100), now, seed: 1, params: Vec::new() };
    let controller = Registry::builtin().make("gcc", &setup).expect("a controller").sender;
    // RED too, as browsers have it.
    let red = Red { payload_type: 100, ulpfec: 101, retransmission: Some(102), zeroed: [3, 2] };
    let own = StreamIdentity { parity_format: ParityFormat::UlpFec(red), ..StreamIdentity::of(1) };
    let theirs = StreamIdentity { ssrc: MEDIA, retransmission_ssrc: Some(6), ..own };
    let extensions = HeaderExtensions { transport_sequence: true, ..HeaderExtensions::default() };
    let config = EndConfig { ssrc: 1, remote_ssrc: MEDIA, extensions, ..EndConfig::default() };
    let source = Source::Perfect(PerfectCodec::frames(TimeDelta::from_millis(33), now));
    let retransmission = Some(RetransmissionConfig::default());
    let outgoing = OutgoingConfig::new(own, source, Demand::default())
        .with(OutgoingOptions { retransmission, ..OutgoingOptions::default() });
    let incoming = IncomingConfig {
        nack: Some(NackConfig::default()),
        playout_deadline: Some(TimeDelta::from_millis(400)),
        content: true,
        ..IncomingConfig::new(theirs, MediaKind::default())
    };
    let path = PathConfig {
        sending: Some(SendingPath { per_packet_feedback: true, ..SendingPath::new(controller) }),
        receiving: Some(ReceivingPath { feedback: Some(FeedbackPlan::LIBWEBRTC), ..ReceivingPath::default() }),
        number: None,
    };
    EndPlan::new(config).sends(outgoing).receives(incoming).on(path).make(now).expect("sources of their own")
}

thread_local! {
    /// Handshakes take long: a call serves many scripts.
    static TARGET: RefCell<Option<(Target, u32)>> = const { RefCell::new(None) };
}

/// Scripts that one call is played against.
const SCRIPTS: u32 = 500;

/// Plays a script against a call that runs. If its first byte is 255, against one whose handshake has only begun, which may fail by it.
pub(crate) fn play(data: &[u8]) {
    if let Some((255, rest)) = data.split_first().map(|(first, rest)| (*first, rest)) {
        let mut target = Target::waiting();
        for _ in 0..rest.first().copied().unwrap_or(0) % 8 {
            target.exchange();
        }
        target.run(rest);
        return;
    }
    TARGET.with_borrow_mut(|kept| {
        let (mut target, played) = kept.take().unwrap_or_else(|| (Target::connected(), 0));
        target.play(data);
        *kept = (played < SCRIPTS).then_some((target, played + 1));
    });
}
