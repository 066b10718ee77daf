use super::*;
use crate::sdp::{Direction, MediaSection, MediaTransport, Payload};
use std::thread;
use weir_media::VideoCodec;
use weir_session::allocation::MediaKind;

fn description(port: u16) -> Description {
    let address = ([127, 0, 0, 1], port).into();
    let transport = MediaTransport { address, keys: vec![], dccp: None, rtcp_mux: true, interfaces: None, ice: None };
    let payloads = vec![(96, Payload::Video(VideoCodec::Vp8, None))];
    Description::of_stream(1, MediaSection::new(MediaKind::Video, transport, Direction::SendReceive, payloads))
}

/// A listener at a free port of the loopback device, and the means to reach it.
fn listening(secured: bool) -> (Listener, Signalling, Trust) {
    let any = "127.0.0.1:0".to_owned();
    let identity = secured.then(|| Identity::generate().unwrap());
    let trust = Trust { fingerprint: identity.as_ref().map(Identity::fingerprint), insecure: false };
    let by = if secured { Signalling::Tls(any) } else { Signalling::Tcp(any) };
    let listener = Listener::bind(&by, identity, &trust).unwrap();
    let at = listener.local_addr().unwrap().to_string();
    (listener, if secured { Signalling::Tls(at) } else { Signalling::Tcp(at) }, trust)
}

fn no_refusals(r: &Refused) {
    panic!("{r:?}");
}

#[test]
fn offers_and_answers_go_both_ways() {
    let dir = tempfile::tempdir().unwrap();
    let files = Signalling::File(dir.path().join("call"));
    let file_listener = Listener::bind(&files, None, &Trust::default()).unwrap();
    let ways = [listening(false), listening(true), (file_listener, files, Trust::default())];
    for (mut listener, by, trust) in ways {
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                let (exchange, offer) = listener.next(&stop, &mut no_refusals).unwrap();
                assert_eq!(offer, description(1));
                exchange.answer(&description(2), &stop).unwrap();
            });
            let exchange = Exchange::connect(&by, &trust, &stop).unwrap();
            assert_eq!(exchange.local_ip().is_none(), matches!(by, Signalling::File(_)));
            assert_eq!(exchange.offer(&description(1), None, &stop).unwrap(), description(2), "{by:?}");
        });
    }
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "nothing is left behind");
}

#[test]
fn a_caller_gets_the_reason_of_a_refusal_without_what_could_harm_its_terminal() {
    for secured in [false, true] {
        let ((mut listener, by, trust), stop) = (listening(secured), AtomicBool::new(false));
        thread::scope(|scope| {
            scope.spawn(|| {
                let (exchange, _) = listener.next(&stop, &mut no_refusals).unwrap();
                exchange.refuse("no codec\u{1b}[2Jin common", &stop);
            });
            let e = Exchange::connect(&by, &trust, &stop).unwrap().offer(&description(1), None, &stop).unwrap_err();
            assert!(e.to_string().ends_with("refused the call: no codec [2Jin common"), "{e}");
        });
    }
}

#[test]
fn the_wrong_listener_gets_no_offer() {
    let (mut listener, by, right) = listening(true);
    let wrong = Identity::generate().unwrap().fingerprint();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut seen = Vec::new();
            let taken = listener.next(&stop, &mut |r| seen.push(r.why.clone())).map(|(_, offer)| offer);
            assert_eq!(taken.unwrap(), description(3), "only the end that knows its fingerprint sends an offer");
            assert!(seen.len() <= 2 && seen.iter().all(|s| s.contains("127.0.0.1")), "{seen:?}");
        });
        let trusting = |fingerprint| Trust { fingerprint, insecure: false };
        let e = Exchange::connect(&by, &trusting(Some(wrong)), &stop).unwrap_err().to_string();
        assert!(e.contains(&right.fingerprint.unwrap().to_string()) && e.contains(&wrong.to_string()), "{e}");
        let e = Exchange::connect(&by, &trusting(None), &stop).unwrap_err().to_string();
        assert!(e.contains("--fingerprint") && e.contains("--insecure"), "{e}");
        let exchange = Exchange::connect(&by, &Trust { fingerprint: None, insecure: true }, &stop).unwrap();
        assert!(exchange.offer(&description(3), None, &stop).is_err(), "the listener hangs up after the offer");
    });
}

#[test]
fn plain_tcp_between_machines_has_to_be_allowed() {
    let (stop, by) = (AtomicBool::new(false), Signalling::Tcp("192.0.2.1:9".into()));
    let e = Exchange::connect(&by, &Trust::default(), &stop).unwrap_err().to_string();
    assert!(e.contains("192.0.2.1:9") && e.contains("--insecure"), "{e}");
    let any = Signalling::Tcp("0.0.0.0:0".into());
    let e = Listener::bind(&any, None, &Trust::default()).unwrap_err().to_string();
    assert!(e.contains("0.0.0.0:0") && e.contains("tls:"), "{e}");
    let allowed = Trust { insecure: true, fingerprint: None };
    assert!(Listener::bind(&any, None, &allowed).unwrap().local_addr().is_some());
}

#[test]
fn a_raised_flag_ends_the_wait() {
    let stop = AtomicBool::new(true);
    let file = Listener::bind(&Signalling::File("/nonexistent/call".into()), None, &Trust::default()).unwrap();
    for mut listener in [listening(false).0, listening(true).0, file] {
        assert!(matches!(listener.next(&stop, &mut no_refusals), Err(SignalError::Stopped)));
    }
    // No host has this address (RFC 5737).
    let (by, trust) = (Signalling::Tcp("192.0.2.1:9".into()), Trust { insecure: true, fingerprint: None });
    assert!(matches!(Exchange::connect(&by, &trust, &stop), Err(SignalError::Stopped)));
}

#[test]
fn ways_are_named() {
    assert_eq!("tcp:[::1]:9".parse::<Signalling>().unwrap(), Signalling::Tcp("[::1]:9".into()));
    assert_eq!("tls:host:9".parse::<Signalling>().unwrap(), Signalling::Tls("host:9".into()));
    assert_eq!("file:a:b".parse::<Signalling>().unwrap(), Signalling::File("a:b".into()));
    for odd in ["", "tcp:", "tcp:host", "tls:host", "file:", "udp:1:2"] {
        assert!(odd.parse::<Signalling>().unwrap_err().to_string().contains("tls:HOST:PORT"));
    }
}
