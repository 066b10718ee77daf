//! The page's files, and what it asks for.

use crate::support::{Service, batch, config, run, start, update};
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use std::time::Duration;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use weir_coverage::Update;
use weir_coverage::server::ServerConfig;
use weir_coverage::server::store::Role;

type Socket = tokio_tungstenite::WebSocketStream<tokio_tungstenite::MaybeTlsStream<tokio::net::TcpStream>>;

/// A device's reports along 400 m.
fn ride(device: u64, kbps: f64) -> Vec<Update> {
    (0..40).map(|i| update(device * 1_000 + i, i as f64 * 10.0, kbps)).collect()
}

fn window(metres: f64) -> Value {
    let (a, b) = (start().offset(225.0, metres), start().offset(45.0, metres));
    json!({ "south": a.lat(), "west": a.lon(), "north": b.lat(), "east": b.lon() })
}

async fn ask(service: &Service, key: &str, question: &Value) -> (u16, Value) {
    let body = question.to_string().into_bytes();
    let answer = service.client(key).request("POST", "/v1/regions", body).await.expect("an answer");
    (answer.status, serde_json::from_slice(&answer.body).expect("JSON"))
}

/// A feed, or the status with which it was refused.
async fn follow(service: &Service, key: &str) -> Result<Socket, u16> {
    let mut request = format!("ws://{}/v1/live", service.running.address).into_client_request().expect("a request");
    let protocols = format!("weir.coverage, bearer.{key}");
    request.headers_mut().insert("sec-websocket-protocol", protocols.parse().expect("a field"));
    match tokio_tungstenite::connect_async(request).await {
        Ok((socket, _)) => Ok(socket),
        Err(tokio_tungstenite::tungstenite::Error::Http(answer)) => Err(answer.status().as_u16()),
        Err(other) => panic!("{other}"),
    }
}

async fn say(socket: &mut Socket, message: Value) {
    socket.send(Message::text(message.to_string())).await.expect("sent");
}

async fn next(socket: &mut Socket) -> Value {
    let wait = async {
        loop {
            if let Message::Text(text) = socket.next().await.expect("open").expect("read") {
                return serde_json::from_str(&text).expect("JSON");
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(20), wait).await.expect("in time")
}

#[test]
fn files_are_served_with_their_types_and_a_strict_policy() {
    run(async {
        let service = Service::start(config()).await;
        let kinds = [
            ("/", "text/html; charset=utf-8"),
            ("/map/main.js", "text/javascript; charset=utf-8"),
            ("/map/leaflet.js", "text/javascript; charset=utf-8"),
            ("/map/map.css", "text/css; charset=utf-8"),
            ("/map/land.txt", "text/plain; charset=utf-8"),
            ("/map/licences/leaflet.txt", "text/plain; charset=utf-8"),
        ];
        for (path, kind) in kinds {
            let head = format!("GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n");
            let answer = service.raw(format!("{head}\r\n").as_bytes()).await;
            let (fields, _) = answer.split_once("\r\n\r\n").expect("a head");
            assert!(
                fields.starts_with("HTTP/1.1 200") && fields.contains(&format!("content-type: {kind}")),
                "{fields}"
            );
            let policy = fields.lines().find_map(|l| l.strip_prefix("content-security-policy: ")).expect("a policy");
            assert!(
                policy.starts_with("default-src 'none'; script-src 'self'") && !policy.contains("unsafe"),
                "{policy}"
            );
            assert!(fields.contains("x-content-type-options: nosniff") && fields.contains("cache-control: no-cache"));
            let tag = fields.lines().find_map(|l| l.strip_prefix("etag: ")).expect("a tag");
            let again = service.raw(format!("{head}if-none-match: {tag}\r\n\r\n").as_bytes()).await;
            assert!(again.starts_with("HTTP/1.1 304") && again.ends_with("\r\n\r\n"), "{again}");
        }
        for wrong in ["/map/", "/map/../Cargo.toml", "/map/land/make.mjs", "/map/main.js/"] {
            let answer =
                service.raw(format!("GET {wrong} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").as_bytes()).await;
            assert!(answer.starts_with("HTTP/1.1 404"), "{wrong}: {answer}");
        }
        service.running.stop().await;
    });
}

#[test]
fn a_window_shows_what_enough_devices_reported() {
    run(async {
        let service = Service::start(config()).await;
        let key = service.key(Role::Fleet).await;
        let question = json!({ "window": window(1_000.0) });
        for (device, kbps) in [(0, 900.0), (1, 1_000.0)] {
            let name = format!("bus {device}");
            service.client(&key).report(&batch(Some(&name), ride(device, kbps))).await.expect("kept");
        }
        let (status, two) = ask(&service, &key, &question).await;
        assert_eq!((status, &two["regions"], &two["operators"]), (200, &json!([]), &json!([])), "two devices");
        service.client(&key).report(&batch(Some("bus 2"), ride(2, 1_100.0))).await.expect("kept");
        let (_, three) = ask(&service, &key, &question).await;
        let regions = three["regions"].as_array().expect("regions");
        assert!((3..=7).contains(&regions.len()) && three["complete"] == true, "{three}");
        assert_eq!((&three["resolution"], &three["operators"]), (&json!(10), &json!(["244-91"])));
        for region in regions {
            let p50 = region["p50"].as_f64().expect("a rate");
            assert!((p50 / 1e6 - 1.0).abs() < 0.05 && region["devices"] == "few", "{region}");
            let outline = weir_coverage::lookahead::decode_polyline(region["outline"].as_str().expect("text"));
            let corners = outline.expect("a polyline");
            assert!(corners.len() >= 5 && corners.iter().all(|c| c.distance_m(start()) < 600.0), "{region}");
        }
        // From afar: one region, of the same rule.
        let (_, world) = ask(&service, &key, &json!({ "window": window(2_000_000.0), "most": 100 })).await;
        assert_eq!(world["regions"].as_array().map(Vec::len), Some(1), "{world}");
        // Of another network, or part of the week: nothing.
        let none = json!([]);
        for (field, value) in [("network", json!({ "technology": "lte" })), ("network", json!({ "operator": "x" }))] {
            let mut question = question.clone();
            question[field] = value;
            assert_eq!(ask(&service, &key, &question).await.1["regions"], none);
        }
        let classes = (0..8).map(|class| json!({ "window": window(1_000.0), "hours": class.to_string() }));
        let mut answering = 0;
        for question in classes {
            answering += usize::from(ask(&service, &key, &question).await.1["regions"] != none);
        }
        // Reports of some seconds, at most at the turn of two parts.
        assert!((1..=2).contains(&answering), "{answering}");
        service.running.stop().await;
    });
}

#[expect(clippy::disallowed_methods, reason = "the service's limit is per second of the system's clock")]
#[test]
fn windows_that_are_none_and_callers_without_keys_are_refused() {
    run(async {
        let service = Service::start(config()).await;
        let key = service.key(Role::Reader).await;
        assert_eq!(ask(&service, "", &json!({ "window": window(100.0) })).await.0, 401);
        let good = window(100.0);
        let mut upside_down = good.clone();
        upside_down["south"] = json!(61.0);
        let wrong = [
            json!({}),
            json!({ "window": upside_down }),
            json!({ "window": good, "most": 0 }),
            json!({ "window": good, "most": 4_001 }),
            json!({ "window": good, "hours": "8" }),
            json!({ "window": good, "network": { "operator": "<b>" } }),
            json!({ "window": good, "more": 1 }),
        ];
        for question in wrong {
            let (status, problem) = ask(&service, &key, &question).await;
            assert!(status == 400 && problem["detail"].is_string(), "{question}: {status} {problem}");
        }
        // A window is as dear as four look-aheads: of 200, 50 are left at once, and 50 more a second.
        let began = std::time::Instant::now();
        let mut answered = 0;
        for _ in 0..70 {
            answered += usize::from(ask(&service, &key, &json!({ "window": good })).await.0 == 200);
        }
        let at_most = 52 + (began.elapsed().as_secs_f64() * 50.0) as usize;
        assert!((40..=at_most).contains(&answered), "{answered} of at most {at_most}");
        service.running.stop().await;
    });
}

#[test]
fn a_page_follows_changes_and_its_own_device_alone() {
    run(async {
        let refresh = Duration::from_millis(100);
        let service = Service::start(ServerConfig { refresh, max_pages: 2, ..config() }).await;
        let (own, other) = (service.key(Role::Fleet).await, service.key(Role::Fleet).await);
        assert_eq!(follow(&service, "wcm_0_0").await.err(), Some(401));
        let mut page = follow(&service, &own).await.expect("open");
        let mut stranger = follow(&service, &other).await.expect("open");
        assert_eq!(follow(&service, &own).await.err(), Some(429), "two pages");
        for socket in [&mut page, &mut stranger] {
            say(socket, json!({ "type": "follow", "device": "bus 2" })).await;
            say(socket, json!({ "type": "watch", "window": window(1_000.0) })).await;
            let first = next(socket).await;
            assert_eq!((&first["type"], &first["regions"]), (&json!("regions"), &json!([])));
        }
        for device in 0..3 {
            let name = format!("bus {device}");
            service.client(&own).report(&batch(Some(&name), ride(device, 1_000.0))).await.expect("kept");
        }
        // Its own device, and the regions that three devices have reported by now, in any order.
        let mut heard = [next(&mut page).await, next(&mut page).await];
        heard.sort_by_key(|message| message["type"] == "changes");
        let [reports, changes] = heard;
        assert_eq!((&reports["type"], reports["reports"].as_array().map(Vec::len)), (&json!("reports"), Some(40)));
        assert_eq!(reports["reports"][3]["throughput_bps"], 1_000_000);
        for changes in [changes, next(&mut stranger).await] {
            assert_eq!(changes["type"], "changes", "{changes}");
            assert!(changes["regions"].as_array().expect("regions").len() >= 3 && changes["gone"] == json!([]));
        }
        // Deleted reports are gone.
        let deleted = service.client(&own).request("DELETE", "/v1/updates", Vec::new()).await.expect("an answer");
        assert_eq!(deleted.status, 200);
        let gone = next(&mut page).await;
        assert!(gone["gone"].as_array().expect("cells").len() >= 3 && gone["regions"] == json!([]), "{gone}");
        say(&mut page, json!({ "type": "watch" })).await;
        assert_eq!(next(&mut page).await["type"], "error");
        drop(page);
        service.running.stop().await;
    });
}
