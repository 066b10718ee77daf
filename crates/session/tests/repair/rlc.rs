//! Repair by sliding-window codes.

use super::*;
use weir_fec::Scheme;

/// RTP payload type of the repair packets.
const RLC: u8 = 127;

fn call_by(
    recorder: &Recorder,
    repair: RepairChoice,
    within: bool,
    rule: impl FnMut(u64, &[u8]) -> LinkFate + 'static,
) -> Call {
    call_of(ParityFormat::FlexFec, recorder, None, RepairReception::Always, rule, |outgoing, _| {
        (outgoing.repair, outgoing.repair_within_rate) = (repair, within);
    })
}

#[test]
fn a_window_recovers_bursts_by_the_repair_packets_after_them() {
    let repair = RepairChoice::Fixed(Scheme::rlc(30, 5, 1).unwrap().into());
    // Three in a row of each fifty.
    let lost = |n: u64| n >= 50 && n % 50 < 3;
    let mut c = call_by(&Recorder::new(800), repair, false, lose_media(lost));
    c.run_until(Timestamp::from_secs(10));
    let (sent, r) = (c.a.stats().send_counters(), c.b.stats().repair_counters());
    assert_eq!((sent.repair_packets, sent.repair_dropped), (sent.packets / 5, 0));
    assert_eq!((r.malformed, r.bad_recovered, r.window.inconsistent, r.window.late), (0, 0, 0, 0));
    let s = c.b.stats().recovery_stats();
    assert!(s.lost > 50 && (s.recovered, s.residual_lost, s.discarded) == (s.lost, 0, 0), "{s:?}");
    assert_eq!((s.frames_lost, s.frame_recovery_efficiency()), (0, Some(1.0)), "{s:?}");
    // The payload begins with the window: 30 packets up to the last one sent.
    let repair = c.sent[0].iter().filter(|(_, bytes, t)| t.is_rtp() && payload_type(bytes) == RLC);
    let ids: Vec<_> = repair
        .map(|(_, bytes, _)| {
            let view = PacketView::parse_header(bytes).unwrap();
            assert_eq!(view.ssrc(), REPAIR_SSRC);
            weir_wire::fec::rlc::parse_repair(view.payload().into()).unwrap().0
        })
        .collect();
    assert!(ids.len() > 150);
    for (id, next) in ids.iter().zip(&ids[1..]).skip(6) {
        assert_eq!((id.symbols, id.density, next.key), (30, 15, id.key + 1));
        assert_eq!((next.first as u16).wrapping_sub(id.first as u16), 5);
    }
}

#[test]
fn a_plan_of_blocks_is_followed_without_them() {
    for (plan, sources, repairs) in
        [(RepairPlan::Parity { interval: 5 }, 5, 1), (RepairPlan::ReedSolomon { block: 24, repair: 4 }, 20, 4)]
    {
        let recorder = with_repair(800, plan);
        let lost = |n: u64| n >= 50 && n % 20 == 7;
        let mut c = call_by(&recorder, RepairChoice::Sliding { window: 25 }, false, lose_media(lost));
        c.run_until(Timestamp::from_secs(8));
        let sent = c.a.stats().send_counters();
        assert!(sent.repair_packets.abs_diff(sent.packets * repairs / sources) <= repairs, "{sent:?}");
        let s = c.b.stats().recovery_stats();
        assert!(s.lost > 30 && s.recovered == s.lost, "{s:?}");
        recorder.target.lock().unwrap().repair = RepairPlan::Off;
        c.run_until(Timestamp::from_secs(10));
        assert!(c.a.stats().send_counters().repair_packets - sent.repair_packets <= repairs);
    }
}

#[test]
fn media_makes_room_for_a_fixed_scheme_where_it_is_to() {
    let repair = RepairChoice::Fixed(Scheme::rlc(20, 4, 1).unwrap().into());
    let rates = [false, true].map(|within| {
        let mut c = call_by(&Recorder::new(800), repair, within, |_, _| LinkFate::Pass);
        c.run_until(Timestamp::from_secs(10));
        let sent = c.a.stats().send_counters();
        [sent.bytes, sent.repair_bytes].map(|bytes| bytes as f64 * 8.0 / 10_000.0)
    });
    let [[media, repair], [less, within]] = rates;
    assert!((media - 800.0).abs() < 40.0 && (repair - 0.25 * media).abs() < 25.0, "{rates:?}");
    // As many packets, which are shorter; repair packets are as long as the longest.
    assert!((less + within - 800.0).abs() < 40.0 && (within - repair).abs() < 25.0, "{rates:?}");
}
