//! Adaptive playout in a session.

#![allow(clippy::unwrap_used)]

use crate::common;
use common::toy::Toy;
use common::{Call, Fate, Link, Recorder};
use weir_media::{AdaptivePlayout, PlayoutEvent, ReceivedFrame, Source};
use weir_session::allocation::{Demand, MediaKind};
use weir_session::{
    EndConfig, EndPlan, IncomingConfig, NackConfig, OutgoingConfig, OutgoingOptions, ReceivingPath,
    RetransmissionConfig, SendingPath, StreamIdentity,
};
use weir_units::{DataRate, TimeDelta, Timestamp};
use weir_wire::rtp::PacketView;

fn ms(n: i64) -> TimeDelta {
    TimeDelta::from_millis(n)
}

fn at(n: i64) -> Timestamp {
    Timestamp::from_millis(n)
}

struct Setting {
    adaptive: Option<AdaptivePlayout>,
    synchronised: bool,
    repairs: bool,
}

/// A call of 800 kbit/s and 25 frames per second over a path of 50 ms, at `setting`.
fn call(setting: &Setting, rule: impl FnMut(u64, &[u8]) -> Fate + 'static) -> Call {
    let now = Timestamp::ZERO;
    let retransmission = setting.repairs.then(RetransmissionConfig::default);
    let source = Source::Custom(Box::new(Toy::new(ms(40))));
    let outgoing = OutgoingConfig::new(StreamIdentity::of(11), source, Demand::default())
        .with(OutgoingOptions { retransmission, ..OutgoingOptions::default() });
    let sending = SendingPath::new(Recorder::new(800).sender());
    let incoming = IncomingConfig {
        nack: setting.repairs.then(NackConfig::default),
        playout_deadline: Some(ms(250)),
        adaptive_playout: setting.adaptive,
        content: true,
        ..IncomingConfig::new(StreamIdentity::of(11), MediaKind::default())
    };
    let receiving = ReceivingPath::default();
    let config =
        EndConfig { ssrc: 11, remote_ssrc: 22, synchronised_clocks: setting.synchronised, ..EndConfig::default() };
    let other = EndConfig { ssrc: 22, remote_ssrc: 11, seed: 2, ..config.clone() };
    let (a, b) = (
        EndPlan::new(config).sends(outgoing).on(sending).make(now).unwrap(),
        EndPlan::new(other).receives(incoming).on(receiving).make(now).unwrap(),
    );
    Call::new(a, b, Link::new(DataRate::from_mbps(20), rule))
}

/// Frames until `end`: capture times and events. All complete frames have content.
fn play(c: &mut Call, end: Timestamp) -> Vec<(Timestamp, PlayoutEvent)> {
    let (mut events, mut frame) = (vec![], ReceivedFrame::default());
    while c.now < end {
        c.run_until((c.now + ms(10)).min(end));
        while let Some(e) = c.b.poll_playout(c.now) {
            let taken = c.b.take_frame(&e, &mut frame);
            assert!(e.delay.is_none() || (taken && frame.whole && frame.at == e.at));
            // The first frame was captured at time zero.
            let first = c.sent[0].iter().find(|(_, _, t)| t.is_rtp()).unwrap();
            let ticks = e.rtp_timestamp.wrapping_sub(PacketView::parse(&first.1).unwrap().timestamp());
            events.push((at(i64::from(ticks) / 90), e));
        }
    }
    events
}

fn is_whole(e: &&(Timestamp, PlayoutEvent)) -> bool {
    e.1.delay.is_some()
}

const ADAPTIVE: Option<AdaptivePlayout> = Some(AdaptivePlayout::up_to(TimeDelta::from_millis(400)));

#[test]
fn frames_are_played_as_they_come_and_not_at_the_deadline() {
    for synchronised in [false, true] {
        let mut c = call(&Setting { adaptive: ADAPTIVE, synchronised, repairs: false }, |_, _| Fate::Pass);
        let events = play(&mut c, at(10_000));
        assert_eq!(events.iter().filter(is_whole).count(), events.len());
        assert!((245..=250).contains(&events.len()), "{}", events.len());
        // 50 ms of path, and at least part of the pacing time: 40 ms of a frame at 1.8 times 800 kbit/s, less the first
        // packet.
        for (captured, e) in &events[5..] {
            assert!((50..130).contains(&(e.at - *captured).as_millis()), "{synchronised}: {captured} {e:?}");
        }
        let mut fixed = call(&Setting { adaptive: None, synchronised, repairs: false }, |_, _| Fate::Pass);
        for (captured, e) in &play(&mut fixed, at(10_000))[50..] {
            // The first packet's capture time is assumed until a sender report arrives: 50 ms too late.
            assert!((249..=302).contains(&(e.at - *captured).as_millis()), "{synchronised}: {captured} {e:?}");
        }
    }
}

#[test]
fn a_lost_packet_is_asked_for_and_waited_for_up_to_the_longest_delay() {
    let mut c = call(&Setting { adaptive: ADAPTIVE, synchronised: true, repairs: true }, |n, _| {
        if n % 40 == 17 { Fate::Lose } else { Fate::Pass }
    });
    let events = play(&mut c, at(20_000));
    let whole = events.iter().filter(is_whole).count();
    assert!(c.there.lost.len() > 20 && whole >= 485, "{whole} of {}, {} lost", events.len(), c.there.lost.len());
    // A requested packet arrives after two more one-way delays of 50 ms, within the 400 ms.
    assert!(events[5..].iter().filter(is_whole).all(|(captured, e)| e.at - *captured <= ms(400)));
    assert!(c.b.stats().nack_counters().recovered > 20, "{:?}", c.b.stats().nack_counters());
}

#[test]
fn packets_that_are_late_are_waited_for_and_not_requested() {
    for back in [10, 60, 200] {
        // A response takes 50 ms and this time.
        let run = |rule: fn(u64, &[u8]) -> Fate| {
            let mut c = call(&Setting { adaptive: ADAPTIVE, synchronised: true, repairs: true }, rule);
            c.back = Link::new(DataRate::from_mbps(10), |_, _| Fate::Pass).with_delay(ms(back));
            let events = play(&mut c, at(30_000));
            let played = events.iter().filter(is_whole).count() as f64 / events.len() as f64;
            (c.b.stats().nack_counters(), played)
        };
        let (late, played) = run(|n, _| if n.is_multiple_of(20) { Fate::Delay(ms(30)) } else { Fate::Pass });
        // Until the first are seen: of some 150, two or three.
        assert!(late.missing > 100 && late.retransmissions <= 8 && played > 0.99, "{back}: {late:?}, {played}");
        let (both, played) = run(|n, _| match n {
            n if n % 50 == 7 => Fate::Lose,
            n if n.is_multiple_of(20) => Fate::Delay(ms(30)),
            _ => Fate::Pass,
        });
        assert!(both.recovered >= 40 && both.useless() <= both.retransmissions / 5, "{back}: {both:?}");
        assert!(played > 0.97, "{back}: {played}");
    }
}

#[test]
fn a_path_longer_than_the_longest_delay_is_followed_for_good() {
    for synchronised in [false, true] {
        let setting = Setting { adaptive: ADAPTIVE, synchronised, repairs: false };
        let mut c = call(&setting, move |n, _| if n > 1_000 { Fate::Delay(ms(600)) } else { Fate::Pass });
        let events = play(&mut c, at(60_000));
        let from = c.sent[0][1_000].0;
        let before = events.iter().filter(|e| e.0 < from - ms(100)).filter(is_whole).count() as i64;
        assert!(before >= (from - Timestamp::ZERO).as_millis() / 40 - 6, "{before}");
        // At least twenty consecutive packets and half a second; sender reports, which imply 650 ms, change nothing.
        let after: Vec<_> = events.iter().filter(|e| e.0 > from + ms(2_000)).filter(is_whole).collect();
        let expected = (at(60_000) - from).as_millis() / 40 - 50 - 20;
        assert!(after.len() as i64 >= expected, "{synchronised}: {} of {expected}", after.len());
        assert!(after.iter().skip(50).all(|(captured, e)| (650..730).contains(&(e.at - *captured).as_millis())));
    }
}

#[test]
fn a_restarted_source_is_played_adaptively_too() {
    let mut c = call(&Setting { adaptive: ADAPTIVE, synchronised: false, repairs: false }, |_, _| Fate::Pass);
    play(&mut c, at(5_000));
    // The sending end is restarted, with new numbers and timestamps.
    let now = c.now;
    let source = Source::Custom(Box::new(Toy::starting(now, ms(40))));
    let config = EndConfig { ssrc: 11, remote_ssrc: 22, seed: 99, ..EndConfig::default() };
    let outgoing = OutgoingConfig::new(StreamIdentity::of(11), source, Demand::default());
    c.a = EndPlan::new(config).sends(outgoing).on(SendingPath::new(Recorder::new(800).sender())).make(now).unwrap();
    c.run_until(at(5_500));
    while c.b.poll_playout(c.now).is_some() {}
    let (mut count, mut last) = (0, c.now);
    while c.now < at(10_000) {
        c.run_until(c.now + ms(10));
        while let Some(e) = c.b.poll_playout(c.now) {
            assert!(e.delay.is_some_and(|d| d < ms(120)), "{e:?}");
            assert!(e.at >= last && e.at - last < ms(120), "{e:?}");
            (count, last) = (count + 1, e.at);
        }
    }
    assert!((108..=115).contains(&count), "{count}");
}
