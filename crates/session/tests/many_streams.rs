//! Calls with the maximum number of streams: feedback of one compound reaches every stream, at no further cost.

#![allow(clippy::unwrap_used)]

use crate::common;
use common::{Call, Fate, Link, Recorder};
use std::collections::{BTreeMap, BTreeSet};
use weir_cc::cue::Fate as Recorded;
use weir_cc::{FeedbackFormat, FeedbackPlan, ReportPlan};
use weir_media::{PerfectCodec, Source};
use weir_session::allocation::{Demand, MediaKind};
use weir_session::{
    Datagram, EndConfig, EndPlan, IncomingConfig, MAX_STREAMS, OutgoingConfig, ReceivingPath, SendingPath,
    StreamIdentity,
};
use weir_units::{DataRate, Ecn, TimeDelta, Timestamp};
use weir_wire::rtcp::xr::{Block, Blocks, RleBlock, Xr};
use weir_wire::rtcp::{Packet, Sli, SliEntry, check_compound, parse_compound};
use weir_wire::rtp::PacketView;

const FIRST: u32 = 100;
const REPORTER: u32 = 22;

fn frames() -> Source {
    PerfectCodec::frames(TimeDelta::from_millis(50), Timestamp::ZERO).into()
}

fn demand() -> Demand {
    let rate = DataRate::from_kbps(40);
    Demand { least: rate, most: rate, media: MediaKind::Video, ..Demand::default() }
}

/// A call of `count` streams of 40 kbit/s each, in which every `lossy`th RTP packet is lost.
fn call(count: usize, recorder: &Recorder, feedback: Option<FeedbackPlan>, lossy: u64) -> Call {
    let reports =
        feedback.is_none().then(|| ReportPlan { extended: true, ..ReportPlan::every(TimeDelta::from_millis(500)) });
    let config = EndConfig { ssrc: FIRST, remote_ssrc: REPORTER, ..EndConfig::default() };
    let outgoing = OutgoingConfig::new(StreamIdentity::of(FIRST), frames(), demand());
    let sending =
        SendingPath { per_packet_feedback: feedback.is_some(), reports, ..SendingPath::new(recorder.sender()) };
    let incoming = IncomingConfig::new(StreamIdentity::of(FIRST), MediaKind::default());
    let receiving = ReceivingPath { feedback, reports, ..ReceivingPath::default() };
    let other = EndConfig { ssrc: REPORTER, remote_ssrc: FIRST, seed: 2, ..config.clone() };
    let identity = |n: u32| StreamIdentity::of(FIRST + n);
    let streams: Vec<_> = (1..count as u32).map(identity).collect();
    let a = EndPlan::new(config).sends(outgoing).on(sending).make(Timestamp::ZERO).unwrap();
    let b = EndPlan::new(other).receives(incoming).on(receiving).make(Timestamp::ZERO).unwrap();
    let rule = move |n: u64, _: &[u8]| if n.is_multiple_of(lossy) { Fate::Lose } else { Fate::Pass };
    let mut c = Call::new(a, b, Link::new(DataRate::from_mbps(20), rule));
    for identity in streams {
        c.b.add_incoming(IncomingConfig::new(identity, MediaKind::Video), c.now).unwrap();
        c.a.add_outgoing(OutgoingConfig::new(identity, frames(), demand()), c.now).unwrap();
    }
    c
}

/// The source of each packet sent, by transport-wide number.
fn sources(c: &Call, recorder: &Recorder) -> BTreeMap<u64, (u32, u16)> {
    let views = c.sent[0].iter().filter(|s| s.2.is_rtp()).map(|s| PacketView::parse_header(&s.1).unwrap());
    recorder.sent().iter().map(|p| p.sequence).zip(views.map(|v| (v.ssrc(), v.sequence()))).collect()
}

#[test]
fn run_lengths_of_all_streams_of_a_compound_reach_the_controller() {
    for count in [8, 9, MAX_STREAMS] {
        let recorder = Recorder::new(40 * count as u64);
        let mut c = call(count, &recorder, None, 10);
        c.run_until(Timestamp::from_secs(6));
        let most = c.sent[1].iter().map(|s| traced(&s.1).len()).max().unwrap();
        assert_eq!(most, count, "one compound reports on all of them");
        let sources = sources(&c, &recorder);
        let lost: BTreeSet<_> = c.there.lost.iter().copied().collect();
        let mut recorded = BTreeMap::<u32, u32>::new();
        for report in recorder.intervals() {
            assert!(report.1.windows(2).all(|w| w[0].sequence < w[1].sequence), "in the order of sending");
            for packet in report.1 {
                let source = sources[&packet.sequence];
                assert_eq!(packet.fate == Recorded::Lost, lost.contains(&source), "{source:?}");
                *recorded.entry(source.0).or_default() += 1;
            }
        }
        // 20 frames per second; about the last second is not yet reported.
        assert_eq!(recorded.len(), count);
        assert!(recorded.values().all(|n| (80..=120).contains(n)), "{count} streams: {recorded:?}");
    }
}

/// Sources for which a datagram has loss run lengths.
fn traced(bytes: &[u8]) -> BTreeSet<u32> {
    let mut found = BTreeSet::new();
    for packet in parse_compound(bytes) {
        let Ok(Packet::Xr(xr)) = packet else { continue };
        found.extend(xr.blocks.iter().filter_map(|b| if let Block::LossRle(t) = b { Some(t.ssrc) } else { None }));
    }
    found
}

#[test]
fn per_packet_feedback_and_report_blocks_cover_all_streams() {
    let every = TimeDelta::from_millis(100);
    let plan = FeedbackPlan {
        format: FeedbackFormat::CongestionControl,
        min_interval: every,
        max_interval: every,
        bandwidth_share: 1.0,
    };
    let recorder = Recorder::new(40 * MAX_STREAMS as u64);
    let mut c = call(MAX_STREAMS, &recorder, Some(plan), 10);
    c.run_until(Timestamp::from_secs(6));
    let (mut most_fed, mut most_blocks) = (0, 0);
    for (_, bytes, _) in c.sent[1].iter().filter(|s| !s.2.is_rtp()) {
        let mut blocks = 0;
        for packet in parse_compound(bytes) {
            match packet.unwrap() {
                Packet::Ccfb(f) => most_fed = most_fed.max(f.streams().count()),
                Packet::ReceiverReport(rr) => blocks += rr.blocks.iter().count(),
                _ => {}
            }
        }
        if blocks > 0 {
            check_compound(bytes).unwrap();
        }
        most_blocks = most_blocks.max(blocks);
    }
    assert_eq!((most_fed, most_blocks), (MAX_STREAMS, MAX_STREAMS));
    let counters = c.a.stats().history_counters();
    assert_eq!((counters.unknown, c.a.stats().counters().unknown_source), (0, 0), "{counters:?}");
    // Lost first packets of a stream are in no report.
    assert!(counters.unreported <= 6, "{counters:?}");
    // 32 streams of 20 packets per second; packets in flight are not yet reported.
    let recorded: usize =
        recorder.recorded().iter().map(|t| if let common::Recorded::Feedback(p) = t { p.len() } else { 0 }).sum();
    let sent = recorder.sent().len();
    assert!(sent >= 3_600 && recorded <= sent && recorded + 300 >= sent, "{recorded} of {sent}");
}

#[test]
fn feedback_on_pictures_of_all_streams_of_a_compound_is_followed() {
    let recorder = Recorder::new(40 * MAX_STREAMS as u64);
    let mut c = call(MAX_STREAMS, &recorder, None, 1_000_000);
    c.run_until(Timestamp::from_secs(2));
    let keys = |c: &mut Call| -> Vec<u64> {
        let ids: Vec<_> = c.a.stats().outgoing_ids().collect();
        ids.into_iter().map(|id| c.a.outgoing(id).unwrap().counters().key_frames).collect()
    };
    let before = keys(&mut c);
    let mut bytes = vec![];
    let entries = [SliEntry { first: 0, number: 1, picture_id: 0 }];
    // Twice each, and for sources that are not this end's.
    for ssrc in (FIRST..FIRST + 2 * MAX_STREAMS as u32).chain(FIRST..FIRST + MAX_STREAMS as u32) {
        Sli { sender_ssrc: REPORTER, media_ssrc: ssrc, entries: (&entries).into() }.write_into(&mut bytes);
    }
    c.a.handle_datagram(c.now, &Datagram::new(&bytes, Ecn::NotEct));
    c.run_until(Timestamp::from_secs(4));
    let after = keys(&mut c);
    assert_eq!(after, before.iter().map(|k| k + 1).collect::<Vec<_>>(), "one key frame each");
}

#[test]
fn a_repeated_compound_is_reported_once() {
    let recorder = Recorder::new(40 * MAX_STREAMS as u64);
    let mut c = call(MAX_STREAMS, &recorder, None, 1_000_000);
    c.run_until(Timestamp::from_secs(5));
    let (reports, sources) = (recorder.intervals().len(), sources(&c, &recorder));
    // For each stream, and as many others, the whole number range as lost, as often as a datagram of 64 KiB has room.
    let (mut bytes, mut chunks) = (vec![], vec![]);
    let newest: BTreeMap<u32, u16> = sources.values().copied().collect();
    for ssrc in FIRST..FIRST + 2 * MAX_STREAMS as u32 {
        let begin = newest.get(&ssrc).map_or(0, |n| n.wrapping_sub(30));
        let lost = core::iter::repeat_n(false, 65_534);
        let trace = RleBlock::encode(ssrc, begin, 0, lost, 1_000, &mut chunks);
        Xr { ssrc: REPORTER, blocks: Blocks::Own(&[Block::LossRle(trace)]) }.write_into(&mut bytes);
    }
    let bytes = bytes.repeat(60_000 / bytes.len());
    c.a.handle_datagram(c.now, &Datagram::new(&bytes, Ecn::NotEct));
    let recorded = recorder.intervals().split_off(reports);
    assert_eq!(recorded.len(), 1);
    let numbers: BTreeSet<_> = recorded[0].1.iter().map(|p| p.sequence).collect();
    assert!(numbers.len() >= MAX_STREAMS && numbers.len() == recorded[0].1.len(), "nothing twice: {}", numbers.len());
    assert!(numbers.iter().all(|n| sources.contains_key(n)), "nothing that was not sent");
}
