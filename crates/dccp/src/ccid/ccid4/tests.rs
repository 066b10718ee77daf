use crate::ccid::ccid3::tests::net::{Fate, Net, Source, clean, within};
use crate::ccid::{CcidSender, Registry, Setup};
use weir_cc::tcp::{Equation, TcpFlow};
use weir_cc::tunable::SetupError;
use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};

fn voice(size: u64, interval: i64, params: &[(&str, f64)]) -> Net {
    let mut n = Net::sized(4, 1_460, params);
    n.size = DataSize::from_bytes(size);
    n.source = Source::Every(TimeDelta::from_millis(interval));
    n
}

fn each(k: u64) -> impl Fn(u64) -> Fate {
    move |s| if s % k == k - 1 { Fate::Lost } else { Fate::Arrives }
}

#[test]
fn speech_of_small_packets_passes_where_ccid_3_would_hold_it() {
    // 160 bytes every 20 ms: 64 kbit/s. At a loss of 5 % and 100 ms a TCP flow of 1,460 bytes has 431 kbit/s, one of
    // 160 bytes 47.
    let mut small = voice(160, 20, &[]);
    small.run(60_000, each(20));
    within(small.sent_kbps(60_000, each(20)), 63.5..=64.5);
    let mut any = Net::sized(3, 1_460, &[]);
    (any.size, any.source) = (small.size, small.source);
    any.run(60_000, each(20));
    within(any.sent_kbps(60_000, each(20)), 40.0..=54.0);
}

#[test]
fn the_equation_has_the_nominal_segment_and_no_headers() {
    let mut n = voice(160, 10, &[]);
    n.run(60_000, each(40));
    let tcp = TcpFlow::new(DataSize::from_bytes(1_460), TimeDelta::from_millis(100));
    let expected = tcp.throughput(Equation::Full, 1.0 / 40.0).expect("bounded").as_bps_f64() * 160.0 / 196.0;
    within(n.metric("x_calc_bps") / expected, 0.95..=1.05);
}

#[test]
fn no_more_than_a_hundred_packets_a_second() {
    let mut n = voice(160, 10, &[]);
    n.source = Source::Greedy;
    n.run(5_000, clean);
    within(n.metric("x_bps"), 128e3..=1e9);
    assert_eq!(n.sender.rate(), Some(DataRate::from_kbps(128)));
    n.wants_log = true;
    n.run(1_000, clean);
    within(n.log.len() as f64, 99.0..=101.0);
    assert!(n.log.windows(2).all(|p| p[1].0 - p[0].0 >= TimeDelta::from_millis(10)));
}

#[test]
fn many_losses_each_round_trip_count_each() {
    // Six of every ten packets of 10 ms, in a round trip of 100 ms: one event each, so that CCID 3 sees 1 in 10.
    let bursts = |s: u64| if s % 10 < 6 { Fate::Lost } else { Fate::Arrives };
    let p = |number| {
        let mut n = Net::sized(number, 1_460, &[]);
        (n.size, n.source) = (DataSize::from_bytes(160), Source::Every(TimeDelta::from_millis(10)));
        n.run(1_000, clean);
        n.run(1_000, bursts);
        n.metric("loss_event_rate")
    };
    // The long interval before it is in both.
    within(p(3), 0.005..=0.11);
    within(p(4) / p(3), 2.5..=6.1);
}

#[test]
fn parameters_of_both_are_known_and_others_are_not() {
    let setup = |name: &str, value| Setup {
        now: Timestamp::ZERO,
        max_packet_size: DataSize::from_bytes(1_400),
        rtt: None,
        ecn: true,
        ack_ratio: 2,
        params: vec![(name.into(), value)],
    };
    let registry = Registry::builtin();
    let spec = registry.get(4).expect("CCID 4");
    for (name, value) in [("header", 40.0), ("min_interval", 20.0), ("q", 0.8)] {
        assert!((spec.sender)(&setup(name, value)).is_ok() && (spec.receiver)(&setup(name, value)).is_ok(), "{name}");
        assert!(spec.params.iter().any(|p| p.name == name));
    }
    let Err(SetupError::UnknownParam { known, .. }) = (spec.sender)(&setup("size", 1.0)).map(|_| ()) else {
        panic!("no such parameter");
    };
    assert!(known.contains(&"header") && known.contains(&"q"));
    assert!(matches!((spec.sender)(&setup("header", 900.0)).map(|_| ()), Err(SetupError::OutOfRange { .. })));
}
