use crate::support::{Service, batch, config, database, now, open, run, start, update};
use futures_util::{SinkExt, StreamExt};
use std::time::Duration;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use weir_coverage::client::{Background, BackgroundConfig, ClientError, Request, Trust};
use weir_coverage::lookahead::{Area, Route};
use weir_coverage::server::store::{Role, Store};
use weir_coverage::server::{ServeError, ServerConfig, TlsConfig, serve};
use weir_coverage::{Accepted, Filter, Resolution, Update, WallTime};
use weir_units::{DataRate, TimeDelta};

/// A ride of a device along 3 km, one update every 20 m: 2 Mbit/s, 50 kbit/s between 1 and 2 km.
fn ride(device: u64) -> Vec<Update> {
    let at = |i: u64| {
        let metres = i as f64 * 20.0;
        let kbps = if (1_000.0..2_000.0).contains(&metres) { 50.0 } else { 2_000.0 };
        update(i, metres, kbps + device as f64)
    };
    (0..150).map(at).collect()
}

fn route() -> Route {
    let points = vec![start(), start().offset(90.0, 2_900.0)];
    Route { points, polyline: None, speed_mps: 20.0, horizon_s: 300.0, network: Filter::default() }
}

async fn report_rides(service: &Service, key: &str) {
    let mut client = service.client(key);
    for device in 0..4 {
        let name = format!("bus {device}");
        let accepted = client.report(&batch(Some(&name), ride(device))).await.expect("kept");
        assert_eq!(accepted, Accepted { accepted: 150, duplicates: 0, refused: vec![] });
    }
}

fn median_at(vector: &weir_coverage::CapacityVector, s: f32) -> Option<f64> {
    Some(vector.at(s)?.capacity?.quantiles.p50.as_kbps_f64())
}

#[test]
fn updates_become_a_look_ahead_and_outlive_the_service() {
    run(async {
        let service = Service::start(config()).await;
        let key = service.key(Role::Fleet).await;
        report_rides(&service, &key).await;
        let mut client = service.client(&key);
        let vector = client.look_route(&route()).await.expect("answered");
        let near = |s, kbps: f64| (median_at(&vector, s).expect("known") / kbps - 1.0).abs() < 0.1;
        assert!(near(20.0, 2_000.0) && near(75.0, 50.0) && near(130.0, 2_000.0), "{vector:?}");
        let area = Area {
            position: start().offset(90.0, 800.0),
            heading_deg: 90.0,
            speed_mps: 20.0,
            radius_m: 1_000.0,
            network: Filter::default(),
        };
        let ahead = client.look_area(&area).await.expect("answered");
        assert!(ahead.lowest(15.0, 40.0, |c| c.quantiles.p25).expect("known") < DataRate::from_kbps(100));
        // The same batches again count once.
        let again = client.report(&batch(Some("bus 0"), ride(0))).await.expect("kept");
        assert_eq!((again.accepted, again.duplicates), (0, 150));
        let Service { running, dir, .. } = service;
        running.stop().await;

        let service = Service::start_in(config(), dir, weir_coverage::server::Clock::system(), None).await;
        assert_eq!(service.running.loaded, 600);
        let after = service.client(&key).look_route(&route()).await.expect("answered");
        assert_eq!(median_at(&after, 75.0), median_at(&vector, 75.0));
        service.running.stop().await;
    });
}

#[test]
fn clocks_that_differ_are_corrected_or_refused() {
    run(async {
        let service = Service::start(config()).await;
        let key = service.key(Role::Reporter).await;
        let mut client = service.client(&key);
        let minute = TimeDelta::from_secs(60);
        let mut behind = batch(None, vec![update(1, 0.0, 100.0)]);
        let sent = now().plus(-minute);
        behind.sent_ms = sent;
        behind.updates[0].time_ms = sent;
        assert_eq!(client.report(&behind).await.expect("kept").accepted, 1);
        let mut kept = Vec::new();
        open(&database(service.dir.path()), None).replay(&mut |_, u| kept.push(u)).expect("read");
        assert!(now().since(kept[0].time_ms) < TimeDelta::from_secs(10), "the minute is added");
        behind.sent_ms = now().plus(TimeDelta::from_secs(-400));
        let error = client.report(&behind).await.expect_err("refused");
        assert!(
            matches!(&error, ClientError::Refused { status: 400, detail, .. } if detail.contains("clock")),
            "{error}"
        );
        let mut future = batch(None, vec![update(2, 0.0, 100.0), update(3, 0.0, 100.0)]);
        future.updates[1].time_ms = now().plus(TimeDelta::from_secs(4_000));
        let accepted = client.report(&future).await.expect("answered");
        assert_eq!((accepted.accepted, accepted.refused.len(), accepted.refused[0].id), (1, 1, 3));
        service.running.stop().await;
    });
}

#[test]
fn reports_are_deleted_on_request() {
    run(async {
        let service = Service::start(config()).await;
        let (ours, theirs) = (service.key(Role::Fleet).await, service.key(Role::Fleet).await);
        report_rides(&service, &ours).await;
        let mut client = service.client(&theirs);
        client.report(&batch(Some("bus 1"), ride(9))).await.expect("kept");
        let delete = |answer: weir_coverage::client::Response| String::from_utf8(answer.body.to_vec()).expect("UTF-8");
        let mut us = service.client(&ours);
        let one = us.request("DELETE", "/v1/updates?device=bus%201", Vec::new()).await.expect("answered");
        assert_eq!(delete(one), r#"{"deleted":150}"#);
        let all = us.request("DELETE", "/v1/updates", Vec::new()).await.expect("answered");
        assert_eq!(delete(all), r#"{"deleted":450}"#);
        let wrong = us.request("DELETE", "/v1/updates?all=1", Vec::new()).await.expect("answered");
        assert_eq!(wrong.status, 400);
        let vector = us.look_route(&route()).await.expect("answered");
        assert!(vector.segments.iter().all(|s| s.capacity.is_none()), "one device is too few: {vector:?}");
        let mut left = 0;
        open(&database(service.dir.path()), None).replay(&mut |_, _| left += 1).expect("read");
        assert_eq!(left, 150);
        service.running.stop().await;
    });
}

#[test]
fn roles_permit_what_they_say() {
    run(async {
        let service = Service::start(config()).await;
        let admin = service.key(Role::Admin).await;
        let mut client = service.client(&admin);
        let mut made = std::collections::BTreeMap::new();
        for role in ["reporter", "reader", "fleet"] {
            let body = format!(r#"{{"role":"{role}","note":"made by a test"}}"#).into_bytes();
            let answer = client.request("POST", "/v1/admin/keys", body).await.expect("answered");
            assert_eq!(answer.status, 201);
            let info: weir_coverage::server::KeyInfo = serde_json::from_slice(&answer.body).expect("JSON");
            made.insert(role, (info.id.clone(), info.key.expect("shown once")));
        }
        let listed = client.request("GET", "/v1/admin/keys", Vec::new()).await.expect("answered");
        let text = String::from_utf8(listed.body.to_vec()).expect("UTF-8");
        assert!(made.values().all(|(id, key)| text.contains(id) && !text.contains(key)));
        let report = serde_json::to_vec(&batch(None, vec![update(1, 0.0, 1.0)])).expect("JSON");
        let look = serde_json::to_vec(&route()).expect("JSON");
        for (role, reports, looks, administers) in
            [("reporter", 200, 200, 403), ("reader", 403, 200, 403), ("fleet", 400, 200, 403)]
        {
            let mut caller = service.client(&made[role].1);
            let mut status = async |method: &str, path: &str, body: &[u8]| {
                caller.request(method, path, body.to_vec()).await.expect("answered").status
            };
            assert_eq!(status("POST", "/v1/updates", &report).await, reports, "{role}");
            assert_eq!(status("POST", "/v1/lookahead/route", &look).await, looks, "{role}");
            assert_eq!(status("GET", "/v1/admin/keys", b"").await, administers, "{role}");
        }
        // A revoked key is refused from the answer on, by HTTP and by another process.
        let path = format!("/v1/admin/keys/{}", made["reader"].0);
        assert_eq!(client.request("DELETE", &path, Vec::new()).await.expect("answered").status, 204);
        let error = service.client(&made["reader"].1).look_route(&route()).await.expect_err("revoked");
        assert!(matches!(error, ClientError::Refused { status: 401, .. }), "{error}");
        assert_eq!(client.request("DELETE", &path, Vec::new()).await.expect("answered").status, 404);
        open(&database(service.dir.path()), None).revoke_key(&made["reporter"].0, now()).expect("revoked");
        tokio::time::sleep(Duration::from_millis(2_500)).await;
        let error = service.client(&made["reporter"].1).look_route(&route()).await.expect_err("revoked");
        assert!(matches!(error, ClientError::Refused { status: 401, .. }), "{error}");
        service.running.stop().await;
    });
}

#[test]
fn a_subscriber_hears_of_poor_regions() {
    run(async {
        let service = Service::start(ServerConfig { refresh: Duration::from_millis(300), ..config() }).await;
        let key = service.key(Role::Fleet).await;
        let mut request = format!("ws://{}/v1/fences", service.running.address).into_client_request().expect("valid");
        let protocols = format!("weir.coverage, bearer.{key}").parse().expect("valid");
        request.headers_mut().insert("sec-websocket-protocol", protocols);
        let stream = tokio::net::TcpStream::connect(service.running.address).await.expect("connected");
        let (mut socket, answer) = tokio_tungstenite::client_async(request, stream).await.expect("upgraded");
        assert_eq!(answer.headers()["sec-websocket-protocol"], "weir.coverage");
        let mut say = async |text: String| socket.send(Message::text(text)).await.expect("sent");
        say("{".into()).await;
        say(r#"{"type":"subscribe","below_bps":500000,"radius_m":600}"#.into()).await;
        let here = serde_json::to_string(&start().offset(90.0, 1_500.0)).expect("JSON");
        say(format!(r#"{{"type":"position","position":{here}}}"#)).await;
        report_rides(&service, &key).await;
        let mut heard = Vec::new();
        while let Ok(Some(Ok(message))) = tokio::time::timeout(Duration::from_secs(10), socket.next()).await {
            if let Message::Text(text) = message {
                heard.push(text.to_string());
                if text.contains("entered") {
                    break;
                }
            }
        }
        assert!(heard[0].contains(r#""type":"error""#) && heard[1].contains("subscribed"), "{heard:?}");
        let last = heard.last().expect("events");
        assert!(last.contains(r#""type":"poor""#) && last.contains(r#""type":"entered""#), "{last}");
        assert_eq!(service.metric("weir_coverage_subscribers ").await, 1.0);
        service.running.stop().await;
        let end =
            tokio::time::timeout(Duration::from_secs(5), async { while let Some(Ok(_)) = socket.next().await {} });
        assert!(end.await.is_ok(), "the service closes subscriptions when it stops");
    });
}

#[test]
fn plain_connections_are_for_the_loopback_device() {
    run(async {
        let dir = tempfile::tempdir().expect("a folder");
        let store = open(&database(dir.path()), None);
        let everywhere = ServerConfig { listen: ([0, 0, 0, 0], 0).into(), ..config() };
        let error = serve(everywhere.clone(), weir_coverage::server::Clock::system(), Box::new(store)).await;
        assert!(matches!(error, Err(ServeError::Config(_))));

        let file = dir.path().join("identity.pem");
        let tls = TlsConfig::SelfSigned { file: file.clone(), names: vec!["127.0.0.1".into()] };
        let mut service = Service::start(ServerConfig { tls, ..everywhere }).await;
        service.running.address.set_ip([127, 0, 0, 1].into());
        service.trust = Trust::Certificates(std::fs::read(&file).expect("made"));
        let key = service.key(Role::Fleet).await;
        report_rides(&service, &key).await;
        assert!(service.client(&key).look_route(&route()).await.is_ok());
        assert_eq!(service.running.fingerprint.as_ref().map(String::len), Some(95));
        // Without the certificate, and without TLS, there is nothing; metrics need a key here.
        service.trust = Trust::Certificates(Vec::new());
        assert!(matches!(service.client(&key).look_route(&route()).await, Err(ClientError::Connection(_))));
        let plain = service.raw(b"GET /health/live HTTP/1.1\r\nhost: x\r\n\r\n").await;
        assert!(!plain.contains("HTTP/1.1"), "{plain}");
        service.trust = Trust::Certificates(std::fs::read(&file).expect("made"));
        assert_eq!(service.client("").request("GET", "/metrics", Vec::new()).await.expect("answered").status, 401);
        #[cfg(unix)]
        {
            let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&file).expect("there").permissions());
            assert_eq!(mode & 0o777, 0o600);
        }
        service.running.stop().await;
    });
}

#[test]
fn operators_see_what_they_need() {
    run(async {
        let service = Service::start(config()).await;
        let mut client = service.client("");
        let mut get = async |path: &str| {
            let answer = client.request("GET", path, Vec::new()).await.expect("answered");
            (answer.status, String::from_utf8(answer.body.to_vec()).expect("UTF-8"))
        };
        assert_eq!(get("/health/live").await, (200, "live\n".into()));
        assert_eq!(get("/health/ready").await, (200, "ready\n".into()));
        let (status, api) = get("/openapi.json").await;
        let api: serde_json::Value = serde_json::from_str(&api).expect("JSON");
        assert!(status == 200 && api["paths"]["/v1/updates"]["post"].is_object());
        assert!(get("/docs").await.1.contains("/v1/lookahead/route"));
        assert_eq!(get("/nothing").await.0, 404);
        let (status, metrics) = get("/metrics").await;
        assert!(
            status == 200 && metrics.contains("weir_coverage_requests_total{route=\"/health/live\",status=\"200\"} 1")
        );
        assert!(metrics.contains("route=\"none\",status=\"404\""), "{metrics}");
        service.running.stop().await;
    });
}

#[test]
fn a_lost_service_changes_nothing_for_a_call() {
    run(async {
        let service = Service::start(config()).await;
        let key = service.key(Role::Fleet).await;
        report_rides(&service, &key).await;
        let cache = service.dir.path().join("cache.json");
        let settings = BackgroundConfig {
            cache: Some(cache.clone()),
            device: Some("phone".into()),
            timeout: Duration::from_millis(500),
            ..BackgroundConfig::new(service.endpoint(), &key)
        };
        let forecast = async |background: &Background, fresh: bool| {
            background.look(Request::Route(route()));
            for _ in 0..100 {
                tokio::time::sleep(Duration::from_millis(50)).await;
                if let Some(forecast) = background.forecast().filter(|f| f.fresh == fresh) {
                    return forecast;
                }
            }
            panic!("no forecast");
        };
        let background = Background::start(settings.clone()).expect("started");
        let served = forecast(&background, true).await;
        (0..10).for_each(|i| background.report(update(i, 0.0, 500.0)));
        for _ in 0..100 {
            if cache.exists() && background.stats().acknowledged > 0 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let stats = tokio::task::spawn_blocking(move || background.stop()).await.expect("stopped");
        assert_eq!((stats.acknowledged, stats.failures), (10, 0));
        let Service { running, dir, .. } = service;
        running.stop().await;

        // Nobody listens any more: nothing waits, and the cached map answers as the service did.
        let background = Background::start(settings).expect("started");
        let begin = background.now();
        (0..3_000).for_each(|i| background.report(update(i, 0.0, 500.0)));
        assert!(background.now().saturating_since(begin) < TimeDelta::from_millis(200), "reports do not wait");
        let cached = forecast(&background, false).await;
        for s in [20.0, 75.0, 130.0] {
            let (a, b) = (median_at(&served.vector, s).expect("known"), median_at(&cached.vector, s).expect("known"));
            assert!((a / b - 1.0).abs() < 0.02, "{s}: {a} {b}");
        }
        let stats = tokio::task::spawn_blocking(move || background.stop()).await.expect("stopped");
        assert!(stats.acknowledged == 0 && stats.failures >= 1, "{stats:?}");
        drop(dir);
    });
}

#[test]
fn parts_of_the_map_are_downloaded() {
    run(async {
        let service = Service::start(config()).await;
        let key = service.key(Role::Fleet).await;
        report_rides(&service, &key).await;
        let mut client = service.client(&key);
        let network = Filter { operator: Some("244-91".parse().expect("valid")), technology: None };
        let area = start().cell(Resolution::Five);
        let part = client.part(area, &network).await.expect("answered");
        assert!((20..60).contains(&part.cells.len()) && part.area == area, "{}", part.cells.len());
        let large = client.part(start().cell(Resolution::Four), &network).await.expect_err("refused");
        assert!(matches!(large, ClientError::Refused { status: 400, .. }), "{large}");
        let other = Filter { operator: Some("244-5".parse().expect("valid")), technology: None };
        assert!(client.part(area, &other).await.expect("answered").cells.is_empty());
        assert!(part.made_ms > WallTime::from_unix_millis(1_700_000_000_000));
        service.running.stop().await;
    });
}
