//! Cases of extensions.

use super::super::link::Plan;
use super::{Act, Case, LOSSES, MARKS, NOISE, case};

pub(super) fn all() -> Vec<Case> {
    [feedback(), gaps(), losses(), company(), marks(), bounds()].concat()
}

fn feedback() -> Vec<Case> {
    vec![
        Case {
            sections: &["6.3", "7.3"],
            requires: &["BURST", "HOLE", "LATE", "SILENCE"],
            mute: vec![(0.0, 0.0), (3.0, 0.5)],
            acts: vec![(0.02, Act::Empty), (0.05, Act::Lost), (2.0, Act::Empty), (2.5, Act::Lost), (6.01, Act::Lost)],
            seconds: 10.0,
            ..case(
                "hole-feedback",
                "A link of 0.9 Mbit/s; half of the messages are lost from 3 s on; some messages have no packet, or one that is lost.",
                Plan::even(0.9e6),
            )
        },
        Case {
            sections: &["5.3", "7.1"],
            requires: &["HOLE", "SILENCE"],
            seconds: 12.0,
            mute: vec![(0.0, 0.0), (4.0, 1.0), (4.6, 0.0), (7.0, 1.0), (7.3, 0.0)],
            slow_return: vec![(0.0, 0.0), (9.0, 180.0)],
            ..case(
                "silence",
                "A link of 0.9 Mbit/s; no message arrives for 0.6 s and 0.3 s, and all are 180 ms later from 9 s on.",
                Plan::even(0.9e6),
            )
        },
    ]
}

/// Branches that no other case shows.
fn gaps() -> Vec<Case> {
    vec![
        Case {
            sections: &["6.4", "6.5", "6.6"],
            requires: &["ECN", "LATE"],
            outputs: MARKS,
            seconds: 9.0,
            ..case(
                "late-detours",
                "A link of 1.1 Mbit/s that marks; for moments packets take 19 to 70 ms longer and are overtaken; it loses 3 % from 5 s to 7 s.",
                Plan {
                    detour: vec![
                        (0.0, 0.0),
                        (2.0, 19.0),
                        (2.4, 0.0),
                        (3.0, 60.0),
                        (3.09, 0.0),
                        (4.0, 70.0),
                        (4.13, 0.0),
                        (6.0, 21.0),
                        (6.2, 0.0),
                    ],
                    marks: Some((14.0, 100.0)),
                    loss: vec![(0.0, 0.0), (5.0, 0.03), (7.0, 0.0)],
                    ..Plan::even(1.1e6)
                },
            )
        },
        Case {
            sections: &["13.1", "14.2"],
            requires: &["NOTICE"],
            feedback: 99_877,
            acts: vec![(2.0, Act::Notice(1_300_000)), (7.0, Act::Notice(700_000))],
            seconds: 18.5,
            ..case(
                "notice-old",
                "A link of 0.45 Mbit/s, 0.8 from 5 s on; a device announces 1.3 Mbit/s, which is wrong, then 0.7, and nothing for more than 10 s.",
                Plan { capacity: vec![(0.0, 0.45e6), (5.0, 0.8e6)], ..Plan::even(0.0) },
            )
        },
        Case {
            sections: &["9.4", "9.6"],
            requires: &["ANSWER"],
            outputs: LOSSES,
            params: &[("answer_losses", 10.0)],
            seconds: 16.0,
            ceiling: 1_000_000,
            ..case(
                "answer-again",
                "A link of 3 Mbit/s with a policer of 700 kbit/s from 2 s, 420 from 5 s to 10 s; it loses 8 % by chance from 10 s on.",
                Plan {
                    policer: vec![(0.0, 0.0), (2.0, 0.7e6), (5.0, 0.42e6), (10.0, 0.0)],
                    loss: vec![(0.0, 0.0), (10.0, 0.08)],
                    ..Plan::even(3e6)
                },
            )
        },
        Case {
            sections: &["5.3", "11.2"],
            requires: &["COMPETE", "HOLE", "SILENCE"],
            outputs: &["compete"],
            seconds: 16.0,
            feedback: 99_877,
            mute: vec![(0.0, 0.0), (13.0, 1.0), (14.6, 0.0)],
            ..case(
                "compete-again",
                "A link of 0.8 Mbit/s with a loss-based flow from 3 s to 7 s and from 9 s to 16 s; no message arrives from 13 s to 14.6 s.",
                Plan { rival: vec![(3.0, 7.0), (9.0, 16.0)], limit: 220.0, ..Plan::even(0.8e6) },
            )
        },
        Case {
            sections: &["9.5", "9.6"],
            requires: &["ANSWER"],
            outputs: LOSSES,
            params: &[("answer_losses", 10.0), ("answer_interval", 3_000.0)],
            seconds: 16.0,
            ..case(
                "answer-asked",
                "A link of 0.5 Mbit/s that loses 9 % by chance from 2 s to 4 s and from 6 s to 8 s, 30 % from 10 s to 12 s and from 14 s on.",
                Plan {
                    loss: vec![
                        (0.0, 0.0),
                        (2.0, 0.09),
                        (4.0, 0.0),
                        (6.0, 0.09),
                        (8.0, 0.0),
                        (10.0, 0.3),
                        (12.0, 0.0),
                        (14.0, 0.3),
                    ],
                    ..Plan::even(0.5e6)
                },
            )
        },
        Case {
            sections: &["14.2"],
            requires: &["NOTICE"],
            feedback: 99_877,
            acts: vec![(1.0, Act::Notice(200_000)), (8.0, Act::Notice(200_000))],
            seconds: 15.0,
            ..case(
                "notice-exceeded",
                "A link of 0.45 Mbit/s; a device announces 0.2 Mbit/s, which is wrong, and does so again.",
                Plan::even(0.45e6),
            )
        },
        Case {
            sections: &["6.7", "11.1"],
            requires: &["LONGER"],
            seconds: 5.7,
            acts: vec![(3.9, Act::Limits(500_000, 500_000))],
            ..case(
                "longer-steady",
                "A link of 1.2 Mbit/s, 25 ms long, 100 ms from 4.3 s on; the limits keep the rate steady from 3.9 s on, so that the delay shows nothing.",
                Plan { one_way: vec![(0.0, 25.0), (4.3, 100.0)], ..Plan::even(1.2e6) },
            )
        },
        Case {
            sections: &["11.2"],
            requires: &["COMPETE"],
            outputs: &["compete"],
            seconds: 10.5,
            feedback: 99_877,
            ..case(
                "compete-shrinks",
                "A link of 1.2 Mbit/s, 0.2 from 3 s on, with a queue of 3 s that shrinks until others send 0.1 Mbit/s from 3.9 s on.",
                Plan {
                    capacity: vec![(0.0, 1.2e6), (3.0, 0.2e6)],
                    others: vec![(0.0, 0.0), (3.9, 0.1e6)],
                    limit: 3_000.0,
                    ..Plan::even(0.0)
                },
            )
        },
    ]
}

fn losses() -> Vec<Case> {
    let lossy = |share: f64| Plan { loss: vec![(0.0, 0.0), (2.0, share)], ..Plan::even(0.9e6) };
    vec![
        Case {
            sections: &["8.5", "10", "13.1"],
            outputs: LOSSES,
            ..case("core-loss", "A link of 0.9 Mbit/s that loses 2 % by chance from 2 s on.", lossy(0.02))
        },
        Case {
            sections: &["9"],
            requires: &["ANSWER"],
            outputs: LOSSES,
            seconds: 15.0,
            ..case("answer-chance", "A link of 0.9 Mbit/s that loses 10 % by chance from 2 s on.", lossy(0.1))
        },
        Case {
            sections: &["9"],
            requires: &["ANSWER"],
            outputs: LOSSES,
            seconds: 18.0,
            ceiling: 1_400_000,
            ..case(
                "answer-policer",
                "A link of 3 Mbit/s with a policer of 700 kbit/s from 2 s, 270 from 2.45 s, 600 from 5 s, 120 from 9 s to 12 s.",
                Plan {
                    policer: vec![(0.0, 0.0), (2.0, 0.7e6), (2.45, 0.27e6), (5.0, 0.6e6), (9.0, 0.12e6), (12.0, 0.0)],
                    ..Plan::even(3e6)
                },
            )
        },
        Case {
            sections: &["9.4", "9.6"],
            requires: &["ANSWER"],
            outputs: LOSSES,
            seconds: 20.0,
            ceiling: 1_400_000,
            ..case(
                "answer-bound",
                "A link of 3 Mbit/s with a policer of 1 Mbit/s from 2 s, 450 kbit/s from 6 s to 11 s; it loses 30 % by chance from 11 s to 16 s.",
                Plan {
                    policer: vec![(0.0, 0.0), (2.0, 1e6), (6.0, 0.45e6), (11.0, 0.0)],
                    loss: vec![(0.0, 0.0), (11.0, 0.3), (16.0, 0.0)],
                    ..Plan::even(3e6)
                },
            )
        },
        Case {
            sections: &["9.2"],
            requires: &["ANSWER"],
            outputs: LOSSES,
            ..case(
                "answer-clusters",
                "A link of 0.6 Mbit/s that loses four fifths of the packets for 120 ms of each second from 2 s on.",
                Plan {
                    loss: (2..12).flat_map(|s| [(f64::from(s), 0.8), (f64::from(s) + 0.12, 0.0)]).collect(),
                    ..Plan::even(0.6e6)
                },
            )
        },
        Case {
            sections: &["9.5"],
            requires: &["ANSWER"],
            outputs: LOSSES,
            seconds: 8.0,
            ..case(
                "answer-ended",
                "A link of 2.1 Mbit/s, 150 ms long, that loses half of the packets from 4 s to 4.33 s.",
                Plan {
                    loss: vec![(0.0, 0.0), (4.0, 0.5), (4.33, 0.0)],
                    one_way: vec![(0.0, 150.0)],
                    ..Plan::even(2.1e6)
                },
            )
        },
    ]
}

/// A flow whose floor is more than the link serves.
fn alone(name: &'static str, description: &'static str, limit: f64) -> Case {
    let capacity = (0..12).map(|k| (f64::from(k), 95e3 + 1e3 * f64::from(k))).collect();
    Case {
        sections: &["11.2"],
        requires: &["COMPETE", "SILENCE"],
        outputs: &["compete"],
        seconds: 12.0,
        ..case(name, description, Plan { capacity, limit, ..Plan::even(0.0) })
    }
}

fn company() -> Vec<Case> {
    vec![
        Case {
            sections: &["8.8", "11.2"],
            requires: &["COMPETE"],
            outputs: &["compete"],
            seconds: 17.0,
            ..case(
                "compete",
                "A link of 1.2 Mbit/s with a loss-based flow from 6 s to 14 s.",
                Plan { rival: vec![(6.0, 14.0)], limit: 160.0, ..Plan::even(1.2e6) },
            )
        },
        Case {
            sections: &["11.2"],
            requires: &["COMPETE", "STOP"],
            outputs: &["compete"],
            seconds: 9.0,
            ..case(
                "compete-alone",
                "A link of 0.8 Mbit/s, 0.08 from 3 s on, with a queue of 3 s: slower than the floor.",
                Plan { capacity: vec![(0.0, 0.8e6), (3.0, 0.08e6)], limit: 3_000.0, ..Plan::even(0.0) },
            )
        },
        Case {
            start: 100_000,
            feedback: 99_877,
            ..alone(
                "compete-apart",
                "A link of 95 kbit/s that becomes faster by 1 kbit/s a second, with a queue of 3 s: slower than the floor.",
                3_000.0,
            )
        },
        Case {
            start: 100_000,
            feedback: 99_877,
            ..alone("compete-lossy", "The same link with a queue of 230 ms.", 230.0)
        },
        Case {
            sections: &["8.8", "12.1", "12.2"],
            outputs: NOISE,
            seconds: 14.5,
            ..case(
                "core-others",
                "A link of 1 Mbit/s; others send 0.4 Mbit/s, and pause each 5 s for 150 ms.",
                Plan {
                    others: (1..5)
                        .flat_map(|k| [(5.0 * f64::from(k) - 3.0, 0.4e6), (5.0 * f64::from(k) + 1.85, 0.0)])
                        .collect(),
                    ..Plan::even(1e6)
                },
            )
        },
    ]
}

fn marks() -> Vec<Case> {
    vec![
        Case {
            sections: &["8.5", "10", "15.1"],
            requires: &["ECN"],
            outputs: MARKS,
            ..case(
                "ecn-classic",
                "A link of 0.9 Mbit/s that marks a packet each 100 ms while the queue is longer than 14 ms.",
                Plan { marks: Some((14.0, 100.0)), ..Plan::even(0.9e6) },
            )
        },
        Case {
            sections: &["5.3", "8.6", "10", "11.1", "13.1", "15"],
            requires: &["ECN"],
            outputs: MARKS,
            has_queue: true,
            seconds: 5.2,
            start: 1_000_000,
            ceiling: 6_000_000,
            feedback: 24_971,
            ..case(
                "ecn-l4s",
                "A link of 5.3 Mbit/s that marks each packet while the queue is longer than 1 ms; 10 Mbit/s from 1.9 s, 5.3 from 3.3 s, 2.5 from 4.7 s on.",
                Plan {
                    marks: Some((1.0, 0.0)),
                    capacity: vec![(0.0, 5.3e6), (1.9, 10e6), (3.3, 5.3e6), (4.7, 2.5e6)],
                    ..Plan::even(0.0)
                },
            )
        },
        Case {
            sections: &["8.6"],
            requires: &["ECN"],
            outputs: MARKS,
            seconds: 2.0,
            start: 1_000_000,
            ceiling: 6_000_000,
            feedback: 17_971,
            ..case(
                "ecn-l4s-shared",
                "A link of 4.9 Mbit/s that marks a packet each 7 ms, whatever its queue.",
                Plan { marks: Some((0.0, 7.0)), ..Plan::even(4.9e6) },
            )
        },
        Case {
            sections: &["8.6", "13.1"],
            requires: &["BURST", "ECN"],
            outputs: MARKS,
            has_queue: true,
            seconds: 12.9,
            start: 1_000_000,
            ceiling: 6_000_000,
            feedback: 124_897,
            acts: vec![(1.5, Act::Limits(100_000, 250_000)), (12.5, Act::Limits(100_000, 6_000_000))],
            ..case(
                "ecn-l4s-forgotten",
                "A link of 5.1 Mbit/s that marks each packet while the queue is longer than 1 ms; the ceiling is 250 kbit/s from 1.5 s to 12.5 s.",
                Plan { marks: Some((1.0, 0.0)), ..Plan::even(5.1e6) },
            )
        },
    ]
}

fn bounds() -> Vec<Case> {
    vec![
        Case {
            sections: &["5.3", "14.1"],
            requires: &["REQUEST"],
            seconds: 10.0,
            acts: vec![
                (2.0, Act::Request(Some(500_000))),
                (5.0, Act::Request(Some(50_000))),
                (7.0, Act::Request(None)),
            ],
            ..case(
                "request",
                "A link of 0.9 Mbit/s; the receiver asks for at most 500 and 50 kbit/s, then for nothing.",
                Plan::even(0.9e6),
            )
        },
        Case {
            sections: &["13.1", "14.2"],
            requires: &["NOTICE"],
            acts: vec![(1.0, Act::Notice(800_000)), (5.0, Act::Notice(3_000_000)), (9.0, Act::Notice(400_000))],
            seconds: 10.5,
            ..case("notice", "A link of 0.9 Mbit/s; a device announces 0.8, 3 and 0.4 Mbit/s.", Plan::even(0.9e6))
        },
        Case {
            sections: &["5.3", "10"],
            requires: &["COUPLED"],
            seconds: 12.0,
            acts: vec![(4.0, Act::Coupled(0.5)), (7.0, Act::Coupled(0.004)), (9.0, Act::Coupled(1.7))],
            ..case(
                "coupled",
                "A link of 1.6 Mbit/s with 0.5 Mbit/s of others; the flow is coupled at one half from 4 s to 7 s, then at less than the least, from 9 s on at more than the most.",
                Plan { others: vec![(0.0, 0.5e6)], ..Plan::even(1.6e6) },
            )
        },
        Case {
            sections: &["6.3", "7.1", "7.2", "9.1", "9.4"],
            requires: &["ANSWER"],
            outputs: LOSSES,
            seconds: 9.0,
            floor: 300_000,
            ..case(
                "answer-outage",
                "A link of 1.1 Mbit/s that serves nothing from 2 s to 4 s, and one of 9 Mbit/s that serves 50 ms of each 0.9 s from 5.5 s to 8.2 s: what is lost of the packets sent meanwhile is no evidence.",
                Plan {
                    capacity: vec![
                        (0.0, 1.1e6),
                        (2.0, 0.0),
                        (4.0, 1.1e6),
                        (5.5, 0.0),
                        (6.4, 9e6),
                        (6.45, 0.0),
                        (7.3, 9e6),
                        (7.35, 0.0),
                        (8.2, 9e6),
                    ],
                    ..Plan::even(0.0)
                },
            )
        },
        Case {
            sections: &["8.7", "10"],
            requires: &["BURST", "COUPLED"],
            seconds: 7.0,
            is_bursty: true,
            acts: vec![(4.0, Act::Coupled(0.5))],
            ..case(
                "coupled-bursts",
                "A link of 1.6 Mbit/s with 0.5 Mbit/s of others; the source sends in bursts, and is coupled at one half from 4 s on.",
                Plan { others: vec![(0.0, 0.5e6)], ..Plan::even(1.6e6) },
            )
        },
    ]
}
