//! Lost packets of several streams: reports, retransmissions and repair.

use super::*;

#[test]
fn losses_of_each_stream_are_repaired_by_its_own_retransmissions() {
    let mut c =
        call(
            "fixed",
            4_000,
            |n, bytes| if n.is_multiple_of(11) && bytes[1] & 0x7f == 100 { Fate::Lose } else { Fate::Pass },
        );
    let mut ids = vec![];
    for (ssrc, payload_type, demand) in videos() {
        let identity = identity(ssrc, payload_type);
        let incoming = IncomingConfig {
            nack: Some(NackConfig::default()),
            playout_deadline: Some(ms(400)),
            ..IncomingConfig::new(identity, MediaKind::Video)
        };
        ids.push(c.b.add_incoming(incoming, c.now).unwrap());
        let retransmission = Some(RetransmissionConfig::default());
        let outgoing = OutgoingConfig::new(identity, frames(ms(33)), Demand { simulcast: None, ..demand })
            .with(OutgoingOptions { retransmission, ..OutgoingOptions::default() });
        c.a.add_outgoing(outgoing, c.now).unwrap();
    }
    run(&mut c, 30);
    let lost = c.there.lost.len() as u64;
    assert!(lost > 50, "{lost}");
    let recovered: Vec<u64> = ids.iter().map(|&id| c.b.incoming(id).unwrap().recovery_stats().recovered).collect();
    assert!(recovered.iter().sum::<u64>() >= lost * 9 / 10, "{recovered:?} of {lost}");
    let resent = c.sent[0].iter().filter(|s| matches!(s.2.rtp, Some((_, Kind::Retransmission)))).count() as u64;
    assert!(resent >= lost * 9 / 10 && resent <= lost * 2, "{resent} for {lost}");
}

#[test]
fn controllers_that_go_by_reports_hear_of_all_streams_at_once() {
    let recorder = Recorder::new(600);
    let plan = ReportPlan { extended: true, ..ReportPlan::every(ms(500)) };
    let config = EndConfig { ssrc: AUDIO, remote_ssrc: 22, ..EndConfig::default() };
    let outgoing = OutgoingConfig::new(identity(AUDIO, 111), frames(ms(20)), demand(16, 48, MediaKind::Audio, None));
    let sending = SendingPath { reports: Some(plan), ..SendingPath::new(recorder.sender()) };
    let incoming = IncomingConfig::new(identity(AUDIO, 111), MediaKind::default());
    let receiving = ReceivingPath { reports: Some(plan), ..ReceivingPath::default() };
    let other = EndConfig { ssrc: 22, remote_ssrc: AUDIO, seed: 2, ..config.clone() };
    let a = EndPlan::new(config).sends(outgoing).on(sending).make(Timestamp::ZERO).unwrap();
    let b = EndPlan::new(other).receives(incoming).on(receiving).make(Timestamp::ZERO).unwrap();
    let rule =
        |n: u64, bytes: &[u8]| if n.is_multiple_of(10) && bytes[1] & 0x7f == 100 { Fate::Lose } else { Fate::Pass };
    let mut c = Call::new(a, b, Link::new(kbps(4_000), rule));
    add(&mut c);
    run(&mut c, 30);
    let recorded = recorder.recorded();
    let blocks: Vec<_> =
        recorded.iter().filter_map(|t| if let Recorded::Block(b) = t { Some(*b) } else { None }).collect();
    let reports = recorder.intervals();
    assert!(blocks.len() >= 40 && blocks.len().abs_diff(reports.len()) <= 1, "{} {}", blocks.len(), reports.len());
    assert!(blocks.windows(2).all(|w| w[0].now < w[1].now), "one block a compound");
    // Nothing is reported twice; packets are in send order, with the actual losses.
    let packets: Vec<_> = reports.iter().flat_map(|r| r.1.clone()).collect();
    let mut numbers: Vec<u64> = packets.iter().map(|p| p.sequence).collect();
    assert!(reports.iter().all(|r| r.1.windows(2).all(|w| w[0].sequence < w[1].sequence)));
    numbers.sort_unstable();
    let count = numbers.len();
    numbers.dedup();
    assert_eq!(numbers.len(), count);
    let lost = packets.iter().filter(|p| p.fate == weir_cc::cue::Fate::Lost).count();
    assert!(lost.abs_diff(c.there.lost.len()) <= 8, "{lost} of {}", c.there.lost.len());
    let last = blocks.last().unwrap();
    assert!((last.cumulative_lost - lost as i64).abs() <= 8, "{last:?} {lost}");
}

#[test]
fn repair_packets_protect_their_own_stream() {
    use weir_fec::{Protection, Scheme};
    let mut c =
        call(
            "fixed",
            4_000,
            |n, bytes| if n.is_multiple_of(17) && bytes[1] & 0x7f == 100 { Fate::Lose } else { Fate::Pass },
        );
    let mut ids = vec![];
    for (ssrc, payload_type, demand) in videos() {
        let identity = identity(ssrc, payload_type);
        let incoming =
            IncomingConfig { playout_deadline: Some(ms(400)), ..IncomingConfig::new(identity, MediaKind::Video) };
        ids.push(c.b.add_incoming(incoming, c.now).unwrap());
        let repair = RepairChoice::Fixed(Protection::Equal(Scheme::Parity { interval: 4 }));
        let outgoing = OutgoingConfig::new(identity, frames(ms(33)), Demand { simulcast: None, ..demand })
            .with(OutgoingOptions { repair, ..OutgoingOptions::default() });
        c.a.add_outgoing(outgoing, c.now).unwrap();
    }
    run(&mut c, 30);
    let lost = c.there.lost.len() as u64;
    let recovered: u64 = ids.iter().map(|&id| c.b.incoming(id).unwrap().recovery_stats().recovered).sum();
    assert!(lost > 30 && recovered * 10 >= lost * 7, "{recovered} of {lost}");
}
