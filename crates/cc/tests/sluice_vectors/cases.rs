//! The cases: one file each.

mod extensions;

use super::link::{Course, Plan};

/// A change of the controller's bounds and share.
#[derive(Clone, Copy, Debug)]
pub(super) enum Act {
    Limits(u64, u64),
    Request(Option<u64>),
    Notice(u64),
    Coupled(f64),
    /// A message without packets.
    Empty,
    /// A message that has the packet sent last, as lost.
    Lost,
}

/// A call to be written.
#[derive(Clone, Debug)]
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) description: &'static str,
    /// Sections of the specification that it exercises.
    pub(super) sections: &'static [&'static str],
    /// Extensions without which it differs.
    pub(super) requires: &'static [&'static str],
    /// Outputs beside those of every file.
    pub(super) outputs: &'static [&'static str],
    pub(super) seconds: f64,
    /// Rates in bit/s.
    pub(super) start: u64,
    pub(super) floor: u64,
    pub(super) ceiling: u64,
    pub(super) params: &'static [(&'static str, f64)],
    pub(super) path: Plan,
    /// Interval of feedback in µs: none that has round multiples, which would meet the thresholds exactly.
    pub(super) feedback: i64,
    /// Size of packets in bytes.
    pub(super) size: u64,
    /// Share of the media rate that the source sends.
    pub(super) source: Course,
    /// Whether frames differ in size.
    pub(super) is_bursty: bool,
    /// Whether the controller hears of the data that waits at the sender.
    pub(super) has_queue: bool,
    /// Addition to the receiver's clock, in µs.
    pub(super) clock: Course,
    /// Share of messages lost.
    pub(super) mute: Course,
    /// Addition to the delay of messages, in ms.
    pub(super) slow_return: Course,
    pub(super) acts: Vec<(f64, Act)>,
}

/// A call of 12 s over an even link.
fn case(name: &'static str, description: &'static str, path: Plan) -> Case {
    let zero = || vec![(0.0, 0.0)];
    Case {
        name,
        description,
        sections: &[],
        requires: &[],
        outputs: &[],
        seconds: 12.0,
        start: 300_000,
        floor: 100_000,
        ceiling: 5_000_000,
        params: &[],
        path,
        feedback: 49_937,
        size: 1_200,
        source: vec![(0.0, 1.0)],
        is_bursty: false,
        has_queue: false,
        clock: zero(),
        mute: zero(),
        slow_return: zero(),
        acts: Vec::new(),
    }
}

const NOISE: &[&str] = &["stall_ms", "jitter_ms", "residual_ms", "noise_ms"];
const LOSSES: &[&str] = &["answer_bound_bps", "chance"];
const MARKS: &[&str] = &["marked", "mark_bound_bps", "mark_alpha"];

/// All cases, the core's first.
pub(super) fn all() -> Vec<Case> {
    [core(), noise(), gaps(), extensions::all()].concat()
}

fn core() -> Vec<Case> {
    vec![
        Case {
            sections: &["6", "7.2", "8.7", "13.1", "15"],
            seconds: 6.0,
            ceiling: 1_500_000,
            ..case(
                "core-free-link",
                "Start on a link of 4 Mbit/s that never has a queue, up to a ceiling of 1.5 Mbit/s.",
                Plan::even(4e6),
            )
        },
        Case {
            sections: &["6", "7", "8", "10", "11.1", "12", "13.1"],
            seconds: 12.0,
            ..case("core-steady-link", "A link of 0.83 Mbit/s: start, correction, drains.", Plan::even(0.83e6))
        },
        Case {
            sections: &["8.7", "13.1"],
            seconds: 14.0,
            ..case(
                "core-fall-and-rise",
                "Capacity of 1.21 Mbit/s, 0.37 from 5 s on, 1.21 from 10 s on.",
                Plan { capacity: vec![(0.0, 1.21e6), (5.0, 0.37e6), (10.0, 1.21e6)], ..Plan::even(0.0) },
            )
        },
        Case {
            sections: &["7.2", "13.1"],
            seconds: 6.5,
            start: 100_000,
            floor: 30_000,
            ceiling: 400_000,
            feedback: 299_811,
            requires: &["SILENCE", "BURST"],
            ..case(
                "long-loop",
                "A link of 150 kbit/s, a round trip of 185 ms, a message each 300 ms: the queue is foreseen.",
                Plan { one_way: vec![(0.0, 160.0)], ..Plan::even(150e3) },
            )
        },
        Case {
            sections: &["10", "13.1", "15.1"],
            seconds: 20.0,
            requires: &["SILENCE", "BURST"],
            start: 60_000,
            floor: 30_000,
            feedback: 99_877,
            ..case(
                "slow-link",
                "A link of 93 kbit/s, on which a packet of 1,200 bytes takes 103 ms.",
                Plan { limit: 2_000.0, ..Plan::even(93e3) },
            )
        },
        Case {
            sections: &["6.2", "12"],
            seconds: 31.0,
            feedback: 99_877,
            ..case(
                "core-drains",
                "A link of 410 kbit/s for 31 s: drains, windows of the least delay.",
                Plan::even(410e3),
            )
        },
        Case {
            sections: &["7.3", "13.1", "15.1"],
            requires: &["BURST"],
            source: vec![(0.0, 1.0), (4.0, 0.4), (7.0, 0.65), (10.0, 1.0)],
            ..case(
                "limited-source",
                "A link of 0.9 Mbit/s; the source sends 0.4 of the rate from 4 s on, 0.65 from 7 s on, all from 10 s on.",
                Plan::even(0.9e6),
            )
        },
        Case {
            sections: &["3.4", "5.3", "13.1"],
            seconds: 12.0,
            ..case(
                "core-outage",
                "A link of 1.1 Mbit/s that serves nothing from 5 s to 6.2 s.",
                Plan { capacity: vec![(0.0, 1.1e6), (5.0, 0.0), (6.2, 1.1e6)], limit: 4_000.0, ..Plan::even(0.0) },
            )
        },
        Case {
            sections: &["3.1", "5.3", "14.1"],
            seconds: 10.0,
            acts: vec![
                (3.0, Act::Limits(100_000, 600_000)),
                (5.0, Act::Limits(1_400_000, 2_000_000)),
                (6.0, Act::Limits(100_000, 5_000_000)),
            ],
            ..case(
                "core-limits",
                "A link of 1.1 Mbit/s; the application changes its limits, the floor to more than the link serves.",
                Plan::even(1.1e6),
            )
        },
        Case {
            sections: &["6.2", "6.3"],
            seconds: 12.0,
            clock: vec![(0.0, 0.0), (4.0, 2_000_000.0), (8.0, -3_000_000.0)],
            ..case(
                "core-clock",
                "A link of 0.9 Mbit/s; the receiver's clock is set on by 2 s, then back by 5 s.",
                Plan::even(0.9e6),
            )
        },
        Case {
            sections: &["8.7", "10"],
            requires: &["BURST"],
            seconds: 8.0,
            start: 50_000,
            floor: 20_000,
            ceiling: 300_000,
            size: 300,
            ..case("small-packets", "A link of 110 kbit/s; packets of 300 bytes.", Plan::even(110e3))
        },
        Case {
            sections: &["4.1"],
            seconds: 12.0,
            params: &[
                ("queue_target", 20.0),
                ("drain_time", 200.0),
                ("growth", 1.5),
                ("service_time", 150.0),
                ("drain_interval", 4_000.0),
            ],
            ..case("core-parameters", "A link of 0.9 Mbit/s with other values of five parameters.", Plan::even(0.9e6))
        },
    ]
}

/// Branches that no other case of the core shows.
fn gaps() -> Vec<Case> {
    vec![
        Case {
            sections: &["4.1", "6.2"],
            seconds: 13.0,
            feedback: 99_877,
            params: &[("base_window", 3_000.0)],
            ..case(
                "core-longer-path",
                "A link of 0.4 Mbit/s that becomes longer by steps of 4 ms, 25 to 57 ms from 4 s to 5.5 s; the least delay expires after 3 s.",
                Plan {
                    one_way: (0..9)
                        .map(|k| (if k > 0 { 4.0 + 0.17 * f64::from(k) } else { 0.0 }, 25.0 + 4.0 * f64::from(k)))
                        .collect(),
                    ..Plan::even(0.4e6)
                },
            )
        },
        Case {
            sections: &["3.1", "13.1"],
            seconds: 7.0,
            start: 4_000_000,
            floor: 30_000,
            acts: vec![
                (4.0, Act::Limits(30_000, 60_000)),
                (5.0, Act::Limits(30_000, 1_600_000)),
                (6.0, Act::Limits(30_000, 60_000)),
                (6.5, Act::Limits(30_000, 1_600_000)),
            ],
            ceiling: 1_600_000,
            ..case(
                "core-recovery",
                "A link of 1.3 Mbit/s; the start rate is above the ceiling, and the ceiling is 60 kbit/s from 4 s to 5 s and from 6 s to 6.5 s.",
                Plan::even(1.3e6),
            )
        },
        Case {
            sections: &["3.1", "14.1"],
            seconds: 6.0,
            start: 60_000,
            floor: 150_000,
            ceiling: 800_000,
            acts: vec![(2.0, Act::Limits(900_000, 500_000)), (3.5, Act::Limits(150_000, 1_000_000))],
            ..case(
                "core-floor",
                "A link of 2 Mbit/s; the start rate is below the floor, and later the floor above the ceiling.",
                Plan::even(2e6),
            )
        },
        Case {
            sections: &["5.3", "12.4"],
            params: &[("drain_depth", 120.0)],
            seconds: 6.0,
            ..case(
                "core-outage-drain",
                "A link of 0.4 Mbit/s that serves nothing from 0.86 s to 1.5 s, during a drain, whose end then does not raise the rate.",
                Plan { capacity: vec![(0.0, 0.4e6), (0.86, 0.0), (1.5, 0.4e6)], limit: 4_000.0, ..Plan::even(0.0) },
            )
        },
        Case {
            sections: &["8.2", "8.7", "13.1"],
            outputs: NOISE,
            seconds: 9.0,
            ..case(
                "core-clumps",
                "A link that serves in clumps each 60 ms, 0.3 Mbit/s, 1.3 from 4 s to 7 s.",
                Plan { clumps: 60, capacity: vec![(0.0, 0.3e6), (4.0, 1.3e6), (7.0, 0.3e6)], ..Plan::even(0.0) },
            )
        },
        Case {
            sections: &["7.2", "8.4"],
            outputs: NOISE,
            seconds: 17.0,
            feedback: 149_873,
            slow_return: vec![(0.0, 0.0), (9.0, 140.0), (12.0, 0.0)],
            ..case(
                "core-seldom",
                "A link of 0.5 Mbit/s with jitter of up to 20 ms, in order; feedback each 150 ms, 140 ms later from 9 s to 12 s.",
                Plan { jitter: 20.0, ..Plan::even(0.5e6) },
            )
        },
    ]
}

fn noise() -> Vec<Case> {
    vec![
        Case {
            sections: &["8.3", "8.4", "8.7", "10", "12.3"],
            params: &[("drain_interval", 2_000.0)],
            outputs: NOISE,
            seconds: 8.0,
            ..case(
                "core-jitter",
                "A link of 2.4 Mbit/s with jitter of up to 40 ms, in order; drains each 2 s, of which two are shallow.",
                Plan { jitter: 40.0, ..Plan::even(2.4e6) },
            )
        },
        Case {
            sections: &["8.2", "8.7", "13.1"],
            outputs: NOISE,
            ..case(
                "core-stalls",
                "A link of 0.9 Mbit/s that serves in clumps each 40 ms.",
                Plan { clumps: 40, ..Plan::even(0.9e6) },
            )
        },
        Case {
            sections: &["6.7", "11.1"],
            requires: &["LONGER"],
            outputs: NOISE,
            seconds: 12.0,
            ..case(
                "longer-path",
                "A link of 0.6 Mbit/s, 25 ms long, 65 ms from 3 s, 25 from 5 s, 95 from 6 s, 45 from 8 s, 130 from 10 s on.",
                Plan {
                    one_way: vec![(0.0, 25.0), (3.0, 65.0), (5.0, 25.0), (6.0, 95.0), (8.0, 45.0), (10.0, 130.0)],
                    ..Plan::even(0.6e6)
                },
            )
        },
        Case {
            sections: &["6.4", "6.5", "6.6"],
            requires: &["LATE"],
            seconds: 9.5,
            ..case(
                "late-packets",
                "A link of 0.8 Mbit/s; each tenth packet arrives 70 ms later.",
                Plan { held_back: (10, 70.0), ..Plan::even(0.8e6) },
            )
        },
        Case {
            sections: &["7.3", "8.8", "10", "13.1", "15.1"],
            requires: &["BURST"],
            outputs: &["burst_ms"],
            is_bursty: true,
            seconds: 21.0,
            feedback: 79_873,
            ..case(
                "burst-source",
                "A link of 0.4 Mbit/s; groups of large and small frames in turn; feedback each 80 ms. Bursts have lasted from 16 s on.",
                Plan::even(0.4e6),
            )
        },
    ]
}
