//! Weir's controllers as senders to Chromium beside Chromium's own as a sender to Weir, each alone through one kind of link: 2 Mbit/s, 0.5,
//! 2, for 20 s each, 50 ms, a queue of 75,000 bytes; 10 Mbit/s and 50 ms the other way.
//!
//!     cargo run -p weir-peer --example chromium_link --features weir-codecs/vpx -- RUNS SENDER...
//!
//! A sender is a controller of Weir's, or `chromium`.

#[expect(dead_code, reason = "shared with tests of pages")]
#[path = "../../coverage/tests/page/browser.rs"]
mod browser;

use browser::Browser;
use std::fs::File;
use std::io::BufWriter;
use std::sync::Arc;
use weir_cc::{Limits, Registry};
use weir_media::clip::{Character, Clip, ClipSpec};
use weir_media::y4m::Y4mWriter;
use weir_media::{FrameRate, Picture, PictureSource, VideoCodec};
use weir_path::{Capacity, Limit, LinkConfig, Schedule, Step};
use weir_peer::call::{LinkPlan, LinkSample, Sample, Settings};
use weir_peer::server::{ClipConfig, ServerConfig, serve};
use weir_units::{DataRate, DataSize, TimeDelta};

/// Length of each step, s.
const STEP: f64 = 20.0;
const DELAY_MS: f64 = 50.0;
/// Of the pictures: as the page asks for.
const SIZE: (u32, u32) = (640, 360);

fn link() -> LinkConfig {
    let step = |n: i64, kbps| Step { at: TimeDelta::from_secs(n * STEP as i64), rate: DataRate::from_kbps(kbps) };
    let steps = Schedule::new(vec![step(0, 2_000), step(1, 500), step(2, 2_000)], None).expect("in order");
    let constant = LinkConfig::constant(DataRate::from_mbps(2), TimeDelta::from_millis_f64(DELAY_MS));
    let limit = Limit::Size(DataSize::from_bytes(75_000));
    LinkConfig { capacity: Capacity::Schedule(steps), limit, ..constant }
}

/// What the browser films: what Weir sends.
fn film(path: &std::path::Path, rate: FrameRate) {
    let mut clip = Clip::new(ClipSpec::new(Character::TalkingHead, SIZE.0, SIZE.1, rate)).expect("a clip");
    let mut writer = Y4mWriter::new(BufWriter::new(File::create(path).expect("a file")), SIZE, rate).expect("written");
    let mut picture = Picture::new(SIZE.0, SIZE.1).expect("a picture");
    for _ in 0..300 {
        assert!(clip.next_picture(&mut picture).expect("drawn"));
        writer.write(&picture).expect("written");
    }
    writer.finish().expect("written");
}

fn percentile(mut values: Vec<f64>, q: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let last = values.len().saturating_sub(1);
    values.get((last as f64 * q).round() as usize).copied().unwrap_or(f64::NAN)
}

/// One row: utilisation of each step in percent, queueing delay's median and 95th percentile, dropped, time to fall, time to recover.
fn row(name: &str, samples: &[Sample], of: impl Fn(&Sample) -> Option<LinkSample>) {
    let links: Vec<(f64, LinkSample)> = samples.iter().filter_map(|s| Some((s.t_s, of(s)?))).collect();
    let within = |from: f64, to: f64| links.iter().filter(move |(t, _)| (from..to).contains(t)).map(|(_, l)| l);
    let share = |n: f64| {
        let part = || within(n * STEP, (n + 1.0) * STEP);
        let sum = |f: &dyn Fn(&LinkSample) -> f64| part().map(f).sum::<f64>();
        100.0 * sum(&|l| l.delivered_bps) / sum(&|l| l.capacity_bps.unwrap_or(0.0)).max(1.0)
    };
    let queued: Vec<f64> =
        within(0.0, 3.0 * STEP).filter_map(|l| l.delay_ms).map(|d| (d - DELAY_MS).max(0.0)).collect();
    let dropped: u64 = within(0.0, 3.0 * STEP).map(|l| l.dropped).sum();
    // From the step down until the queue has been shorter than 100 ms for half a second.
    let low = links
        .windows(5)
        .find(|w| w[0].0 > STEP + 0.5 && w.iter().all(|(_, l)| l.delay_ms.is_none_or(|d| d < DELAY_MS + 100.0)));
    let fall = low.map_or(f64::NAN, |w| w[0].0 - STEP);
    // From the step up until a second's mean is 80 % of the capacity.
    let mean = |w: &[(f64, LinkSample)]| w.iter().map(|(_, l)| l.delivered_bps).sum::<f64>() / w.len() as f64;
    let high = links.windows(10).find(|w| w[0].0 >= 2.0 * STEP && mean(w) >= 1.6e6);
    let rise = high.map_or(f64::NAN, |w| w[9].0 - 2.0 * STEP);
    println!(
        "{name:<22} {:>5.0} {:>5.0} {:>5.0} {:>7.0} {:>7.0} {dropped:>7} {fall:>6.1} {rise:>6.1}",
        share(0.0),
        share(1.0),
        share(2.0),
        percentile(queued.clone(), 0.5),
        percentile(queued, 0.95),
    );
}

#[tokio::main]
async fn main() {
    let mut args = std::env::args().skip(1);
    let runs: u32 = args.next().and_then(|a| a.parse().ok()).unwrap_or(1);
    let controllers: Vec<String> = args.collect();
    let controllers = if controllers.is_empty() {
        ["gcc", "nada", "scream", "chromium"].map(String::from).to_vec()
    } else {
        controllers
    };
    let folder = tempfile::tempdir().expect("a folder");
    let rate: FrameRate = "30".parse().expect("a rate");
    let film_path = folder.path().join("film.y4m");
    film(&film_path, rate);
    let file = format!("--use-file-for-fake-video-capture={}", film_path.display());
    let switches = ["--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream", &file];
    println!(
        "{:<22} {:>5} {:>5} {:>5} {:>7} {:>7} {:>7} {:>6} {:>6}",
        "sender", "2", "0.5", "2", "q p50", "q p95", "dropped", "fall", "rise"
    );
    println!("{:<22} {:>5} {:>5} {:>5} {:>7} {:>7} {:>7} {:>6} {:>6}", "", "%", "%", "%", "ms", "ms", "", "s", "s");
    for run in 0..runs {
        for controller in &controllers {
            let limits = Limits { floor: DataRate::from_kbps(50), ceiling: DataRate::from_kbps(2_500) };
            let is_weir = controller != "chromium";
            let wide = LinkConfig::constant(DataRate::from_mbps(10), TimeDelta::from_millis_f64(DELAY_MS));
            let (forward, reverse) = if is_weir { (link(), wide) } else { (wide, link()) };
            let plan = LinkPlan { forward: vec![forward], reverse: vec![reverse], seed: u64::from(run) + 1 };
            let name = if is_weir { controller.clone() } else { "gcc".into() };
            let config = ServerConfig {
                listen: ([127, 0, 0, 1], 0).into(),
                media: None,
                token: None,
                settings: Settings { controller: name, limits },
                start_rate: DataRate::from_kbps(300),
                codec: VideoCodec::Vp8,
                clip: ClipConfig { character: Character::TalkingHead, size: SIZE, rate },
                link: Some(plan),
                limits: weir_peer::server::Limits::default(),
            };
            let service = serve(config, Arc::new(Registry::builtin())).await.expect("started");
            let profile = tempfile::tempdir().expect("a folder");
            let mut browser = Browser::start(profile.path(), &switches).await.expect("chromium");
            let way = if is_weir { "whep" } else { "whip" };
            browser.open(&format!("{}&way={way}", service.page()), 1280, 900).await;
            browser.until("document.body.dataset.ready === 'yes'").await;
            browser.eval("document.getElementById('call').click()").await;
            browser.until("Number(document.body.dataset.samples) > 0").await;
            // Fewer frames drawn: it is the network that is measured.
            browser.eval("document.querySelector('.videos').hidden = true").await;
            tokio::time::sleep(std::time::Duration::from_secs(61)).await;
            browser.picture(&format!("link-{controller}-{run}"), true).await;
            let (_, call) = service.calls().pop().expect("a call");
            row(controller, &call.samples, |s| if is_weir { s.link } else { s.link_back });
            let t = call.totals;
            eprintln!(
                "{controller}: {} frames sent, {} decoded here, {} retransmitted, {} recovered, {} stops",
                t.frames_sent, t.frames_decoded, t.retransmitted, t.recovered, t.media_stops
            );
            drop(browser);
            service.stop().await;
        }
    }
}
