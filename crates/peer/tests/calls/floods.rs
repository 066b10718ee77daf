//! Floods at the page, beside a call.

use crate::flood::{Away, Flood, Kind, print_row};
use crate::newcomer::ask;
use crate::strangers::memory;
use crate::{packets_pass, service_with, watched};
use std::sync::atomic::Ordering;
use std::time::Duration;
use weir_peer::caller::{Caller, RoomOffer};
use weir_peer::server::Limits;

/// A newcomer is served within this time.
const SERVED: Duration = Duration::from_secs(2);
/// From an end to the other, one 100 ms away.
const DELAY: Duration = Duration::from_millis(50);
/// Places of strangers, a quarter of the default and so few that this process has descriptors for both ends of a flood, which
/// comes from a quarter of 200 addresses.
const STRANGERS: usize = 128;
/// Memory that a flood may take, in bytes.
const GROWTH: u64 = 64 << 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_newcomer_gets_the_page_under_each_flood_and_a_call_loses_nothing() {
    let service = service_with(Limits { strangers: STRANGERS, ..Limits::default() }).await;
    let (seen, watching) = watched(&service, true).await;
    packets_pass(&seen, 20).await;
    let before = memory();
    let at = service.address;
    let head = b"GET / HTTP/1.1\r\nhost: weir\r\nx: ".to_vec();
    let body =
        b"POST /whip HTTP/1.1\r\nhost: weir\r\ncontent-type: application/sdp\r\ncontent-length: 60000\r\n\r\nv=0"
            .to_vec();
    let whole = b"GET / HTTP/1.1\r\nhost: weir\r\n\r\n".to_vec();
    #[expect(clippy::disallowed_methods, reason = "an Instant has no other origin")]
    let offer = Caller::new(std::time::Instant::now()).expect("a caller").room_offer(&RoomOffer {
        rids: vec!["h".into()],
        ssrc: (0x1000, 0x2000),
        places: 3,
    });
    for (n, (kind, addresses, count)) in [
        (Kind::HalfOpen, 1, STRANGERS + 20),
        (Kind::Slow(head), 17, STRANGERS + 20),
        (Kind::Slow(body), 8, STRANGERS + 20),
        (Kind::Finished(whole), 50, STRANGERS + 20),
        (Kind::Storm(1_000), 1, 300),
        (Kind::Storm(1_000), 50, 300),
    ]
    .into_iter()
    .enumerate()
    {
        let label = format!("{kind:?} from {addresses}");
        // A member of a room has the token.
        let joins = format!(
            "POST /rooms/r{} HTTP/1.1\r\nhost: weir\r\nauthorization: Bearer {}\r\ncontent-type: application/sdp\r\n\
             connection: close\r\ncontent-length: {}\r\n\r\n{offer}",
            n % 4,
            service.token,
            offer.len()
        );
        let shown = kind.clone();
        let times = tokio::task::spawn_blocking(move || {
            let flood = Flood::begin(at, &kind, addresses, count);
            let far = Away::from(at, DELAY);
            let ask = |to| ask(to, b"GET / HTTP/1.1\r\nhost: weir\r\nconnection: close\r\n\r\n");
            let times = [at, far.address].map(ask);
            let joined = [at, far.address].map(|to| super::newcomer::ask(to, joins.as_bytes()));
            drop(flood);
            (times, joined)
        });
        let (times, joined) = times.await.expect("no panic");
        print_row("page for browsers", &shown, addresses, [times[0].0, times[1].0]);
        print_row("rooms", &shown, addresses, [joined[0].0, joined[1].0]);
        for (took, answer) in joined {
            assert!(answer.starts_with("HTTP/1.1 201"), "{label}: {took:?} {answer:.200}");
            assert!(took < SERVED, "{label}: {took:?}");
        }
        for (took, answer) in times {
            assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("<html"), "{label}: {took:?} {answer:.200}");
            assert!(took < SERVED, "{label}: {took:?}");
        }
        packets_pass(&seen, 5).await;
    }
    // The first: members of rooms have come since.
    let (_, call) = service.calls().into_iter().next().expect("the call");
    assert_eq!(call.state, "connected");
    assert!(seen.connected.load(Ordering::Relaxed));
    let growth = memory().saturating_sub(before);
    assert!(growth < GROWTH, "{growth} bytes");
    seen.stop.store(true, Ordering::Relaxed);
    watching.join().expect("the caller went on to the end");
    service.stop().await;
}
