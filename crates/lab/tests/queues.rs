//! The scenarios of queue disciplines, token buckets and faults: each variant runs and shows what it is for.

use std::sync::atomic::AtomicBool;
use weir_cc::Registry;
use weir_lab::results::{FlowKind, RunResult};
use weir_lab::run::{RunOptions, run};
use weir_lab::scenario::ScenarioFile;
use weir_path::Discipline;

/// A run of each variant of a scenario under a controller, by the variant's name.
fn variants(name: &str, controller: &str) -> Vec<(String, RunResult)> {
    let (registry, stop) = (Registry::builtin(), AtomicBool::new(false));
    let file = ScenarioFile::open(name, &registry).unwrap_or_else(|e| panic!("{e}"));
    let all = file.scenarios(Some(&[controller.to_owned()]), &registry).unwrap_or_else(|e| panic!("{e}"));
    let options = RunOptions { registry: &registry, series: false, stop: &stop, progress: &|_| {} };
    let each = all.iter().map(|s| (s.variant.clone().unwrap_or_default(), run(s, s.seed, &options).expect("runs")));
    each.collect()
}

fn find<'a>(all: &'a [(String, RunResult)], name: &str) -> &'a RunResult {
    &all.iter().find(|v| v.0 == name).unwrap_or_else(|| panic!("no {name}")).1
}

/// Mean delay of a run's first link in ms.
fn queue_ms(r: &RunResult) -> f64 {
    r.links[0].delay_ms.as_ref().expect("a queue").mean
}

fn names(all: &[(String, RunResult)]) -> Vec<&str> {
    let mut names: Vec<_> = all.iter().map(|v| &v.0[..]).collect();
    names.sort_unstable();
    names
}

fn disciplines() -> Vec<&'static str> {
    let mut names: Vec<_> = Discipline::all().iter().map(Discipline::name).collect();
    names.sort_unstable();
    names
}

#[test]
fn a_controller_uses_steps_of_capacity_under_each_discipline() {
    let all = variants("capacity-steps", "gcc");
    assert_eq!(names(&all), disciplines());
    for (name, r) in &all {
        let call = &r.flows[0];
        let used = call.utilisation.expect("limited");
        eprintln!("{name}: {used:.3} {:.1} ms {:.4} {:?}", queue_ms(r), call.loss, call.packets);
        assert!((0.5..=1.0).contains(&used), "{name}: {used}");
        assert!(call.loss < 0.05, "{name}: {}", call.loss);
        // The mean queue stays below RED's threshold under a controller that follows the delay.
        if !["red", "wred"].contains(&name.as_str()) {
            let marks = !["drop-tail", "strict-priority", "weighted-round-robin"].contains(&name.as_str());
            assert_eq!(call.packets.marked > 0, marks, "{name}: {:?}", call.packets);
        }
    }
}

#[test]
fn short_queues_spare_a_call_the_delay_of_downloads() {
    let all = variants("call-and-downloads", "nada");
    assert_eq!(names(&all), disciplines());
    let delay = |name: &str| {
        let r = find(&all, name);
        let call = r.windows.iter().find(|w| w.label == "with downloads").expect("a window");
        call.flows[0].one_way_delay_ms.expect("packets arrived") - 15.0
    };
    let got: Vec<_> = disciplines().into_iter().map(|name| (name, delay(name))).collect();
    eprintln!("{got:?}");
    assert!(delay("drop-tail") > 200.0, "{got:?}");
    for name in ["codel", "pie", "dualpi2", "red", "wred"] {
        assert!((1.0..40.0).contains(&delay(name)), "{got:?}");
    }
    // A queue of its own: little more than the packets of the others that are in transmission.
    for name in ["fq-codel", "strict-priority", "weighted-round-robin"] {
        assert!((0.0..5.0).contains(&delay(name)), "{got:?}");
    }
}

fn capacity(r: &RunResult) -> f64 {
    r.links[0].capacity_bps.expect("limited")
}

#[test]
fn a_policer_drops_where_a_shaper_delays() {
    let all = variants("token-buckets", "gcc");
    let [policer, shaper] = ["policer", "shaper"].map(|name| find(&all, name));
    for r in [policer, shaper] {
        let call = &r.flows[0];
        let (capacity, used) = (capacity(r), call.utilisation_goodput.expect("limited"));
        eprintln!("{:?} {:?} {:?}", call.packets, call.utilisation, r.links[0].delay_ms);
        assert!((capacity - 1.5e6).abs() < 1.0, "{capacity}");
        assert!((0.3..1.02).contains(&used), "{used}");
    }
    assert!(policer.flows[0].packets.dropped_aqm > 20 && queue_ms(policer) < 2.0);
    assert!(shaper.flows[0].packets.dropped_aqm == 0 && queue_ms(shaper) > 2.0);
}

#[test]
fn sluice_answers_losses_of_its_own_and_none_of_chance() {
    let all = variants("losses-without-a-queue", "sluice");
    let rtp = |r: &RunResult| -> Vec<_> { r.flows.iter().filter(|f| f.kind == FlowKind::Rtp).cloned().collect() };
    let lost = |r: &RunResult| {
        let sum = rtp(r).iter().fold((0, 0), |s, f| (s.0 + f.packets.sent, s.1 + f.packets.received));
        1.0 - sum.1 as f64 / sum.0 as f64
    };
    let goodput = |r: &RunResult| -> Vec<f64> { r.flows.iter().map(|f| f.rates.goodput_bps).collect() };
    for (name, r) in &all {
        eprintln!("{name}: {:.4} lost, {:?} of {:.0}", lost(r), goodput(r), capacity(r));
    }
    let each = ["policer", "policer, five flows", "policer, beside CUBIC", "five packets, five flows"];
    let [alone, five, beside, short] = each.map(|name| find(&all, name));
    for r in [alone, five, beside, short] {
        let used = goodput(r).iter().sum::<f64>() / capacity(r);
        assert!((0.001..0.075).contains(&lost(r)), "{}", lost(r));
        assert!((0.9..1.01).contains(&used), "{used}");
    }
    assert!(goodput(alone)[0] > 0.95 * 1.5e6);
    // CUBIC's share of the fair one, half of 3 Mbit/s.
    assert!((0.25..1.5).contains(&(goodput(beside)[1] / 1.5e6)), "{:?}", goodput(beside));
    for r in [five, short] {
        let (sum, squares) = goodput(r).iter().fold((0.0, 0.0), |s, g| (s.0 + g, s.1 + g * g));
        assert!(sum * sum / 5.0 / squares > 0.8, "{:?}", goodput(r));
    }
    for (name, share) in [("5 % by chance", 0.05), ("10 % by chance", 0.1), ("30 % by chance", 0.3)] {
        let r = find(&all, name);
        // Of 4 Mbit/s all but the start and what is lost.
        let used = goodput(r)[0] / 4e6 / (1.0 - share);
        assert!((0.9..1.01).contains(&used), "{name}: {used}");
    }
}

#[test]
fn ecn_faults_change_what_reaches_the_receiver() {
    let all = variants("ecn-faults", "nada");
    let packets = |name: &str| find(&all, name).flows[0].packets;
    for (name, r) in &all {
        eprintln!("{name}: {:?} {:?}", r.flows[0].packets, r.flows[0].utilisation);
    }
    let none = packets("none");
    assert!(none.ce_received > 0 && none.dropped_aqm == 0, "{none:?}");
    let before = packets("bleached before the queue");
    assert!(before.ce_received == 0 && before.dropped_aqm > 0, "{before:?}");
    for name in ["bleached behind the queue", "CE erased"] {
        let p = packets(name);
        assert!(p.ce_received == 0 && p.dropped_aqm == 0, "{name}: {p:?}");
    }
    let falsely = packets("2% marked falsely");
    let share = falsely.ce_received as f64 / falsely.received as f64;
    assert!((0.015..0.1).contains(&share), "{falsely:?}");
}

#[test]
fn a_path_changes_in_steps() {
    let all = variants("changing-path", "gcc");
    let r = &all[0].1;
    let window = |name: &str| &r.windows.iter().find(|w| w.label == name).expect("a window").flows[0];
    let (longer, lossy) = (window("longer delay"), window("losses and jitter"));
    eprintln!("{longer:?}\n{lossy:?}");
    assert!(longer.one_way_delay_ms.expect("arrived") > 90.0 && longer.loss < 0.02, "{longer:?}");
    // 0.005 / 0.255 of packets.
    assert!((0.005..0.05).contains(&lossy.loss) && lossy.one_way_delay_ms.expect("arrived") > 44.0, "{lossy:?}");
    assert!(r.flows[0].packets.dropped_channel > 0);
}

#[test]
fn an_l4s_call_shares_dualpi2_and_survives_broken_paths() {
    let all = variants("l4s-call", "scream2");
    for (name, r) in &all {
        let w = r.windows.iter().find(|w| w.label == "settled").expect("a window");
        let rates: Vec<_> = w.flows.iter().map(|f| (f.generated_bps / 1e6, f.loss)).collect();
        eprintln!("{name}: {rates:?} {:?} {:?}", r.links[0].delay_ms, r.flows[0].packets);
        // Without marks it is a loss- and delay-based flow, with false ones a slow one; it never stops.
        assert!(w.flows[0].generated_bps > 0.3e6 && w.flows[0].loss < 0.02, "{name}: {rates:?}");
    }
    // RFC 9331, section 1.1: about a millisecond of queue in all but rare cases.
    for name in ["alone", "beside prague"] {
        let delay = find(&all, name).links[0].delay_ms.as_ref().expect("a queue").p99;
        assert!(delay < 2.0, "{name}: {delay}");
    }
    let marked = |name: &str| find(&all, name).flows[0].packets.ce_received;
    assert!(marked("alone") > 100 && marked("bleached") == 0);
}

#[test]
fn scalable_and_classic_tcp_share_dualpi2() {
    for (name, r) in &variants("scalable-and-classic", "scream2") {
        let w = r.windows.iter().find(|w| w.label == "settled").expect("a window");
        let rate = |k: usize| w.flows[k].goodput_bps;
        let ratio = rate(1) / rate(2);
        eprintln!("{name}: {ratio:.2} {:?}", r.links[0].delay_ms);
        // RFC 9332, section 1.3: approximately equal rates.
        assert!((1.0 / 1.6..1.6).contains(&ratio), "{name}: {ratio}");
        assert!(rate(0) + rate(1) + rate(2) > 36e6, "{name}");
    }
}

#[test]
fn a_call_beside_each_congestion_control_is_not_starved() {
    for controller in ["gcc", "nada", "scream"] {
        for (name, r) in &variants("call-beside-tcp", controller) {
            let w = r.windows.iter().find(|w| w.label == "with the download").expect("a window");
            let (call, tcp) = (&w.flows[0], &w.flows[1]);
            eprintln!(
                "{controller} {name}: {:.2} beside {:.2} Mbit/s, loss {:.4}",
                call.goodput_bps / 1e6,
                tcp.goodput_bps / 1e6,
                call.loss
            );
            assert!(call.goodput_bps > 200e3 && tcp.goodput_bps > 1e6, "{controller} {name}");
        }
    }
}

/// One variant of a scenario under a controller.
fn variant(name: &str, variant: &str, controller: &str) -> RunResult {
    let (registry, stop) = (Registry::builtin(), AtomicBool::new(false));
    let file = ScenarioFile::open(name, &registry).unwrap_or_else(|e| panic!("{e}"));
    let s = file.scenario(Some(variant), Some(controller), &registry).unwrap_or_else(|e| panic!("{e}"));
    let options = RunOptions { registry: &registry, series: false, stop: &stop, progress: &|_| {} };
    run(&s, s.seed, &options).expect("runs")
}

#[test]
fn calls_on_a_wifi_medium_fill_it_without_loss_while_it_has_room() {
    let r = variant("3.2-wifi-bottleneck", "4 flows", "nada");
    assert_eq!(r.flows.len(), 4);
    for f in &r.flows {
        eprintln!("{} {:.0} {:.4}", f.name, f.rates.goodput_bps, f.loss);
        assert!((1.2e6..1.5e6).contains(&f.rates.goodput_bps) && f.loss < 0.001, "{f:?}");
    }
    // 16 flows in the uplink collide: they get less than in the downlink, where one station sends.
    let total = |r: &RunResult| r.flows.iter().map(|f| f.rates.goodput_bps).sum::<f64>() / 1e6;
    let [down, up] = ["downlink", "uplink"].map(|v| total(&variant("3.2-wifi-bottleneck", v, "nada")));
    assert!((17.0..23.0).contains(&down) && (13.0..down).contains(&up), "{down} {up}");
}

#[test]
fn calls_in_a_cell_share_it_with_tcp() {
    let r = variant("2.1-varying-load", "uplink, 4.9", "nada");
    for f in r.flows.iter().filter(|f| f.name.starts_with("from-")) {
        eprintln!("{} {:.0} {:.4} {:?}", f.name, f.rates.goodput_bps, f.loss, f.one_way_delay_ms);
        assert!((0.2e6..1.5e6).contains(&f.rates.goodput_bps) && f.loss < 0.05, "{f:?}");
    }
}
