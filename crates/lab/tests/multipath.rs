//! Calls over several paths, by the shipped scenarios: rates add up, a path that dies is left, and copies count once.

use std::sync::atomic::AtomicBool;
use weir_cc::Registry;
use weir_lab::results::{FlowSummary, RunResult};
use weir_lab::run::{RunOptions, run};
use weir_lab::scenario::ScenarioFile;

fn result(scenario: &str, variant: Option<&str>, controller: &str) -> RunResult {
    let registry = Registry::builtin();
    let file = ScenarioFile::builtin(&format!("multipath/{scenario}"), &registry).expect("shipped");
    let scenario = file.scenario(variant, Some(controller), &registry).expect("shipped");
    let stop = AtomicBool::new(false);
    let options = RunOptions { registry: &registry, series: false, stop: &stop, progress: &|_| {} };
    run(&scenario, scenario.seed, &options).expect("shipped scenarios run")
}

/// Mean goodput of a flow in a window, in kbit/s.
fn kbps(r: &RunResult, window: &str, flow: usize) -> f64 {
    r.window(window).expect("in the file").flows[flow].goodput_bps * 1e-3
}
fn frame_delay_p95(f: &FlowSummary) -> f64 {
    f.frames.as_ref().and_then(|f| f.delay_ms).expect("frames were played").p95
}

#[test]
fn two_paths_carry_what_each_carries_alone() {
    for controller in ["gcc", "nada", "scream", "scream2"] {
        let alone = ["wifi", "cellular"].map(|link| result("one-access-link", Some(link), controller));
        let sum: f64 = alone.iter().map(|r| kbps(r, "30-90s", 0)).sum();
        let slower = frame_delay_p95(&alone[1].flows[0]);
        for scheduler in ["earliest", "thesis"] {
            let both = result("two-access-links", Some(scheduler), controller);
            let share = kbps(&both, "30-90s", 0) / sum;
            assert!(share > 0.9, "{controller} under {scheduler}: {share:.3} of the sum");
        }
        let both = result("two-access-links", Some("earliest"), controller);
        // The flow is measured against both links.
        let used = both.window("30-90s").expect("in the file").flows[0].utilisation_goodput.expect("limited");
        assert!((0.85..1.01).contains(&used), "{controller}: {used}");
        let delay = frame_delay_p95(&both.flows[0]);
        // SCReAM's own delay swings: with two paths it has 126 ms here, 101 alone.
        let margin = if controller == "scream" { 30.0 } else { 20.0 };
        assert!(delay < slower + margin, "{controller}: {delay} ms, alone {slower} ms");
    }
}

#[test]
fn a_metered_path_carries_media_only_while_it_has_to() {
    for controller in ["gcc", "nada"] {
        let of = |variant| result("metered", Some(variant), controller);
        let cellular = |r: &RunResult| r.flows[0].multipath.as_ref().expect("two paths").paths[1].share;
        let [normal, metered, backup, budget] = ["normal", "metered", "backup", "budget"].map(of);
        assert!(kbps(&normal, "10-30s", 0) > 2_500.0, "{controller} uses both paths");
        // Wi-Fi suffices, then does not.
        assert!(kbps(&metered, "10-30s", 0) < 2_000.0, "{controller} stays on Wi-Fi");
        assert!(kbps(&metered, "30-60s", 0) > 1_000.0, "{controller} gets what suffices");
        assert!(cellular(&metered) < cellular(&normal));
        assert!(kbps(&backup, "30-60s", 0) < 500.0 && cellular(&backup) < 0.01, "{controller} keeps the backup");
        let sent = budget.flows[0].rates.sent_bps * budget.duration_s / 8.0 * cellular(&budget);
        assert!((0.8e6..1.1e6).contains(&sent), "{controller} sent {sent} of 1 MB");
    }
}

#[test]
fn every_scheduler_keeps_a_call_alive() {
    for controller in ["gcc", "nada", "scream"] {
        for scheduler in weir_session::multipath::SCHEDULERS {
            let r = result("two-access-links", Some(scheduler.name), controller);
            let flow = &r.flows[0];
            let m = flow.multipath.as_ref().expect("two paths");
            assert!((m.paths.iter().map(|p| p.share).sum::<f64>() - 1.0).abs() < 1e-9);
            let frames = flow.frames.as_ref().expect("frames were played");
            let missed = (frames.late + frames.lost) as f64 / frames.frames as f64;
            assert!(missed < 0.02, "{controller} under {}: {missed} of the frames missed", scheduler.name);
            assert!(kbps(&r, "30-90s", 0) > 800.0, "{controller} under {}", scheduler.name);
        }
    }
}

#[test]
fn media_leave_a_dead_path() {
    for controller in ["gcc", "nada", "scream", "scream2"] {
        let r = result("hand-over", Some("dies"), controller);
        let m = r.flows[0].multipath.as_ref().expect("two paths");
        assert!(m.longest_gap_ms < 300.0, "{controller}: {} ms at {} s", m.longest_gap_ms, m.longest_gap_at_s);
        let frames = r.flows[0].frames.as_ref().expect("frames were played");
        assert!(frames.lost + frames.late < 15, "{controller}: {frames:?}");
        // The other path alone, against a call that has only such a one.
        assert!(kbps(&r, "30-60s", 0) > 0.9 * kbps(&r, "30-60s", 1), "{controller}");
        assert!(kbps(&r, "20-30s", 0) > 1.8 * kbps(&r, "20-30s", 1), "{controller}");
    }
}

#[test]
fn a_path_that_flaps_costs_little() {
    for controller in ["gcc", "nada", "scream", "scream2"] {
        let r = result("hand-over", Some("flaps"), controller);
        let (two, one) = (kbps(&r, "20-80s", 0), kbps(&r, "20-80s", 1));
        assert!(two > 0.9 * one, "{controller}: {two} beside {one} kbit/s");
    }
}

#[test]
fn copies_count_once() {
    let single = result("bursty-loss", Some("best-path, no repair"), "fixed");
    let both = result("bursty-loss", Some("redundant, no repair"), "fixed");
    let of = |r: &RunResult| r.flows[0].multipath.as_ref().expect("two paths").clone();
    // About a tenth is lost on each path, and both copies where the paths lose at the same time.
    assert!((0.07..0.13).contains(&of(&single).residual_loss), "{}", of(&single).residual_loss);
    assert!(of(&both).residual_loss < 0.02, "{}", of(&both).residual_loss);
    assert!(both.flows[0].packets.received <= both.flows[0].packets.sent);
    assert!(both.flows[0].rates.sent_bps > 1.9 * single.flows[0].rates.sent_bps);
}

#[test]
fn bursts_on_both_paths_leave_little_with_retransmissions() {
    for scheduler in ["redundant", "fec-aware"] {
        let r = result("bursty-loss", Some(&format!("{scheduler}, nack")), "fixed");
        let repair = r.flows[0].repair.as_ref().expect("packets were retransmitted");
        assert!(repair.residual_loss < 0.005, "{scheduler}: {repair:?}");
        let frames = r.flows[0].frames.as_ref().expect("frames were played");
        assert!(frames.lost + frames.late <= 10, "{scheduler}: {frames:?}");
    }
}

/// Frames of 5,400 that were not played in time, over eight falls. Without packets that leave a path `earliest` lost 132 to 900 of them.
#[test]
fn a_link_that_falls_does_not_stop_the_frames_of_the_other() {
    let lost = |scheduler, controller| {
        let r = result("falling-links", Some(scheduler), controller);
        r.flows[0].frames.as_ref().expect("frames were played").lost
    };
    for (scheduler, most) in [("earliest", 130), ("round-robin", 90), ("best-path", 40), ("frame-aligned", 50)] {
        let got = lost(scheduler, "sluice");
        assert!(got <= most, "{scheduler}: {got} frames, at most {most}");
    }
    for (controller, most) in [("scream2", 260), ("gcc", 600)] {
        let got = lost("earliest", controller);
        assert!(got <= most, "{controller}: {got} frames, at most {most}");
    }
}

#[test]
fn coupled_paths_share_their_bottleneck_by_priority() {
    for controller in ["gcc", "nada", "scream", "tfrc", "rrtcc", "gcc-remb", "fbra", "bbr-rtc"] {
        for (variant, ratios) in [("even", 0.8..1.25), ("1 to 2", 1.6..2.4)] {
            let r = result("coupled-priorities", Some(variant), controller);
            let paths = &r.flows[0].multipath.as_ref().expect("two paths").paths;
            let ratio = paths[1].share / paths[0].share;
            assert!(ratios.contains(&ratio), "{controller}, {variant}: {ratio}");
        }
    }
}
