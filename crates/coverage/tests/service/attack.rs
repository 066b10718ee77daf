//! Attacks by strangers and liars.

use crate::support::{Service, batch, config, database, now, run, start, update};
use futures_util::StreamExt;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, TestRunner};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use weir_coverage::client::ClientError;
use weir_coverage::limits::Rate;
use weir_coverage::server::store::{Role, Store};
use weir_coverage::server::{Clock, ServerConfig};
use weir_units::TimeDelta;

/// No limit of addresses, for tests that make thousands of requests.
fn unlimited() -> ServerConfig {
    let rate = Rate { per_second: 1e9, burst: 1e9 };
    ServerConfig { address_rate: rate, look_rate: rate, ..config() }
}

fn status(answer: &str) -> Option<u16> {
    answer.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()
}

#[test]
fn malformed_requests_get_errors_and_no_more() {
    run(async {
        let service = Service::start(unlimited()).await;
        let key = service.key(Role::Fleet).await;
        let valid = serde_json::to_string(&batch(Some("a"), vec![update(1, 0.0, 100.0)])).expect("JSON");
        let mut runner = TestRunner::new_with_rng(
            Config::default(),
            proptest::test_runner::TestRng::deterministic_rng(proptest::test_runner::RngAlgorithm::ChaCha),
        );
        let edits = (any::<prop::sample::Index>(), any::<prop::sample::Index>(), "[ -~]{0,12}");
        let count: usize = std::env::var("WEIR_MALFORMED").ok().and_then(|n| n.parse().ok()).unwrap_or(3_000);
        let mut client = service.client(&key);
        let mut kept = 0;
        for i in 0..count {
            let (from, to, text) = edits.new_tree(&mut runner).expect("a value").current();
            let (from, to) = (from.index(valid.len()), to.index(valid.len()));
            let body = format!("{}{text}{}", &valid[..from.min(to)], &valid[from.max(to)..]);
            let path = ["/v1/updates", "/v1/lookahead/route", "/v1/lookahead/area", "/v1/admin/keys"][i % 4];
            let answer = client.request("POST", path, body.into_bytes()).await.expect("an answer");
            assert!(matches!(answer.status, 200 | 400 | 403), "{path}: {}", answer.status);
            kept += usize::from(answer.status == 200);
        }
        assert!(kept < count / 10, "{kept} of {count} were no longer malformed");
        // Heads that are none, each on a connection of its own.
        let bearer = format!("authorization: Bearer {key}\r\n");
        for head in [
            "\0\0\0\0\r\n\r\n".to_owned(),
            "GET /health/live\r\n\r\n".to_owned(),
            format!("POST /v1/updates HTTP/1.1\r\nhost: x\r\n{bearer}content-length: -1\r\n\r\n"),
            format!("POST /v1/updates HTTP/1.1\r\nhost: x\r\n{bearer}content-length: 1\r\ncontent-length: 2\r\n\r\n"),
            format!("POST /v1/updates HTTP/1.1\r\nhost: x\r\n{bearer}transfer-encoding: chunked\r\n\r\nzz\r\n"),
            format!("GET /{} HTTP/1.1\r\nhost: x\r\n\r\n", "a".repeat(70_000)),
            format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(100)),
        ] {
            let answer = service.raw(head.as_bytes()).await;
            let refused = answer.is_empty() || status(&answer).is_some_and(|s| (400..500).contains(&s));
            assert!(refused, "{:?}: {answer}", &head[..30.min(head.len())]);
        }
        // Paths that lead elsewhere.
        for (path, expected) in [
            ("/../../etc/passwd", 404),
            ("/v1/../v1/admin/keys", 404),
            ("/v1/map/..%2f..%2fmap.db", 400),
            ("/v1/map/8a1126d33a57fff0", 400),
            ("/%00", 404),
            ("/v1//updates", 404),
            ("http://127.0.0.1/v1/admin/keys", 403),
        ] {
            let answer = client.request("GET", path, Vec::new()).await.expect("an answer");
            assert_eq!(answer.status, expected, "{path}");
        }
        assert_eq!(client.request("TRACE", "/", Vec::new()).await.expect("an answer").status, 405);
        assert_eq!(service.metric("weir_coverage_requests_total{route=\"/health/live\",status=\"200\"}").await, 0.0);
        assert_eq!(service.client("").request("GET", "/health/ready", Vec::new()).await.expect("ready").status, 200);
        service.running.stop().await;
    });
}

#[test]
fn long_bodies_are_refused_before_they_are_read() {
    run(async {
        let service = Service::start(ServerConfig { max_body: 64 * 1024, ..unlimited() }).await;
        let key = service.key(Role::Fleet).await;
        let head = |rest: &str| {
            format!(
                "POST /v1/updates HTTP/1.1\r\nhost: x\r\nconnection: close\r\nauthorization: Bearer {key}\r\n{rest}\r\n\r\n"
            )
        };
        let stated = service.raw(head("content-length: 100000000").as_bytes()).await;
        assert_eq!(status(&stated), Some(413), "{stated}");
        // Not stated, but sent.
        let mut chunks = head("transfer-encoding: chunked").into_bytes();
        for _ in 0..100 {
            chunks.extend_from_slice(format!("1000\r\n{}\r\n", " ".repeat(4096)).as_bytes());
        }
        let sent = service.raw(&chunks).await;
        assert!(sent.is_empty() || status(&sent) == Some(413), "{sent}");
        // As deep as a body can be.
        let mut client = service.client(&key);
        let deep = client.request("POST", "/v1/updates", vec![b'['; 60_000]).await.expect("an answer");
        assert_eq!(deep.status, 400);
        let many = batch(Some("a"), (0..1_001).map(|i| update(i, 0.0, 1.0)).collect());
        let many = serde_json::to_vec(&many).expect("JSON");
        assert!(many.len() > 64 * 1024);
        assert_eq!(client.request("POST", "/v1/updates", many).await.expect("an answer").status, 413);
        service.running.stop().await;
    });
}

#[test]
fn slow_clients_are_dropped_and_others_served() {
    run(async {
        let short = Duration::from_millis(700);
        let config = ServerConfig {
            head_timeout: short,
            body_timeout: short,
            idle_timeout: Duration::from_millis(1_500),
            max_strangers: 40,
            ..unlimited()
        };
        let service = Service::start(config).await;
        let key = service.key(Role::Fleet).await;
        let clock = Clock::system();
        let head = format!(
            "POST /v1/updates HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\ncontent-length: 1000\r\n\r\n"
        );
        // A head that never ends, a body that never ends, and a connection on which nothing comes.
        let mut slow = Vec::new();
        for first in ["GET / HTTP/1.1\r\n", head.as_str(), ""] {
            for _ in 0..10 {
                let mut stream = TcpStream::connect(service.running.address).await.expect("connected");
                stream.write_all(first.as_bytes()).await.expect("sent");
                let quiet = first.is_empty();
                slow.push(tokio::spawn(async move {
                    let (mut read, mut write) = stream.into_split();
                    let drip = async {
                        while write.write_all(b"a").await.is_ok() {
                            tokio::time::sleep(Duration::from_millis(100)).await;
                        }
                    };
                    let mut answer = Vec::new();
                    tokio::select! {
                        () = drip, if !quiet => {}
                        _ = read.read_to_end(&mut answer) => {}
                    }
                }));
            }
        }
        // Meanwhile others are answered at once.
        let mut client = service.client(&key);
        for i in 0..50 {
            let asked = clock.elapsed();
            client.report(&batch(Some("a"), vec![update(i, 0.0, 100.0)])).await.expect("kept");
            let took = clock.elapsed().saturating_since(asked);
            assert!(took < TimeDelta::from_millis(600), "{took:?}");
        }
        for one in slow {
            tokio::time::timeout(Duration::from_secs(10), one).await.expect("dropped").expect("no panic");
        }
        let took = clock.elapsed().as_nanos() / 1_000_000;
        assert!((700..9_000).contains(&took), "{took} ms");
        // Of more connections than there are places for strangers, the oldest of this address give way.
        let mut open = Vec::new();
        for _ in 0..60 {
            open.push(TcpStream::connect(service.running.address).await.expect("connected"));
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
        drop(open);
        tokio::time::sleep(Duration::from_millis(300)).await;
        let refused = service.metric("weir_coverage_refused_connections_total ").await;
        // The client above has a key.
        assert!((20.0..=21.0).contains(&refused), "{refused}");
        service.running.stop().await;
    });
}

#[test]
fn rates_are_limited_by_key_and_address() {
    run(async {
        let rate = Rate { per_second: 5.0, burst: 20.0 };
        let limited = ServerConfig { reporter_rate: rate, ..unlimited() };
        let service = Service::start(limited).await;
        let key = service.key(Role::Reporter).await;
        let mut client = service.client(&key);
        let batch = |first: u64| batch(None, (first..first + 10).map(|i| update(i, 0.0, 100.0)).collect());
        client.report(&batch(0)).await.expect("kept");
        client.report(&batch(10)).await.expect("kept");
        match client.report(&batch(20)).await {
            Err(ClientError::Refused { status: 429, wait: Some(wait), .. }) => {
                assert!((1.0..=2.0).contains(&wait.as_secs_f64()), "{wait:?}");
            }
            other => panic!("{other:?}"),
        }
        service.running.stop().await;

        // Guessing keys costs an address more than asking.
        let rate = Rate { per_second: 1.0, burst: 200.0 };
        let service = Service::start(ServerConfig { address_rate: rate, ..config() }).await;
        let mut stranger = service.client(&format!("wcm_000000000000_{}", "0".repeat(64)));
        let mut answers = Vec::new();
        for _ in 0..40 {
            answers
                .push(stranger.request("POST", "/v1/lookahead/route", b"{}".to_vec()).await.expect("answered").status);
        }
        let refused = answers.iter().filter(|s| **s == 401).count();
        assert!((15..=22).contains(&refused) && answers.ends_with(&[429]), "{answers:?}");
        service.running.stop().await;
    });
}

#[test]
fn a_stolen_key_loses_what_it_has_open_when_it_is_revoked() {
    run(async {
        let service = Service::start(ServerConfig { refresh: Duration::from_millis(200), ..unlimited() }).await;
        let (key, other) = (service.key(Role::Fleet).await, service.key(Role::Fleet).await);
        let open = async |key: &str, path: &str| {
            let url = format!("ws://{}{path}", service.running.address);
            let mut request = url.into_client_request().expect("valid");
            let bearer = format!("Bearer {key}").parse().expect("valid");
            request.headers_mut().insert("authorization", bearer);
            let stream = TcpStream::connect(service.running.address).await.expect("connected");
            tokio_tungstenite::client_async(request, stream).await.expect("upgraded").0
        };
        let mut stolen = [open(&key, "/v1/fences").await, open(&key, "/v1/live").await];
        let mut others = open(&other, "/v1/fences").await;
        // On a connection that is kept, too.
        let mut client = service.client(&key);
        client.report(&batch(Some("a"), vec![update(1, 0.0, 100.0)])).await.expect("kept");
        let id = key.split('_').nth(1).expect("an id");
        let revoked = database(service.dir.path());
        assert!(crate::support::open(&revoked, None).revoke_key(id, now()).expect("revoked"));
        for socket in &mut stolen {
            let end = async { while let Some(Ok(_)) = socket.next().await {} };
            tokio::time::timeout(Duration::from_secs(8), end).await.expect("the service closes it");
        }
        match client.report(&batch(Some("a"), vec![update(2, 0.0, 100.0)])).await {
            Err(ClientError::Refused { status: 401, .. }) => {}
            other => panic!("{other:?}"),
        }
        // Another key's subscription is pinged, and goes on.
        let ping = tokio::time::timeout(Duration::from_secs(5), others.next()).await.expect("in time");
        assert!(matches!(ping, Some(Ok(Message::Ping(_)))), "{ping:?}");
        service.running.stop().await;
    });
}

#[test]
fn a_full_queue_says_when_to_come_again() {
    run(async {
        let service = Service::start(ServerConfig { max_queued: 5, ..unlimited() }).await;
        let key = service.key(Role::Fleet).await;
        let many = batch(Some("a"), (0..10).map(|i| update(i, 0.0, 1.0)).collect());
        match service.client(&key).report(&many).await {
            Err(ClientError::Refused { status: 429, wait: Some(_), detail }) => {
                assert!(detail.contains("wait to be written"))
            }
            other => panic!("{other:?}"),
        }
        let few = batch(Some("a"), vec![update(1, 0.0, 1.0)]);
        assert_eq!(service.client(&key).report(&few).await.expect("kept").accepted, 1);
        // A fleet has as many devices as it may have.
        for i in 0..60 {
            let done = service.client(&key).report(&batch(Some(&format!("d{i}")), vec![update(1, 0.0, 1.0)])).await;
            // Device "a" is one of the 50.
            assert_eq!(done.is_ok(), i < 49, "{i}: {done:?}");
        }
        assert_eq!(service.metric("weir_coverage_queued_updates ").await, 0.0);
        assert!(start().lat() > 60.0);
        service.running.stop().await;
    });
}
