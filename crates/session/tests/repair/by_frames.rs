//! Repair by frames: Hairpin, Tambur and joint plans in a call.

use super::*;
use weir_media::resilience::joint::Joint;
use weir_session::{FrameRepair, Hairpin, NackConfig, RetransmissionConfig, Tambur};

/// RTP payload type of the repair packets.
const RLC: u8 = 127;
/// RTP payload type of what is sent again.
const AGAIN: u8 = 99;

fn call_by(choice: FrameRepair, requests: bool, rule: impl FnMut(u64, &[u8]) -> LinkFate + 'static) -> Call {
    call_of(ParityFormat::FlexFec, &Recorder::new(800), None, RepairReception::Always, rule, |outgoing, incoming| {
        (outgoing.repair, outgoing.repair_within_rate) = (RepairChoice::ByFrames(choice), true);
        outgoing.retransmission = requests.then(RetransmissionConfig::default);
        incoming.nack = requests.then(NackConfig::default);
    })
}

/// Windows of the repair packets that the first end has sent.
fn windows(c: &Call) -> Vec<(Timestamp, Vec<u16>)> {
    let repair = c.sent[0].iter().filter(|(_, bytes, t)| t.is_rtp() && payload_type(bytes) == RLC);
    repair
        .map(|(at, bytes, _)| {
            let view = PacketView::parse_header(bytes).unwrap();
            assert!(view.marker() && view.ssrc() == REPAIR_SSRC);
            let (id, mask, _) = weir_wire::fec::rlc::parse_masked(view.payload().into()).unwrap();
            (*at, mask.positions().map(|p| (id.first as u16).wrapping_add(p)).collect())
        })
        .collect()
}

#[test]
fn tambur_recovers_bursts_of_a_frame_without_requests() {
    // The packets of one frame in ten, of which there are 25 a second; from the third on, so that losses have been reported.
    let mut frames = BTreeMap::new();
    let rule = move |_: u64, bytes: &[u8]| {
        let view = PacketView::parse_header(bytes).unwrap();
        if view.payload_type() != MEDIA {
            return LinkFate::Pass;
        }
        let count = frames.len();
        let number = *frames.entry(view.timestamp()).or_insert(count);
        if number > 25 && number % 10 == 3 { LinkFate::Lose } else { LinkFate::Pass }
    };
    let mut c = call_by(FrameRepair::Tambur(Tambur::default()), false, rule);
    c.run_until(Timestamp::from_secs(12));
    let (sent, r) = (c.a.stats().send_counters(), c.b.stats().repair_counters());
    assert_eq!((sent.repair_dropped, r.malformed, r.bad_recovered, r.window.inconsistent), (0, 0, 0, 0));
    let s = c.b.stats().recovery_stats();
    // The first ones were not yet protected, the last ones are not yet recovered.
    assert!(s.lost > 60 && s.recovered * 10 >= s.lost * 9, "{s:?}");
    // One repair packet for two of media, since losses are always recent.
    let share = sent.repair_packets as f64 / sent.packets as f64;
    assert!((0.40..=0.51).contains(&share), "{share}");
    // Half of the middle frames is left out.
    assert!(windows(&c).iter().filter(|(_, w)| w.windows(2).any(|p| p[1].wrapping_sub(p[0]) == 2)).count() > 100);
}

#[test]
fn hairpin_sends_repair_packets_where_few_rounds_are_left() {
    let run = |deadline| {
        let mut seen = 0;
        // A twelfth of the media, and every second packet that is sent again.
        let rule = move |_: u64, bytes: &[u8]| {
            seen += 1;
            match payload_type(bytes) {
                MEDIA if seen > 100 && seen % 12 == 0 => LinkFate::Lose,
                AGAIN if seen % 2 == 0 => LinkFate::Lose,
                _ => LinkFate::Pass,
            }
        };
        let mut c = call_by(FrameRepair::Hairpin(Hairpin { deadline, ..Hairpin::default() }), true, rule);
        c.run_until(Timestamp::from_secs(20));
        let (sent, r) = (c.a.stats().send_counters(), c.b.stats().repair_counters());
        assert_eq!((sent.repair_dropped, r.malformed, r.bad_recovered, r.window.inconsistent), (0, 0, 0, 0));
        let again = c.sent[0].iter().filter(|(_, bytes, t)| t.is_rtp() && payload_type(bytes) == AGAIN).count();
        let s = c.b.stats().recovery_stats();
        assert!(s.lost > 40, "{s:?}");
        (
            again,
            sent.repair_packets as f64 / sent.packets as f64,
            r.window.recovered,
            s.residual_lost as f64 / s.lost as f64,
        )
    };
    // Of the playout's 250 ms, in which a request can be answered once; and of a time with rounds that are not there.
    let (near, far) = (run(ms(250)), run(ms(10_000)));
    assert!(near.1 > 0.5 && near.2 > 20 && near.3 < 0.1, "{near:?}");
    assert!(far.0 > 40 && far.1 < 0.05 && far.3 > near.3, "{far:?}");
}

#[test]
fn a_joint_plan_repairs_by_requests_or_by_a_code() {
    let run = |requests| {
        let joint = Joint { earliest: ms(250), latest: ms(250), requests };
        // One packet in 20.
        let mut c = call_by(FrameRepair::Joint(joint), requests, lose_media(|n| n % 20 == 7));
        c.run_until(Timestamp::from_secs(20));
        let (sent, r) = (c.a.stats().send_counters(), c.b.stats().repair_counters());
        assert_eq!((sent.repair_dropped, r.malformed, r.bad_recovered, r.window.inconsistent), (0, 0, 0, 0));
        let again = c.sent[0].iter().filter(|(_, bytes, t)| t.is_rtp() && payload_type(bytes) == AGAIN).count();
        let s = c.b.stats().recovery_stats();
        assert!(s.lost > 40, "{s:?}");
        let (mut share, mut playout) = (None, None);
        c.a.stats().metrics(&mut |name, value| match name {
            "plan_share" => share = Some(value),
            "plan_playout_ms" => playout = Some(value),
            _ => {}
        });
        assert_eq!(playout, Some(250.0));
        (again, sent.repair_packets, s.residual_lost as f64 / s.lost as f64, share.expect("a plan"))
    };
    let by_requests = run(true);
    // Copies of the answers are repair packets, three at most.
    let (again, copies, residual, share) = by_requests;
    assert!(again > 40 && copies <= 3 * again as u64 && residual < 0.05 && share == 0.0, "{by_requests:?}");
    let by_code = run(false);
    assert!(by_code.0 == 0 && by_code.1 > 100 && by_code.2 < 0.3 && by_code.3 > 0.0, "{by_code:?}");
}

#[test]
fn a_joint_plan_plays_later_where_packets_are_lost_and_earlier_again() {
    let joint = Joint { earliest: ms(100), latest: ms(400), requests: true };
    let rule = lose_media(|n| n < 600 && n % 20 == 7);
    let mut c =
        call_of(ParityFormat::FlexFec, &Recorder::new(800), None, RepairReception::Always, rule, |out, incoming| {
            (out.repair, out.repair_within_rate) = (RepairChoice::ByFrames(FrameRepair::Joint(joint)), true);
            out.retransmission = Some(RetransmissionConfig::default());
            (incoming.nack, incoming.joint) = (Some(NackConfig::default()), Some(joint));
        });
    let mut at = |seconds| {
        c.run_until(Timestamp::from_secs(seconds));
        let mut planned = None;
        c.b.stats().metrics(&mut |name, value| {
            if name == "playout_planned_ms" {
                planned = Some(value);
            }
        });
        planned.expect("a plan")
    };
    let (lossy, clean) = (at(5), at(90));
    assert!(lossy > 120.0 && lossy <= 400.0 && clean < lossy, "{lossy} {clean}");
}

#[test]
fn a_stream_without_losses_has_no_repair_packets() {
    let all = [
        FrameRepair::Hairpin(Hairpin::default()),
        FrameRepair::Tambur(Tambur::default()),
        FrameRepair::Joint(Joint::default()),
    ];
    for choice in all {
        let mut c = call_by(choice, true, |_, _| LinkFate::Pass);
        c.run_until(Timestamp::from_secs(5));
        assert_eq!(c.a.stats().send_counters().repair_packets, 0, "{choice:?}");
    }
}
