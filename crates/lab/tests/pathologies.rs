//! Ordinary calls in which controllers have failed, over every controller for general use.

use std::sync::atomic::AtomicBool;
use weir_cc::{Registry, Shelf};
use weir_lab::results::{FlowSummary, RunResult};
use weir_lab::run::{RunOptions, run};
use weir_lab::scenario::ScenarioFile;

/// Runs each variant of a scenario under each controller, and checks each against the same controller's run of the variant `none`.
fn each(name: &str, check: impl Fn(&str, &str, &RunResult, &RunResult)) {
    let (registry, stop) = (Registry::builtin(), AtomicBool::new(false));
    let file = ScenarioFile::open(name, &registry).unwrap_or_else(|e| panic!("{e}"));
    let all: Vec<_> =
        registry.specs().filter(|s| s.shelf == Shelf::Algorithms && s.adapts).map(|s| s.name.clone()).collect();
    assert!(all.len() >= 8, "{all:?}");
    let options = RunOptions { registry: &registry, series: false, stop: &stop, progress: &|_| {} };
    for controller in all {
        let variants =
            file.scenarios(Some(std::slice::from_ref(&controller)), &registry).unwrap_or_else(|e| panic!("{e}"));
        let results = variants.iter().map(|s| {
            let result = run(s, s.seed, &options).expect("runs");
            (s.variant.clone().unwrap_or_default(), result)
        });
        let results: Vec<_> = results.collect();
        let undisturbed = &results.iter().find(|r| r.0 == "none").expect("a run without").1;
        for (variant, result) in &results {
            check(&controller, variant, result, undisturbed);
        }
    }
}

/// Goodput in a window in kbit/s, and the mean queueing delay of the link in ms.
fn window(result: &RunResult, label: &str) -> (f64, f64) {
    let w = result.window(label).expect("a window");
    (w.flows[0].goodput_bps / 1e3, w.queue_delay_ms[0].unwrap_or(0.0))
}

/// A window's goodput is at least this share of the same window without the disturbance, and the queue no longer by more than `more_ms`.
fn is_as_without(who: &str, label: &str, runs: (&RunResult, &RunResult), least: f64, more_ms: f64) {
    let ((rate, queue), (right, short)) = (window(runs.0, label), window(runs.1, label));
    eprintln!("{who}, {label}: {rate:.0} of {right:.0} kbit/s, queue {queue:.1} ms, {short:.1} without");
    assert!((least * right..=2_010.0).contains(&rate), "{who}, {label}: {rate:.0} of {right:.0} kbit/s");
    assert!((0.0..=short + more_ms).contains(&queue), "{who}, {label}: {queue:.1} ms, {short:.1} without");
}

/// Runs a scenario without variants under each controller for general use.
fn each_alone(name: &str, check: impl Fn(&str, &FlowSummary)) {
    let (registry, stop) = (Registry::builtin(), AtomicBool::new(false));
    let file = ScenarioFile::open(name, &registry).unwrap_or_else(|e| panic!("{e}"));
    let options = RunOptions { registry: &registry, series: false, stop: &stop, progress: &|_| {} };
    for spec in registry.specs().filter(|s| s.shelf == Shelf::Algorithms && s.adapts) {
        let controller = std::slice::from_ref(&spec.name);
        let scenario = file.scenarios(Some(controller), &registry).unwrap_or_else(|e| panic!("{e}")).remove(0);
        check(&spec.name, &run(&scenario, scenario.seed, &options).expect("runs").flows[0]);
    }
}

#[test]
fn no_frame_waits_at_the_ceiling() {
    each_alone("pathologies/at-the-ceiling", |controller, flow| {
        let frames = flow.frames.as_ref().expect("frames");
        let delay = frames.delay_ms.expect("complete frames");
        eprintln!("{controller}: frame delay {:.0} ms, p95 {:.0} ms, {} late", delay.mean, delay.p95, frames.late);
        // 20 ms of path, a frame's own time, and two frame intervals.
        assert!((20.0..=70.0).contains(&delay.p50) && (20.0..=150.0).contains(&delay.p95), "{controller}: {delay:?}");
        assert!(frames.late == 0 && frames.played >= 3_500, "{controller}: {frames:?}");
        assert!((1.85e6..=2.1e6).contains(&flow.rates.goodput_bps), "{controller}: {} bit/s", flow.rates.goodput_bps);
    });
}

#[test]
fn a_mute_costs_nothing_after_it() {
    each("pathologies/mute", |controller, variant, result, undisturbed| {
        let who = format!("{controller} with {variant}");
        let ((first, _), (right, _)) = (window(result, "first second"), window(undisturbed, "first second"));
        eprintln!("{who}: {first:.0} of {right:.0} kbit/s in the first second");
        // TFRC begins again below the old rate (RFC 5348, section 4.3), BBR on an empty path.
        let least = if matches!(controller, "bbr-rtc" | "tfrc") { 0.35 } else { 0.8 };
        assert!((least * right..=1.2 * right).contains(&first), "{who}: {first:.0} of {right:.0} kbit/s");
        is_as_without(&who, "after", (result, undisturbed), 0.95, 40.0);
        let frames = result.flows[0].frames.as_ref().expect("frames");
        assert!(frames.late == 0 && frames.played >= 2_350, "{who}: {frames:?}");
    });
}

#[test]
fn sound_and_pictures_are_back_within_a_second_of_a_mute() {
    let (registry, stop) = (Registry::builtin(), AtomicBool::new(false));
    let file = ScenarioFile::open("pathologies/mute-and-playout", &registry).unwrap_or_else(|e| panic!("{e}"));
    let options = RunOptions { registry: &registry, series: false, stop: &stop, progress: &|_| {} };
    let mut wrong = vec![];
    let scenarios = file.scenarios(None, &registry).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(scenarios.len(), 40);
    for s in scenarios {
        let result = run(&s, s.seed, &options).expect("runs");
        let flow = &result.flows[0];
        let who = format!("{}, {}", flow.controller, s.variant.as_deref().unwrap_or_default());
        let of = |name: &str| flow.streams.iter().find(|s| s.name == name).expect("a stream");
        let silence = of("microphone").longest_silence_s.expect("sound");
        let frames = of("camera").frames.expect("pictures");
        eprintln!("{who}: {silence:.2} s without sound, {:.2} s without pictures", frames.longest_stall_s);
        let concealed = of("microphone").concealed.unwrap_or(1.0);
        // 40 s of 30 frames and of sound; the first 10 s of silence are concealed. Adaptive playout has the delay to save.
        let fine = (19.5..=21.0).contains(&silence)
            && (19.5..=21.0).contains(&frames.longest_stall_s)
            && (1_150..=1_200).contains(&frames.played)
            && (0.19..=0.23).contains(&concealed);
        if !fine {
            wrong.push(format!("{who}: {silence:.2} s, {concealed:.3} concealed, {frames:?}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_clock_that_drifts_is_no_queue() {
    each("pathologies/clock-drift", |controller, variant, result, undisturbed| {
        let who = format!("{controller} with {variant}");
        is_as_without(&who, "last two minutes", (result, undisturbed), 0.9, 70.0);
    });
}

#[test]
fn a_clock_that_is_set_is_no_queue() {
    each("pathologies/clock-step", |controller, variant, result, undisturbed| {
        let who = format!("{controller} with {variant}");
        for label in ["before", "ahead", "back"] {
            is_as_without(&who, label, (result, undisturbed), 0.9, 40.0);
        }
    });
}

#[test]
fn a_coarse_clock_costs_little() {
    each("pathologies/coarse-clock", |controller, variant, result, undisturbed| {
        let who = format!("{controller} with {variant}");
        is_as_without(&who, "last minute", (result, undisturbed), 0.9, 30.0);
    });
}

#[test]
fn a_browser_that_reports_seldom_through_stalls_costs_little() {
    each("pathologies/browser-stalls", |controller, variant, result, undisturbed| {
        let ((rate, queue), (own, _)) = (window(result, "last minute"), window(undisturbed, "last minute"));
        eprintln!("{controller}, {variant}: {rate:.0} kbit/s, queue {queue:.1} ms, {own:.0} kbit/s to Weir's receiver");
        if variant == "chromium" {
            assert!((1_400.0..=2_600.0).contains(&rate) && rate >= 0.85 * own, "{controller}: {rate:.0} of {own:.0}");
            assert!((10.0..=80.0).contains(&queue), "{controller}: {queue:.1} ms");
        }
    });
}

#[test]
fn a_longer_path_is_no_queue() {
    each("pathologies/longer-path", |controller, variant, result, undisturbed| {
        let who = format!("{controller} with {variant}");
        is_as_without(&who, "before", (result, undisturbed), 0.99, 1.0);
        // BBR's window is of twice the bandwidth-delay product, and follows the path.
        let more_ms = if controller == "bbr-rtc" { 220.0 } else { 70.0 };
        is_as_without(&who, "after", (result, undisturbed), 0.9, more_ms);
    });
}

/// Runs a scenario under each of these controllers.
fn under(name: &str, controllers: &[&str], check: impl Fn(&str, &FlowSummary, f64)) {
    let (registry, stop) = (Registry::builtin(), AtomicBool::new(false));
    let file = ScenarioFile::open(name, &registry).unwrap_or_else(|e| panic!("{e}"));
    let controllers: Vec<String> = controllers.iter().map(|&c| c.to_owned()).collect();
    let options = RunOptions { registry: &registry, series: false, stop: &stop, progress: &|_| {} };
    for s in file.scenarios(Some(&controllers), &registry).unwrap_or_else(|e| panic!("{e}")) {
        let result = run(&s, s.seed, &options).expect("runs");
        let flow = &result.flows[0];
        check(&flow.controller, flow, result.duration_s);
    }
}

#[cfg(feature = "openh264")]
#[test]
fn key_frames_do_not_take_a_slow_link() {
    under("pathologies/slow-link-key-frames", &["gcc", "nada", "scream2", "sluice"], |who, flow, seconds| {
        let (coded, quality) = (flow.coded.as_ref().expect("frames"), flow.quality.as_ref().expect("pictures"));
        let a_minute = coded.key as f64 / seconds * 60.0;
        eprintln!(
            "{who}: {} key frames, {:.1} s frozen, {} of {} shown",
            coded.key, quality.frozen_s, quality.shown, quality.pictures
        );
        // Without limits: 89 to 95 key frames a minute, and 61 to 64 s frozen. NADA overruns this link each 5 to 6 s until packets are
        // lost, whatever is sent.
        let (most, most_s) = if who == "nada" { (27.0, 18.0) } else { (4.0, 4.0) };
        assert!((0.5..=most).contains(&a_minute), "{who}: {a_minute} key frames a minute");
        assert!((0.0..=most_s).contains(&quality.frozen_s), "{who}: {} s frozen", quality.frozen_s);
    });
}

#[cfg(feature = "openh264")]
#[test]
fn the_first_picture_leaves() {
    let all = ["gcc", "gcc-scream2", "nada", "scream", "scream2", "sluice"];
    under("pathologies/first-picture", &all, |who, flow, _| {
        let quality = flow.quality.as_ref().expect("pictures");
        eprintln!("{who}: {} of {} shown, {:.1} s frozen", quality.shown, quality.pictures, quality.frozen_s);
        // One in the first second, and then nearly all.
        assert!((585..=600).contains(&quality.shown), "{who}: {} shown", quality.shown);
        assert!((0.0..=1.0).contains(&quality.frozen_s), "{who}: {} s frozen", quality.frozen_s);
    });
}

#[test]
fn layers_that_fit_are_sent() {
    let (registry, stop) = (Registry::builtin(), AtomicBool::new(false));
    let file = ScenarioFile::open("pathologies/layers", &registry).unwrap_or_else(|e| panic!("{e}"));
    let options = RunOptions { registry: &registry, series: false, stop: &stop, progress: &|_| {} };
    let mut wrong = vec![];
    for s in file.scenarios(None, &registry).unwrap_or_else(|e| panic!("{e}")) {
        let result = run(&s, s.seed, &options).expect("runs");
        let (flow, variant) = (&result.flows[0], s.variant.clone().unwrap_or_default());
        let who = format!("{} on {variant}", flow.controller);
        let of = |name: &str| flow.streams.iter().find(|s| s.name == name).expect("a stream");
        let layers = ["camera:0", "camera:1", "camera:2"].map(of);
        let sent: f64 = flow.streams.iter().map(|s| s.sent_bps).sum();
        let padding = flow.streams.iter().map(|s| s.sent_bps * s.padding).sum::<f64>() / sent;
        let switches: u32 = flow.streams.iter().map(|s| s.switches).sum();
        eprintln!(
            "{who}: {:?} on, {switches} switches, padding {padding:.3}, sent {:.0} kbit/s",
            layers.map(|l| (l.on * 1e3).round() / 1e3),
            sent / 1e3
        );
        // A picture always; the second encoding needs 2.1 Mbit/s, and three quarters of these links.
        let least: f64 = if variant.starts_with("2 ") || variant.starts_with("2.4") { 0.0 } else { 0.9 };
        // Loss is all that TFRC reacts to: it tries the third encoding on every link, and a trial takes the second one along.
        let least = if flow.controller == "tfrc" { least.min(0.5) } else { least };
        let fine = layers[0].on >= 0.999
            && (least..=1.0).contains(&layers[1].on)
            && (0.0..=0.075).contains(&padding)
            && flow.streams.iter().all(|s| s.switches <= 8);
        if !fine {
            wrong.push(who);
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}

#[test]
fn copies_change_nothing_for_the_sender() {
    each("pathologies/copies", |controller, variant, result, undisturbed| {
        let (run, right) = (&result.flows[0], &undisturbed.flows[0]);
        let (sent, as_without) = (run.rates.sent_bps, right.rates.sent_bps);
        assert!((0.99..=1.01).contains(&(sent / as_without)), "{controller} with {variant}: {sent} of {as_without}");
        assert!((0.0..=right.loss + 0.001).contains(&run.loss), "{controller} with {variant}: {} lost", run.loss);
        // A packet counts once, however often it arrives.
        let who = format!("{controller} with {variant}");
        let once = |what: &str, counted: f64, right: f64| {
            assert!((0.99..=1.01).contains(&(counted / right)), "{who}: {what} {counted}, {right} without copies");
        };
        once("goodput", run.rates.goodput_bps, right.rates.goodput_bps);
        once("received", run.rates.received_bps, right.rates.received_bps);
        once("tail goodput", run.tail_goodput_bps, right.tail_goodput_bps);
        once("goodput over capacity", run.utilisation_goodput, right.utilisation_goodput);
        once("packets received", run.packets.received as f64, right.packets.received as f64);
        once("goodput of the window", window(result, "last minute").0, window(undisturbed, "last minute").0);
        let by_seconds = |r: &RunResult| r.rates_over_time.media_bps.iter().flatten().map(|&b| f64::from(b)).sum();
        once("goodput by seconds", by_seconds(result), by_seconds(undisturbed));
        assert!(
            run.packets.received <= run.packets.sent && run.rates.goodput_bps <= run.rates.sent_bps,
            "{who}: {run:?}"
        );
    });
}

#[test]
fn packets_overtaken_are_neither_lost_nor_queued() {
    each("pathologies/reordering", |controller, variant, result, undisturbed| {
        let who = format!("{controller} with {variant}");
        // TFRC counts a packet overtaken by three as lost (RFC 5348, section 5.1); NADA's receiver half falls likewise.
        let least = if matches!(controller, "nada-receiver" | "tfrc") { 0.68 } else { 0.95 };
        // NADA counts delays above QTH for less while packets are reported lost (RFC 8698, section 4.2), here those overtaken by
        // seven: 88 to 196 ms over three seeds.
        let more_ms = if controller == "nada" { 100.0 } else { 60.0 };
        is_as_without(&who, "last minute", (result, undisturbed), least, more_ms);
    });
}

#[test]
fn random_loss_costs_what_the_rules_of_each_controller_say() {
    each("pathologies/one-in-a-hundred-lost", |controller, variant, result, undisturbed| {
        let ((rate, _), (right, _)) = (window(result, "last minute"), window(undisturbed, "last minute"));
        let share = rate / right;
        eprintln!("{controller} with {variant}: {rate:.0} of {right:.0} kbit/s");
        let bounds = match controller {
            _ if variant == "none" => 1.0..=1.0,
            // A round trip with a loss costs SCReAM a fifth of its window; TFRC's equation has the loss rate in it.
            "scream" => 0.03..=0.1,
            "scream2" => 0.3..=0.7,
            "tfrc" => 0.2..=0.6,
            _ => 0.9..=1.01,
        };
        assert!(bounds.contains(&share), "{controller} with {variant}: {rate:.0} of {right:.0} kbit/s");
    });
}
