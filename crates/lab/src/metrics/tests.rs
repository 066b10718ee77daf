use super::*;
use crate::results::RunResult;
use weir_units::{DataRate, DataSize};

fn ms(n: i64) -> Timestamp {
    Timestamp::from_millis(n)
}
fn flow(name: &str, kind: FlowKind, start_s: i64) -> FlowInfo {
    FlowInfo {
        name: name.into(),
        controller: "gcc".into(),
        kind,
        adapts: kind != FlowKind::Udp,
        start: Timestamp::from_secs(start_s),
        stop: None,
        playout_deadline: None,
        reported_headers: 0,
        bottleneck: 0,
        further: vec![],
        links: vec![0],
        most: None,
    }
}
fn config(flows: Vec<FlowInfo>, capacity: Capacity, seconds: i64, series: bool) -> RecorderConfig {
    RecorderConfig {
        scenario: "test".into(),
        condition: String::new(),
        controller: "gcc".into(),
        seed: 1,
        flows,
        links: vec![LinkInfo { name: "bottleneck".into(), capacity }],
        bottleneck: 0,
        sampling: TimeDelta::from_millis(100),
        series,
        duration: TimeDelta::from_secs(seconds),
        burstiness: false,
        windows: vec![],
    }
}

/// Events in order of time: each flow with `every` above zero sends 1,000 bytes every `every` ms, with a one-way delay
/// of 100 ms.
fn play(config: RecorderConfig, every: impl Fn(usize, i64) -> i64) -> RunResult {
    let seconds = config.duration.as_millis() / 1_000;
    let starts: Vec<i64> = config.flows.iter().map(|f| f.start.as_millis()).collect();
    let mut r = Recorder::new(config);
    let (size, wire) = (DataSize::from_bytes(1_000), DataSize::from_bytes(1_028));
    let delay = TimeDelta::from_millis(100);
    let mut flying = std::collections::VecDeque::new();
    for t in 0..seconds * 1_000 {
        while flying.front().is_some_and(|&(at, _)| at <= ms(t)) {
            let (at, f): (Timestamp, usize) = flying.pop_front().expect("seen");
            r.received(f, at, at - delay, size);
        }
        for (f, start) in starts.iter().enumerate() {
            let gap = every(f, t);
            if t >= *start && gap > 0 && (t - start) % gap == 0 {
                r.generated(f, ms(t), size);
                r.sent(f, ms(t), size, wire);
                flying.push_back((ms(t) + delay, f));
            }
        }
    }
    r.finish(Timestamp::from_secs(seconds))
}

#[test]
fn one_steady_flow() {
    // 1,000 bytes every 8 ms are 1 Mbit/s, half of the link.
    let result = play(
        config(vec![flow("a", FlowKind::Rtp, 0)], Capacity::constant(DataRate::from_mbps(2)), 20, false),
        |_, _| 8,
    );
    let f = &result.flows[0];
    assert_eq!((f.utilisation, f.rates.generated_bps, f.rates.sent_bps), (Some(0.5), 1e6, 1e6));
    assert_eq!(f.rates.wire_bps, 1.028e6);
    // The last 100 ms are still in flight: sent at 19,904 to 19,992 ms.
    assert_eq!(f.packets.received, 2_500 - 12);
    assert_eq!(f.utilisation_goodput, Some(0.5 * 2_488.0 / 2_500.0));
    let d = f.one_way_delay_ms.expect("packets came");
    assert_eq!((d.mean, d.min, d.p50, d.p99, d.max), (100.0, 100.0, 100.0, 100.0, 100.0));
    assert_eq!((f.loss, f.discard, f.ramp_up_s, f.rate_variation), (0.0, 0.0, None, Some(0.0)));
    assert_eq!(f.tail_goodput_bps, 1e6);
    assert_eq!(result.fairness.jain_mean, None);
    assert_eq!(result.series, None);
}

#[test]
fn loss_and_discard_are_shares_of_different_wholes() {
    let mut r = Recorder::new(config(
        vec![flow("a", FlowKind::Rtp, 0)],
        Capacity::constant(DataRate::from_kbps(80)),
        10,
        false,
    ));
    let size = DataSize::from_bytes(1_000);
    for i in 0..100 {
        let t = ms(100 * i);
        r.sent(0, t, size, size);
        match i % 10 {
            0 => r.dropped(0, t, DropCause::Queue),
            1 => r.dropped(0, t, DropCause::Channel),
            _ => r.received(0, t + TimeDelta::from_millis(50), t, size),
        }
        if i % 10 == 2 {
            r.discarded(0, t + TimeDelta::from_millis(50), size);
        }
    }
    r.dropped(0, ms(9_990), DropCause::Sender);
    let f = r.finish(Timestamp::from_secs(10)).flows.remove(0);
    assert_eq!((f.loss, f.discard), (0.2, 0.125));
    assert_eq!((f.packets.dropped_queue, f.packets.dropped_channel, f.packets.dropped_sender), (10, 10, 1));
    assert_eq!((f.rates.received_bps, f.rates.goodput_bps), (64_000.0, 56_000.0));
}

#[test]
fn nothing_is_measured_against_a_link_without_a_limit() {
    let mut c = config(vec![flow("a", FlowKind::Rtp, 0)], Capacity::constant(DataRate::ZERO), 20, false);
    c.windows = vec![Window { label: "all".into(), start: Timestamp::ZERO, end: Timestamp::from_secs(20) }];
    let result = play(c, |_, _| 8);
    let (f, w) = (&result.flows[0], &result.windows[0].flows[0]);
    assert_eq!((f.utilisation, f.utilisation_goodput, f.ramp_up_s), (None, None, None));
    assert_eq!((w.utilisation, w.utilisation_goodput, result.links[0].capacity_bps), (None, None, None));
    assert!(f.values().iter().all(|v| !v.0.starts_with("utilisation")));
}

#[test]
fn tcp_and_udp_use_what_arrives_of_them() {
    for kind in [FlowKind::Tcp, FlowKind::Udp] {
        let mut r =
            Recorder::new(config(vec![flow("a", kind, 0)], Capacity::constant(DataRate::from_kbps(80)), 10, false));
        let size = DataSize::from_bytes(1_000);
        for i in 0..100 {
            // Five times what the link carries is sent, and one of five packets arrives.
            (0..5).for_each(|_| r.sent(0, ms(100 * i), size, size));
            r.received(0, ms(100 * i + 50), ms(100 * i), size);
        }
        let f = r.finish(Timestamp::from_secs(10)).flows.remove(0);
        assert_eq!((f.utilisation, f.utilisation_goodput), (Some(1.0), Some(1.0)));
    }
}

#[test]
fn flows_that_share_no_link_are_not_compared() {
    let run = |second: FlowKind, link: usize| {
        let mut other = flow("b", second, 0);
        (other.bottleneck, other.links) = (link, vec![link]);
        let cap = Capacity::constant(DataRate::from_mbps(2));
        let mut c = config(vec![flow("a", FlowKind::Rtp, 0), other], cap.clone(), 20, false);
        c.links.push(LinkInfo { name: "back".into(), capacity: cap });
        play(c, |f, _| if f == 0 { 8 } else { 16 }).fairness
    };
    let (apart, shared) = (run(FlowKind::Tcp, 1), run(FlowKind::Tcp, 0));
    assert_eq!((apart.tcp_share, apart.tcp_fair_share), (None, None));
    assert!(apart.tcp_goodput_bps.is_some() && shared.tcp_share.is_some_and(|s| (s - 2.0 / 3.0).abs() < 0.01));
    assert!(shared.tcp_fair_share.is_some_and(|s| (s - 0.5).abs() < 0.01), "{shared:?}");
    let (apart, shared) = (run(FlowKind::Rtp, 1), run(FlowKind::Rtp, 0));
    assert_eq!((apart.jain_mean, apart.jain_min, apart.jain_end, apart.end_ratio), (None, None, None, None));
    assert!(shared.jain_end.is_some_and(|j| (j - 0.9).abs() < 0.01), "{shared:?}");
}

#[test]
fn a_flow_that_limits_itself_has_ramped_up_at_its_own_limit() {
    // 1 Mbit/s is half of the link, which falls to that at 10 s.
    let mut limited = flow("a", FlowKind::Rtp, 0);
    limited.most = Some(Capacity::constant(DataRate::from_mbps(1)));
    let (high, low) = (DataRate::from_mbps(2), DataRate::from_mbps(1));
    let cap = Capacity::steps(vec![(Timestamp::ZERO, high), (Timestamp::from_secs(10), low)]);
    let ramp_up = |flow| play(config(vec![flow], cap.clone(), 20, false), |_, _| 8).flows[0].ramp_up_s;
    assert!(ramp_up(limited).is_some_and(|s| s < 1.3));
    assert!(ramp_up(flow("a", FlowKind::Rtp, 0)).is_some_and(|s| s >= 10.0));
}

#[test]
fn rates_may_count_headers_that_no_link_carries() {
    let mut with_headers = flow("a", FlowKind::Rtp, 0);
    with_headers.reported_headers = 30;
    let result = play(config(vec![with_headers], Capacity::constant(DataRate::from_mbps(2)), 20, true), |_, _| 8);
    let f = &result.flows[0];
    // 30 bytes more every 8 ms are 30 kbit/s.
    assert_eq!((f.rates.generated_bps, f.rates.sent_bps, f.rates.wire_bps), (1e6, 1.03e6, 1.028e6));
    assert_eq!((f.utilisation, f.utilisation_goodput), (Some(0.5), Some(0.515 * 2_488.0 / 2_500.0)));
    assert_eq!(f.tail_goodput_bps, 1.03e6);
    let series = &result.series.expect("kept").flows[0];
    let mean = |rates: &[f64]| rates[100..].iter().sum::<f64>() / (rates.len() - 100) as f64;
    assert!((mean(&series.goodput_bps) - 1.03e6).abs() < 1e3 && (mean(&series.sent_bps) - 1.03e6).abs() < 1e3);
}

#[test]
fn two_flows_of_three_to_one() {
    // 1.5 Mbit/s from 0 s beside 0.5 Mbit/s from 10 s on 2 Mbit/s.
    let flows = vec![flow("a", FlowKind::Rtp, 0), flow("b", FlowKind::Rtp, 10)];
    let cap = Capacity::constant(DataRate::from_mbps(2));
    let result = play(config(flows, cap, 40, true), |f, t| match f {
        0 if t < 30_000 || t % 3 == 0 => {
            if t < 10_000 {
                4
            } else {
                8
            }
        }
        1 => 16,
        _ => 0,
    });
    // After 30 s a's packets need t to be a multiple of 24, a third of 1 Mbit/s; 100 ms of the previous rate still
    // arrive.
    let third = 1e6 / 3.0;
    let (a, b) = (&result.flows[0], &result.flows[1]);
    assert!((a.tail_goodput_bps - third).abs() < 8_000.0 && (b.tail_goodput_bps - 5e5).abs() < 1_000.0);
    let jain = |x: f64, y: f64| (x + y) * (x + y) / (2.0 * (x * x + y * y));
    let f = result.fairness;
    assert!((f.jain_end.expect("two flows") - jain(third, 5e5)).abs() < 0.01);
    assert!((f.end_ratio.expect("two flows") - 1.5).abs() < 0.04);
    let series = result.series.as_ref().expect("asked for");
    assert_eq!(series.jain.len(), 400);
    assert!(series.jain[..109].iter().all(|j| j.is_nan()), "b has not been active for a second");
    assert!((series.jain[200] - jain(1e6, 5e5)).abs() < 0.01);
    // b uses half of its fair share of 1 Mbit/s; a has the whole link alone, which 2 Mbit/s fill within 1.1 s.
    assert_eq!(b.ramp_up_s, None);
    assert_eq!(a.ramp_up_s, Some(1.0));
    assert_eq!(a.kind, FlowKind::Rtp);
}

#[test]
fn share_against_tcp() {
    let mut tcp = flow("tcp", FlowKind::Tcp, 10);
    tcp.stop = Some(Timestamp::from_secs(20));
    let cap = Capacity::constant(DataRate::from_mbps(2));
    let result = play(config(vec![flow("rtp", FlowKind::Rtp, 0), tcp], cap, 30, false), |f, t| match f {
        0 if (10_000..20_000).contains(&t) => 16,
        0 => 4,
        _ if t < 20_000 => 6,
        _ => 0,
    });
    // While both are active: 0.5 Mbit/s against 1.333 Mbit/s; the first row still contains 25 packets of the 2 Mbit/s.
    let share = result.fairness.tcp_share.expect("both were active");
    assert!((share - 0.5 / (0.5 + 4.0 / 3.0)).abs() < 0.01, "{share}");
}

#[test]
fn settling_after_changes() {
    let kbps = DataRate::from_kbps;
    let capacity = Capacity::steps(vec![
        (Timestamp::ZERO, kbps(2_000)),
        (Timestamp::from_secs(20), kbps(1_000)),
        (Timestamp::from_secs(40), kbps(2_000)),
        (Timestamp::from_secs(60), kbps(1_950)),
    ]);
    let result = play(config(vec![flow("a", FlowKind::Rtp, 0)], capacity, 80, false), |_, t| match t {
        0..20_000 => 4,
        20_000..25_000 => 4,
        25_000..40_000 => 8,
        _ => 8,
    });
    let s = &result.flows[0].settling;
    assert_eq!(s.len(), 2, "a change of 2.5 % is none");
    assert_eq!((s[0].at_s, s[0].capacity_bps, s[1].settled_after_s), (20.0, 1e6, None));
    // 1 Mbit/s is sent from 25 s on and received 0.1 s later; the mean of a second is at 1.2 Mbit/s 0.8 s after that.
    let settled = s[0].settled_after_s.expect("settled");
    assert!((5.8..=6.1).contains(&settled), "{settled}");
}

#[test]
fn windows_sum_up_their_own_span() {
    let mut c = config(vec![flow("a", FlowKind::Rtp, 0)], Capacity::constant(DataRate::from_mbps(2)), 40, false);
    let w = |label: &str, a, b| Window {
        label: label.into(),
        start: Timestamp::from_secs(a),
        end: Timestamp::from_secs(b),
    };
    c.windows = vec![w("0-20s", 0, 20), w("20-40s", 20, 40), w("30-60s", 30, 60), w("50-60s", 50, 60)];
    let result = play(c, |_, t| if t < 20_000 { 8 } else { 4 });
    let labels: Vec<&str> = result.windows.iter().map(|w| w.label.as_str()).collect();
    assert_eq!(labels, ["0-20s", "20-40s", "30-60s"]);
    assert_eq!(result.window("0-20s").expect("first").flows[0].utilisation, Some(0.5));
    let second = &result.windows[1].flows[0];
    assert_eq!((second.utilisation, second.generated_bps, second.one_way_delay_ms), (Some(1.0), 2e6, Some(100.0)));
    assert_eq!((result.windows[2].end_s, result.windows[2].flows[0].utilisation), (40.0, Some(1.0)));
}

#[test]
fn queue_delay_is_weighted_by_time() {
    let mut c = config(vec![], Capacity::constant(DataRate::from_mbps(1)), 10, true);
    c.windows = vec![Window { label: "end".into(), start: Timestamp::from_secs(8), end: Timestamp::from_secs(10) }];
    let mut r = Recorder::new(c);
    let d = TimeDelta::from_millis;
    r.link(0, ms(0), DataSize::ZERO, d(0));
    r.link(0, ms(5_000), DataSize::from_bytes(12_500), d(100));
    r.link(0, ms(9_000), DataSize::from_bytes(25_000), d(200));
    let result = r.finish(Timestamp::from_secs(10));
    let q = result.queue.as_ref().expect("a link");
    let delay = q.delay_ms.expect("measured");
    // 5 s of 0, 4 s of 100 ms, 1 s of 200 ms.
    assert!((delay.mean - 60.0).abs() < 1e-9 && delay.p50 == 0.0 && delay.max == 200.0);
    assert!((delay.p95 - 200.0).abs() < 0.8);
    assert!((q.bytes.expect("measured").mean - 7_500.0).abs() < 1e-6);
    assert!((result.windows[0].queue_delay_ms[0].expect("measured") - 150.0).abs() < 1e-9);
    let link = &result.series.as_ref().expect("asked for").links[0];
    assert!(link.queue_delay_ms[49] == 0.0 && (link.queue_delay_ms[50] - 100.0).abs() < 1e-9);
    assert!(link.capacity_bps.iter().all(|c| (c - 1e6).abs() < 1e-3));
}

#[test]
fn states_at_a_row_end_belong_to_it() {
    let mut r =
        Recorder::new(config(vec![flow("a", FlowKind::Rtp, 0)], Capacity::constant(DataRate::from_mbps(1)), 1, true));
    assert_eq!(r.next_row(), ms(100));
    for i in 1..=10 {
        r.target(0, ms(100 * i), DataRate::from_kbps(i.unsigned_abs()));
        r.metric(0, ms(100 * i), "one", i as f64);
        if i > 3 {
            r.metric(0, ms(100 * i), "late", 0.5);
        }
        r.sent(0, ms(100 * i), DataSize::from_bytes(100), DataSize::from_bytes(128));
    }
    let result = r.finish(Timestamp::from_secs(1));
    // 0.1 s at each of 1 to 9 kbit/s; nothing before the first.
    assert!((result.flows[0].rates.target_bps.expect("measured") - 5_000.0).abs() < 1e-6);
    let series = result.series.as_ref().expect("asked for");
    let f = &series.flows[0];
    assert_eq!(series.time_s.len(), 10);
    assert_eq!((f.target_bps[0], f.target_bps[9]), (1_000.0, 10_000.0));
    assert_eq!((f.sent_bps[0], f.sent_bps[1]), (0.0, 8_000.0));
    let [(one, a), (late, b)] = &f.internals[..] else { panic!("two internals") };
    assert_eq!((&one[..], &late[..], a.len(), b.len()), ("one", "late", 10, 10));
    assert_eq!((a[0], a[9], b[3]), (1.0, 10.0, 0.5));
    assert!(b[..3].iter().all(|v| v.is_nan()));
}

#[test]
fn digests_distinguish_results() {
    let run = |every: i64, series| {
        let cap = Capacity::constant(DataRate::from_mbps(2));
        play(config(vec![flow("a", FlowKind::Rtp, 0)], cap, 5, series), |_, _| every)
    };
    assert_eq!(run(8, true).digest(), run(8, true).digest());
    assert_eq!(run(8, true), run(8, true));
    assert_ne!(run(8, true).digest(), run(9, true).digest());
    assert_ne!(run(8, true).digest(), run(8, false).digest());
    let json = serde_json::to_string(&run(8, false)).expect("serialises");
    // Fields outside the JSON are lost.
    let left = RunResult { rates_over_time: Default::default(), outline: Default::default(), ..run(8, false) };
    assert_eq!(serde_json::from_str::<RunResult>(&json).expect("parses"), left);
}

#[test]
fn memory_does_not_grow_with_time_without_series() {
    let run = |seconds| {
        let mut r = Recorder::new(config(
            vec![flow("a", FlowKind::Rtp, 0)],
            Capacity::constant(DataRate::from_mbps(2)),
            seconds,
            false,
        ));
        for i in 0..seconds * 10 {
            r.sent(0, ms(100 * i), DataSize::from_bytes(1_000), DataSize::from_bytes(1_028));
            r.received(0, ms(100 * i), ms(100 * i - 50), DataSize::from_bytes(1_000));
            r.metric(0, ms(100 * i), "x", 1.0);
        }
        r.held()
    };
    assert_eq!(run(10), run(10_000));
}

#[test]
fn constant_flows_take_but_do_not_share() {
    let mut audio = flow("audio", FlowKind::Rtp, 0);
    (audio.controller, audio.adapts) = ("fixed".into(), false);
    let flows = vec![flow("a", FlowKind::Rtp, 0), flow("b", FlowKind::Rtp, 0), audio];
    // 1 Mbit/s each for a and b, 0.1 Mbit/s of audio (102.8 kbit/s on the wire), on 2.2 Mbit/s.
    let cap = Capacity::constant(DataRate::from_kbps(2_200));
    let result = play(config(flows, cap, 20, false), |f, _| if f == 2 { 80 } else { 8 });
    assert!((result.fairness.jain_mean.expect("a and b") - 1.0).abs() < 1e-3);
    assert!((result.fairness.end_ratio.expect("a and b") - 1.0).abs() < 1e-3);
    // Fair share (2.2 - 0.1028) / 2: 1 Mbit/s is above 90 % of it; a third of the link would have been reached sooner.
    let ramp_up = result.flows[0].ramp_up_s.expect("reached");
    assert!((1.0..=1.2).contains(&ramp_up), "{ramp_up}");
    assert_eq!(result.flows[0].bottleneck, "bottleneck");
}
