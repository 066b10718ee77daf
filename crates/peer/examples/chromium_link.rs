//! Weir's controllers as senders to Chromium beside Chromium's own as a sender to Weir, each alone through one kind of link: 2 Mbit/s, 0.5,
//! 2, for 20 s each, 50 ms, a queue of 75,000 bytes; 10 Mbit/s and 50 ms the other way.
//!
//!     cargo run -p weir-peer --example chromium_link --features weir-codecs/vpx -- RUNS SENDER...
//!
//! A sender is a controller of Weir's, also with a parameter (`gcc:congestion_window=350`), or `chromium`. After a row for each run, which ends with the machine's load, follow the medians of each
//! sender. Folder for the samples of each run: `WEIR_KEEP_LINK`.

#[expect(dead_code, reason = "shared with tests of pages")]
#[path = "../../coverage/tests/page/browser.rs"]
mod browser;

use browser::Browser;
use std::fs::File;
use std::io::BufWriter;
use std::sync::Arc;
use weir_cc::{Limits, Registry, Setup};
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

/// Picture that the browser films, the one that Weir sends.
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

/// Measures of a run, in the order of [`COLUMNS`].
type Row = [f64; COLUMNS.len()];

/// Of each step: delivered, the sender's target (Weir's alone), both in percent of the capacity. Then the queueing delay's median and 95th
/// percentile, packets dropped, times to fall and to recover, frames coded by the sender.
const COLUMNS: [(&str, &str); 12] = [
    ("2", "%"),
    ("0.5", "%"),
    ("2", "%"),
    ("target", "%"),
    ("target", "%"),
    ("target", "%"),
    ("q p50", "ms"),
    ("q p95", "ms"),
    ("lost", ""),
    ("fall", "s"),
    ("rise", "s"),
    ("frames", ""),
];

/// Time since the link began, target, and what the link did.
type Linked = (f64, Option<f64>, LinkSample);

fn judge(samples: &[Sample], frames: u64, is_weir: bool) -> Row {
    let of = |s: &Sample| if is_weir { s.link } else { s.link_back };
    let links: Vec<Linked> = samples.iter().filter_map(|s| Some((s.t_s, s.target_bps, of(s)?))).collect();
    let begin = links.first().map_or(0.0, |l| l.0);
    let links: Vec<_> = links.into_iter().map(|(t, target, l)| (t - begin, target, l)).collect();
    let within = |from: f64, to: f64| links.iter().filter(move |(t, ..)| (from..to).contains(t));
    let share = |n: f64, f: &dyn Fn(&Linked) -> f64| {
        let part = || within(n * STEP, (n + 1.0) * STEP);
        100.0 * part().map(f).sum::<f64>() / part().map(|l| l.2.capacity_bps.unwrap_or(0.0)).sum::<f64>().max(1.0)
    };
    let delivered = |n| share(n, &|l| l.2.delivered_bps);
    let target = |n| if is_weir { share(n, &|l| l.1.unwrap_or(0.0)) } else { f64::NAN };
    let all = || within(0.0, 3.0 * STEP).map(|l| l.2);
    let queued: Vec<f64> = all().filter_map(|l| l.delay_ms).map(|d| (d - DELAY_MS).max(0.0)).collect();
    // From the step down until the queue has been shorter than 100 ms for half a second.
    let is_short = |l: &Linked| l.2.delay_ms.is_none_or(|d| d < DELAY_MS + 100.0);
    let low = links.windows(5).find(|w| w[0].0 > STEP + 0.5 && w.iter().all(is_short));
    // From the step up until a second's mean is 80 % of the capacity.
    let mean = |w: &[Linked]| w.iter().map(|l| l.2.delivered_bps).sum::<f64>() / w.len() as f64;
    let high = links.windows(10).find(|w| w[0].0 >= 2.0 * STEP && mean(w) >= 1.6e6);
    [
        delivered(0.0),
        delivered(1.0),
        delivered(2.0),
        target(0.0),
        target(1.0),
        target(2.0),
        percentile(queued.clone(), 0.5),
        percentile(queued, 0.95),
        all().map(|l| l.dropped).sum::<u64>() as f64,
        low.map_or(f64::NAN, |w| w[0].0 - STEP),
        high.map_or(f64::NAN, |w| w[9].0 - 2.0 * STEP),
        frames as f64,
    ]
}

fn show(name: &str, row: &Row, note: &str) {
    print!("{name:<26}");
    for (value, (_, unit)) in row.iter().zip(COLUMNS) {
        match (value.is_nan(), unit) {
            (true, _) => print!(" {:>6}", "-"),
            (_, "s") => print!(" {value:>6.1}"),
            _ => print!(" {value:>6.0}"),
        }
    }
    println!(" {note}");
}

/// The controller of a sender, and a registry in which it has the sender's parameter.
fn controller(sender: &str) -> (String, Registry) {
    let mut registry = Registry::builtin();
    let Some((name, set)) = sender.split_once(':') else { return (sender.into(), registry) };
    let (param, value) = set.split_once('=').expect("NAME:PARAMETER=VALUE");
    let set = (param.to_owned(), value.parse().expect("a number"));
    let (spec, plain) = (registry.get(name).expect("a controller").clone(), registry.clone());
    registry.register(spec, move |name, setup| {
        plain.make(name, &Setup { params: setup.params.iter().cloned().chain([set.clone()]).collect(), ..*setup })
    });
    (name.into(), registry)
}

/// Load of the machine in the last minute.
fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or_default().to_owned()
}

/// The samples of a run, for a plot.
fn keep(name: &str, samples: &[Sample]) {
    let Some(folder) = std::env::var_os("WEIR_KEEP_LINK").map(std::path::PathBuf::from) else { return };
    let text = serde_json::to_string(samples).expect("JSON");
    std::fs::write(folder.join(format!("{name}.json")), text).expect("written");
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
    let head = |part: fn((&'static str, &'static str)) -> &'static str| {
        print!("{:<26}", "");
        COLUMNS.iter().for_each(|c| print!(" {:>6}", part(*c)));
    };
    head(|c| c.0);
    println!(" load");
    head(|c| c.1);
    println!();
    let mut rows: Vec<(String, Vec<Row>)> = controllers.iter().map(|c| (c.clone(), Vec::new())).collect();
    for run in 0..runs {
        for (controller, rows) in &mut rows {
            let limits = Limits { floor: DataRate::from_kbps(50), ceiling: DataRate::from_kbps(2_500) };
            let is_weir = controller != "chromium";
            let wide = LinkConfig::constant(DataRate::from_mbps(10), TimeDelta::from_millis_f64(DELAY_MS));
            let (forward, reverse) = if is_weir { (link(), wide) } else { (wide, link()) };
            let plan =
                LinkPlan { forward: vec![forward], reverse: vec![reverse], seed: u64::from(run) + 1, network: None };
            let (name, registry) = self::controller(if is_weir { controller } else { "gcc" });
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
            let service = serve(config, Arc::new(registry)).await.expect("started");
            let profile = tempfile::tempdir().expect("a folder");
            let mut browser = Browser::start(profile.path(), &switches).await.expect("chromium");
            let way = if is_weir { "whep" } else { "whip" };
            browser.open(&format!("{}&way={way}&sound=off", service.page()), 1280, 900).await;
            browser.until("document.body.dataset.ready === 'yes'").await;
            browser.eval("document.getElementById('call').click()").await;
            browser.until("Number(document.body.dataset.samples) > 0").await;
            // Fewer frames drawn: it is the network that is measured.
            browser.eval("document.querySelector('.videos').hidden = true").await;
            tokio::time::sleep(std::time::Duration::from_secs(61)).await;
            browser.picture(&format!("link-{controller}-{run}"), true).await;
            let (_, call) = service.calls().pop().expect("a call");
            let t = call.totals;
            let browser_frames = call.browser.map_or(0, |b| b.frames_encoded);
            let row = judge(&call.samples, if is_weir { t.frames_sent } else { browser_frames }, is_weir);
            keep(&format!("{controller}-{run}"), &call.samples);
            show(controller, &row, &load());
            rows.push(row);
            eprintln!(
                "{controller}: {} frames sent, {} decoded here, {} key frame requests, {} retransmitted, {} recovered, {} stops",
                t.frames_sent, t.frames_decoded, t.key_frame_requests, t.retransmitted, t.recovered, t.media_stops
            );
            drop(browser);
            service.stop().await;
        }
    }
    println!("medians");
    for (controller, rows) in rows {
        let of = |n: usize| percentile(rows.iter().map(|r| r[n]).collect(), 0.5);
        show(&controller, &std::array::from_fn(of), "");
    }
}
