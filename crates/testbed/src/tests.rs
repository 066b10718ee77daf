//! Runs of a few seconds on a small link. They need namespaces, TUN devices and programs; without these they are
//! skipped with a message.

use super::*;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use weir_cc::Registry;
use weir_lab::run::{RunError, RunOptions};
use weir_lab::scenario::{Scenario, ScenarioFile};
use weir_live::netns::is_program;

const SMALL: &str = r#"
    title = "Small"
    duration = "5 s"
    [links.bottleneck]
    rate = "1 Mbps"
    delay = "20 ms"
    queue = "200 ms"
    [rtp.video]
    controller = "fixed"
    start_rate = "400 kbps"
    [tcp.bulk]
    algorithm = "cubic"
    start = "1 s"
    [udp.noise]
    rate = "100 kbps"
    payload = "200 B"
    start = "500 ms"
"#;

fn scenario(text: &str) -> Scenario {
    let registry = Registry::builtin();
    let file = ScenarioFile::parse("small", text, ".".as_ref(), &registry).expect("sound");
    file.scenario(None, file.controllers().first().map(String::as_str), &registry).expect("sound")
}

fn live(s: &Scenario, stop: &AtomicBool, captures: &[CaptureFile<'_>]) -> Option<Result<LiveRun, LiveError>> {
    let registry = Registry::builtin();
    let run = RunOptions { registry: &registry, series: true, stop, progress: &|_| {} };
    match run_live(s, 1, &LiveOptions { run, congestion: None, captures }) {
        Err(LiveError::Setup(e)) => {
            println!("skipped: {e}");
            None
        }
        other => Some(other),
    }
}

#[test]
fn packets_that_the_link_has_duplicated_count_once() {
    let s = scenario(
        "title = \"Copies\"\nduration = \"3 s\"\n[links.l]\nrate = \"1 Mbps\"\ndelay = \"20 ms\"\nduplicate = 0.5\n\
         [rtp.video]\ncontroller = \"fixed\"\nstart_rate = \"400 kbps\"\n",
    );
    let Some(run) = live(&s, &AtomicBool::new(false), &[]) else { return };
    let result = run.expect("ran").result;
    let packets = &result.flow("video").expect("there").packets;
    assert!(packets.sent > 50 && packets.received > 50, "{packets:?}");
    assert!(packets.received <= packets.sent, "{packets:?}");
}

#[test]
fn an_end_with_a_clock_of_its_own_runs_as_simulated() {
    // The receiver's clock gains 10 ms a second, and is set twice.
    let clock = "{ drift = \"10000 ppm\", steps = [{ at = \"1 s\", by = \"2 s\" }, { at = \"2 s\", by = \"-3 s\" }] }";
    let text = format!(
        "title = \"Clock\"\nduration = \"4 s\"\n[links.l]\nrate = \"1 Mbps\"\ndelay = \"20 ms\"\nqueue = \"200 ms\"\n\
         [rtp.video]\ncontroller = \"sluice\"\nstart_rate = \"400 kbps\"\nplayout_deadline = \"300 ms\"\n\
         clock.receiver = {clock}\n"
    );
    let s = scenario(&text);
    let never = AtomicBool::new(false);
    let Some(run) = live(&s, &never, &[]) else { return };
    let registry = Registry::builtin();
    let options = RunOptions { registry: &registry, series: false, stop: &never, progress: &|_| {} };
    let twin = weir_lab::run::run(&s, 1, &options).expect("sound");
    let of = |r: &weir_lab::results::RunResult| {
        let flow = r.flow("video").expect("there");
        (flow.rates.goodput_bps, flow.frames.expect("played"))
    };
    let ((live_bps, live), (bps, simulated)) = (of(&run.expect("ran").result), of(&twin));
    assert!(bps > 0.6e6 && (live_bps - bps).abs() < 0.15 * bps, "{live_bps}, simulated {bps}");
    assert!(simulated.played > 350 && live.played.abs_diff(simulated.played) < 40, "{live:?}, simulated {simulated:?}");
    assert_eq!((live.stalls, simulated.stalls), (0, 0), "no step of the clock stops playout");
}

#[test]
fn a_live_run_gives_what_a_simulated_one_gives() {
    let s = scenario(SMALL);
    let dir = tempfile::tempdir().expect("a folder");
    let file = |name: &str| dir.path().join(name);
    let (all, left, right) = (file("live.pcapng"), file("left.pcapng"), file("right.pcapng"));
    let never = AtomicBool::new(false);
    let points = [(CapturePoint::Entering, &all), (CapturePoint::Sender, &left), (CapturePoint::Receiver, &right)];
    let captures = points.map(|(at, path)| CaptureFile { at, path });
    let Some(run) = live(&s, &never, &captures) else { return };
    let run = run.expect("ran");
    let r = &run.result;
    let mark = r.live.as_ref().expect("marked as live");
    assert_eq!(r.duration_s, 5.0);
    assert!(mark.remarks.iter().any(|m| m.contains("cubic, by iperf3")), "{mark:?}");
    let names: Vec<&str> = r.flows.iter().map(|f| &f.name[..]).collect();
    assert_eq!(names, ["video", "bulk", "noise"]);
    let flow = |name: &str| r.flow(name).expect("there");
    // 400 kbit/s of media; packets are lost when TCP fills the queue.
    let video = flow("video");
    assert!((0.36e6..=0.44e6).contains(&video.rates.generated_bps), "{:?}", video.rates);
    assert!((0.2e6..=0.46e6).contains(&video.rates.received_bps), "{:?}", video.rates);
    let delay = video.one_way_delay_ms.expect("packets arrived");
    assert!(delay.min >= 20.0 && delay.max < 20.0 + 250.0, "{delay:?}");
    let noise = flow("noise").rates.sent_bps;
    assert!((0.08e6..=0.11e6).contains(&noise), "{noise}");
    // TCP uses the rest while it runs, for about 3 s of 4.
    assert!((0.15e6..=0.6e6).contains(&flow("bulk").rates.goodput_bps), "{:?}", flow("bulk").rates);
    let used: f64 = r.flows.iter().filter_map(|f| f.utilisation_goodput).sum();
    assert!(used > 0.5, "{used}");
    let queue = r.queue.as_ref().and_then(|q| q.delay_ms).expect("looked at");
    assert!(queue.max <= 230.0 && queue.p95 > 20.0, "{queue:?}");
    let series = r.series.as_ref().expect("asked for");
    assert_eq!((series.time_s.len(), series.flows.len()), (50, 3));
    // The bottleneck was saturated, and kept its rate.
    let ratio = mark.rate_ratio.expect("saturated");
    assert!((0.98..=1.02).contains(&ratio), "{ratio}");
    dissects(&all, run.captured[0]);
    // Each packet of media enters at one end, and leaves at the other one if the queue has not dropped it.
    let (sent, arrived) = (video.packets.sent, video.packets.received);
    assert_eq!(rtp(&left), Some(sent).filter(|_| is_program("tshark")));
    assert_eq!(rtp(&right), Some(arrived).filter(|_| is_program("tshark")));
}

/// RTP packets of a capture that carry media; `None` without tshark.
fn rtp(file: &std::path::Path) -> Option<u64> {
    is_program("tshark").then(|| dissected(file, "rtp"))
}

fn dissected(file: &std::path::Path, filter: &str) -> u64 {
    let out = Command::new("tshark").arg("-r").arg(file).args(["-Y", filter]).output().expect("tshark runs");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8_lossy(&out.stdout).lines().count() as u64
}

/// Every packet of the capture is dissected, down to RTP, RTCP and TCP.
fn dissects(file: &std::path::Path, packets: u64) {
    if !is_program("tshark") {
        return println!("skipped: no tshark on this machine (Debian package: tshark)");
    }
    let tshark = |filter: &str| dissected(file, filter);
    let (rtp, rtcp, tcp, noise) = (tshark("rtp"), tshark("rtcp"), tshark("tcp"), tshark("udp.port == 9"));
    assert!(rtp > 100 && rtcp >= 2 && tcp > 100 && noise > 50, "{rtp} {rtcp} {tcp} {noise}");
    // All packets, with one announcement (SAP) before them.
    assert_eq!((rtp + rtcp + tcp + noise, tshark("sap")), (packets, 1));
    assert_eq!(tshark("_ws.malformed || ip.checksum.status == 0"), 0);
}

/// A call with a real encoder.
const PICTURES: &str = r#"
    title = "Pictures"
    duration = "4 s"
    [links.bottleneck]
    rate = "1 Mbps"
    delay = "20 ms"
    queue = "200 ms"
    [rtp.video]
    controller = "fixed"
    source = { model = "encoder", codec = "H264", clip = "talking-head", picture = "176x144", fps = 15 }
    start_rate = "200 kbps"
    playout_deadline = "400 ms"
"#;

#[cfg(feature = "openh264")]
#[test]
fn pictures_of_a_real_encoder_are_shown() {
    let s = scenario(PICTURES);
    let never = AtomicBool::new(false);
    let Some(run) = live(&s, &never, &[]) else { return };
    let live = run.expect("ran").result;
    let registry = Registry::builtin();
    let options = RunOptions { registry: &registry, series: false, stop: &never, progress: &|_| {} };
    let simulated = weir_lab::run::run(&s, 1, &options).expect("ran");
    let quality = |r: &weir_lab::results::RunResult| r.flows[0].quality.expect("has pictures");
    let (q, twin) = (quality(&live), quality(&simulated));
    // 60 are captured; those of the last 400 ms are never due.
    assert!((55..=61).contains(&q.pictures) && (45..=60).contains(&q.shown), "{q:?}");
    // Nothing is lost, so that both ends have the quality of the encoder's rate.
    let (psnr, simulated_psnr) = (q.psnr_db.expect("compared").mean, twin.psnr_db.expect("compared").mean);
    assert!(psnr > 28.0 && (psnr - simulated_psnr).abs() < 3.0, "{psnr} {simulated_psnr}");
    let generated = live.flows[0].rates.generated_bps;
    assert!((0.1e6..=0.26e6).contains(&generated), "{generated}");
    let measured = live.series.as_ref().expect("asked for").flows[0].internals.iter().any(|i| i.0 == "psnr_db");
    assert!(measured, "the series lacks psnr_db");
    let difference = Difference::new("pictures", &live, &simulated);
    assert_eq!(difference.flows[0].psnr_db, (Some(psnr), Some(simulated_psnr)));
    assert!(difference.to_string().contains(&format!("PSNR {psnr:.1} / {simulated_psnr:.1}")), "{difference}");
}

/// DCCP with and without RTP.
const OVER_DCCP: &str = r#"
    title = "DCCP"
    duration = "5 s"
    [links.bottleneck]
    rate = "4 Mbps"
    delay = "10 ms"
    queue = "100 ms"
    [dccp.bulk]
    ccid = 2
    start = "500 ms"
    [dccp.steady]
    ccid = 3
    rate = "300 kbps"
    payload = "500 B"
    [rtp.video]
    controller = "ccid3"
    start_rate = "300 kbps"
    ceiling = "500 kbps"
"#;

#[test]
fn dccp_runs_live_beside_its_simulated_twin() {
    let s = scenario(OVER_DCCP);
    let never = AtomicBool::new(false);
    let Some(run) = live(&s, &never, &[]) else { return };
    let live = run.expect("ran").result;
    let registry = Registry::builtin();
    let options = RunOptions { registry: &registry, series: false, stop: &never, progress: &|_| {} };
    let twin = weir_lab::run::run(&s, 1, &options).expect("ran");
    let rates = |name: &str| {
        let of = |r: &weir_lab::results::RunResult| r.flow(name).expect("there").rates.received_bps;
        (of(&live), of(&twin))
    };
    // 4 Mbit/s less the others' rates, including a start-up.
    let (bulk, simulated) = rates("bulk");
    assert!((0.8e6..=3.9e6).contains(&bulk) && (0.8e6..=3.9e6).contains(&simulated), "{bulk} {simulated}");
    let (steady, simulated) = rates("steady");
    assert!((0.15e6..=0.32e6).contains(&steady) && (0.15e6..=0.32e6).contains(&simulated), "{steady} {simulated}");
    let (video, simulated) = rates("video");
    assert!((0.02e6..=0.55e6).contains(&video) && (0.02e6..=0.55e6).contains(&simulated), "{video} {simulated}");
    let rtt = live.flow("bulk").and_then(|f| f.rtt_ms).expect("measured");
    assert!((20.0..400.0).contains(&rtt), "{rtt}");
}

#[test]
fn base_stations_announce_their_capacity_to_both_ends() {
    let text = "title = \"Stations\"\nduration = \"6 s\"\ntopology = \"parking-lot\"\n[links.up]\ndelay = \"20 ms\"\n\
        rate.steps = [{ at = \"0 s\", rate = \"800 kbps\" }, { at = \"3 s\", rate = \"200 kbps\" }]\n\
        assist = { notifies = \"sender\" }\n[links.down]\nrate = \"500 kbps\"\ndelay = \"20 ms\"\n\
        assist = { notifies = \"receiver\" }\n[rtp.video]\ncontroller = \"tmmbr-a\"\n\
        source = { model = \"perfect-frames\", fps = 15 }\n";
    let s = scenario(text);
    let Some(run) = live(&s, &AtomicBool::new(false), &[]) else { return };
    let registry = Registry::builtin();
    let options = RunOptions { series: true, ..options(&registry).run };
    let simulated = weir_lab::run::run(&s, 1, &options).expect("ran");
    let mean = |result: &weir_lab::results::RunResult, from: f64, to: f64| {
        let series = result.series.as_ref().expect("kept");
        let rows = series.time_s.iter().zip(&series.flows[0].target_bps).filter(|(t, _)| (from..to).contains(*t));
        let inside: Vec<f64> = rows.map(|r| *r.1).collect();
        inside.iter().sum::<f64>() / inside.len() as f64
    };
    let live = run.expect("ran").result;
    // The receiver's station bounds the rate at first, the sender's from 3 s on, and at once.
    for (from, to, bound) in [(1.5, 3.0, 500e3), (3.2, 4.0, 200e3), (4.0, 6.0, 200e3)] {
        let (live, simulated) = (mean(&live, from, to), mean(&simulated, from, to));
        assert!(live <= bound && live > 0.6 * bound, "{live} bit/s from {from} s on");
        assert!((live - simulated).abs() < 0.1 * simulated, "{live} and {simulated} from {from} s on");
    }
}

#[test]
fn a_stop_ends_a_run_soon() {
    let s = scenario(SMALL);
    let stop = AtomicBool::new(false);
    let result = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(700));
            stop.store(true, Ordering::Relaxed);
        });
        live(&s, &stop, &[])
    });
    match result {
        None => {}
        Some(Err(LiveError::Run(e))) => match *e {
            RunError::Stopped { at } => assert!(at.as_secs_f64() < 4.5, "{at}"),
            other => panic!("{other}"),
        },
        Some(other) => panic!("{:?}", other.map(|r| r.result)),
    }
}

#[test]
fn what_cannot_run_live_is_reported() {
    let refused = |text: &str| match run_live(&scenario(text), 1, &options(&Registry::builtin())) {
        Err(LiveError::Cannot { what }) => what,
        other => panic!("{other:?}"),
    };
    let many = SMALL.replace("[tcp.bulk]", "[tcp.bulk]\n    count = 100");
    assert!(refused(&many).contains("102 flows"), "{}", refused(&many));
    let fast = SMALL.replace("1 Mbps", "1 Gbps");
    assert!(refused(&fast).contains("`bottleneck`") && refused(&fast).contains("weir run"), "{}", refused(&fast));
    let large = refused(&PICTURES.replace("176x144", "1280x720"));
    assert!(large.contains("1280x720 at 15 a second") && large.contains("smaller `picture`"), "{large}");
    let often = refused(&PICTURES.replace("176x144", "640x480").replace("fps = 15", "fps = 60"));
    assert!(often.contains("640x480 at 60 a second"), "{often}");
    let coarse = SMALL.replace("start_rate", "clock.sender = { granularity = \"4 ms\" }\n    start_rate");
    assert!(refused(&coarse).contains("`granularity`"), "{}", refused(&coarse));
    let calls = refused(&PICTURES.replace("[rtp.video]", "[rtp.video]\n    count = 40").replace("176x144", "1024x576"));
    assert!(calls.contains("cores"), "{calls}");
}

fn options(registry: &Registry) -> LiveOptions<'_> {
    static NEVER: AtomicBool = AtomicBool::new(false);
    let run = RunOptions { registry, series: false, stop: &NEVER, progress: &|_| {} };
    LiveOptions { run, congestion: None, captures: &[] }
}
