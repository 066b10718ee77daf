//! Calls of programs that nobody here wrote, through a link that loses packets: a part of the table that the example `interop` makes.

#[expect(dead_code, reason = "the example prints more of it")]
#[path = "../../examples/interop/cell.rs"]
mod cell;
#[expect(dead_code, reason = "the example has more peers")]
#[path = "../../examples/interop/peers.rs"]
mod peers;
#[path = "../../examples/interop/place.rs"]
mod place;

use cell::{Cell, Path, run};
use peers::{Job, Peer, Repair, prepare};
use weir_media::VideoCodec;

/// Share of packets lost, each way: some in each call of this length.
const LOSS: f64 = 0.05;

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime")
}

/// The calls of a peer with Weir as sender and as receiver, unless the peer, or a namespace, cannot be had here.
fn calls(peer: Peer, codec: VideoCodec, seconds: u32) -> Vec<Cell> {
    if let Err(e) = runtime().block_on(prepare(peer)) {
        println!("SKIPPED: {} cannot be had here: {e}", peer.name());
        return Vec::new();
    }
    // At the same time: most of it is waiting.
    let call = move |weir_sends| Job { peer, weir_sends, codec, ccfb: false, repair: Repair::Usual, seconds };
    let path = Path { loss: LOSS, delay: Path::DELAY };
    let both = move |address| {
        runtime().block_on(async {
            let (sent, received) = tokio::join!(run(call(true), address, path), run(call(false), address, path));
            vec![sent, received]
        })
    };
    place::inside(both).unwrap_or_else(|e| {
        println!("SKIPPED: {e}");
        Vec::new()
    })
}

/// Media have passed, and some of what was lost was replaced.
fn check(cell: &Cell, feedback: &str) {
    assert!(cell.said.error.is_none() && cell.said.state == "connected", "{cell:?}");
    assert_eq!(cell.feedback(), feedback);
    let t = cell.call.as_ref().expect("a call").totals;
    // Values that a peer does not count are unknown.
    assert!(cell.frames() > 20 && cell.recovered().is_none_or(|n| n > 0), "{cell:?}");
    assert!(t.refused == 0 && t.frames_damaged < 10, "{t:?}");
    assert!(cell.retransmitted().is_none_or(|n| n > 0), "{cell:?}");
}

#[test]
fn aiortc_sends_and_receives_under_the_receivers_estimate() {
    // Its first estimate comes 3 s after the first packet.
    for cell in calls(Peer::Aiortc, VideoCodec::H264, 5) {
        check(&cell, "REMB");
        let call = cell.call.as_ref().expect("a call");
        assert_eq!(call.controller, "gcc-remb");
        if cell.job.weir_sends {
            let estimate = call.internals.iter().find(|(name, _)| *name == "a_hat_bps");
            assert!(estimate.is_some_and(|(_, bps)| *bps > 50e3), "{:?}", call.internals);
        } else {
            assert!(cell.said.more["estimates"].as_u64().is_some_and(|n| n > 0), "{:?}", cell.said.more);
        }
    }
}

#[test]
fn firefox_sends_and_receives() {
    let vp8 = weir_codecs::list().iter().any(|l| l.codec == VideoCodec::Vp8 && l.built_in);
    if !vp8 {
        println!("SKIPPED: VP8 is not built in, and Firefox has H.264 only where it could fetch it");
        return;
    }
    for cell in calls(Peer::Firefox, VideoCodec::Vp8, 3) {
        check(&cell, "TWCC");
    }
}
