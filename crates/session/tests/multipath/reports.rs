//! The timing of each subflow's reports, and their part of RTCP (draft-ietf-avtcore-mprtp-03, sections 8.4 and 10).

use super::two_paths::{Paths, plan_of};
use weir_session::Profile;
use weir_units::{DataRate, PathId, TimeDelta, Timestamp};
use weir_wire::rtcp::MPRTCP;

/// Headers below RTCP: UDP and IPv4.
const BELOW: usize = 28;

/// A call of 1 Mbit/s without per-packet feedback, and reports every 5 s on average, as in the thesis.
fn call(interval: TimeDelta, bandwidth: DataRate, seconds: i64) -> Paths {
    let mut plan = plan_of("fixed", "round-robin", 1_000);
    for end in [&mut plan.sender, &mut plan.receiver] {
        end.params.rtcp_interval = Some(interval);
        end.params.profile = Profile::Avpf;
        end.session_bandwidth = bandwidth;
    }
    let mut call = Paths::new(plan, [(2_000, 10), (2_000, 30)]);
    call.run_until(Timestamp::from_secs(seconds));
    call
}

/// Times and sizes on the wire of the RTCP that an end has sent: about the whole call, and about subflows by path.
fn rtcp(call: &Paths, end: usize) -> [Vec<(Timestamp, usize)>; 3] {
    let mut all = [vec![], vec![], vec![]];
    for (at, bytes, t) in call.sent[end].iter().filter(|(.., t)| !t.is_rtp()) {
        let kind = if bytes[1] == MPRTCP { 1 + t.path.index() } else { 0 };
        all[kind].push((*at, bytes.len() + BELOW));
    }
    all
}

fn kbps(packets: &[(Timestamp, usize)], seconds: i64) -> f64 {
    packets.iter().map(|p| p.1).sum::<usize>() as f64 * 8e-3 / seconds as f64
}

#[test]
fn each_subflow_is_reported_at_times_of_its_own() {
    let call = call(TimeDelta::from_secs(1), DataRate::from_mbps(2), 120);
    for end in 0..2 {
        let [whole, a, b] = rtcp(&call, end);
        for times in [&whole, &a, &b] {
            assert!((90..150).contains(&times.len()), "{end}: {}", times.len());
            let gaps: Vec<_> = times.windows(2).map(|w| (w[1].0 - w[0].0).as_millis()).collect();
            // Randomised by a half; by the paths' rates a few per cent more or less, once these are known.
            assert!(gaps.iter().skip(5).all(|gap| (400..1_800).contains(gap)), "{end}: {gaps:?}");
        }
        let together = a.iter().filter(|p| whole.iter().chain(&b).any(|o| o.0 == p.0)).count();
        assert!(together < a.len() / 10, "{end}: {together} of {}", a.len());
    }
}

/// Thesis, section 6.1.2: a call of 1 Mbit/s had about 70 % of its RTCP in subflow reports, 0.25 kbit/s.
#[test]
fn most_rtcp_is_about_subflows_and_little_of_the_call() {
    let call = call(TimeDelta::from_secs(5), DataRate::from_mbps(2), 600);
    for end in 0..2 {
        let [whole, a, b] = rtcp(&call, end);
        let subflows = kbps(&a, 600) + kbps(&b, 600);
        let share = subflows / (subflows + kbps(&whole, 600));
        assert!((0.5..0.75).contains(&share), "{share}");
        assert!((0.18..0.3).contains(&subflows), "{subflows} kbit/s");
    }
}

#[test]
fn all_reports_together_stay_inside_rtcps_share() {
    let bandwidth = DataRate::from_kbps(40);
    let call = call(TimeDelta::ZERO, bandwidth, 300);
    let both: f64 = (0..2).map(|end| rtcp(&call, end).iter().map(|p| kbps(p, 300)).sum::<f64>()).sum();
    // 5 % of 40 kbit/s.
    assert!((1.5..2.1).contains(&both), "{both} kbit/s");
}

#[test]
fn a_path_on_which_nothing_arrives_is_not_reported() {
    let mut call = call(TimeDelta::from_millis(500), DataRate::from_mbps(2), 20);
    call.dead = Some(1);
    call.run_until(Timestamp::from_secs(40));
    let [_, a, b] = rtcp(&call, 1);
    let after = |times: &[(Timestamp, usize)]| times.iter().filter(|p| p.0 > Timestamp::from_secs(25)).count();
    assert!(after(&a) > 15 && after(&b) == 0, "{} and {}", after(&a), after(&b));
    // The sender reports on, so that the path is heard when it is back.
    let [_, _, sent] = rtcp(&call, 0);
    assert!(after(&sent) > 3, "{}", after(&sent));
    call.dead = None;
    call.run_until(Timestamp::from_secs(60));
    let received = call.b.path(PathId::new(1)).and_then(|p| p.stats()).expect("a path").received_packets;
    assert!(received > 1_000, "{received}");
    let [_, _, b] = rtcp(&call, 1);
    assert!(b.iter().filter(|p| p.0 > Timestamp::from_secs(45)).count() > 10, "{b:?}");
}
