//! A receiving end fed with RTP: senders' clocks that stop, jump and drift, and paths that become longer.

#![allow(clippy::unwrap_used)]

use weir_media::AdaptivePlayout;
use weir_media::audio::AudioSlotContent;
use weir_session::allocation::MediaKind;
use weir_session::{Datagram, EndConfig, EndPlan, Endpoint, IncomingConfig, IncomingId, ReceivingPath, StreamIdentity};
use weir_units::{Ecn, TimeDelta, Timestamp};
use weir_wire::rtp::Header;

fn ms(t: i64) -> TimeDelta {
    TimeDelta::from_millis(t)
}

/// A receiver: the packets it gets, and its playout.
#[derive(Clone, Copy, Debug)]
struct Kind {
    audio: bool,
    adaptive: bool,
    content: bool,
    /// Time between frames or packets of audio.
    step: TimeDelta,
}

/// All of them, with 25 frames a second, and packets of 20 ms.
fn kinds() -> impl Iterator<Item = Kind> {
    (0..8).map(|i| {
        let (audio, adaptive, content) = (i & 1 > 0, i & 2 > 0, i & 4 > 0);
        Kind { audio, adaptive, content, step: ms(if audio { 20 } else { 40 }) }
    })
}

/// A frame or packet: when it arrives, and its place on the RTP clock in nanoseconds.
type Unit = (Timestamp, i64);

const DELAY: TimeDelta = TimeDelta::from_millis(200);
const MOST: TimeDelta = TimeDelta::from_millis(400);

fn end(kind: Kind) -> Endpoint {
    let config = EndConfig { ssrc: 22, remote_ssrc: 11, ..EndConfig::default() };
    let clock_rate = if kind.audio { 48_000 } else { 90_000 };
    let identity = StreamIdentity { payload_type: 111, clock_rate, ..StreamIdentity::of(11) };
    let media = if kind.audio { MediaKind::Audio } else { MediaKind::Video };
    let incoming = IncomingConfig {
        playout_deadline: Some(DELAY),
        adaptive_playout: kind.adaptive.then(|| AdaptivePlayout::up_to(MOST)),
        content: kind.content,
        ..IncomingConfig::new(identity, media)
    };
    EndPlan::new(config).receives(incoming).on(ReceivingPath::default()).make(Timestamp::ZERO).unwrap()
}

/// When what arrived was played, by its number.
fn play(kind: Kind, units: &[Unit]) -> Vec<(usize, Timestamp)> {
    let (mut end, mut played, mut out, mut newest) = (end(kind), vec![], vec![], 0);
    let rate = if kind.audio { 48_000 } else { 90_000 };
    let ticks = |nanos: i64| (i128::from(nanos) * rate / 1_000_000_000) as u32;
    let last = units.last().unwrap().0;
    let flush = (1..200).map(|i| (last + ms(i * 10), None));
    let arrivals = units.iter().enumerate().map(|(i, u)| (u.0, Some((i, u.1))));
    for (now, unit) in arrivals.chain(flush) {
        end.handle_timeout(now);
        while end.poll_transmit(now, &mut out).is_some() {}
        if let Some((i, media)) = unit {
            // 20 ms of CELT, 60 ms of SILK.
            let toc = if kind.step == ms(60) { 11 << 3 } else { 31 << 3 };
            let (sequence, timestamp) = (i as u16, ticks(media));
            let header = Header { payload_type: 111, marker: true, sequence, timestamp, ssrc: 11, ..Header::default() };
            out.clear();
            header.write_into(&mut out);
            out.extend([toc, 0x80, 1, 2, 3, 4, 5, 6]);
            end.handle_datagram(now, &Datagram::new(&out, Ecn::NotEct));
            newest = i;
        }
        let mut note = |rtp_timestamp: u32, at: Timestamp| {
            // Nothing waits for long: the newest with this timestamp.
            let number = (0..=newest).rev().take(2_000).find(|&i| ticks(units[i].1) == rtp_timestamp);
            played.push((number.unwrap(), at));
        };
        while let Some(e) = end.poll_playout(now) {
            if e.delay.is_some() {
                note(e.rtp_timestamp, e.at);
            }
        }
        if kind.audio && kind.content {
            let mut stream = end.incoming(IncomingId::FIRST).unwrap();
            while let Some(slot) = stream.poll_audio(now) {
                if matches!(slot.content, AudioSlotContent::Packet(_)) {
                    note(slot.rtp_timestamp, slot.at);
                }
            }
        }
    }
    if kind.audio && !kind.content {
        // Not handed out, only counted.
        let stats = end.stats().incoming(IncomingId::FIRST).unwrap().audio.unwrap();
        played.extend((0..stats.played as usize).map(|i| (i, units[i].0)));
    }
    played
}

/// 500 units on a path of 30 ms with up to 10 ms of jitter; from the 250th on `change` gives what is added to arrival and media time.
fn changed(kind: Kind, change: (TimeDelta, TimeDelta)) -> Vec<Unit> {
    let unit = |i: i64| {
        let (arrival, media) = if i >= 250 { change } else { (TimeDelta::ZERO, TimeDelta::ZERO) };
        let sent = kind.step * i;
        (Timestamp::ZERO + sent + arrival + ms(30 + i * 7 % 11), (sent + media).as_nanos())
    };
    (0..500).map(unit).collect()
}

/// Everything is played again within a second of the change, at most the playout's longest delay after its arrival.
fn is_back(kind: Kind, units: &[Unit], what: &str) {
    let played = play(kind, units);
    let lost = (Timestamp::from_secs(1) - Timestamp::ZERO).as_nanos() / kind.step.as_nanos();
    assert!(played.len() as i64 >= 500 - lost, "{what}, {kind:?}: {} of 500", played.len());
    if kind.audio && !kind.content {
        return;
    }
    let changed_at = units[250].0;
    let first = played.iter().find(|p| p.0 >= 250).unwrap();
    assert!(first.1 - changed_at <= ms(1_000), "{what}, {kind:?}: {}", first.1 - changed_at);
    let back: Vec<_> = played.iter().filter(|p| p.1 > changed_at + ms(1_000)).collect();
    assert!(back.len() as i64 >= 250 - 2 * lost, "{what}, {kind:?}: {}", back.len());
    for (i, at) in back {
        let waits = *at - units[*i].0;
        assert!((ms(-1)..=MOST + kind.step).contains(&waits), "{what}, {kind:?}: {i} waits {waits}");
    }
}

#[test]
fn a_mute_with_a_stopped_clock_is_over_at_once() {
    for kind in kinds() {
        for seconds in [1, 2, 5, 9, 20, 60] {
            is_back(kind, &changed(kind, (ms(seconds * 1_000), TimeDelta::ZERO)), &format!("{seconds} s"));
        }
    }
}

#[test]
fn a_mute_with_a_running_clock_is_over_at_once() {
    for kind in kinds() {
        for seconds in [1, 5, 20, 60] {
            is_back(kind, &changed(kind, (ms(seconds * 1_000), ms(seconds * 1_000))), &format!("{seconds} s"));
        }
    }
}

#[test]
fn a_mute_after_which_the_clock_is_another_is_over_at_once() {
    for kind in kinds() {
        for media in [-4_000_000, -15_000, -3_000, 3_000, 15_000, 4_000_000, 20_000_000] {
            is_back(kind, &changed(kind, (ms(20_000), ms(20_000 + media))), &format!("{media} ms"));
        }
    }
}

#[test]
fn a_jump_of_the_timestamp_alone_costs_less_than_a_second() {
    for kind in kinds() {
        for media in [-4_000_000, -60_000, -9_000, -2_000, 2_000, 9_000, 60_000, 4_000_000] {
            is_back(kind, &changed(kind, (TimeDelta::ZERO, ms(media))), &format!("{media} ms"));
        }
    }
}

#[test]
fn a_longer_path_costs_less_than_a_second() {
    for kind in kinds() {
        for path in [250, 450, 600, 3_000] {
            is_back(kind, &changed(kind, (ms(path), TimeDelta::ZERO)), &format!("{path} ms"));
        }
    }
}

/// A stall of the network, after which all comes at once, moves nothing for good.
#[test]
fn what_a_stall_held_back_does_not_delay_what_follows() {
    for kind in kinds().filter(|k| k.content || !k.audio) {
        let mut units = changed(kind, (TimeDelta::ZERO, TimeDelta::ZERO));
        let held = units[250].0 + ms(2_000);
        for (i, unit) in units.iter_mut().enumerate().skip(250) {
            unit.0 = unit.0.max(held + TimeDelta::from_micros(i as i64 * 200));
        }
        let played = play(kind, &units);
        for (i, at) in played.iter().filter(|p| p.0 > 450) {
            let waits = *at - units[*i].0;
            assert!((ms(-1)..=MOST + kind.step).contains(&waits), "{kind:?}: {i} waits {waits}");
        }
        assert!(played.iter().filter(|p| p.0 > 450).count() >= 45, "{kind:?}: {}", played.len());
    }
}

/// Three hours with clocks 100 ppm apart: 25 frames a second are 270,000, so every fourth; packets of 60 ms.
#[test]
fn clocks_that_differ_change_nothing_in_three_hours() {
    for kind in kinds().filter(|k| k.content || !k.audio) {
        let kind = Kind { step: ms(if kind.audio { 60 } else { 160 }), ..kind };
        let count = ms(3 * 3_600_000).as_nanos() / kind.step.as_nanos();
        for ppm in [-100, 100] {
            let unit = |i: i64| {
                let sent = kind.step * i;
                let clock = TimeDelta::from_nanos(sent.as_nanos() / 1_000_000 * ppm);
                (Timestamp::ZERO + sent + clock + ms(30 + i * 7 % 11), sent.as_nanos())
            };
            let units: Vec<_> = (0..count).map(unit).collect();
            let played = play(kind, &units);
            // A packet dropped or two where audio has to be shortened: a second in three hours.
            let least = count - if kind.audio { 1_100 / 60 + 5 } else { 0 };
            assert!(played.len() as i64 >= least, "{kind:?}, {ppm} ppm: {} of {count}", played.len());
            let (mut least, mut most) = (TimeDelta::MAX, TimeDelta::ZERO);
            for (i, at) in &played[100..] {
                let waits = *at - units[*i].0;
                (least, most) = (least.min(waits), most.max(waits));
            }
            // Of fixed playout as in its first minute, within a packet and 15 ms.
            let range =
                if kind.adaptive { ms(-1)..=MOST } else { DELAY - ms(35) - kind.step..=DELAY + ms(35) + kind.step };
            assert!(range.contains(&least) && range.contains(&most), "{kind:?}, {ppm} ppm: {least} to {most}");
        }
    }
}
