//! Attacks by strangers on an end that is open to them, bounded in count and time.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use weir_live::call::{CallConfig, CallError, Party, PartyMedia};
use weir_live::clock::Clock;
use weir_live::sdp::{Direction, MAX_LENGTH};
use weir_live::signal::{Identity, Listener, MAX_PENDING, Refused, SignalError, Signalling, Trust};
use weir_media::{EncoderConfig, VideoCodec};

fn party(direction: Direction, trust: Trust) -> Party {
    let media = vec![PartyMedia::video(vec![VideoCodec::H264], EncoderConfig::live(320, 240), direction)];
    Party::new(CallConfig::default(), media, trust)
}

fn elapsed(since: &Clock) -> Duration {
    Duration::from_nanos(since.now().as_nanos() as u64)
}

/// A stranger's actions on its connection; it is closed afterwards.
type Stranger = fn(&mut TcpStream);

/// Writes all of it, whether or not the listener has closed the connection meanwhile.
fn say(stream: &mut TcpStream, bytes: &[u8]) {
    let _ = stream.write_all(bytes);
}

/// Waits until the listener closes the connection.
fn hold(stream: &mut TcpStream) {
    let _ = stream.set_read_timeout(Some(Duration::from_secs(30)));
    let _ = stream.read_to_end(&mut Vec::new());
}

/// An offer whose media would be sent to another machine unencrypted.
const IN_THE_CLEAR: &[u8] = b"v=0\r\no=- 1 1 IN IP4 192.0.2.1\r\ns=-\r\nc=IN IP4 192.0.2.1\r\nt=0 0\r\n\
    m=video 9000 RTP/AVPF 96\r\na=rtpmap:96 H264/90000\r\na=fmtp:96 packetization-mode=1\r\na=rtcp-mux\r\na=sendonly\r\n\r\n";

/// An offer of a codec that no listener has, which is whole otherwise.
const UNUSABLE: &[u8] = b"v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\n\
    m=video 9000 RTP/SAVPF 96\r\na=rtpmap:96 THEORA/90000\r\na=sendonly\r\n\r\n";

const STRANGERS: [(&str, Stranger); 9] = [
    ("connects and closes", |_| {}),
    ("sends another protocol", |s| say(s, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")),
    ("sends what is not text", |s| say(s, &[0xff, 0xfe, b'\n', b'\n'])),
    ("sends without end", |s| say(s, &vec![b'v'; 4 * MAX_LENGTH])),
    ("sends an offer that cannot be used", |s| {
        say(s, UNUSABLE);
        hold(s);
    }),
    ("wants media in the clear", |s| {
        say(s, IN_THE_CLEAR);
        hold(s);
    }),
    ("sends a TLS greeting of nonsense", |s| {
        say(s, &[22, 3, 1, 0, 5, 1, 0, 0, 1, 0]);
        hold(s);
    }),
    ("says nothing", hold),
    ("sends a byte now and then", |s| {
        for _ in 0..20 {
            say(s, b"v");
            std::thread::sleep(Duration::from_millis(250));
        }
    }),
];

/// Time that an honest call needs during the strangers' actions, and the reasons given by the listener.
fn honest_call(secured: bool, strangers: &[(&str, Stranger)], of_each: usize) -> (Duration, Vec<String>) {
    let any = "127.0.0.1:0".to_owned();
    let identity = secured.then(|| Identity::generate().expect("an identity"));
    let trust = Trust { fingerprint: identity.as_ref().map(Identity::fingerprint), insecure: false };
    let way = |address| if secured { Signalling::Tls(address) } else { Signalling::Tcp(address) };
    let mut listener = Listener::bind(&way(any), identity, &trust).expect("a port");
    let at: SocketAddr = listener.local_addr().expect("an address");
    let (stop, connected) = (AtomicBool::new(false), std::sync::Barrier::new(strangers.len() * of_each + 1));
    let mut reasons = Vec::new();
    let mut log = |r: &Refused| reasons.push(r.why.clone());
    let took = std::thread::scope(|scope| {
        for (_, act) in strangers.iter().flat_map(|s| std::iter::repeat_n(s, of_each)) {
            let connected = &connected;
            scope.spawn(move || {
                let stream = TcpStream::connect(at);
                connected.wait();
                if let Ok(mut stream) = stream {
                    act(&mut stream);
                }
            });
        }
        let caller = scope.spawn(|| {
            connected.wait();
            // The strangers connect first.
            std::thread::sleep(Duration::from_millis(300));
            let begin = Clock::starting_now();
            let joined = party(Direction::Send, trust).connect(&way(at.to_string()), &stop);
            joined.map(|_| elapsed(&begin))
        });
        party(Direction::Receive, trust).listen(&mut listener, &stop, &mut log).expect("the honest call");
        let took = caller.join().expect("no panic").expect("it is answered");
        // Remaining connections are closed.
        drop(listener);
        took
    });
    (took, reasons)
}

#[test]
fn strangers_do_not_keep_an_honest_call_out() {
    for secured in [false, true] {
        let (took, reasons) = honest_call(secured, &STRANGERS, 1);
        assert!(took < Duration::from_secs(3), "{took:?}: {reasons:?}");
        // At least four have been refused by then, each with a line that names it.
        assert!(reasons.len() >= 4 && reasons.iter().all(|r| r.contains("127.0.0.1:")), "{reasons:?}");
    }
}

#[test]
fn silent_connections_without_end_do_not_keep_an_honest_call_out() {
    // More than may wait at once: those from this address are closed for newer ones.
    let silent: [(&str, Stranger); 1] = [("says nothing", hold)];
    let (took, reasons) = honest_call(false, &silent, MAX_PENDING + 64);
    assert!(took < Duration::from_secs(3), "{took:?}");
    let closed = reasons.iter().filter(|r| r.contains("for newer connections")).count();
    // Some may be late: a SYN that the kernel's full queue drops is sent again a second later.
    assert!((1..=MAX_PENDING + 64).contains(&closed), "{closed}: {reasons:?}");
}

#[test]
fn one_byte_now_and_then_does_not_stretch_the_deadline() {
    let mut listener = Listener::bind(&Signalling::Tcp("127.0.0.1:0".into()), None, &Trust::default()).expect("a port");
    let at = listener.local_addr().expect("an address");
    let (stop, begin) = (AtomicBool::new(false), Clock::starting_now());
    let mut held = None;
    std::thread::scope(|scope| {
        let stop = &stop;
        scope.spawn(move || {
            let mut stream = TcpStream::connect(at).expect("a listener");
            while !stop.load(Ordering::Relaxed) && stream.write_all(b"v").is_ok() {
                std::thread::sleep(Duration::from_millis(500));
            }
        });
        let mut log = |r: &Refused| {
            held = Some((elapsed(&begin), r.why.clone()));
            stop.store(true, Ordering::Relaxed);
        };
        assert!(matches!(listener.next(stop, &mut log), Err(SignalError::Stopped)));
    });
    let (held, why) = held.expect("it was closed");
    assert!((4.0..8.0).contains(&held.as_secs_f64()) && why.contains("within 5 s"), "{held:?}: {why}");
}

#[test]
fn media_to_another_machine_do_not_go_in_the_clear_unless_allowed() {
    // Neither end has keys, and the other one is another machine: that needs --insecure.
    let dir = tempfile::tempdir().expect("a folder");
    let by = Signalling::File(dir.path().join("call"));
    let stop = AtomicBool::new(false);
    let answer = "v=0\r\no=- 1 1 IN IP4 192.0.2.1\r\ns=-\r\nc=IN IP4 192.0.2.1\r\nt=0 0\r\nm=video 9000 RTP/AVPF 96\r\n\
        a=rtpmap:96 H264/90000\r\na=fmtp:96 packetization-mode=1\r\na=rtcp-mux\r\na=recvonly\r\n";
    std::fs::write(dir.path().join("call.answer.later"), answer).expect("a file");
    let e = std::thread::scope(|scope| {
        let dir = dir.path();
        scope.spawn(move || {
            let offer = dir.join("call.offer");
            while !offer.exists() {
                std::thread::sleep(Duration::from_millis(10));
            }
            std::fs::rename(dir.join("call.answer.later"), dir.join("call.answer")).expect("an answer");
        });
        let sending = party(Direction::Send, Trust::default());
        let clear = Party { call: CallConfig { srtp: None, ..CallConfig::default() }, ..sending };
        clear.connect(&by, &stop).expect_err("unprotected")
    });
    assert!(matches!(e, CallError::InTheClear { to } if to.ip().to_string() == "192.0.2.1"), "{e}");
}
