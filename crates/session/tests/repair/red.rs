//! ULPFEC in RED, on the media's own source.

use super::common::Recorder;
use super::{LinkFate, MEDIA, call_of, call_with, payload_type, with_repair};
use weir_cc::{FeedbackFormat, RepairPlan};
use weir_session::{
    Datagram, IncomingConfig, Kind, NackConfig, Outcome, OutgoingOptions, ParityFormat, Red, Refusal, RepairReception,
    RetransmissionConfig,
};
use weir_units::{Ecn, Timestamp};
use weir_wire::fec::{Mask, Octets, parity, red, ulpfec};
use weir_wire::rtp::{Header, PacketView};

/// Payload types of RED, ULPFEC in it, and RED packets sent again.
const RED: (u8, u8, u8) = (100, 101, 102);

fn in_red() -> ParityFormat {
    let (payload_type, ulpfec, resent) = RED;
    ParityFormat::UlpFec(Red { payload_type, ulpfec, retransmission: Some(resent), zeroed: [3, 0] })
}

/// The payload type inside of RED, if it is that.
fn inside_red(bytes: &[u8]) -> Option<u8> {
    (payload_type(bytes) == RED.0).then(|| PacketView::parse_header(bytes).unwrap().payload()[0])
}

#[test]
fn ulpfec_in_red_recovers_packets_of_its_own_source() {
    for feedback in [FeedbackFormat::TransportWide, FeedbackFormat::CongestionControl] {
        let recorder = with_repair(800, RepairPlan::Parity { interval: 5 });
        let mut k = 0u64;
        // One packet of media in each group of five, each position in turn.
        let rule = move |_: u64, bytes: &[u8]| {
            if inside_red(bytes) != Some(MEDIA) {
                return LinkFate::Pass;
            }
            k += 1;
            let n = k - 1;
            if n >= 5 && n % 5 == n / 5 % 5 { LinkFate::Lose } else { LinkFate::Pass }
        };
        let mut c = call_with(in_red(), &recorder, Some(feedback), RepairReception::Always, rule);
        c.run_until(Timestamp::from_secs(4));
        let (sent, r) = (c.a.stats().send_counters(), c.b.stats().repair_counters());
        assert_eq!((sent.repair_dropped, r.malformed, r.bad_recovered), (0, 0, 0), "{sent:?} {r:?}");
        assert!(sent.repair_packets >= sent.packets / 5 - 2 && sent.repair_packets - r.packets <= 20, "{sent:?} {r:?}");
        let s = c.b.stats().recovery_stats();
        assert!(s.lost > 40 && (s.recovered, s.residual_lost) == (s.lost, 0), "{s:?}");
        let p = c.b.stats().playout_stats().unwrap();
        assert_eq!((p.incomplete, p.late, p.discarded), (0, 0, 0), "{p:?}");
        // Everything is one stream in RED, of consecutive numbers, and no repair packet is amid a frame.
        let rtp: Vec<_> = c.sent[0].iter().filter(|(_, _, t)| t.is_rtp()).map(|(_, bytes, _)| bytes).collect();
        let views: Vec<_> = rtp.iter().map(|bytes| PacketView::parse_header(bytes).unwrap()).collect();
        assert!(views.iter().all(|v| v.ssrc() == 11 && v.payload_type() == RED.0));
        for pair in views.windows(2) {
            assert_eq!(pair[1].sequence(), pair[0].sequence().wrapping_add(1));
            if pair[1].payload()[0] == RED.1 {
                let goes_on = pair[0].payload()[0] == MEDIA && !pair[0].marker();
                assert!(!goes_on && !pair[1].marker() && pair[1].timestamp() == pair[0].timestamp());
            }
        }
        let repair = views.iter().filter(|v| v.payload()[0] == RED.1).count() as u64;
        assert_eq!(repair, sent.repair_packets);
        // Reports count all of them: the far end has received as many as were not lost.
        let lost = c.there.lost.len() as u64;
        let received = c.b.stats().receive_counters().packets;
        assert!(sent.packets + sent.repair_packets - lost - received <= 20, "{sent:?} {lost} {received}");
    }
    // Groups are within the range of a mask, whatever the plan, and there is no format for another code.
    for (plan, least) in
        [(RepairPlan::Parity { interval: 100 }, 4), (RepairPlan::ReedSolomon { block: 10, repair: 3 }, 0)]
    {
        let recorder = with_repair(800, plan);
        let mut c = call_with(in_red(), &recorder, None, RepairReception::Always, |_, _| LinkFate::Pass);
        c.run_until(Timestamp::from_secs(4));
        let (sent, malformed) = (c.a.stats().send_counters(), c.b.stats().repair_counters().malformed);
        assert!((sent.repair_packets >= least) && (least > 0 || sent.repair_packets == 0), "{sent:?}");
        assert_eq!((sent.repair_dropped, malformed), (0, 0));
    }
}

#[test]
fn a_lost_packet_of_ulpfec_costs_no_frame_and_its_request_is_answered_by_nothing() {
    let recorder = with_repair(800, RepairPlan::Parity { interval: 5 });
    let mut n = 0u64;
    let rule = move |_: u64, bytes: &[u8]| {
        let inside = inside_red(bytes);
        n += u64::from(inside.is_some());
        // Half of the repair packets, and some media, which is sent again without RED.
        let lost = (inside == Some(RED.1) && n.is_multiple_of(2)) || (inside == Some(MEDIA) && n % 41 < 2 && n > 41);
        if lost { LinkFate::Lose } else { LinkFate::Pass }
    };
    let change = |s: &mut OutgoingOptions, r: &mut IncomingConfig| {
        s.retransmission = Some(RetransmissionConfig::default());
        r.nack = Some(NackConfig::default());
    };
    let feedback = Some(FeedbackFormat::TransportWide);
    let mut c = call_of(in_red(), &recorder, feedback, RepairReception::Always, rule, change);
    c.run_until(Timestamp::from_secs(6));
    let (sent, r, nacks) =
        (c.a.stats().retransmission_counters(), c.b.stats().repair_counters(), c.b.stats().nack_counters());
    assert!(sent.packets > 10 && sent.unknown == 0, "{sent:?}");
    assert_eq!((nacks.malformed, r.malformed, r.bad_recovered), (0, 0, 0), "{nacks:?} {r:?}");
    let p = c.b.stats().playout_stats().unwrap();
    // A retransmission may come after the playout deadline.
    assert!((p.incomplete, p.late <= 1) == (0, true) && p.played > 140, "{p:?}");
    let resent = c.sent[0].iter().filter(|(_, bytes, t)| t.is_rtp() && payload_type(bytes) == 99);
    let empty = resent
        .clone()
        .filter(|(_, bytes, t)| t.payload == 0 && PacketView::parse_header(bytes).unwrap().payload().len() == 2);
    assert!(resent.count() > 10 && empty.count() > 5);
}

/// A RED packet of the stream 11: blocks before the last, and that.
fn red_packet(sequence: u16, redundant: &[red::Block<'_>], inside: u8, payload: &[u8]) -> Vec<u8> {
    let mut out = vec![];
    let timestamp = u32::from(sequence) / 3 * 3_600;
    let marker = sequence % 3 == 2;
    Header { payload_type: RED.0, sequence, timestamp, marker, ssrc: 11, ..Header::default() }.write_into(&mut out);
    let red = red::Red { redundant: red::Blocks::Own(redundant), payload_type: inside, primary: payload.into() };
    assert_eq!(red.write_into(&mut out), Some(0));
    out
}

#[test]
fn whatever_is_in_red_is_taken_apart_and_nonsense_counted() {
    let recorder = Recorder::new(800);
    let mut c = call_with(in_red(), &recorder, None, RepairReception::Always, |_, _| LinkFate::Pass);
    let now = Timestamp::from_secs(1);
    let mut give = |bytes: &[u8]| c.b.handle_datagram(now, &Datagram::new(bytes, Ecn::NotEct));
    let payload = |n: u16| [n as u8; 40];
    let bare = |n: u16| {
        let mut out = red_packet(n, &[], MEDIA, &payload(n));
        out.remove(12);
        out[1] = out[1] & 0x80 | MEDIA;
        out
    };
    // 7 is lost; its repair packet is a block before the media of 9 (RFC 5109, section 14.2).
    for n in [4, 5, 6, 8] {
        assert!(matches!(give(&red_packet(n, &[], MEDIA, &payload(n))), Outcome::Rtp { kind: Kind::Media, .. }));
    }
    let mut strings = [vec![], vec![]];
    for (string, n) in strings.iter_mut().zip([7u16, 8]) {
        parity::protect_into(Octets::new(&bare(n)), string).unwrap();
    }
    let xor: Vec<u8> = strings[0].iter().zip(&strings[1]).map(|(a, b)| a ^ b).collect();
    let (recovery, rest) = parity::Recovery::split(Octets::new(&xor)).unwrap();
    let levels = [ulpfec::Level { mask: Mask::covering(7, [7, 8]).unwrap(), payload: rest }];
    let mut repair = vec![];
    let written = ulpfec::Repair { recovery, base: 7, levels: ulpfec::Levels::Own(&levels) }.write_into(&mut repair);
    assert_eq!(written, Some(0));
    let block = red::Block { payload_type: RED.1, timestamp_offset: 0, data: Octets::new(&repair) };
    give(&red_packet(9, &[block], MEDIA, &payload(9)));
    let forged = red_packet(10, &[], RED.1, &[0; 13]);
    assert!(matches!(give(&forged), Outcome::Rtp { kind: Kind::Repair, .. }));
    // A block cut off, RED in RED, and RED of padding alone.
    let mut cut = red_packet(11, &[block], MEDIA, &[]);
    cut.truncate(40);
    assert_eq!(give(&cut), Outcome::Refused(Refusal::Malformed));
    assert_eq!(give(&red_packet(11, &[], RED.0, &[MEDIA, 1])), Outcome::Refused(Refusal::Malformed));
    let mut padding = red_packet(11, &[], MEDIA, &[]);
    padding.truncate(12);
    padding[0] |= 0x20;
    padding.extend([0, 0, 3]);
    assert!(matches!(give(&padding), Outcome::Rtp { kind: Kind::Media, .. }));
    let r = c.b.stats().repair_counters();
    assert_eq!((r.packets, r.malformed, r.window.recovered, r.bad_recovered), (2, 1, 1, 0), "{r:?}");
    assert_eq!((c.b.stats().counters().malformed, c.b.stats().receive_counters().packets), (2, 7));
}
