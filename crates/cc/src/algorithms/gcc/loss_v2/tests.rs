use super::*;
use weir_units::{DataRate, DataSize, Ecn, RemoteTimestamp};

fn controller() -> LossV2 {
    LossV2::new(Limits { floor: DataRate::from_kbps(50), ceiling: DataRate::from_kbps(10_000) }, DataSize::ZERO)
}
/// Feedback every 100 ms on ten packets with `rate` in all; every `nth` is lost.
fn run(c: &mut LossV2, from_ms: i64, to_ms: i64, kbps: u64, nth: u64, delay_kbps: f64) {
    run_with(c, |packets| Some(sums(packets)), from_ms, to_ms, kbps, nth, delay_kbps);
}
fn sums(packets: &[PacketResult]) -> Sums {
    let bytes = |of: &dyn Fn(&&PacketResult) -> bool| packets.iter().filter(of).map(|p| p.size.as_bytes()).sum();
    let lost = packets.iter().filter(|p| p.arrival.is_none()).count() as u64;
    Sums { packets: packets.len() as u64, size: bytes(&|_| true), lost, lost_size: bytes(&|p| p.arrival.is_none()) }
}
fn run_with(
    c: &mut LossV2,
    sums: impl Fn(&[PacketResult]) -> Option<Sums>,
    from_ms: i64,
    to_ms: i64,
    kbps: u64,
    nth: u64,
    delay_kbps: f64,
) {
    for t in (from_ms..to_ms).step_by(100) {
        let size = DataSize::from_bytes(kbps * 100 / 8 / 10);
        let packets = (0..10)
            .map(|i| {
                let sequence = (t / 10) as u64 + i;
                let lost = sequence % nth == nth - 1;
                PacketResult {
                    sequence,
                    departure: Timestamp::from_millis(t + 10 * i as i64),
                    arrival: (!lost).then_some(RemoteTimestamp::from_millis(t)),
                    size,
                    ecn: Ecn::NotEct,
                    probe: 0,
                    was_lost: false,
                }
            })
            .collect::<Vec<_>>();
        let acked = kbps as f64 * 1e3 * (1.0 - 1.0 / nth as f64);
        c.update(&packets, sums(&packets), Some(acked), Some(delay_kbps * 1e3), false);
    }
}

#[test]
fn sums_count_as_their_packets() {
    let overhead = DataSize::from_bytes(28);
    let limits = Limits { floor: DataRate::from_kbps(50), ceiling: DataRate::from_kbps(10_000) };
    let (mut a, mut b) = (LossV2::new(limits, overhead), LossV2::new(limits, overhead));
    for (t, nth) in [(0, u64::MAX), (2_000, 20), (4_000, 4), (6_000, 50)] {
        run(&mut a, t, t + 2_000, 1_000, nth, 1_200.0);
        run_with(&mut b, |_| None, t, t + 2_000, 1_000, nth, 1_200.0);
        assert_eq!((a.rate(), a.state(), a.loss), (b.rate(), b.state(), b.loss));
        assert!(a.rate().is_some());
    }
}

#[test]
fn without_loss_the_delay_based_estimate_rules() {
    let mut c = controller();
    run(&mut c, 0, 700, 1_000, u64::MAX, 1_200.0);
    assert_eq!(c.rate(), None, "two observations");
    run(&mut c, 700, 10_000, 1_000, u64::MAX, 1_200.0);
    assert_eq!((c.rate(), c.state()), (Some(1_200e3), LossState::DelayBased));
}

#[test]
fn a_quarter_lost_binds_near_what_arrives() {
    let mut c = controller();
    run(&mut c, 0, 3_000, 1_000, u64::MAX, 1_200.0);
    run(&mut c, 3_000, 10_000, 1_000, 4, 1_200.0);
    // 100 kbit/s / (0.25 - 0.05) = 500 kbit/s is below the 750 acknowledged, which are the lower bound.
    assert!((c.loss - 0.25).abs() < 0.05, "{}", c.loss);
    let got = c.rate().expect("ready");
    assert!((749e3..=800e3).contains(&got), "{got}");
    assert_ne!(c.state(), LossState::DelayBased);
}

#[test]
fn two_percent_are_inherent() {
    let mut c = controller();
    run(&mut c, 0, 20_000, 1_000, 50, 1_000.0);
    let got = c.rate().expect("ready");
    assert!((950e3..=1_000e3).contains(&got), "{got}");
}

#[test]
fn inherent_loss_is_bounded_by_the_bandwidth() {
    assert_eq!(feasible(ChannelParameters { bandwidth: 1e6, inherent: 0.9 }), 0.15000000000000002);
}
