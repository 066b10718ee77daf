//! Calls of a running service with a caller that is no browser: under feedback of RFC 8888, and while strangers send offers that nobody would
//! make, requests without the token, and random datagrams.
//!
//! More of these: `WEIR_HOSTILE_OFFERS=1000 WEIR_HOSTILE_DATAGRAMS=1000000 cargo test -p weir-peer --test calls -- --nocapture`.

#[path = "../../../live/tests/support/flood.rs"]
mod flood;
mod floods;
#[path = "../support/newcomer.rs"]
mod newcomer;
mod strangers;

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use strangers::{Random, memory, offer, post, throw};
use weir_cc::{FeedbackFormat, FeedbackPlan, Limits, Registry};
use weir_media::VideoCodec;
use weir_media::clip::Character;
use weir_peer::call::Settings;
use weir_peer::caller::{Caller, Offer};
use weir_peer::sdp::Direction;
use weir_peer::server::{ClipConfig, RunningServer, ServerConfig, serve};
use weir_session::allocation::MediaKind;
use weir_session::{Datagram, EndConfig, EndPlan, IncomingConfig, ReceivingPath, StreamIdentity};
use weir_units::{DataRate, Ecn, PathId, TimeDelta, Timestamp};

/// Growth of the process that strangers may cause, in bytes: some of their offers are accepted, and those calls wait for a while.
/// A quiet machine shows 14 to 36 MB, one with builds up to 116 MB.
const GROWTH: u64 = 250_000_000;
/// An offer of a browser.
const CHROMIUM: &str = include_str!("../../src/sdp/chromium.sdp");

async fn service() -> RunningServer {
    service_with(weir_peer::server::Limits::default()).await
}

async fn service_with(bounds: weir_peer::server::Limits) -> RunningServer {
    let limits = Limits { floor: DataRate::from_kbps(100), ceiling: DataRate::from_mbps(2) };
    let config = ServerConfig {
        listen: ([127, 0, 0, 1], 0).into(),
        media: None,
        token: None,
        settings: Settings { controller: "gcc".into(), limits },
        start_rate: DataRate::from_kbps(300),
        codec: VideoCodec::H264,
        clip: ClipConfig { character: Character::TalkingHead, size: (160, 90), rate: "20".parse().expect("a rate") },
        link: None,
        limits: bounds,
    };
    serve(config, Arc::new(Registry::builtin())).await.expect("started")
}

/// Packets of media that a caller has received, and its end.
#[derive(Default)]
struct Seen {
    packets: AtomicU64,
    connected: AtomicBool,
    stop: AtomicBool,
}

/// Receives what the service shows, and reports on it.
fn watch(mut caller: Caller, socket: &UdpSocket, zero: Instant, format: FeedbackFormat, seen: &Seen) {
    let config = EndConfig { ssrc: 5, remote_ssrc: 0, ..EndConfig::default() };
    let incoming = IncomingConfig::new(StreamIdentity::default(), MediaKind::Video);
    let feedback = Some(FeedbackPlan { format, ..FeedbackPlan::LIBWEBRTC });
    let path = ReceivingPath { feedback, ..ReceivingPath::default() };
    let mut end = EndPlan::new(config).receives(incoming).on(path).make(Timestamp::ZERO).expect("one stream");
    let to = caller.remote().expect("called");
    let (mut buffer, mut out) = ([0; 2_048], Vec::new());
    while !seen.stop.load(Ordering::Relaxed) {
        let now = Timestamp::ZERO + TimeDelta::from_nanos(zero.elapsed().as_nanos() as i64);
        caller.handle_timeout(now).expect("checks are sent");
        end.handle_timeout(now);
        while let Some(bytes) = caller.poll_transmit() {
            let _ = socket.send_to(&bytes, to);
        }
        while caller.is_connected() && end.poll_transmit(now, &mut out).is_some() {
            let protected = caller.protect(&out).expect("protected");
            let _ = socket.send_to(&protected, to);
        }
        let Ok((len, _)) = socket.recv_from(&mut buffer) else { continue };
        if let Some(media) = caller.handle(now, &buffer[..len]).expect("the call goes on") {
            end.handle_datagram(now, &Datagram { bytes: &media, payload: 0, ecn: Ecn::NotEct, path: PathId::FIRST });
            seen.packets.fetch_add(1, Ordering::Relaxed);
        }
        seen.connected.store(caller.is_connected(), Ordering::Relaxed);
    }
}

/// Calls the service, and watches on a thread of its own until it is stopped.
async fn watched(service: &RunningServer, transport_wide: bool) -> (Arc<Seen>, JoinHandle<()>) {
    #[expect(clippy::disallowed_methods, reason = "an Instant has no other origin")]
    let zero = Instant::now();
    let mut caller = Caller::new(zero).expect("a caller");
    let direction = Direction { sends: false, receives: true };
    let wanted = Offer { codec: VideoCodec::H264, direction, ssrc: (5, 6), transport_wide };
    let (status, answer) = post(service, "/whep", &service.token, caller.offer(&wanted).as_bytes()).await;
    assert_eq!(status, 201, "{answer}");
    caller.accept(&answer).expect("an answer");
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    socket.set_read_timeout(Some(Duration::from_millis(5))).expect("set");
    let format = if transport_wide { FeedbackFormat::TransportWide } else { FeedbackFormat::CongestionControl };
    let seen = Arc::new(Seen::default());
    let watching = std::thread::spawn({
        let seen = Arc::clone(&seen);
        move || watch(caller, &socket, zero, format, &seen)
    });
    (seen, watching)
}

/// Waits until a call has received this many packets more.
async fn packets_pass(seen: &Seen, count: u64) {
    let wanted = seen.packets.load(Ordering::Relaxed) + count;
    for _ in 0..1_500 {
        if seen.packets.load(Ordering::Relaxed) >= wanted {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{} packets, {wanted} are waited for", seen.packets.load(Ordering::Relaxed));
}

fn count(name: &str, usual: u32) -> u32 {
    std::env::var(name).ok().map_or(usual, |n| n.parse().expect("a number"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strangers_do_no_harm_to_a_call() {
    let (offers, datagrams) = (count("WEIR_HOSTILE_OFFERS", 200), count("WEIR_HOSTILE_DATAGRAMS", 20_000));
    let service = service().await;
    let (seen, watching) = watched(&service, true).await;
    packets_pass(&seen, 20).await;
    let (_, running) = service.calls().pop().expect("a call");
    assert_eq!(running.state, "connected");

    let mut random = Random(7);
    let before = memory();
    assert_eq!(post(&service, "/whip", "", CHROMIUM.as_bytes()).await.0, 401);
    assert_eq!(post(&service, "/whip", &service.token[1..], CHROMIUM.as_bytes()).await.0, 401);
    assert_eq!(post(&service, "/whip", &service.token, &[b'a'; 100_000]).await.0, 413);
    let statuses = offer(&service, CHROMIUM, offers, &mut random).await;
    // Refused or accepted; nothing else, and no failure of the service. A call whose end takes a moment keeps its place for that long.
    assert!(statuses.keys().all(|s| [201, 400, 413, 422, 503].contains(s)), "{statuses:?}");
    assert!(statuses.contains_key(&201) && statuses.contains_key(&422), "{statuses:?}");
    let mut full = 0;
    while full != 503 {
        full = post(&service, "/whip", &service.token, CHROMIUM.as_bytes()).await.0;
        assert!([201, 503].contains(&full) && service.calls().len() < 30, "{full}");
    }
    let after_offers = memory();
    #[expect(clippy::disallowed_methods, reason = "for the report")]
    let since = Instant::now();
    let received = seen.packets.load(Ordering::Relaxed);
    throw(running.local.parse().expect("an address"), datagrams, &mut random).await;
    let (received, time) = (seen.packets.load(Ordering::Relaxed) - received, since.elapsed());
    packets_pass(&seen, 20).await;

    let (_, call) = service.calls().into_iter().find(|(_, c)| c.local == running.local).expect("the same call");
    assert_eq!(call.state, "connected");
    assert!(seen.connected.load(Ordering::Relaxed));
    assert!(call.totals.strangers > u64::from(datagrams) / 2, "{:?}", call.totals);
    assert_eq!(call.totals.refused, 0, "what strangers send does not reach SRTP");
    let growth = memory().saturating_sub(before);
    println!(
        "{offers} offers {statuses:?}; {datagrams} datagrams in {time:.1?}, {} counted; the call received {received} packets meanwhile; \
         memory {before} bytes, {after_offers} after the offers, {} after the datagrams",
        call.totals.strangers,
        memory(),
    );
    assert!(growth < GROWTH, "{growth} bytes");
    seen.stop.store(true, Ordering::Relaxed);
    watching.join().expect("the caller went on to the end");
    service.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_is_controlled_by_feedback_of_rfc_8888() {
    let service = service().await;
    let (seen, watching) = watched(&service, false).await;
    packets_pass(&seen, 150).await;
    let (_, call) = service.calls().pop().expect("a call");
    let t = call.totals;
    assert!(t.reported_received > 50 && t.reported_lost < 5 && t.packets_sent >= t.reported_received, "{t:?}");
    // The target leaves its beginning: upwards on a machine with time, downwards where packets are read late.
    let targets = || call.samples.iter().filter_map(|s| s.target_bps);
    assert!(targets().any(|t| (t - 300e3).abs() > 10e3), "{:?}", targets().collect::<Vec<_>>());
    assert!(call.samples.iter().any(|s| s.rtt_ms.is_some() && s.delay_ms.is_some()));
    seen.stop.store(true, Ordering::Relaxed);
    watching.join().expect("the caller went on to the end");
    service.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fragments_trickle_and_restart_ice_as_whip_has_it() {
    let service = service().await;
    let (status, answer) = post(&service, "/whep", &service.token, CHROMIUM.as_bytes()).await;
    let value = |text: &str, name: &str| text.lines().find_map(|l| l.strip_prefix(name)).map(str::to_owned);
    let (call, tag) = (value(&answer, "location: ").expect("named"), value(&answer, "etag: ").expect("tagged"));
    assert_eq!(status, 201);
    let patch = async |tag: Option<&str>, name: &str| {
        let condition = tag.map(|tag| format!("if-match: {tag}\r\n")).unwrap_or_default();
        let kind = "content-type: application/trickle-ice-sdpfrag";
        let headers = format!("authorization: Bearer {}\r\n{kind}\r\n{condition}", service.token);
        let body = format!("a=ice-ufrag:{name}\r\na=ice-pwd:0123456789abcdefghijkl\r\n");
        strangers::with_headers(&service, "PATCH", &call, &headers, body.as_bytes()).await
    };
    // Candidates of the agreement in force; none of another, and nothing without a condition.
    assert_eq!(patch(Some(&tag), "fey8").await.0, 204);
    assert_eq!(patch(None, "fey8").await.0, 428);
    assert_eq!(patch(Some("\"other\""), "fey8").await.0, 412);
    assert_eq!(patch(Some(&tag), "a").await.0, 422);
    let (status, fragment) = patch(Some("*"), "other").await;
    assert!(
        status == 200 && fragment.contains("a=ice-pwd:") && fragment.contains("a=candidate:1 1 udp "),
        "{fragment}"
    );
    let next = value(&fragment, "etag: ").expect("tagged");
    assert_eq!(value(&fragment, "a=ice-ufrag:"), Some(next.trim_matches('"').to_owned()));
    assert!(next != tag);
    assert_eq!((patch(Some(&tag), "other").await.0, patch(Some(&next), "other").await.0), (412, 204));
    let headers =
        format!("authorization: Bearer {}\r\ncontent-type: application/sdp\r\nif-match: *\r\n", service.token);
    assert_eq!(strangers::with_headers(&service, "PATCH", &call, &headers, b"").await.0, 415);
    service.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_saved_says_why_and_false_numbers_are_refused() {
    let service = service().await;
    let offered = async |way: &str| {
        let (status, answer) = post(&service, way, &service.token, CHROMIUM.as_bytes()).await;
        assert_eq!(status, 201);
        answer.lines().find_map(|l| l.strip_prefix("location: ")).expect("named").to_owned()
    };
    let ask = async |method: &str, path: &str, body: &str| {
        let headers = format!("authorization: Bearer {}\r\ncontent-type: application/json\r\n", service.token);
        strangers::with_headers(&service, method, path, &headers, body.as_bytes()).await
    };
    let (receives, sends) = (offered("/whip").await, offered("/whep").await);
    for (call, form, why) in [
        (&receives, "scenario.toml", "Weir sends no video in this call"),
        (&sends, "scenario.toml", "the call has not been connected"),
    ] {
        let (status, answer) = ask("GET", &format!("{call}/{form}"), "").await;
        assert!(status == 409 && answer.contains(why), "{status} {answer}");
    }
    // A report of what there is, and a capture without packets.
    for (form, there) in [("report.html", "<h2>The call</h2>"), ("packets.pcapng", "All 0 packets.")] {
        let (status, answer) = ask("GET", &format!("{sends}/{form}"), "").await;
        assert!(status == 200 && answer.contains(there) && answer.contains("attachment; filename="), "{answer:.400}");
    }
    let tell = async |numbers: &str| ask("POST", &format!("{sends}/browser"), numbers).await;
    assert_eq!(tell(r#"{ "packets_received": 7, "jitter_ms": 2.5, "remote_loss": null }"#).await.0, 204);
    for wrong in
        [r#"{ "remote_loss": 1.5 }"#, r#"{ "available_bps": 1e300 }"#, r#"{ "packets_sent": -1 }"#, r#"{ "other": 1 }"#]
    {
        let (status, answer) = tell(wrong).await;
        assert_eq!(status, 422, "{wrong}: {answer}");
    }
    let (_, seen) = ask("GET", &format!("{sends}?browser_from=0"), "").await;
    assert!(seen.contains(r#""packets_received":7"#) && seen.contains(r#""browser_samples":[{"t_s":"#), "{seen}");
    assert_eq!(ask("GET", "/calls/none/report.html", "").await.0, 404);
    service.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn loss_is_added_and_taken_away_while_a_call_runs() {
    let service = service().await;
    let (seen, watching) = watched(&service, true).await;
    packets_pass(&seen, 20).await;
    let (id, before) = service.calls().pop().expect("a call");
    assert_eq!(before.totals.reported_lost, 0, "{:?}", before.totals);
    let set = async |settings: &str| {
        let headers = format!("authorization: Bearer {}\r\ncontent-type: application/json\r\n", service.token);
        let path = format!("/calls/{id}/settings");
        strangers::with_headers(&service, "POST", &path, &headers, settings.as_bytes()).await.0
    };
    for wrong in [r#"{ "loss": 0.6 }"#, r#"{ "loss": -0.1 }"#, r#"{ "link": "up" }"#, r#"{ "codec": "vp8" }"#] {
        assert_eq!(set(wrong).await, 422, "{wrong}");
    }
    assert_eq!(set(r#"{ "loss": 0.3 }"#).await, 200);
    packets_pass(&seen, 60).await;
    let lossy = || service.calls().pop().expect("a call").1.samples.last().expect("a sample").link.is_some();
    assert!(lossy());
    assert_eq!(set(r#"{ "loss": 0, "link": "off" }"#).await, 200);
    packets_pass(&seen, 40).await;
    let (_, after) = service.calls().pop().expect("a call");
    // About a third of sixty packets that arrived.
    assert!((8..120).contains(&after.totals.reported_lost), "{:?}", after.totals);
    assert!(!lossy(), "there is no link any more");
    seen.stop.store(true, Ordering::Relaxed);
    watching.join().expect("the caller went on to the end");
    service.stop().await;
}
