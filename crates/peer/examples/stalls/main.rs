//! Calls through stalls as of Wi-Fi: live to Chromium, live between Weir's own ends (testbed), and simulated with either receiver.
//!
//!     cargo run --release -p weir-peer --example stalls --features weir-lab/vpx -- [CONTROLLER...] [--only PLACE] [--h264]
//!
//! The link carries 4 Mbit/s, and from 12 s on nothing for 250 ms in each 1.5 s. Five controllers if none is named; places are chromium, testbed,
//! weir and chromium-model, all if none is named. A row for each controller: goodput from 12 s to the end in kbit/s at each place, and what
//! Chromium says of the live call. The testbed takes the privilege to make network namespaces.
//! Folder for the samples of live calls: `WEIR_KEEP_LINK`.

#[expect(dead_code, reason = "shared with tests of pages")]
#[path = "../../../coverage/tests/page/browser.rs"]
mod browser;

use browser::Browser;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use weir_cc::{Limits, Registry};
use weir_lab::results::RunResult;
use weir_lab::run::{RunOptions, run};
use weir_lab::scenario::{Scenario, ScenarioFile};
use weir_media::clip::Character;
use weir_media::{FrameRate, VideoCodec};
use weir_peer::call::{LinkPlan, Settings, Snapshot};
use weir_peer::server::{ClipConfig, ServerConfig, serve};
use weir_testbed::{LiveOptions, emulated_path, run_live};
use weir_units::DataRate;

const CONTROLLERS: [&str; 5] = ["sluice", "gcc", "nada", "scream2", "tfrc"];
const PLACES: [&str; 4] = ["chromium", "testbed", "weir", "chromium-model"];
/// Length of a call, and its time before the first stall, s.
const LENGTH: u32 = 60;
const STEADY: u32 = 12;
/// Between the begins of two stalls, and how long one is, s.
const PERIOD: f64 = 1.5;
const STALL: f64 = 0.25;
/// Pictures: those of the page.
const SIZE: (u32, u32) = (640, 360);
/// Bounds of the media rate and its first value, kbit/s.
const RATES: (u64, u64, u64) = (50, 2_500, 500);

fn scenario_text(codec: VideoCodec, controllers: &[String]) -> String {
    let stalls = (0..).map(|n| f64::from(STEADY) + f64::from(n) * PERIOD).take_while(|at| *at < f64::from(LENGTH));
    let step = |at: f64, rate: u32| format!("{{ at = \"{at} s\", rate = \"{rate} Mbps\" }}");
    let steps: Vec<String> = stalls.flat_map(|at| [step(at, 0), step(at + STALL, 4)]).collect();
    let ((least, most, first), (width, height)) = (RATES, SIZE);
    let compared = controllers.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ");
    format!(
        r#"
        title = "Stalls as of Wi-Fi"
        duration = "{LENGTH} s"
        compare = [{compared}]
        [links.bottleneck]
        delay = "20 ms"
        queue = "300 ms"
        rate.steps = [{{ at = "0 s", rate = "4 Mbps" }}, {}]
        [rtp.video]
        controller = "$controller"
        floor = "{least} kbps"
        start_rate = "{first} kbps"
        ceiling = "{most} kbps"
        payload = "1150 B"
        playout_deadline = "2 s"
        source = {{ model = "encoder", codec = "{codec}", clip = "talking-head", picture = "{width}x{height}", fps = 30 }}
        [[windows]]
        name = "stalls"
        from = "{STEADY} s"
        to = "{LENGTH} s"
        [[variants]]
        name = "weir"
        [[variants]]
        name = "chromium-model"
        rtp.video.receiver = "chromium"
        "#,
        steps.join(", ")
    )
}

/// Load of the machine in the last minute.
fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or_default().to_owned()
}

/// Goodput during the stalls, kbit/s.
fn goodput(result: &RunResult) -> Option<f64> {
    Some(result.window("stalls")?.flows.first()?.goodput_bps / 1e3)
}

/// RTP sent during the stalls, kbit/s: the link loses nothing of it unless its queue is full.
fn sent(call: &Snapshot) -> Option<f64> {
    let begin = call.samples.first()?.t_s + f64::from(STEADY);
    let during: Vec<f64> = call.samples.iter().filter(|s| s.t_s >= begin).map(|s| s.sent_bps / 1e3).collect();
    (!during.is_empty()).then(|| during.iter().sum::<f64>() / during.len() as f64)
}

fn keep(controller: &str, call: &Snapshot) {
    let Some(folder) = std::env::var_os("WEIR_KEEP_LINK").map(std::path::PathBuf::from) else { return };
    let text = serde_json::to_string(call).expect("JSON");
    std::fs::write(folder.join(format!("{controller}.json")), text).expect("written");
}

async fn live(controller: &str, codec: VideoCodec, scenario: &Scenario) -> Option<Snapshot> {
    let path = emulated_path(scenario, scenario.seed);
    let route = path.flows.first()?;
    let links = |ids: &[usize]| ids.iter().map(|&n| path.links[n].1.clone()).collect();
    let plan =
        LinkPlan { forward: links(&route.forward), reverse: links(&route.reverse), seed: path.seed, network: None };
    let (least, most, first) = RATES;
    let limits = Limits { floor: DataRate::from_kbps(least), ceiling: DataRate::from_kbps(most) };
    let rate: FrameRate = "30".parse().expect("a rate");
    let config = ServerConfig {
        listen: ([127, 0, 0, 1], 0).into(),
        media: None,
        token: None,
        settings: Settings { controller: controller.into(), limits },
        start_rate: DataRate::from_kbps(first),
        codec,
        clip: ClipConfig { character: Character::TalkingHead, size: SIZE, rate },
        link: Some(plan),
        limits: weir_peer::server::Limits::default(),
    };
    let service = serve(config, Arc::new(Registry::builtin())).await.expect("started");
    let profile = tempfile::tempdir().expect("a folder");
    let switches = ["--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream", "--mute-audio"];
    let mut browser = Browser::start(profile.path(), &switches).await?;
    browser.open(&format!("{}&way=whep&sound=off", service.page()), 1280, 900).await;
    browser.until("document.body.dataset.ready === 'yes'").await;
    browser.eval("document.getElementById('call').click()").await;
    browser.until("Number(document.body.dataset.samples) > 0").await;
    tokio::time::sleep(Duration::from_secs(u64::from(LENGTH))).await;
    let (_, call) = service.calls().pop()?;
    drop(browser);
    service.stop().await;
    keep(controller, &call);
    Some(call)
}

/// Chromium's own numbers: freezes, and frames decoded a second.
fn said(call: &Snapshot) -> String {
    let Some(b) = call.browser else { return "none".into() };
    let frames = b.frames_decoded as f64 / f64::from(LENGTH);
    format!("{} freezes, {frames:.0} frames/s, {} lost", b.freezes, b.packets_lost)
}

fn main() {
    let (mut controllers, mut only, mut codec) = (Vec::new(), None, VideoCodec::Vp8);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--only" => only = arguments.next().filter(|place| PLACES.contains(&place.as_str())),
            "--h264" => codec = VideoCodec::H264,
            name => controllers.push(name.to_owned()),
        }
    }
    if controllers.is_empty() {
        controllers = CONTROLLERS.map(String::from).to_vec();
    }
    let has = |place: &str| only.as_ref().is_none_or(|o| o == place);
    let registry = Registry::builtin();
    let file =
        ScenarioFile::parse("stalls", &scenario_text(codec, &controllers), Path::new("."), &registry).expect("sound");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.expect("a runtime");
    let never = AtomicBool::new(false);
    let options = RunOptions { registry: &registry, series: false, stop: &never, progress: &|_| {} };
    println!("| controller | Chromium | testbed | simulated, Weir | simulated, Chromium | Chromium's numbers | load |");
    println!("|---|---|---|---|---|---|---|");
    for controller in &controllers {
        let with = |variant| file.scenario(Some(variant), Some(controller), &registry).expect("a scenario");
        let (own, model) = (with("weir"), with("chromium-model"));
        let call = has("chromium").then(|| runtime.block_on(live(controller, codec, &own))).flatten();
        let at_load = load();
        let testbed = has("testbed").then(|| {
            let options = LiveOptions { run: options, congestion: None, captures: &[] };
            match run_live(&own, own.seed, &options) {
                Ok(live) => goodput(&live.result),
                Err(e) => {
                    eprintln!("testbed: {e}");
                    None
                }
            }
        });
        let simulated = |place, scenario: &Scenario| {
            has(place).then(|| goodput(&run(scenario, scenario.seed, &options).expect("a run"))).flatten()
        };
        let rates = [
            call.as_ref().and_then(sent),
            testbed.flatten(),
            simulated("weir", &own),
            simulated("chromium-model", &model),
        ];
        let cells: Vec<String> = rates.iter().map(|r| r.map_or("-".into(), |r| format!("{r:.0}"))).collect();
        let said = call.as_ref().map_or("-".into(), said);
        println!("| {controller} | {} | {said} | {at_load} |", cells.join(" | "));
    }
    let libraries = weir_codecs::list().into_iter().filter(|l| l.codec == codec && l.built_in);
    let libraries: Vec<String> = libraries.map(|l| format!("{} {}", l.name, l.version)).collect();
    println!("\n{codec} by {}", libraries.join(", "));
}
