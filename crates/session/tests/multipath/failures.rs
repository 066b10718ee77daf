//! Paths that fail and work again.

use super::two_paths::{Paths, media_of, plan_of};
use weir_units::{PathId, TimeDelta, Timestamp};
use weir_wire::rtcp::mprtcp::Block;
use weir_wire::rtcp::{App, Packet, parse_compound};

const A: PathId = PathId::FIRST;

fn ms(ms: i64) -> Timestamp {
    Timestamp::from_millis(ms)
}

/// When media were sent on a path first after this time.
fn first_media(call: &Paths, path: PathId, after: Timestamp) -> Option<Timestamp> {
    call.sent[0].iter().find(|(at, _, t)| *at >= after && t.path == path && media_of(t)).map(|(at, ..)| *at)
}

/// The longest time between two media packets received in a span.
fn longest_gap(call: &Paths, from: Timestamp, to: Timestamp) -> TimeDelta {
    let times: Vec<_> = call.received_at().filter(|at| (from..to).contains(at)).collect();
    times.windows(2).map(|w| w[1] - w[0]).max().expect("media")
}

/// Checks sent by the sender, with the size of each on the wire.
fn checks(call: &Paths) -> Vec<(Timestamp, u64)> {
    let is_check = |p: &Packet<'_>| matches!(p, Packet::App(App { name, .. }) if name == b"WPCK");
    let has_check = |bytes: &[u8]| {
        parse_compound(bytes).any(|p| match p {
            Ok(Packet::Mprtcp(m)) => m
                .blocks
                .iter()
                .any(|b| matches!(b, Block::Reports(r) if r.packets().any(|p| p.as_ref().is_ok_and(is_check)))),
            _ => false,
        })
    };
    let rtcp = call.sent[0].iter().filter(|(.., t)| !t.is_rtp());
    rtcp.filter(|(_, bytes, _)| has_check(bytes)).map(|(at, bytes, _)| (*at, bytes.len() as u64 + 28)).collect()
}

#[test]
fn a_path_that_works_again_is_used_within_a_second() {
    for controller in ["gcc", "nada", "scream2"] {
        let mut call = Paths::new(plan_of(controller, "earliest", 1_500), [(1_500, 10), (1_500, 30)]);
        call.run_until(ms(20_000));
        call.dead = Some(0);
        call.run_until(ms(40_000));
        assert!(longest_gap(&call, ms(19_900), ms(40_000)) < TimeDelta::from_millis(300), "{controller}");
        call.dead = None;
        call.run_until(ms(60_000));
        let back = first_media(&call, A, ms(40_000)).expect("used again") - ms(40_000);
        assert!((500..1_100).contains(&back.as_millis()), "{controller}: {back}");
        assert_eq!(call.a.stats().counters().checks_refused, 0);
    }
}

#[test]
fn a_path_that_flaps_is_no_worse_than_the_other_alone() {
    for controller in ["gcc", "nada", "scream2"] {
        let mut alone = Paths::new(plan_of(controller, "earliest", 1_500), [(1_500, 10), (1_500, 30)]);
        alone.run_until(ms(20_000));
        alone.dead = Some(0);
        alone.run_until(ms(80_000));
        let mut flaps = Paths::new(plan_of(controller, "earliest", 1_500), [(1_500, 10), (1_500, 30)]);
        flaps.run_until(ms(20_000));
        for flap in 0..30 {
            flaps.dead = (flap % 2 == 0).then_some(0);
            flaps.run_until(ms(20_000 + (flap + 1) * 2_000));
        }
        let [alone, flapping] = [&alone, &flaps].map(|call| call.received_kbps(20, 80));
        assert!(flapping > 0.9 * alone, "{controller}: {flapping} of {alone} kbit/s");
        assert!(longest_gap(&flaps, ms(20_000), ms(80_000)) < TimeDelta::from_millis(400), "{controller}");
        // Each failure is held longer: the path has media after few of its 15 returns.
        let returns = (0..15).filter(|n| {
            let up = ms(22_000 + n * 4_000);
            first_media(&flaps, A, up).is_some_and(|at| at < up + TimeDelta::from_secs(2))
        });
        assert!((1..=4).contains(&returns.count()), "{controller}");
    }
}

#[test]
fn checks_stay_inside_their_part_of_rtcps_share() {
    // RTCP's 5 % of 40 kbit/s are 2 kbit/s, of which checks have a quarter.
    for (session_kbps, interval) in [(2_000, 250), (40, 1_024)] {
        let mut plan = plan_of("gcc", "earliest", 1_500);
        plan.sender.session_bandwidth = weir_units::DataRate::from_kbps(session_kbps);
        let mut call = Paths::new(plan, [(1_500, 10), (1_500, 30)]);
        call.run_until(ms(20_000));
        assert_eq!(checks(&call).len(), 0);
        call.dead = Some(0);
        call.run_until(ms(80_000));
        let sent = checks(&call);
        assert!(sent.iter().all(|(_, size)| *size == 64), "{sent:?}");
        let spacing: Vec<_> = sent.windows(2).map(|w| (w[1].0 - w[0].0).as_millis()).collect();
        assert!(spacing.iter().all(|s| *s >= interval), "{spacing:?}");
        // After half a minute they are a second apart.
        assert_eq!((spacing[0], *spacing.last().expect("checks")), (interval, interval.max(1_000)));
    }
}
