//! Two ends that agree on a call by themselves, as two processes do.

#[path = "support/camera.rs"]
mod camera;

use camera::video;
use std::sync::atomic::{AtomicBool, Ordering};
use weir_cc::{Registry, Transport};
use weir_live::call::{CallConfig, CallError, EndReason, Party, PartyMedia, PartySummary, Unobserved, run_party};
use weir_live::sdp::Direction;
use weir_live::signal::{Listener, SignalError, Signalling, Trust};
use weir_media::{EncoderConfig, VideoCodec};
use weir_units::TimeDelta;

fn party(direction: Direction, controller: &str) -> Party {
    let call = CallConfig {
        controller: controller.into(),
        playout_deadline: TimeDelta::from_millis(150),
        ..CallConfig::default()
    };
    let media = vec![PartyMedia::video(vec![VideoCodec::H264], EncoderConfig::live(320, 240), direction)];
    Party::new(call, media, Trust::default())
}

/// Both ends of a call of 1.5 s, the connecting one first; it ends the call.
fn call(connecting: &Party, listening: &Party) -> [Result<PartySummary, CallError>; 2] {
    let any = Signalling::Tcp("127.0.0.1:0".into());
    let mut listener = Listener::bind(&any, None, &Trust::default()).expect("a port");
    let by = Signalling::Tcp(listener.local_addr().expect("an address").to_string());
    let stop = AtomicBool::new(false);
    let run = |party: &Party, joined, pictures, duration| {
        run_party(joined, &party.call, &Registry::builtin(), pictures, duration, &stop, &mut Unobserved)
    };
    // They take seconds on a busy machine, in which the other end would wait.
    let [ours, theirs] = [connecting, listening].map(|party| video(party.media[0].direction));
    std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            run(listening, listening.listen(&mut listener, &stop, &mut |_| {})?, theirs, Some(TimeDelta::from_secs(60)))
        });
        let joined = connecting.connect(&by, &stop);
        if joined.is_err() {
            // The listener waits for others.
            stop.store(true, Ordering::Relaxed);
        }
        let own = joined.and_then(|j| run(connecting, j, ours, Some(TimeDelta::from_millis(1_500))));
        [own, other.join().expect("no panic")]
    })
}

#[test]
fn pictures_go_one_way_under_any_controller() {
    std::thread::scope(|scope| {
        for controller in ["gcc", "scream", "nada", "fbra", "gcc-remb"] {
            scope.spawn(move || {
                let parties = [party(Direction::Send, controller), party(Direction::Receive, "gcc")];
                let [a, b] = call(&parties[0], &parties[1]).map(|s| s.expect("it runs"));
                let shown = b.received.expect("pictures").intact;
                // Windows and low initial rates delay the first key frame.
                assert!((5..=48).contains(&shown), "{controller}: {shown} shown");
                let ended = &b.end.ended;
                assert!(matches!(ended, Some(EndReason::Goodbye { .. })), "{controller}: {:?}\n{:?}", a.end, b.end);
                assert_eq!(b.end.counters.byes, 1, "{controller}");
                assert!(a.end.received.rtcp_packets > 2, "{controller}: reports come back");
                assert_eq!((a.end.unknown_source, b.end.unknown_source), (0, 0), "{controller}");
            });
        }
    });
}

#[test]
fn pictures_go_over_dccp() {
    let over = |direction, controller: &str, transport| {
        let own = party(direction, controller);
        Party { call: CallConfig { transport, srtp: None, ..own.call }, ..own }
    };
    std::thread::scope(|scope| {
        for ccid in [2, 3] {
            scope.spawn(move || {
                let sends = over(Direction::Send, &format!("ccid{ccid}"), Some(Transport::Dccp { ccid }));
                let [a, b] = call(&sends, &over(Direction::Receive, "gcc", None)).map(|s| s.expect("it runs"));
                let shown = b.received.as_ref().expect("pictures").intact;
                assert!((3..=48).contains(&shown), "{ccid}: {shown} shown");
                assert_eq!((b.end.counters.byes, b.end.malformed), (1, 0), "{ccid}");
                let [a, b] = [a, b].map(|s| s.end.dccp.expect("over DCCP"));
                assert_eq!((a.ccid, a.end.as_deref(), b.end.as_deref()), (Some(ccid), Some("closed"), Some("closed")));
            });
        }
        scope.spawn(|| {
            // Both send, each with its own controller.
            let ways =
                [2, 3].map(|ccid| over(Direction::SendReceive, &format!("ccid{ccid}"), Some(Transport::Dccp { ccid })));
            let [a, b] = call(&ways[0], &ways[1]).map(|s| s.expect("it runs"));
            for s in [&a, &b] {
                let packets = s.end.received.rtp_packets;
                assert!((20..=500).contains(&packets), "{packets}");
            }
            assert_eq!([a, b].map(|s| s.end.dccp.expect("over DCCP").ccid), [Some(2), Some(3)]);
        });
    });
}

#[test]
fn pictures_go_both_ways() {
    let parties = [party(Direction::SendReceive, "gcc"), party(Direction::SendReceive, "nada")];
    for s in call(&parties[0], &parties[1]).map(|s| s.expect("it runs")) {
        let shown = s.received.expect("pictures").intact;
        assert!((20..=48).contains(&shown), "{shown} shown");
    }
}

#[test]
fn ends_that_do_not_fit_get_the_reason() {
    let clear = Party { call: CallConfig { srtp: None, ..CallConfig::default() }, ..party(Direction::Send, "gcc") };
    let [connecting, listening] = call(&clear, &party(Direction::Receive, "gcc"));
    let reason = connecting.expect_err("one has no keys").to_string();
    assert!(reason.contains("refused the call") && reason.contains("--no-srtp"), "{reason}");
    assert!(matches!(listening, Err(CallError::Signal(SignalError::Stopped))), "it listens on");
    // DCCP has no keys, and its controllers need it.
    let dccp = Some(Transport::Dccp { ccid: 3 });
    let protected = party(Direction::Send, "ccid3");
    let protected = Party { call: CallConfig { transport: dccp, ..protected.call }, ..protected };
    let [connecting, _] = call(&protected, &party(Direction::Receive, "gcc"));
    assert!(matches!(connecting, Err(CallError::DccpInTheClear)), "{connecting:?}");
    let [_, listening] = call(&party(Direction::Receive, "gcc"), &party(Direction::Send, "ccid3"));
    assert!(matches!(listening, Err(CallError::OnlyOverDccp { .. })), "{listening:?}");
}
