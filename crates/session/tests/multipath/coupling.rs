//! Coupled paths take one flow's share of a bottleneck, and paths with bottlenecks of their own add up.

use super::shared::{Net, Path};
use weir_cc::coupled::Division;
use weir_session::multipath::Coupling;
use weir_units::{PathId, Timestamp};

pub(crate) const SHARED: [Path; 2] = [Path { link: 0, delay: 25 }, Path { link: 0, delay: 40 }];
pub(crate) const APART: [Path; 2] = [Path { link: 0, delay: 25 }, Path { link: 1, delay: 40 }];
const ALWAYS: Coupling = Coupling::Always(Division::Active);
const DETECTED: Coupling = Coupling::Detected(Division::Active);
const CORRELATED: Coupling = Coupling::Correlated(Division::Active);

/// The share that a call over two paths takes of 3 Mbit/s beside a call over one, from 60 to 180 s.
fn share(controller: &str, coupling: Coupling) -> f64 {
    let mut net = Net::new(&[3_000]);
    net.add(controller, 4_000, &SHARED, coupling);
    net.add(controller, 4_000, &SHARED[..1], Coupling::None);
    net.run_until(Timestamp::from_secs(180));
    let [two, one] = [0, 1].map(|call| net.kbps(call, 60, 180));
    assert!(two + one > 2_550.0, "{controller}: {two} and {one} kbit/s");
    two / (two + one)
}

/// Rate that a call over two paths receives over two links, in the last minute of two, in kbit/s.
fn sum(controller: &str, coupling: Coupling, links: [u64; 2]) -> f64 {
    let mut net = Net::new(&links);
    net.add(controller, 4_000, &APART, coupling);
    net.run_until(Timestamp::from_secs(120));
    net.kbps(0, 60, 120)
}

#[test]
fn paths_that_are_not_coupled_take_two_shares() {
    for controller in ["gcc", "nada", "scream2"] {
        let share = share(controller, Coupling::None);
        assert!((0.62..0.72).contains(&share), "{controller}: {share}");
    }
}

#[test]
fn coupled_paths_take_one_flows_share() {
    // Two flows of GCC also find their equilibrium slowly; on links of 1.5 to 5 Mbit/s it took 0.43 to 0.53 so coupled.
    for (controller, least) in [("gcc", 0.40), ("gcc-scream2", 0.40), ("nada", 0.45), ("scream2", 0.45)] {
        for coupling in [ALWAYS, CORRELATED] {
            let share = share(controller, coupling);
            assert!((least..0.55).contains(&share), "{controller}, {coupling:?}: {share}");
        }
    }
    for division in [Division::Conservative, Division::Passive] {
        let share = share("nada", Coupling::Always(division));
        assert!((0.45..0.55).contains(&share), "{division:?}: {share}");
    }
}

#[test]
fn detection_by_shape_finds_a_queue_that_stands() {
    // SCReAM keeps one. Paths under GCC and NADA stay flows of their own: see `detection`.
    let found = share("scream2", DETECTED);
    assert!((0.45..0.6).contains(&found), "{found}");
    for controller in ["gcc", "nada"] {
        let missed = share(controller, DETECTED);
        assert!((0.6..0.72).contains(&missed), "{controller}: {missed}");
    }
}

/// Its media rate is compared to a throughput that includes headers, which are larger by 12 bytes on a subflow: not
/// coupled, a call over paths takes nearly all of the link.
#[test]
fn version_1_of_scream_takes_one_share_if_its_media_rates_are_coupled() {
    for (coupling, shares) in [(Coupling::None, 0.85..1.0), (ALWAYS, 0.42..0.58), (CORRELATED, 0.45..0.65)] {
        let share = share("scream", coupling);
        assert!(shares.contains(&share), "{coupling:?}: {share}");
    }
}

#[test]
fn separate_bottlenecks_add_up() {
    for controller in ["gcc", "nada", "scream", "scream2"] {
        for links in [[1_000, 2_000], [2_000, 2_000]] {
            for coupling in [Coupling::None, DETECTED, CORRELATED] {
                let kbps = sum(controller, coupling, links);
                let all = links.iter().sum::<u64>() as f64;
                assert!(kbps > all * 0.9, "{controller}, {links:?}, {coupling:?}: {kbps} kbit/s");
            }
        }
    }
    // All paths in one group cannot do that: the link of less capacity holds the other back.
    let always = sum("gcc", ALWAYS, [500, 2_000]);
    assert!(always < 1_250.0, "{always}");
}

#[test]
fn a_silent_path_leaves_its_rate_to_the_others() {
    let mut net = Net::new(&[3_000]);
    net.add("nada", 4_000, &SHARED, ALWAYS);
    net.add("nada", 4_000, &SHARED[..1], Coupling::None);
    net.run_until(Timestamp::from_secs(60));
    let targets = |net: &Net| {
        [0, 1].map(|p| net.sender(0).path(PathId::new(p)).and_then(|p| p.stats()).expect("a path").target.as_kbps_f64())
    };
    let before = targets(&net);
    assert!((before[0] - before[1]).abs() < 0.1 * before[0], "{before:?}");
    net.dead = Some((0, 1));
    net.run_until(Timestamp::from_secs(61));
    let after = targets(&net);
    assert!(after[0] > 1.5 * before[0], "{before:?}, then {after:?}");
    // The call keeps its share.
    net.run_until(Timestamp::from_secs(120));
    let [two, one] = [0, 1].map(|call| net.kbps(call, 70, 120));
    assert!((0.45..0.55).contains(&(two / (two + one))), "{two} and {one} kbit/s");
    // And the path joins the group again.
    net.dead = None;
    net.run_until(Timestamp::from_secs(180));
    let [two, one] = [0, 1].map(|call| net.kbps(call, 140, 180));
    assert!((0.45..0.55).contains(&(two / (two + one))), "{two} and {one} kbit/s");
    let again = targets(&net);
    assert!((again[0] - again[1]).abs() < 0.1 * again[0], "{again:?}");
}

/// Bytes that the two paths of a call received from 60 to 180 s, coupled with these priorities beside a call over one path.
fn received(controller: &str, priorities: [f64; 2]) -> [f64; 2] {
    let mut net = Net::new(&[3_000]);
    net.add_with_priorities(controller, 4_000, &SHARED, ALWAYS, &priorities);
    net.add(controller, 4_000, &SHARED[..1], Coupling::None);
    let on_paths = |net: &Net| [0, 1].map(|path| net.received_on(0, path) as f64);
    net.run_until(Timestamp::from_secs(60));
    let before = on_paths(&net);
    net.run_until(Timestamp::from_secs(180));
    let after = on_paths(&net);
    [after[0] - before[0], after[1] - before[1]]
}

#[test]
fn coupled_paths_share_evenly_or_by_priority() {
    for controller in ["gcc", "nada", "scream", "tfrc", "rrtcc", "gcc-remb", "fbra", "bbr-rtc"] {
        let [a, b] = received(controller, [1.0, 1.0]);
        let jain = (a + b) * (a + b) / (2.0 * (a * a + b * b));
        assert!(jain >= 0.98, "{controller}: {a} and {b} bytes");
        let [a, b] = received(controller, [1.0, 2.0]);
        eprintln!("{controller}: {:.2}", b / a);
        assert!((1.6..2.4).contains(&(b / a)), "{controller}: {a} and {b} bytes");
    }
}

#[test]
fn a_group_under_any_controller_takes_less_than_two_flows() {
    for (controller, shares) in [("tfrc", 0.36..0.5), ("rrtcc", 0.4..0.62)] {
        let (alone, coupled) = (share(controller, Coupling::None), share(controller, ALWAYS));
        eprintln!("{controller}: {alone} alone, {coupled} coupled");
        assert!(shares.contains(&coupled) && coupled < alone, "{controller}: {alone} alone, {coupled} coupled");
    }
    // Beside a call of one path these keep what the paths had before, which is not a share at all.
    for controller in ["gcc-remb", "fbra"] {
        let (alone, coupled) = (share(controller, Coupling::None), share(controller, ALWAYS));
        assert!(coupled <= alone + 0.01, "{controller}: {alone} alone, {coupled} coupled");
    }
}
