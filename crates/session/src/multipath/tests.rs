use super::*;
use crate::datagram::Kind;
use proptest::prelude::*;
use weir_units::{DataRate, DataSize, PathId, TimeDelta, Timestamp};

const A: PathId = PathId::FIRST;
const B: PathId = PathId::new(1);
const C: PathId = PathId::new(2);

fn path(id: PathId, kbps: u64, rtt_ms: i64) -> PathView {
    PathView {
        id,
        is_usable: true,
        rate: DataRate::from_kbps(kbps),
        open_at: Timestamp::ZERO,
        backlog: TimeDelta::ZERO,
        queueing: TimeDelta::ZERO,
        rtt: Some(TimeDelta::from_millis(rtt_ms)),
        loss: 0.0,
        in_flight: DataSize::ZERO,
        window: None,
    }
}
fn packet(ms: i64) -> Scheduled {
    let frame = (0, (ms / 40) as u32);
    Scheduled {
        now: Timestamp::from_millis(ms),
        kind: Kind::Media,
        is_key: false,
        size: DataSize::from_bytes(1_000),
        queued: DataSize::ZERO,
        frame,
    }
}
fn named(name: &str) -> AnyScheduler {
    AnyScheduler::named(name).unwrap_or_else(|| panic!("{name} is in the list"))
}
/// Bytes by path over `seconds`, of media at the sum of the paths' rates in packets of 1,000 bytes.
fn shares(s: &mut AnyScheduler, paths: &[PathView], from: i64, seconds: i64) -> [f64; 3] {
    let rate = s.media_rate(paths).as_bps_f64();
    let count = (rate * seconds as f64 / 8_000.0) as i64;
    let mut sent = [0.0; 3];
    for i in 0..count {
        let chosen = s.choose(&packet(from + i * seconds * 1_000 / count), paths);
        chosen.iter().for_each(|id| sent[id.index()] += 1.0);
    }
    sent.map(|n| n / count as f64)
}
#[track_caller]
fn close(got: f64, expected: f64) {
    assert!((got - expected).abs() < 0.02, "{got}, expected {expected}");
}
fn report(ms: i64, lost: u64, discarded: u64) -> PathReport {
    let (now, mean_size) = (Timestamp::from_millis(ms), DataSize::from_bytes(1_000));
    PathReport { now, expected: 100, lost, discarded, mean_size }
}

#[test]
fn names_are_distinct_and_all_made() {
    let mut names: Vec<_> = SCHEDULERS.iter().map(|s| s.name).collect();
    names.sort_unstable();
    let expected = ["best-path", "earliest", "fec-aware", "frame-aligned", "redundant", "round-robin", "thesis"];
    assert_eq!(names, expected);
    assert!(SCHEDULERS.iter().all(|s| AnyScheduler::named(s.name).is_some() && !s.summary.is_empty()));
    assert!(AnyScheduler::named("nearest").is_none());
}

#[test]
fn sets_of_paths() {
    let set = PathSet::one(B).with(C);
    assert_eq!((set.len(), set.first(), set.contains(A), set.contains(C)), (2, Some(B), false, true));
    assert!(PathSet::one(PathId::new(8)).is_empty() && PathSet::NONE.first().is_none());
    assert_eq!(set.iter().collect::<Vec<_>>(), [B, C]);
}

#[test]
fn round_robin_follows_the_rates() {
    let mut s = named("round-robin");
    let paths = [path(A, 1_000, 40), path(B, 2_000, 120)];
    assert_eq!(s.media_rate(&paths), DataRate::from_kbps(3_000));
    let [a, b, _] = shares(&mut s, &paths, 0, 10);
    close(a, 1.0 / 3.0);
    close(b, 2.0 / 3.0);
    // No path gets two packets in a row beyond its share: with 1 to 2 the order is a strict pattern.
    let order: Vec<_> = (0..6).filter_map(|i| s.choose(&packet(20_000 + i), &paths).first()).collect();
    assert_eq!(order.iter().filter(|p| **p == A).count(), 2, "{order:?}");
}

#[test]
fn a_path_that_returns_is_owed_nothing() {
    let mut s = named("round-robin");
    let paths = [path(A, 1_000, 40), path(B, 1_000, 40)];
    let only_a = [paths[0], PathView { is_usable: false, ..paths[1] }];
    assert_eq!(shares(&mut s, &only_a, 0, 10)[0], 1.0);
    let [a, b, _] = shares(&mut s, &paths, 10_000, 1);
    close(a, 0.5);
    close(b, 0.5);
}

#[test]
fn the_best_path_keeps_packets_until_another_is_clearly_better() {
    let mut s = named("best-path");
    let paths = [path(A, 1_000, 20), path(B, 2_000, 60)];
    assert_eq!(s.choose(&packet(0), &paths), PathSet::one(A));
    assert_eq!(s.media_rate(&paths), DataRate::from_kbps(1_000));
    // By 20 % better: stays. By 50 %: moves.
    let better = |kbps| [path(A, 1_000, 20), path(B, kbps, 20)];
    assert_eq!(s.choose(&packet(1), &better(1_200)), PathSet::one(A));
    assert_eq!(s.choose(&packet(2), &better(1_500)), PathSet::one(B));
    assert_eq!(s.choose(&packet(3), &better(1_000)), PathSet::one(B));
    let without = [paths[0], PathView { is_usable: false, ..paths[1] }];
    assert_eq!(s.choose(&packet(4), &without), PathSet::one(A));
}

#[test]
fn earliest_delivery_fills_the_fast_path_first_and_then_both() {
    let mut s = named("earliest");
    let paths = [path(A, 1_000, 20), path(B, 2_000, 60)];
    // Packets arrive after 18, 26, 34, 42 ms on A and after 34, 38, 42 ms on B.
    let order: Vec<_> = (0..6).filter_map(|_| s.choose(&packet(0), &paths).first()).collect();
    assert_eq!(order, [A, A, A, B, B, A]);
    let [a, b, _] = shares(&mut s, &paths, 1_000, 10);
    close(a, 1.0 / 3.0);
    close(b, 2.0 / 3.0);
    // Sparse media stay on the fast path.
    assert!((0..100).all(|i| s.choose(&packet(20_000 + i * 20), &paths) == PathSet::one(A)));
}

#[test]
fn earliest_delivery_uses_a_slower_path_while_more_is_queued_than_the_faster_one_delivers_before() {
    // A takes 8 ms a packet and holds them back by as much, B is open and slower by 20 ms.
    let paths = [PathView { open_at: Timestamp::from_millis(8), ..path(A, 1_000, 20) }, path(B, 2_000, 80)];
    let with = |queued| Scheduled { queued: DataSize::from_bytes(queued), ..packet(0) };
    assert_eq!(named("earliest").choose(&with(0), &paths), PathSet::one(A));
    assert_eq!(named("earliest").choose(&with(1_000), &paths), PathSet::one(A));
    assert_eq!(named("earliest").choose(&with(5_000), &paths), PathSet::one(B));
    // A path whose link has a queue delivers later.
    let behind = [PathView { backlog: TimeDelta::from_millis(50), ..path(A, 1_000, 20) }, path(B, 2_000, 80)];
    assert_eq!(named("earliest").choose(&with(0), &behind), PathSet::one(B));
}

#[test]
fn a_full_window_sends_packets_elsewhere() {
    let mut s = named("earliest");
    let full = PathView {
        in_flight: DataSize::from_bytes(10_000),
        window: Some(DataSize::from_bytes(10_000)),
        ..path(A, 1_000, 20)
    };
    // On A the packet waits 8 ms for room and 8 ms for itself.
    assert_eq!(s.choose(&packet(0), &[full, path(B, 2_000, 30)]), PathSet::one(B));
    let mut s = named("earliest");
    assert_eq!(s.choose(&packet(0), &[full, path(B, 2_000, 60)]), PathSet::one(A));
}

#[test]
fn a_frame_keeps_its_path() {
    let mut s = named("frame-aligned");
    let paths = [path(A, 1_000, 20), path(B, 2_000, 60)];
    assert_eq!(s.choose(&packet(0), &paths), PathSet::one(B));
    assert_eq!(s.media_rate(&paths), DataRate::from_kbps(2_000));
    // A is faster now, but the frame is not at its end; a little faster is not enough.
    let faster = [path(A, 3_000, 20), paths[1]];
    assert_eq!(packet(1).frame, packet(0).frame);
    assert_eq!(s.choose(&packet(1), &faster), PathSet::one(B));
    assert_eq!(s.choose(&packet(100), &[path(A, 2_100, 20), paths[1]]), PathSet::one(B));
    assert_eq!(s.choose(&packet(200), &faster), PathSet::one(A));
    // A path that fails inside a frame is left.
    let failed = faster.map(|p| PathView { is_usable: p.id != A, ..p });
    assert_eq!(s.choose(&packet(201), &failed), PathSet::one(B));
    assert!(s.choose(&packet(202), &failed.map(|p| PathView { is_usable: false, ..p })).is_empty());
}

#[test]
fn redundant_packets_go_everywhere_at_the_slowest_rate() {
    let mut s = named("redundant");
    let paths = [path(A, 1_000, 20), path(B, 2_000, 60), PathView { is_usable: false, ..path(C, 100, 5) }];
    assert_eq!(s.choose(&packet(0), &paths), PathSet::one(A).with(B));
    assert_eq!(s.media_rate(&paths), DataRate::from_kbps(1_000));
}

#[test]
fn repair_goes_over_another_path_than_media() {
    let mut s = named("fec-aware");
    let paths = [path(A, 1_000, 20), path(B, 2_000, 60), path(C, 500, 100)];
    assert_eq!(s.choose(&packet(0), &paths), PathSet::one(A));
    for kind in [Kind::Repair, Kind::Retransmission] {
        assert_eq!(s.choose(&Scheduled { kind, ..packet(1) }, &paths), PathSet::one(B));
    }
    assert_eq!(s.media_rate(&paths), DataRate::from_kbps(1_000));
    // With one path left, everything goes there.
    let one = [paths[0], PathView { is_usable: false, ..paths[1] }];
    assert_eq!(s.choose(&Scheduled { kind: Kind::Repair, ..packet(2) }, &one), PathSet::one(A));
}

#[test]
fn the_thesis_starts_with_equal_shares_and_then_follows_capacity() {
    let mut s = named("thesis");
    let paths = [path(A, 1_000, 40), path(B, 2_000, 60)];
    let [a, b, _] = shares(&mut s, &paths, 0, 1);
    close(a, 0.5);
    close(b, 0.5);
    for id in [A, B] {
        s.on_report(id, &report(1_000, 0, 0));
        s.on_report(id, &report(2_000, 0, 0));
    }
    let [a, b, _] = shares(&mut s, &paths, 2_000, 10);
    close(a, 1.0 / 3.0);
    close(b, 2.0 / 3.0);
}

#[test]
fn the_thesis_takes_shares_from_congested_paths_and_gives_them_back_slowly() {
    let mut s = named("thesis");
    let paths = [path(A, 1_000, 40), path(B, 1_000, 40)];
    let both = |s: &mut AnyScheduler, seconds: i64, lost| {
        s.on_report(A, &report(seconds * 1_000, 0, 0));
        s.on_report(B, &report(seconds * 1_000, lost, lost));
    };
    (0..3).for_each(|i| both(&mut s, i, 0));
    close(shares(&mut s, &paths, 3_000, 2)[1], 0.5);
    // Each report has 100 packets of 1,000 bytes in a second: 800 kbit/s, less what was lost.
    both(&mut s, 3, 10);
    let mild = shares(&mut s, &paths, 5_000, 2)[1];
    assert!((0.35..0.45).contains(&mild), "{mild}");
    (4..7).for_each(|i| both(&mut s, i, 10));
    let congested = shares(&mut s, &paths, 8_000, 2)[1];
    assert!(congested < 0.30, "{congested}");
    both(&mut s, 8, 0);
    let after_one = shares(&mut s, &paths, 11_000, 2)[1];
    (9..30).for_each(|i| both(&mut s, i, 0));
    let after_all = shares(&mut s, &paths, 40_000, 2)[1];
    assert!(after_one < 0.40 && after_all > 0.48, "{after_one}, {after_all}");
}

#[test]
fn the_thesis_bounds_latency_and_skew() {
    let mut s = named("thesis");
    // Latencies of 20, 150 and 600 ms: the third is over 500 ms.
    let paths = [path(A, 1_000, 40), path(B, 1_000, 300), path(C, 9_000, 1_200)];
    assert_eq!(s.media_rate(&paths), DataRate::from_kbps(2_000));
    assert_eq!(shares(&mut s, &paths, 0, 2)[2], 0.0);
    // 20 and 300 ms: more than 200 ms apart, so only the better one.
    let apart = [path(A, 1_000, 40), path(B, 1_000, 600)];
    assert_eq!(shares(&mut named("thesis"), &apart, 0, 2)[0], 1.0);
    assert_eq!(named("thesis").media_rate(&apart), DataRate::from_kbps(1_000));
    // With nothing better, a slow path is used.
    assert_eq!(named("thesis").choose(&packet(0), &paths[2..]), PathSet::one(C));
}

#[test]
fn the_thesis_leaves_paths_passive_that_the_media_do_not_need() {
    let mut s = named("thesis");
    let paths = [path(A, 1_000, 20), path(B, 1_000, 200)];
    // 800 kbit/s: all paths in the first second, then the first group alone.
    let chosen: Vec<_> = (0..300).filter_map(|i| s.choose(&packet(i * 10), &paths).first()).collect();
    assert!(chosen[..90].contains(&B));
    assert!(chosen[150..].iter().all(|p| *p == A), "{:?}", &chosen[150..]);
    // The passive path takes over when the active one fails.
    let failed = [PathView { is_usable: false, ..paths[0] }, paths[1]];
    assert_eq!(s.choose(&packet(3_100), &failed), PathSet::one(B));
}

#[test]
fn the_thesis_sends_key_frames_and_retransmissions_on_the_best_path() {
    let mut s = named("thesis");
    let paths = [path(A, 1_000, 40), path(B, 2_000, 60)];
    // 1,000 by 20 ms is less than 2,000 by 30 ms.
    for i in 0..20 {
        assert_eq!(s.choose(&Scheduled { is_key: true, ..packet(i) }, &paths), PathSet::one(B));
        assert_eq!(s.choose(&Scheduled { kind: Kind::Retransmission, ..packet(i) }, &paths), PathSet::one(B));
    }
    // Equal in capacity and latency: the one with fewer losses.
    let alike = [PathView { loss: 0.1, ..path(A, 1_000, 40) }, path(B, 1_000, 40)];
    assert_eq!(s.choose(&Scheduled { is_key: true, ..packet(50) }, &alike), PathSet::one(B));
}

fn any_path() -> impl Strategy<Value = PathView> {
    let numbers = (any::<bool>(), 0u64..100_000, proptest::option::of(0i64..10_000), 0.0f64..1.0);
    (numbers, any::<[u32; 2]>(), any::<bool>()).prop_map(
        |((is_usable, kbps, rtt, loss), [flight, window], windowed)| PathView {
            is_usable,
            rtt: rtt.map(TimeDelta::from_millis),
            loss,
            in_flight: DataSize::from_bytes(flight.into()),
            window: windowed.then(|| DataSize::from_bytes(window.into())),
            ..path(A, kbps, 0)
        },
    )
}

proptest! {
    /// Every scheduler sends on usable paths only, on some if there is one, and at a rate within their sum.
    #[test]
    fn schedulers_use_usable_paths(
        which in 0..SCHEDULERS.len(),
        steps in proptest::collection::vec((proptest::collection::vec(any_path(), 1..=MAX_PATHS), 0u8..4, any::<bool>(), 0u16..2_000, 0u64..200, 0u64..200), 1..60),
    ) {
        let mut s = named(SCHEDULERS[which].name);
        let mut now = Timestamp::ZERO;
        for (mut paths, kind, is_key, size, lost, discarded) in steps {
            paths.iter_mut().zip(0..).for_each(|(p, i)| p.id = PathId::new(i));
            now += TimeDelta::from_millis(i64::from(size) / 7);
            let kind = [Kind::Media, Kind::Padding, Kind::Repair, Kind::Retransmission][usize::from(kind)];
            let frame = (0, u32::from(size));
            let packet = Scheduled { now, kind, is_key, size: DataSize::from_bytes(size.into()), queued: DataSize::ZERO, frame };
            s.on_report(paths[0].id, &PathReport { now, expected: 100, lost, discarded, mean_size: packet.size });
            let chosen = s.choose(&packet, &paths);
            let usable: Vec<_> = paths.iter().filter(|p| p.is_usable).collect();
            prop_assert_eq!(chosen.is_empty(), usable.is_empty());
            prop_assert!(chosen.iter().all(|id| usable.iter().any(|p| p.id == id)));
            let sum = usable.iter().fold(DataRate::ZERO, |sum, p| sum + p.rate);
            prop_assert!(s.media_rate(&paths) <= sum);
        }
    }
}
