//! Floods at the listener of signalling: a newcomer gets in, near and far, and an offer alone ends nothing.

#[path = "support/camera.rs"]
mod camera;
#[path = "support/flood.rs"]
mod flood;
#[path = "support/raise.rs"]
mod raise;

use camera::video;
use flood::{Away, Flood, Kind, print_row};
use raise::Raise;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use weir_cc::Registry;
use weir_live::call::{CallConfig, Joined, Party, PartyMedia, Unobserved, VideoCall, run_party};
use weir_live::clock::Clock;
use weir_live::sdp::Direction;
use weir_live::signal::{Identity, Listener, MAX_PENDING, SignalError, Signalling, Token, Trust};
use weir_media::{EncoderConfig, VideoCodec};
use weir_units::TimeDelta;

/// A newcomer is served within this time.
const SERVED: TimeDelta = TimeDelta::from_secs(2);
/// From an end to the other, one 100 ms away.
const DELAY: Duration = Duration::from_millis(50);
/// Floods take most of a process's descriptors: one at a time.
static TURN: Mutex<()> = Mutex::new(());

fn party(direction: Direction, trust: Trust) -> Party {
    let media = vec![PartyMedia::video(vec![VideoCodec::H264], EncoderConfig::live(320, 240), direction)];
    Party::new(CallConfig::default(), media, trust)
}

fn way(secured: bool, at: SocketAddr) -> Signalling {
    if secured { Signalling::Tls(at.to_string()) } else { Signalling::Tcp(at.to_string()) }
}

fn listening(secured: bool) -> (Listener, SocketAddr, Trust) {
    let identity = secured.then(|| Identity::generate().expect("an identity"));
    let trust = Trust { fingerprint: identity.as_ref().map(Identity::fingerprint), insecure: false };
    let any = way(secured, "127.0.0.1:0".parse().expect("an address"));
    let listener = Listener::bind(&any, identity, &trust).expect("a port");
    let at = listener.local_addr().expect("an address");
    (listener, at, trust)
}

/// Each newcomer's time to its answer under a flood, near and far.
fn times(secured: bool, kind: &Kind, addresses: usize, count: usize) -> [TimeDelta; 2] {
    let (mut listener, at, trust) = listening(secured);
    let (stop, done) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let _end = Raise(&done);
        let answering = scope.spawn(|| {
            let party = party(Direction::Receive, trust);
            while !done.load(Ordering::Relaxed) {
                match party.listen(&mut listener, &done, &mut |_| {}) {
                    Ok(_) => {}
                    Err(e) => assert!(e.to_string().contains("stopped"), "{e}"),
                }
            }
        });
        let flood = Flood::begin(at, kind, addresses, count);
        let far = Away::from(at, DELAY);
        let times = [at, far.address].map(|to| {
            let clock = Clock::starting_now();
            party(Direction::Send, trust).connect(&way(secured, to), &stop).expect("an answer");
            clock.now().saturating_since(weir_units::Timestamp::ZERO)
        });
        done.store(true, Ordering::Relaxed);
        drop(flood);
        answering.join().expect("no panic");
        times
    })
}

#[test]
fn a_newcomer_is_answered_under_each_flood() {
    let _turn = TURN.lock();
    let head = b"v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\n".to_vec();
    let nothing_usable = b"v=0\r\n\r\n".to_vec();
    for secured in [false, true] {
        for (kind, addresses, count) in [
            (Kind::HalfOpen, 1, MAX_PENDING + 20),
            (Kind::Slow(head.clone()), 17, MAX_PENDING + 20),
            (Kind::Finished(nothing_usable.clone()), 8, 100),
            (Kind::Storm(1_000), 1, 300),
            (Kind::Storm(1_000), 200, 300),
        ] {
            let times = times(secured, &kind, addresses, count);
            let seconds = times.map(|t| Duration::from_secs_f64(t.as_secs_f64()));
            print_row(if secured { "signalling, TLS" } else { "signalling" }, &kind, addresses, seconds);
            assert!(times.iter().all(|t| *t < SERVED), "{secured}, {kind:?} from {addresses}: {times:?}");
        }
    }
}

/// A call of a second, of which the other end is the listener's.
fn run(party: &Party, joined: Joined, pictures: VideoCall, seconds: f64) -> weir_live::call::PartySummary {
    let (registry, stop) = (Registry::builtin(), AtomicBool::new(false));
    let duration = Some(TimeDelta::from_secs_f64(seconds));
    run_party(joined, &party.call, &registry, pictures, duration, &stop, &mut Unobserved).expect("it runs")
}

#[test]
fn offers_of_which_nothing_comes_do_not_end_the_wait() {
    let _turn = TURN.lock();
    // The one who listens receives; or it sends, and the caller only reports.
    for here in [Direction::Receive, Direction::Send] {
        let there = if here.sends() { Direction::Receive } else { Direction::Send };
        let (mut listener, at, trust) = listening(false);
        let stop = AtomicBool::new(false);
        // They take seconds on a busy machine, and the call has to begin within ten of its answer.
        let pictures = [here, there].map(video);
        std::thread::scope(|scope| {
            let _end = Raise(&stop);
            let [ours, theirs] = pictures;
            let answering = scope.spawn(|| {
                let party = party(here, trust);
                let joined = party.await_call(&mut listener, &stop, &mut |_| {}).expect("a call");
                run(&party, joined, ours, 6.0)
            });
            // They take the answer, and send no media.
            for _ in 0..30 {
                party(there, trust).connect(&way(false, at), &stop).expect("answered");
            }
            let clock = Clock::starting_now();
            let caller = party(there, trust);
            let joined = caller.connect(&way(false, at), &stop).expect("answered");
            let seen = run(&caller, joined, theirs, 1.5);
            let took = clock.now().saturating_since(weir_units::Timestamp::ZERO);
            // Before the first of the others is given up, ten seconds after its answer.
            assert!(took < TimeDelta::from_secs(9), "{took:?}");
            let other = answering.join().expect("no panic");
            assert_eq!(other.end.counters.byes, 1, "the caller's goodbye ends it");
            let packets = if here.sends() { seen.end.received } else { other.end.received }.rtp_packets;
            assert!((10..2_000).contains(&packets), "{packets}");
        });
    }
}

#[test]
fn a_listener_with_a_token_takes_no_strangers_offer() {
    let right: Token = "0123456789abcdef".parse().expect("a token");
    for secured in [false, true] {
        let (listener, at, trust) = listening(secured);
        let mut listener = listener.with_token(Some(right.clone())).expect("for connections");
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let _end = Raise(&stop);
            let answering = scope.spawn(|| {
                let mut refusals = Vec::new();
                let party = party(Direction::Receive, trust);
                party.listen(&mut listener, &stop, &mut |r| refusals.push(r.why.clone())).map(|_| refusals)
            });
            let with = |token: Option<&str>| {
                let token = token.map(|t| t.parse().expect("a token"));
                Party { token, ..party(Direction::Send, trust) }.connect(&way(secured, at), &stop)
            };
            for wrong in [None, Some("0123456789abcdeF"), Some("0123456789abcdef0")] {
                let e = with(wrong).expect_err("refused").to_string();
                assert!(e.contains("refused the call") && e.contains("token"), "{e}");
            }
            with(Some("0123456789abcdef")).expect("answered");
            let refusals = answering.join().expect("no panic").expect("a call");
            assert!(refusals.len() == 3 && refusals.iter().all(|r| r.contains("token")), "{refusals:?}");
        });
    }
    assert!("short".parse::<Token>().is_err() && "0123456789abcde\n".parse::<Token>().is_err());
    let file = Listener::bind(&Signalling::File("/nonexistent/call".into()), None, &Trust::default()).expect("no port");
    assert!(matches!(file.with_token(Some(right.clone())), Err(SignalError::FileToken)));
    assert!(!format!("{right:?}").contains("0123"));
}
