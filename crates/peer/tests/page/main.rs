//! The page of a running service, in a browser with a made-up camera: pictures both ways.

mod ab;
#[path = "../../../coverage/tests/page/browser.rs"]
mod browser;
mod fec;
mod mutes;
mod rooms;
mod saves;

use browser::Browser;
use std::sync::Arc;
use weir_cc::{Limits, Registry};
use weir_media::VideoCodec;
use weir_media::clip::Character;
use weir_path::{LinkConfig, Loss};
use weir_peer::call::{LinkPlan, Settings};
use weir_peer::server::{ClipConfig, RunningServer, ServerConfig, serve};
use weir_units::{DataRate, TimeDelta};

const NO_BROWSER: &str = "skipped: no chromium on this machine";
const CAMERA: [&str; 3] = ["--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream", "--mute-audio"];
/// Share of packets lost in the second call, each way.
const LOSS: f64 = 0.04;
/// A service; its calls lose packets if wanted.
async fn service(codec: VideoCodec, loses: bool) -> RunningServer {
    serve(config(codec, loses), Arc::new(Registry::builtin())).await.expect("started")
}

fn config(codec: VideoCodec, loses: bool) -> ServerConfig {
    let limits = Limits { floor: DataRate::from_kbps(100), ceiling: DataRate::from_mbps(2) };
    let constant = LinkConfig::constant(DataRate::from_mbps(10), TimeDelta::from_millis(10));
    let lossy = LinkConfig { loss: Loss::Independent { share: LOSS }, ..constant };
    ServerConfig {
        listen: ([127, 0, 0, 1], 0).into(),
        media: None,
        token: None,
        settings: Settings { controller: "gcc".into(), limits },
        start_rate: DataRate::from_kbps(500),
        codec,
        clip: ClipConfig { character: Character::TalkingHead, size: (320, 180), rate: "30".parse().expect("a rate") },
        link: loses.then(|| LinkPlan {
            forward: vec![lossy.clone()],
            reverse: vec![lossy],
            seed: 3,
            network: Some(saves::network()),
        }),
        limits: weir_peer::server::Limits::default(),
    }
}

/// Pixels of a plot that are neither transparent nor grey: those of its lines.
fn coloured(plot: &str) -> String {
    format!(
        "(() => {{
            const canvas = document.querySelector('#{plot} canvas');
            const {{ data }} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
            let count = 0;
            for (let i = 0; i < data.length; i += 4) {{
                const [low, high] = [Math.min(data[i], data[i + 1], data[i + 2]), Math.max(data[i], data[i + 1], data[i + 2])];
                if (data[i + 3] > 150 && high - low > 60) count += 1;
            }}
            return count;
        }})()"
    )
}

async fn click(browser: &mut Browser, id: &str) {
    let place = format!(
        "(() => {{ const b = document.getElementById('{id}').getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; }})()"
    );
    let at: (f64, f64) = serde_json::from_value(browser.eval(&place).await).expect("a place");
    browser.click(at.0, at.1).await;
}

async fn choose(browser: &mut Browser, id: &str, value: &str) {
    let choice = format!(
        "(() => {{ const c = document.getElementById('{id}'); c.value = '{value}'; c.dispatchEvent(new Event('change')); }})()"
    );
    browser.eval(&choice).await;
}

async fn number(browser: &mut Browser, name: &str) -> f64 {
    browser.eval(&format!("Number(document.body.dataset.{name})")).await.as_f64().expect("a number")
}

/// Waits for this many further frames in both directions.
async fn frames_pass(browser: &mut Browser, count: f64) {
    let (decoded, seen) = (number(browser, "decoded").await, number(browser, "seen").await);
    browser.until(&format!("Number(document.body.dataset.decoded) > {decoded} + {count}")).await;
    browser.until(&format!("Number(document.body.dataset.seen) > {seen} + {count} / 2")).await;
}

/// One test at a time: each has browsers that encode and decode.
static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());

fn run(test: impl Future<Output = ()>) {
    let _turn = TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(test);
}

/// VP8 if it is built in, H.264 in any case.
fn codecs() -> Vec<(VideoCodec, &'static str)> {
    let has = |codec| weir_codecs::list().iter().any(|l| l.codec == codec && l.built_in);
    let both = [(VideoCodec::Vp8, "vp8"), (VideoCodec::H264, "h264")];
    both.into_iter().filter(|(codec, _)| has(*codec)).collect()
}

#[test]
fn pictures_go_both_ways_under_a_controller_that_changes() {
    run(async {
        let profile = tempfile::tempdir().expect("a folder");
        let Some(mut browser) = Browser::start(profile.path(), &CAMERA).await else {
            println!("{NO_BROWSER}");
            return;
        };
        let codecs = codecs();
        let (first, last) = (codecs[0], *codecs.last().expect("one at least"));
        for ((codec, name), loses) in [(first, false), (last, true)] {
            let service = service(codec, loses).await;
            call(&mut browser, &service, name, if loses { 160.0 } else { 40.0 }).await;
            let saved = match loses {
                true => Some(saves::are_whole(&mut browser, &config(codec, loses)).await),
                false => None,
            };
            click(&mut browser, "call").await;
            browser.until("document.body.dataset.idle === 'yes'").await;
            assert_eq!(browser.eval("document.getElementById('state').innerText").await, "Not in a call.");
            // Requests under way when it was pressed.
            browser.eval("new Promise((done) => setTimeout(done, 300))").await;
            if let Some((_folder, report)) = saved {
                // Also after the call.
                browser.eval("delete document.body.dataset.saved").await;
                click(&mut browser, "save-scenario").await;
                browser.until("document.body.dataset.saved?.includes('.toml')").await;
                saves::plots(&mut browser, &report).await;
            }
            check(service, loses).await;
        }
        assert_eq!(browser.complaints, Vec::<String>::new());
        restarts(&mut browser).await;
        fec::replaces_what_nobody_requests(&mut browser).await;
    });
}

/// The service is away and comes back: the page says so, and calls again.
async fn restarts(browser: &mut Browser) {
    let notice = |text: &str| format!("document.getElementById('notice').innerText.includes('{text}')");
    let again = |listen, token: &'static str| async move {
        let config = ServerConfig { listen, token: Some(token.into()), ..config(VideoCodec::H264, false) };
        serve(config, Arc::new(Registry::builtin())).await.expect("started")
    };
    let service = again(([127, 0, 0, 1], 0).into(), "first").await;
    let address = service.address;
    browser.open("about:blank", 1280, 900).await;
    browser.open(&format!("{}&way=whep&sound=off", service.page()), 1280, 900).await;
    browser.until("document.body.dataset.ready === 'yes'").await;
    assert_eq!(browser.eval("document.getElementById('sound').checked").await, false);
    click(browser, "call").await;
    browser.until("Number(document.body.dataset.decoded) > 10").await;
    service.stop().await;
    browser.until(&notice("The service does not answer: calling again.")).await;
    let service = again(address, "first").await;
    browser.until("Number(document.body.dataset.decoded) > 10 && document.getElementById('notice').hidden").await;
    assert_eq!(service.calls().len(), 1);
    service.stop().await;
    let service = again(address, "second").await;
    browser.until(&notice("started again with another token")).await;
    assert_eq!((service.calls().len(), browser.eval("document.body.dataset.idle").await), (0, "yes".into()));
    service.stop().await;
}

/// A call of this many further frames after the controller has changed.
async fn call(browser: &mut Browser, service: &RunningServer, codec: &str, count: f64) {
    browser.open("about:blank", 1280, 900).await;
    browser.open(&service.page(), 1280, 900).await;
    browser.until("document.body.dataset.ready === 'yes'").await;
    // The token has left the address.
    assert_eq!(browser.eval("location.hash").await, "");
    click(browser, "call").await;
    browser.until("Number(document.body.dataset.decoded) > 20").await;
    browser.until("Number(document.body.dataset.seen) > 10").await;
    assert!(number(browser, "encoded").await > 10.0);
    // Sound both ways, and what comes is no silence.
    browser.until("Number(document.body.dataset.heard) > 50 && Number(document.body.dataset.listened) > 50").await;
    browser.until("Number(document.body.dataset.energy) > 0").await;
    assert_eq!(browser.eval("document.getElementById('remote').videoWidth").await, 320);

    choose(browser, "controller", "scream").await;
    browser.until("document.body.dataset.controller === 'scream'").await;
    // ICE starts again within the call, as when the browser's network changes.
    browser.eval("dispatchEvent(new Event('online'))").await;
    browser.until("document.body.dataset.restarts === '1'").await;
    frames_pass(browser, count).await;
    for plot in ["rates", "delays", "losses"] {
        let count = browser.eval(&coloured(plot)).await.as_u64().expect("a number");
        assert!(count > 50, "{plot}: {count} pixels");
    }
    browser.picture(&format!("call-{codec}"), true).await;
}

async fn check(service: RunningServer, loses: bool) {
    // The restart of ICE was none of the call.
    assert_eq!(service.calls().len(), 1);
    let calls = service.stop().await;
    let calls: Vec<_> = calls.iter().map(|(_, c)| c).filter(|c| c.setup_ms.is_some()).collect();
    assert_eq!(calls.len(), 1);
    let call = calls[0];
    assert_eq!((call.controller.as_str(), call.state), ("scream", "ended"));
    let t = call.totals;
    assert!(t.frames_decoded > 30 && t.frames_sent > 60 && t.reported_received > 60, "{call:?}");
    assert!(t.refused < 20, "{t:?}");
    if loses {
        // NACK and RTX, in both directions.
        assert!(t.reported_lost > 0 && t.retransmitted > 0 && t.recovered > 0, "{t:?}");
        return;
    }
    assert!(t.frames_damaged < 5, "{t:?}");
    assert!(t.audio_sent > 50 && t.audio_decoded > 50 && t.audio_audible > 5, "{t:?}");
    // The browser's statistics of the same call, just before its end.
    let b = call.browser.expect("its numbers");
    let near = |own: u64, theirs: u64| own.abs_diff(theirs) < 20 + own / 5;
    assert!(
        near(t.packets_sent, b.packets_received + b.audio_packets_received)
            && near(t.packets_received, b.packets_sent + b.audio_packets_sent),
        "{t:?} {b:?}"
    );
    assert!(near(t.frames_sent, b.frames_decoded) && near(t.frames_decoded, b.frames_encoded), "{t:?} {b:?}");
}
