//! Frames with content, from a source to the application at the other end.

#![allow(clippy::unwrap_used)]

use crate::common;
use common::toy::{Life, Toy};
use common::{Call, Fate, Link, Recorder};
use std::sync::{Arc, Mutex};
use weir_cc::RepairPlan;
use weir_fec::{Protection, Scheme};
use weir_media::{FrameKind, PerfectCodec, ReceivedFrame, Source};
use weir_session::allocation::{Demand, MediaKind};
use weir_session::{
    EndConfig, EndPlan, IncomingConfig, OutgoingConfig, OutgoingOptions, ReceivingPath, RepairChoice, SendingPath,
    StreamIdentity,
};
use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};
use weir_wire::rtp::PacketView;

fn ms(n: i64) -> TimeDelta {
    TimeDelta::from_millis(n)
}

struct Room {
    call: Call,
    life: Arc<Mutex<Life>>,
    /// Frames taken: whether complete, and their id.
    taken: Vec<(bool, u64)>,
    /// Events of frames without content to take.
    empty: u64,
    rtp_offset: u32,
}

fn config(seed: u64) -> EndConfig {
    EndConfig { ssrc: 11, remote_ssrc: 22, seed, ..EndConfig::default() }
}

fn room(
    toy: Toy,
    recorder: &Recorder,
    repair: RepairChoice,
    seed: u64,
    rule: impl FnMut(u64, &[u8]) -> Fate + 'static,
) -> Room {
    let (now, life) = (Timestamp::ZERO, toy.life.clone());
    let outgoing = OutgoingConfig::new(StreamIdentity::of(11), Source::Custom(Box::new(toy)), Demand::default())
        .with(OutgoingOptions { repair, ..OutgoingOptions::default() });
    let sending = SendingPath::new(recorder.sender());
    let incoming = IncomingConfig {
        playout_deadline: Some(ms(250)),
        content: true,
        ..IncomingConfig::new(StreamIdentity::of(11), MediaKind::default())
    };
    let receiving = ReceivingPath::default();
    let other = EndConfig { ssrc: 22, remote_ssrc: 11, seed: 2, ..config(seed) };
    let (a, b) = (
        EndPlan::new(config(seed)).sends(outgoing).on(sending).make(now).unwrap(),
        EndPlan::new(other).receives(incoming).on(receiving).make(now).unwrap(),
    );
    let call = Call::new(a, b, Link::new(DataRate::from_mbps(20), rule));
    Room { call, life, taken: vec![], empty: 0, rtp_offset: 0 }
}

impl Room {
    fn run_until(&mut self, end: Timestamp) {
        let mut frame = ReceivedFrame::default();
        while self.call.now < end {
            self.call.run_until((self.call.now + ms(20)).min(end));
            if let Some((_, bytes, _)) = self.call.sent[0].iter().find(|(_, _, t)| t.is_rtp()) {
                // The first frame was captured at time zero.
                self.rtp_offset = PacketView::parse(bytes).unwrap().timestamp();
            }
            while let Some(e) = self.call.b.poll_playout(self.call.now) {
                if self.call.b.take_frame(&e, &mut frame) {
                    let id = self.life.lock().unwrap().check(&frame, self.rtp_offset);
                    assert_eq!(e.size.as_bytes(), frame.packets.iter().map(|p| p.bytes.len() as u64).sum::<u64>());
                    self.taken.push((frame.whole, id));
                } else {
                    self.empty += 1;
                }
            }
        }
    }
    /// Frames generated, and frames taken complete.
    fn counts(&self) -> (usize, usize) {
        (self.life.lock().unwrap().frames.len(), self.taken.iter().filter(|t| t.0).count())
    }
    fn repaired(&self) -> u64 {
        self.call.b.stats().content_counters().0.repaired
    }
}

/// Loses some datagrams at random.
fn lose(one_in: u64) -> impl FnMut(u64, &[u8]) -> Fate {
    move |n, _| if u64::from(common::toy::byte(7, n)) % one_in == 1 { Fate::Lose } else { Fate::Pass }
}

#[test]
fn every_frame_of_a_clean_call_arrives_byte_for_byte() {
    let mut r = room(Toy::new(ms(40)), &Recorder::new(800), RepairChoice::default(), 1, |_, _| Fate::Pass);
    r.run_until(Timestamp::from_secs(10));
    assert_eq!(r.call.a.stats().send_counters().oversized_frames, 0);
    for (_, bytes, t) in &r.call.sent[0] {
        assert_eq!((t.payload, t.size.as_bytes()), (0, bytes.len() as u64));
    }
    let (made, whole) = r.counts();
    assert!((250..=252).contains(&made) && made - whole <= 9, "{whole} of {made}");
    assert_eq!(r.taken.iter().map(|t| t.1).collect::<Vec<_>>(), (0..whole as u64).collect::<Vec<_>>());
    let (c, kept) = r.call.b.stats().content_counters();
    assert_eq!((c.repaired, c.expired, c.crowded_out, r.empty), (0, 0, 0, 0));
    assert!(kept <= DataSize::from_bytes(50_000) && c.packets - c.taken <= 50, "{c:?}");
    let generated: usize = r.life.lock().unwrap().frames.iter().flat_map(|f| &f.2).map(Vec::len).sum();
    assert_eq!(r.call.a.stats().send_counters().generated, generated as u64);
}

#[test]
fn complete_frames_equal_the_sent_ones_over_a_lossy_path() {
    let mut r = room(Toy::new(ms(40)), &Recorder::new(800), RepairChoice::default(), 1, lose(20));
    r.run_until(Timestamp::from_secs(40));
    let (made, whole) = r.counts();
    let played = r.call.b.stats().playout_stats().unwrap().played;
    assert_eq!(whole as u64, played);
    assert!((600..980).contains(&whole), "{whole} of {made}");
    assert!(r.taken.len() > whole + 20, "parts of frames are given too");
}

#[test]
fn repair_brings_content_back_exactly_by_each_code() {
    let parity = RepairPlan::Parity { interval: 4 };
    let block = RepairPlan::ReedSolomon { block: 12, repair: 4 };
    for (plan, least) in [(parity, 20), (block, 40)] {
        let recorder = Recorder::new(800);
        recorder.target.lock().unwrap().repair = plan;
        let mut bare = room(Toy::new(ms(40)), &Recorder::new(800), RepairChoice::default(), 1, lose(25));
        let mut r = room(Toy::new(ms(40)), &recorder, RepairChoice::Controller, 1, lose(25));
        bare.run_until(Timestamp::from_secs(40));
        r.run_until(Timestamp::from_secs(40));
        let (c, lost) = (r.call.b.stats().repair_counters(), r.call.b.stats().recovery_stats());
        assert_eq!((c.malformed, c.bad_recovered, c.window.inconsistent), (0, 0, 0), "{plan:?}");
        assert!(r.repaired() >= least && lost.recovered >= r.repaired() * 9 / 10, "{plan:?}: {lost:?}");
        let ((made, whole), (_, without)) = (r.counts(), bare.counts());
        assert!(made - whole < (made - without) / 2, "{plan:?}: {whole} with, {without} without, of {made}");
        // Repair packets also consist of bytes only.
        assert!(r.call.sent[0].iter().all(|(_, _, t)| t.payload == 0));
    }
}

#[test]
fn numbers_may_wrap() {
    let first = |seed| {
        let mut r = room(Toy::new(ms(40)), &Recorder::new(800), RepairChoice::default(), seed, |_, _| Fate::Pass);
        r.run_until(Timestamp::from_millis(200));
        let v = PacketView::parse(&r.call.sent[0].iter().find(|s| s.2.is_rtp()).unwrap().1).unwrap();
        (v.sequence(), v.timestamp())
    };
    // First numbers are in the lower half.
    let sequences = (1..5_000).find(|&s| first(s).0 > i16::MAX as u16 - 500).unwrap();
    let timestamps = (1..60_000).find(|&s| first(s).1 > u32::MAX - 900_000).unwrap();
    for (seed, seconds) in [(sequences, 420), (timestamps, 30)] {
        for repair in [Protection::Off, Scheme::parity(3).unwrap().into()] {
            let choice = RepairChoice::Fixed(repair);
            let mut r = room(Toy::new(ms(40)), &Recorder::new(800), choice, seed, lose(40));
            r.run_until(Timestamp::from_secs(seconds));
            let media = r.call.sent[0].iter().filter(|s| s.2.is_rtp()).map(|s| PacketView::parse(&s.1).unwrap());
            let media = media.filter(|v| v.ssrc() == 11);
            let wraps = media.clone().zip(media.skip(1));
            let wraps = wraps.filter(|(a, b)| a.sequence() > b.sequence() || a.timestamp() > b.timestamp()).count();
            assert!(wraps >= 1, "{seed}");
            let (made, whole) = r.counts();
            assert!(whole * 10 > made * 8, "{seed} {repair:?}: {whole} of {made}");
        }
    }
}

#[test]
fn unequal_protection_goes_by_what_the_payload_says() {
    let plan = Protection::ByImportance { key: None, reference: None, other: Some(Scheme::parity(2).unwrap()) };
    let mut r = room(Toy::new(ms(40)), &Recorder::new(800), RepairChoice::Fixed(plan), 1, |_, _| Fate::Pass);
    r.run_until(Timestamp::from_secs(4));
    let life = r.life.lock().unwrap();
    // Frames with odd ids are marked as discardable; the first frame is a key frame.
    let discardable: usize = life.frames.iter().skip(1).step_by(2).map(|f| f.2.len()).sum();
    assert_eq!(life.frames[0].1, FrameKind::Key);
    let sent = r.call.a.stats().send_counters();
    assert!((discardable as u64).abs_diff(sent.protected_packets) <= 8, "{sent:?}, {discardable}");
}

#[test]
fn an_encoder_above_its_target_meets_the_age_limit_of_the_queue() {
    let mut toy = Toy::new(ms(40));
    toy.excess = 8.0;
    let (recorder, life, now) = (Recorder::new(500), toy.life.clone(), Timestamp::ZERO);
    let outgoing = OutgoingConfig::new(StreamIdentity::of(11), Source::Custom(Box::new(toy)), Demand::default());
    let sending = SendingPath::new(recorder.sender());
    let outgoing = outgoing.with(OutgoingOptions { max_queue_age: Some(ms(400)), ..OutgoingOptions::default() });
    let mut a = EndPlan::new(config(1)).sends(outgoing).on(sending).make(now).unwrap();
    let (mut out, mut now) = (vec![], now);
    let mut oldest = TimeDelta::ZERO;
    while now < Timestamp::from_secs(20) {
        while a.poll_transmit(now, &mut out).is_some() {}
        now = a.poll_timeout(now).unwrap().max(now);
        a.handle_timeout(now);
        oldest = oldest.max(a.stats().queue(now).1);
    }
    let (size, _, dropped) = a.stats().queue(now);
    assert!(oldest <= ms(400) && oldest >= ms(300), "{oldest}");
    // Four times the target is sent, eight times is generated.
    assert!(size <= DataRate::from_mbps(4).size_in(ms(500)) && dropped > 500, "{size}, {dropped}");
    let asked = life.lock().unwrap().key_requests.len();
    assert!((20..=500).contains(&asked), "{asked}");
}

#[test]
fn without_content_nothing_is_kept() {
    let now = Timestamp::ZERO;
    let recorder = Recorder::new(800);
    let outgoing =
        OutgoingConfig::new(StreamIdentity::of(11), PerfectCodec::frames(ms(40), now).into(), Demand::default());
    let sending = SendingPath::new(recorder.sender());
    let incoming = IncomingConfig {
        playout_deadline: Some(ms(250)),
        ..IncomingConfig::new(StreamIdentity::of(11), MediaKind::default())
    };
    let receiving = ReceivingPath::default();
    let other = EndConfig { ssrc: 22, remote_ssrc: 11, seed: 2, ..config(1) };
    let (a, b) = (
        EndPlan::new(config(1)).sends(outgoing).on(sending).make(now).unwrap(),
        EndPlan::new(other).receives(incoming).on(receiving).make(now).unwrap(),
    );
    let mut c = Call::new(a, b, Link::new(DataRate::from_mbps(20), |_, _| Fate::Pass));
    c.run_until(Timestamp::from_secs(3));
    let mut frame = ReceivedFrame::default();
    let mut events = 0;
    while let Some(e) = c.b.poll_playout(c.now) {
        events += 1;
        assert!(!c.b.take_frame(&e, &mut frame) && e.delay.is_some());
    }
    assert!((60..=70).contains(&events), "{events}");
    assert_eq!(c.b.stats().content_counters(), Default::default());
    assert!(c.sent[0].iter().any(|(_, _, t)| t.payload > 500), "media is a length");
}
