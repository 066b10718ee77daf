//! The map page of a running service, in a browser.

mod browser;

use browser::Browser;
use std::time::Duration;
use weir_coverage::client::{Client, Endpoint, Trust};
use weir_coverage::lookahead::encode_polyline;
use weir_coverage::rides::City;
use weir_coverage::server::store::{Role, SqliteConfig, SqliteStore, Store};
use weir_coverage::server::{Clock, RunningServer, ServerConfig, issue, serve};
use weir_coverage::{Batch, Position, Update};
use weir_units::TimeDelta;

const NO_BROWSER: &str = "skipped: no chromium on this machine";
/// Of a ride, in seconds.
const LONG: u32 = 200;

struct Service {
    running: RunningServer,
    client: Client,
    key: String,
    city: City,
    _folder: tempfile::TempDir,
}

fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(test);
}

impl Service {
    /// A service that knows a city of 2 km from the rides of some devices.
    async fn start(devices: u32) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let clock = Clock::system();
        let config = SqliteConfig { path: folder.path().join("map.db"), max_bytes: None, max_devices_per_key: 1_000 };
        let mut store = SqliteStore::open(&config).expect("opened");
        let key = issue(Role::Fleet, "a test", clock.wall(), None).expect("made");
        store.add_key(&key.record).expect("kept");
        let config = ServerConfig {
            listen: ([127, 0, 0, 1], 0).into(),
            refresh: Duration::from_millis(200),
            ..ServerConfig::default()
        };
        let running = serve(config, clock, Box::new(store)).await.expect("started");
        let endpoint = Endpoint { tls: false, host: "127.0.0.1".into(), port: running.address.port() };
        let client = Client::new(endpoint, &key.text, &Trust::Nothing, Duration::from_secs(20)).expect("a client");
        let mut service = Self { running, client, key: key.text, city: City::new(8, 6), _folder: folder };
        for device in 0..devices {
            let ride = service.ride(device);
            service.report(&format!("device {device}"), ride).await;
        }
        service
    }

    fn ride(&self, device: u32) -> Vec<Update> {
        let begin = Clock::system().wall().plus(TimeDelta::from_secs(-i64::from(LONG)));
        self.city.ride(device, 0, begin, LONG)
    }

    async fn report(&mut self, device: &str, updates: Vec<Update>) {
        let count = updates.len();
        let batch = Batch { sent_ms: Clock::system().wall(), device: Some(device.to_owned()), updates };
        assert_eq!(self.client.report(&batch).await.expect("kept").accepted, count);
    }

    fn address(&self, fragment: &str) -> String {
        format!("http://{}/#key={}{fragment}", self.running.address, self.key)
    }
}

/// Pixels by colour of the canvas that regions are drawn on, as `#rrggbb`, the most frequent first.
const COLOURS: &str = "(() => {
    const canvas = document.querySelector('.leaflet-overlay-pane canvas');
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    const counts = new Map();
    for (let i = 0; i < data.length; i += 4) {
        if (data[i + 3] < 200) continue;
        const c = data[i] * 65536 + data[i + 1] * 256 + data[i + 2];
        counts.set(c, (counts.get(c) ?? 0) + 1);
    }
    return [...counts].sort((a, b) => b[1] - a[1]).slice(0, 7).map(([c, n]) => [c, n]);
})()";
const NO_SIDEWAYS: &str = "document.documentElement.scrollWidth <= innerWidth";

async fn colours(browser: &mut Browser) -> Vec<(u64, u64)> {
    // A canvas draws with the next frame.
    browser.eval("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))").await;
    serde_json::from_value(browser.eval(COLOURS).await).expect("colours")
}

async fn text(browser: &mut Browser, id: &str) -> String {
    let text = browser.eval(&format!("document.getElementById('{id}').innerText")).await;
    text.as_str().expect("text").to_owned()
}

#[test]
fn regions_are_drawn_chosen_and_followed() {
    run(async {
        let profile = tempfile::tempdir().expect("a folder");
        let Some(mut browser) = Browser::start(profile.path(), &[]).await else {
            println!("{NO_BROWSER}");
            return;
        };
        let mut service = Service::start(30).await;
        browser.prefer("light").await;
        browser.open(&service.address(""), 1280, 800).await;
        browser.until("document.body.dataset.ready === 'yes'").await;
        // Found by itself, at the map's own resolution; the key has left the address.
        browser.until("Number(document.body.dataset.regions) > 80").await;
        assert!(text(&mut browser, "state").await.contains("resolution 10"));
        assert_eq!(browser.eval("location.hash").await, "");
        browser.until("document.getElementById('state').innerText.includes('live')").await;
        let median = colours(&mut browser).await;
        assert!(median.len() >= 4 && median[3].1 > 500, "{median:?}");
        browser.picture("desktop-light", false).await;

        // Another quantile, by the keyboard.
        browser.eval("document.querySelector('[name=quantile]:checked').focus()").await;
        browser.press("ArrowLeft", 37).await;
        browser.press("ArrowLeft", 37).await;
        assert!(text(&mut browser, "legend").await.contains("p10"));
        let low = colours(&mut browser).await;
        // Less of what is bright: 2 to 4 Mbit/s.
        let bright = |of: &[(u64, u64)]| of.iter().find(|(c, _)| *c == 0x90_d7_43).map_or(0, |(_, n)| *n);
        assert!(2 * bright(&low) < bright(&median), "{low:?} {median:?}");

        // From region to region.
        browser.eval("document.getElementById('region').focus()").await;
        browser.press("ArrowRight", 39).await;
        let first = text(&mut browser, "region-values").await;
        browser.press("ArrowRight", 39).await;
        let second = text(&mut browser, "region-values").await;
        assert!(first.contains("p50") && first.contains("confidence") && first.contains("devices"), "{first}");
        assert_ne!(first, second);

        // The same one, by the pointer.
        let mark = "document.querySelector('.leaflet-mark-pane path').getBoundingClientRect()";
        let middle =
            browser.eval(&format!("(({{ x, y, width, height }}) => [x + width / 2, y + height / 2])({mark})")).await;
        browser.press("Escape", 27).await;
        assert!(text(&mut browser, "region-values").await.contains("None"));
        browser.click(middle[0].as_f64().expect("x"), middle[1].as_f64().expect("y")).await;
        assert_eq!(text(&mut browser, "region-values").await, second);

        // A route by the keyboard: points at the centre of the map.
        browser.eval("document.getElementById('draw').click()").await;
        browser.press("Enter", 13).await;
        for _ in 0..3 {
            browser.press("ArrowRight", 39).await;
            browser.eval("new Promise((done) => setTimeout(done, 300))").await;
        }
        browser.press("Enter", 13).await;
        browser.press("Escape", 27).await;
        browser.until("/[0-9.]+ km in [0-9]+:/.test(document.getElementById('route-note').innerText)").await;
        assert!(browser.eval("document.getElementById('forecast').hidden").await == false);
        browser.picture("desktop-route", false).await;
        browser.eval("document.getElementById('clear').click()").await;

        // A report is shown without a question: a place where nobody was.
        let before = browser.eval("Number(document.body.dataset.regions)").await.as_u64().expect("a count");
        let middle = service.city.at(1_000.0, 1_000.0);
        let free = |i: u32| middle.offset(f64::from(i) * 36.0, 80.0);
        for device in 100..103 {
            let updates =
                (0_u32..30).map(|i| Update { position: free(i % 10), ..service.ride(device)[i as usize].clone() });
            let updates = updates.collect();
            service.report(&format!("device {device}"), updates).await;
        }
        browser.until(&format!("Number(document.body.dataset.regions) > {before}")).await;
        browser.prefer("dark").await;
        browser.picture("desktop-dark", false).await;

        // From afar, one coarse region stands for all of them.
        browser.eval("document.getElementById('map').focus()").await;
        for _ in 0..14 {
            browser.press("-", 189).await;
        }
        browser.until("Number(document.body.dataset.regions) <= 3").await;
        browser.picture("desktop-world", false).await;
        assert!(browser.eval(NO_SIDEWAYS).await == true);
        assert_eq!(browser.complaints, Vec::<String>::new());
        service.running.stop().await;
    });
}

#[test]
fn a_ride_is_followed_beside_its_forecast_on_a_phone() {
    run(async {
        let profile = tempfile::tempdir().expect("a folder");
        let Some(mut browser) = Browser::start(profile.path(), &[]).await else {
            println!("{NO_BROWSER}");
            return;
        };
        let mut service = Service::start(40).await;
        // Without a key, the page asks for one.
        browser.prefer("light").await;
        browser.open(&format!("http://{}/", service.running.address), 390, 844).await;
        browser.until("document.getElementById('ask').open").await;
        assert!(browser.eval(NO_SIDEWAYS).await == true);
        browser.picture("phone-key", false).await;

        let ride = service.ride(1_000);
        let points: Vec<Position> = ride.iter().map(|u| u.position).collect();
        let length: f64 = points.windows(2).map(|p| p[0].distance_m(p[1])).sum();
        let speed = 3.6 * length / f64::from(LONG - 1);
        let fragment = format!("&route={}&speed={speed:.2}&poor=900&follow=bus", encode_polyline(points));
        browser.open("about:blank", 390, 844).await;
        browser.open(&service.address(&fragment.replace('`', "%60")), 390, 844).await;
        browser
            .until(
                "document.body.dataset.ready === 'yes' && document.getElementById('state').innerText.includes('live')",
            )
            .await;
        assert!(text(&mut browser, "route-note").await.contains("poor"));
        browser.eval("document.querySelector('#forecast details').open = true").await;
        let rows = text(&mut browser, "stretches").await.lines().count();
        assert!(rows >= 10, "{rows} stretches");

        // Its reports are beside the forecast.
        service.report("bus", ride[..120].to_vec()).await;
        browser.until("/Of [0-9]+ measurements/.test(document.getElementById('ride-note').innerText)").await;
        let drawn = "(() => {
            const canvas = document.querySelector('#chart canvas');
            const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
            let count = 0;
            for (let i = 0; i < data.length; i += 4) count += data[i + 3] > 0 && data[i] > 180 && data[i + 2] < 90;
            return count;
        })()";
        browser.eval("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))").await;
        let measured = browser.eval(drawn).await.as_u64().expect("a count");
        assert!(measured > 200, "{measured} pixels of the measured line");
        // Nothing is wider than the phone.
        assert!(
            browser.eval(NO_SIDEWAYS).await == true,
            "{}",
            browser.eval("document.documentElement.scrollWidth").await
        );
        browser.picture("phone", true).await;
        browser.size(1280, 800, false).await;
        browser.picture("desktop-ride", false).await;

        // Without a route, the sector ahead is foretold.
        browser.eval("document.getElementById('clear').click()").await;
        service.report("bus", ride[120..].to_vec()).await;
        browser.until("/Of [3-9][0-9] measurements/.test(document.getElementById('ride-note').innerText)").await;
        browser.picture("desktop-sector", false).await;
        assert_eq!(browser.complaints, Vec::<String>::new());
        service.running.stop().await;
    });
}
