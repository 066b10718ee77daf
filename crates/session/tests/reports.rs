//! Regular reports by a controller's plan: run lengths, one-way delay, early reports, next data units.

#![allow(clippy::unwrap_used)]

use crate::common;
use common::{Call, Fate as LinkFate, Link, Recorded, Recorder, Watcher, plan};
use std::collections::BTreeMap;
use weir_cc::ReportPlan;
use weir_cc::cue::{Fate, FramePlayout};
use weir_media::PerfectCodec;
use weir_session::allocation::{Demand, MediaKind};
use weir_session::{EndConfig, EndPlan, IncomingConfig, OutgoingConfig, ReceivingPath, SendingPath, StreamIdentity};
use weir_units::{DataRate, TimeDelta, Timestamp};
use weir_wire::rtcp::check_compound;
use weir_wire::rtp::PacketView;

fn ms(n: i64) -> TimeDelta {
    TimeDelta::from_millis(n)
}

/// A call at 800 kbit/s over 2 Mbit/s with 50 ms each way.
fn call(
    recorder: &Recorder,
    watcher: Option<&Watcher>,
    plan: ReportPlan,
    rule: impl FnMut(u64, &[u8]) -> LinkFate + 'static,
) -> Call {
    let now = Timestamp::ZERO;
    let rate = DataRate::from_mbps(2);
    let config = EndConfig { ssrc: 11, remote_ssrc: 22, synchronised_clocks: true, ..EndConfig::default() };
    let outgoing =
        OutgoingConfig::new(StreamIdentity::of(11), PerfectCodec::frames(ms(40), now).into(), Demand::default());
    let sending = SendingPath { reports: Some(plan), ..SendingPath::new(recorder.sender()) };
    let incoming = IncomingConfig {
        playout_deadline: Some(ms(150)),
        ..IncomingConfig::new(StreamIdentity::of(11), MediaKind::default())
    };
    let receiving =
        ReceivingPath { reports: Some(plan), controller: watcher.map(Watcher::receiver), ..ReceivingPath::default() };
    let other = EndConfig { ssrc: 22, remote_ssrc: 11, seed: 2, ..config.clone() };
    let (a, b) = (
        EndPlan::new(config).sends(outgoing).on(sending).make(now).unwrap(),
        EndPlan::new(other).receives(incoming).on(receiving).make(now).unwrap(),
    );
    Call::new(a, b, Link::new(rate, rule))
}

#[test]
fn every_packet_is_reported_with_its_fate() {
    let recorder = Recorder::new(800);
    // Media by count: every 17th is lost, every 23rd arrives 120 ms late.
    let mut media = 0u64;
    let mut c = call(&recorder, None, plan(), move |_, bytes| {
        media += u64::from(bytes[1] & 0x7f == 96);
        match (bytes[1] & 0x7f, media % 17, media % 23) {
            (96, 3, _) => LinkFate::Lose,
            (96, _, 5) => LinkFate::Delay(ms(120)),
            _ => LinkFate::Pass,
        }
    });
    c.run_until(Timestamp::from_secs(20));
    let rtp: Vec<_> = c.sent[0].iter().filter(|s| s.2.is_rtp()).collect();
    let by_number: BTreeMap<u64, _> = recorder.sent().into_iter().map(|p| (p.sequence, p)).collect();
    assert_eq!(by_number.len(), rtp.len());
    let first = *by_number.keys().next().unwrap();
    let intervals = recorder.intervals();
    let recorded: Vec<_> = intervals.iter().flat_map(|i| i.1.clone()).collect();
    // All except those in flight, in order, each once.
    assert!(rtp.len() - recorded.len() < 40, "{} of {}", recorded.len(), rtp.len());
    let mut counts = [0; 3];
    for (i, p) in recorded.iter().enumerate() {
        assert_eq!(p.sequence, first + i as u64);
        let (at, bytes, t) = rtp[i];
        assert_eq!((p.departure, p.size), (*at, t.size));
        assert_eq!(by_number[&p.sequence].now, p.departure);
        let n = i as u64 + 1;
        let lost = c.there.lost.contains(&(11, PacketView::parse_header(bytes).unwrap().sequence()));
        assert_eq!(lost, n % 17 == 3);
        let want = match () {
            () if lost => Fate::Lost,
            () if n % 23 == 5 => Fate::Discarded,
            () => Fate::Received,
        };
        // A reordered packet that arrives after the report was lost at the time of the report.
        let overtaken = want == Fate::Discarded && p.fate == Fate::Lost;
        assert!(p.fate == want || overtaken, "{n}: {p:?}, not {want:?}");
        assert!(!p.repaired);
        counts[p.fate as usize] += 1;
    }
    assert!(counts.iter().all(|&n| n > 20), "{counts:?}");
    // At least 50 ms and a packet's transmission time; the receiver's estimate is half the round-trip time.
    for (_, _, delay, rtt) in &intervals[3..] {
        let (d, rtt) = (delay.expect("packets came"), rtt.expect("measured"));
        assert!((ms(50)..ms(56)).contains(&d.min) && d.min <= d.mean && d.last <= d.mean.max(d.last), "{d:?}");
        assert!((ms(100)..ms(130)).contains(&rtt), "{rtt}");
    }
    assert_eq!((c.a.stats().counters().unknown_packet, c.a.stats().counters().malformed), (0, 0));
}

#[test]
fn reports_are_two_round_trips_apart_and_behind_their_block() {
    let recorder = Recorder::new(800);
    let mut c = call(&recorder, None, plan(), |_, _| LinkFate::Pass);
    c.run_until(Timestamp::from_secs(10));
    let at: Vec<_> = c.sent[1].iter().map(|s| s.0).collect();
    for pair in at.windows(2).skip(4) {
        // The round-trip time is 100 ms, plus up to 4 ms for each of the packets queued before.
        assert!((ms(200)..ms(235)).contains(&(pair[1] - pair[0])), "{pair:?}");
    }
    c.sent[1].iter().for_each(|s| check_compound(&s.1).expect("a compound by RFC 3550"));
    let recorded = recorder.recorded();
    for (i, t) in recorded.iter().enumerate().filter(|(_, t)| matches!(t, Recorded::Interval(..))) {
        assert!(matches!(recorded[i - 1], Recorded::Block(_)), "{t:?}");
    }
    let share = c.b.stats().counters().rtcp_bytes as f64 * 8.0 / 10.0 / 2e6;
    assert!(share < 0.025, "{share} of the session for one of two members");
}

#[test]
fn a_loss_is_reported_early_and_the_next_planned_report_stays() {
    let early = |early| {
        let recorder = Recorder::new(800);
        let mut c = call(&recorder, None, ReportPlan { early, ..plan() }, |n, bytes| {
            if bytes[1] & 0x7f == 96 && n % 200 == 0 { LinkFate::Lose } else { LinkFate::Pass }
        });
        c.run_until(Timestamp::from_secs(10));
        let at: Vec<_> = c.sent[1].iter().map(|s| s.0).collect();
        let gaps: Vec<_> = at.windows(2).skip(4).map(|p| p[1] - p[0]).collect();
        (gaps, at.len(), c.there.lost.len())
    };
    let (gaps, regular, lost) = early(false);
    assert!(lost >= 4 && gaps.iter().all(|&g| g >= ms(200)));
    let (gaps, all, _) = early(true);
    // From the previous report to the early one, and from that to the planned one: an interval.
    let short: Vec<_> = gaps.windows(2).filter(|g| g[0] < ms(199)).map(|g| g[0] + g[1]).collect();
    assert!(short.len() >= 3, "{short:?}");
    assert!(short.iter().filter(|&&two| (ms(195)..ms(240)).contains(&two)).count() >= 3, "{short:?}");
    assert!((regular + 3..=regular + lost + 1).contains(&all), "{all} instead of {regular}");
}

#[test]
fn next_played_reaches_the_sender_and_playout_the_receiver_half() {
    let recorder = Recorder::new(800);
    let watcher = Watcher::every(ms(300));
    let mut c = call(&recorder, Some(&watcher), plan(), |n, bytes| match bytes[1] & 0x7f {
        96 if n % 50 == 0 => LinkFate::Lose,
        96 if n % 60 == 0 => LinkFate::Delay(ms(200)),
        _ => LinkFate::Pass,
    });
    c.run_until(Timestamp::from_secs(10));
    let recorded = recorder.recorded();
    let sent: BTreeMap<u64, Timestamp> = recorder.sent().into_iter().map(|p| (p.sequence, p.now)).collect();
    let mut units = 0;
    for (i, t) in recorded.iter().enumerate() {
        let Recorded::Unit(u) = t else { continue };
        units += 1;
        assert!(
            matches!(&recorded[i - 1], Recorded::Estimate(e) if e.rate.as_kbps_f64().round() == 700.0),
            "{:?}",
            recorded[i - 1]
        );
        let delay = u.playout_delay.expect("frames wait");
        // Captured 150 ms before playout; the report took 50 ms; NADU has a resolution of milliseconds.
        let captured = u.now - ms(50) + delay - ms(150);
        let left = sent[&u.next_sequence];
        assert!((ms(-3)..ms(45)).contains(&(left - captured)), "{u:?} left {left}");
        assert!(delay <= ms(150));
    }
    assert!(units >= 25, "{units}");
    let frames = watcher.frames.lock().unwrap().clone();
    let (whole, missed): (Vec<FramePlayout>, Vec<_>) =
        frames.iter().copied().filter(|f| f.discarded == 0).partition(|f| f.complete);
    assert!(whole.iter().all(|f| (ms(60)..ms(100)).contains(&f.buffered)), "{whole:?}");
    assert!(missed.len() > 10 && missed.iter().all(|f| f.buffered == TimeDelta::ZERO));
    let stats = c.b.stats().playout_stats().unwrap();
    assert_eq!(whole.len() as u64, stats.played);
    assert_eq!(frames.iter().filter(|f| f.discarded > 0).count() as u64, stats.discarded);
    let mut events = 0;
    while c.b.poll_playout(c.now).is_some() {
        events += 1;
    }
    assert_eq!(events, whole.len() + missed.len());
}

#[test]
fn the_same_seed_gives_the_same_reports() {
    let run = || {
        let recorder = Recorder::new(800);
        let mut c = call(&recorder, Some(&Watcher::every(ms(100))), plan(), |n, _| {
            if n % 30 == 0 { LinkFate::Lose } else { LinkFate::Pass }
        });
        c.run_until(Timestamp::from_secs(5));
        (c.sent, recorder.recorded())
    };
    assert_eq!(run(), run());
}
