//! The adaptive system: what an application sets, reads and observes during a call.

#![allow(clippy::unwrap_used, clippy::type_complexity)]

use crate::common;
use common::{Call, Fate as LinkFate, Link};
use std::sync::{Arc, Mutex};
use weir_cc::{Limits, Registry, Setup};
use weir_fec::{Protection, Scheme};
use weir_media::ParamValue;
use weir_session::allocation::MediaKind;
use weir_session::system::{AdaptiveSystem, Preferences, SystemConfig, SystemError};
use weir_session::{
    Datagram, EndConfig, EndPlan, Endpoint, IncomingConfig, Observer, RapidSynchronisation, ReceivingPath, Seen,
    SessionParams, StreamIdentity, XrBlocks,
};
use weir_units::{DataRate, Ecn, TimeDelta, Timestamp};
use weir_wire::rtcp::{Packet, parse_compound, xr::Block};
use weir_wire::rtp::PacketView;

fn config(controller: &str, send: Option<Preferences>, receive: Option<TimeDelta>) -> SystemConfig {
    let limits = Limits { floor: DataRate::from_kbps(100), ceiling: DataRate::from_mbps(2) };
    let start_rate = DataRate::from_kbps(800);
    let sends = send.is_some();
    SystemConfig {
        endpoint: EndConfig {
            ssrc: if sends { 11 } else { 22 },
            remote_ssrc: if sends { 22 } else { 11 },
            seed: if sends { 1 } else { 2 },
            synchronised_clocks: true,
            ..EndConfig::default()
        },
        controller: controller.into(),
        setup: Setup { limits, start_rate, now: Timestamp::ZERO, seed: 1, params: vec![] },
        send,
        receive,
        circuit_breaker: None,
    }
}

fn system(preferences: Preferences) -> AdaptiveSystem {
    AdaptiveSystem::new(config("fixed", Some(preferences), None), &Registry::builtin()).unwrap()
}

/// An observer's record: a letter for the kind, and the bytes.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<(char, Vec<u8>, u32)>>>);

impl Log {
    fn push(&mut self, kind: char, p: &Seen<'_>) {
        self.0.lock().unwrap().push((kind, p.bytes.to_vec(), p.payload));
    }
    fn of(&self, kind: char) -> Vec<(Vec<u8>, u32)> {
        let all = self.0.lock().unwrap();
        all.iter().filter(|e| e.0 == kind).map(|e| (e.1.clone(), e.2)).collect()
    }
}

impl Observer for Log {
    fn on_rtp_sent(&mut self, p: &Seen<'_>) {
        self.push('M', p);
    }
    fn on_rtp_received(&mut self, p: &Seen<'_>) {
        self.push('m', p);
    }
    fn on_rtcp_sent(&mut self, p: &Seen<'_>) {
        self.push('C', p);
    }
    fn on_rtcp_received(&mut self, p: &Seen<'_>) {
        self.push('c', p);
    }
    fn on_fec_sent(&mut self, p: &Seen<'_>) {
        self.push('F', p);
    }
    fn on_fec_received(&mut self, p: &Seen<'_>) {
        self.push('f', p);
    }
    fn on_rtp_recovered(&mut self, p: &Seen<'_>) {
        self.push('r', p);
    }
}

/// Both ends of a call; the sender `a` is moved out of its system.
fn call(a: Endpoint, b: Endpoint, rule: impl FnMut(u64, &[u8]) -> LinkFate + 'static) -> Call {
    Call::new(a, b, Link::new(DataRate::from_mbps(3), rule))
}

fn receiver(params: SessionParams) -> Endpoint {
    let endpoint =
        EndConfig { ssrc: 22, remote_ssrc: 11, seed: 2, synchronised_clocks: true, params, ..EndConfig::default() };
    let incoming = IncomingConfig {
        playout_deadline: Some(TimeDelta::from_millis(200)),
        ..IncomingConfig::new(StreamIdentity::of(11), MediaKind::default())
    };
    let receiving = ReceivingPath::default();
    EndPlan::new(endpoint).receives(incoming).on(receiving).make(Timestamp::ZERO).unwrap()
}

/// Runs a sending system alone.
fn run_alone(s: &mut AdaptiveSystem, from: i64, to: i64) -> Vec<Vec<u8>> {
    let (mut out, mut all) = (Vec::new(), vec![]);
    for ms in from..to {
        let now = Timestamp::from_millis(ms);
        s.endpoint_mut().handle_timeout(now);
        while s.endpoint_mut().poll_transmit(now, &mut out).is_some() {
            all.push(out.clone());
        }
    }
    all
}

#[test]
fn preferences_choose_codec_and_source_while_the_call_runs() {
    let mut s = system(Preferences::default());
    run_alone(&mut s, 0, 3_000);
    let at = Timestamp::from_secs(3);
    let (given, asked) = s.bit_rate(at).unwrap();
    assert_eq!(asked, DataRate::from_kbps(800));
    // 29 or 30 of its frames are in the last second.
    assert!((770.0..830.0).contains(&given.as_kbps_f64()), "{given}");
    assert!(matches!(s.set_param("reaction", 1.0.into(), at), Err(SystemError::Param(_))), "perfect has none");
    let wish = |pairs: &[(&str, &str)]| Preferences::from_pairs(pairs.iter().copied());
    s.set_preferences(wish(&[("codec", "statistical"), ("frame_rate", "25")]).unwrap(), at).unwrap();
    s.set_param("reaction", 1.0.into(), at).unwrap();
    assert_eq!(s.param("reaction"), Ok(ParamValue::Number(1.0)));
    run_alone(&mut s, 3_000, 8_000);
    assert!((600.0..1_000.0).contains(&s.bit_rate(Timestamp::from_secs(8)).unwrap().0.as_kbps_f64()));
    // Wrong values are errors and change nothing.
    let wrong = [
        wish(&[("codec", "h264")]),
        wish(&[("codec", "trace")]),
        wish(&[("frame_rate", "fast")]),
        wish(&[("resolution", "1280")]),
        wish(&[("colour", "red")]),
    ];
    let said: Vec<_> = wrong.into_iter().map(|w| w.unwrap_err().to_string()).collect();
    assert_eq!(said[0], "preference codec is h264: expected perfect, statistical, trace");
    assert_eq!(said[1], "preference source is synthetic: expected chat_720p for the codec trace");
    assert_eq!(said[4], "preference colour is not known: expected one of codec, frame_rate, source, resolution");
    let bad = Preferences { frame_rate: 0.0, ..s.preferences().unwrap().clone() };
    assert!(s.set_preferences(bad, at).is_err());
    assert_eq!(s.preferences().unwrap().frame_rate, 25.0);
    assert_eq!(s.param("reaction"), Ok(ParamValue::Number(1.0)), "the codec is the same");
    let mut only_receives =
        AdaptiveSystem::new(config("fixed", None, Some(TimeDelta::from_millis(100))), &Registry::builtin()).unwrap();
    assert_eq!(only_receives.set_preferences(Preferences::default(), at), Err(SystemError::NoCodec));
    assert!(AdaptiveSystem::new(config("none such", None, None), &Registry::builtin()).is_err());
}

#[test]
fn a_bit_rate_by_hand_holds_until_it_is_let_go() {
    let mut s = system(Preferences::default());
    let ms = Timestamp::from_millis;
    run_alone(&mut s, 0, 2_000);
    s.set_bit_rate(Some(DataRate::from_kbps(300)), ms(2_000));
    run_alone(&mut s, 2_000, 4_000);
    let (given, asked) = s.bit_rate(ms(4_000)).unwrap();
    assert_eq!(asked, DataRate::from_kbps(300));
    assert!((290.0..310.0).contains(&given.as_kbps_f64()), "{given}");
    s.set_bit_rate(None, ms(4_000));
    assert_eq!(s.bit_rate(ms(4_000)).unwrap().1, DataRate::from_kbps(800));
}

#[test]
fn fec_is_switched_and_its_scheme_chosen() {
    let mut s = system(Preferences::default());
    run_alone(&mut s, 0, 1_000);
    assert_eq!(s.endpoint().stats().send_counters().repair_packets, 0, "the controller plans none");
    s.set_fec_scheme(Some(Scheme::Parity { interval: 2 }.into())).unwrap();
    run_alone(&mut s, 1_000, 2_000);
    let one = s.endpoint().stats().send_counters().repair_packets;
    assert!(one > 40, "{one}");
    s.enable_fec(false).unwrap();
    run_alone(&mut s, 2_000, 3_000);
    assert!(s.endpoint().stats().send_counters().repair_packets <= one + 1);
    let bad: Protection = Scheme::ReedSolomon { n: 4, repair: 4 }.into();
    assert!(matches!(s.set_fec_scheme(Some(bad)), Err(SystemError::Scheme(_))));
    s.enable_fec(true).unwrap();
    run_alone(&mut s, 3_000, 4_000);
    assert!(s.endpoint().stats().send_counters().repair_packets > one + 40, "the scheme before is still set");
}

#[test]
fn observers_see_every_packet_and_what_was_recovered_as_it_was_sent() {
    let (sent, got) = (Log::default(), Log::default());
    let registry = Registry::builtin();
    let mut s = AdaptiveSystem::new(config("fixed", Some(Preferences::default()), None), &registry).unwrap();
    s.set_fec_scheme(Some(Scheme::Parity { interval: 4 }.into())).unwrap();
    assert!(s.set_observer(Some(Box::new(sent.clone()))).is_none());
    let mut b = receiver(SessionParams::default());
    b.set_observer(Some(Box::new(got.clone())));
    let mut n = 0;
    let mut c = call(core::mem::replace(s.endpoint_mut(), receiver(SessionParams::default())), b, move |_, bytes| {
        n += u32::from(bytes[1] & 0x7f == 96);
        if bytes[1] & 0x7f == 96 && n % 8 == 2 { LinkFate::Lose } else { LinkFate::Pass }
    });
    c.run_until(Timestamp::from_secs(4));
    let all = |i: usize, f: fn(&weir_session::Transmit) -> bool| {
        c.sent[i].iter().filter(|s| f(&s.2)).map(|s| (s.1.clone(), s.2.payload)).collect::<Vec<_>>()
    };
    assert_eq!(sent.of('M'), all(0, |t| t.is_rtp() && !t.is_repair()));
    assert_eq!(sent.of('F'), all(0, |t| t.is_repair()));
    assert_eq!(sent.of('C'), all(0, |t| !t.is_rtp()));
    assert_eq!(got.of('C'), all(1, |_| true));
    let received: Vec<_> = got.of('m');
    assert_eq!(received.len() as u64, c.b.stats().receive_counters().packets);
    assert_eq!(got.of('f').len() as u64, c.b.stats().repair_counters().packets);
    assert_eq!(
        (sent.of('c').len() as u64, got.of('c').len() as u64),
        (c.a.stats().counters().rtcp_received, c.b.stats().counters().rtcp_received)
    );
    // Byte for byte, with the payload at its full length.
    let recovered = got.of('r');
    assert!(recovered.len() > 40, "{}", recovered.len());
    let sent: Vec<_> = sent.of('M');
    for r in recovered {
        assert!(sent.contains(&r) && !received.contains(&r), "{r:?}");
    }
}

#[test]
fn session_parameters_change_at_run_time() {
    let mut s = system(Preferences::default());
    let b = receiver(SessionParams::default());
    let placeholder = receiver(SessionParams::default());
    let mut c = call(core::mem::replace(s.endpoint_mut(), placeholder), b, |_, _| LinkFate::Pass);
    let count = |c: &Call, from: i64| {
        let at = Timestamp::from_secs(from);
        c.sent[1].iter().filter(|s| s.0 >= at).count()
    };
    c.run_until(Timestamp::from_secs(10));
    // T_rr_interval of 1 s: 0.5 to 1.5 s apart.
    let usual = count(&c, 0);
    assert!((7..=20).contains(&usual), "{usual}");
    let mut params = *c.b.stats().session_params();
    params.set("rtcp_interval_ms", "100").unwrap();
    params.set("xr", "loss_rle, one_way_delay, reference_time").unwrap();
    c.b.rtcp().set_params(params).unwrap();
    c.run_until(Timestamp::from_secs(20));
    let fast = count(&c, 11);
    assert!((70..=180).contains(&fast), "{fast}");
    let blocks = |c: &Call, from: i64| {
        let (mut kinds, mut delays) = (vec![], 0);
        for (_, bytes, _) in c.sent[1].iter().filter(|s| s.0 >= Timestamp::from_secs(from)) {
            for packet in parse_compound(bytes).flatten() {
                match packet {
                    Packet::Xr(xr) => kinds.extend(xr.blocks.iter().map(|b| match b {
                        Block::LossRle(t) => ("loss", t.reported() > 0),
                        Block::Rrtr(_) => ("reference", true),
                        other => panic!("{other:?}"),
                    })),
                    Packet::OneWayDelay(_) => delays += 1,
                    _ => {}
                }
            }
        }
        (kinds, delays)
    };
    let (kinds, delays) = blocks(&c, 11);
    assert!(kinds.iter().filter(|k| k.0 == "loss").count() == fast && kinds.contains(&("loss", true)));
    assert!(kinds.iter().filter(|k| k.0 == "reference").count() == fast);
    assert!(delays > 50, "{delays}");
    params = SessionParams { xr: Some(XrBlocks::default()), ..params };
    params.set("profile", "avp").unwrap();
    params.set("rtcp_interval_ms", "0").unwrap();
    c.b.rtcp().set_params(params).unwrap();
    c.run_until(Timestamp::from_secs(30));
    assert_eq!(blocks(&c, 21), (vec![], 0));
    // 360 s over 2,000 kbit/s is 180 ms: with the compensation 148 ms on average.
    let avp = count(&c, 21);
    assert!((50..=72).contains(&avp), "{avp}");
    assert!(!c.b.rtcp().send_early(c.now), "RFC 3551 has no early feedback");
    let bad = SessionParams { rapid_synchronisation: RapidSynchronisation::Ntp64(15), ..params };
    assert!(c.b.rtcp().set_params(bad).is_err());
    assert_eq!(*c.b.stats().session_params(), params);
}

#[test]
fn an_early_report_leaves_at_once_and_costs_the_next() {
    let mut b = receiver(SessionParams::default());
    let mut out = Vec::new();
    // Some media first, then a regular report.
    let mut s = system(Preferences::default());
    for bytes in run_alone(&mut s, 0, 1_000).iter().filter(|b| b[1] & 0x7f == 96) {
        b.handle_datagram(Timestamp::from_millis(500), &Datagram { payload: 100, ..Datagram::new(bytes, Ecn::NotEct) });
    }
    let regular = b.poll_timeout(Timestamp::from_secs(1)).unwrap().max(Timestamp::from_secs(1));
    b.handle_timeout(regular);
    assert!(b.poll_transmit(regular, &mut out).is_some());
    let next = b.poll_timeout(regular).unwrap();
    let now = regular + (next - regular) / 2;
    assert!(b.poll_transmit(now, &mut out).is_none());
    assert!(b.rtcp().send_early(now));
    assert!(b.poll_transmit(now, &mut out).is_some_and(|t| !t.is_rtp()));
    assert!(matches!(parse_compound(&out).next(), Some(Ok(Packet::ReceiverReport(rr))) if rr.blocks.len() == 1));
    assert!(b.poll_transmit(now, &mut out).is_none());
    assert!(b.poll_timeout(now).unwrap() >= next);
}

#[test]
fn rapid_synchronisation_gives_capture_times_before_any_sender_report() {
    for rapid in [RapidSynchronisation::Off, RapidSynchronisation::Ntp64(4), RapidSynchronisation::Ntp56(5)] {
        let params = SessionParams { rapid_synchronisation: rapid, ..SessionParams::default() };
        let mut s = system(Preferences { frame_rate: 25.0, ..Preferences::default() });
        s.set_session_params(params).unwrap();
        // No RTCP is delivered in the first three seconds.
        let mut c = call(core::mem::replace(s.endpoint_mut(), receiver(params)), receiver(params), |_, bytes| {
            if bytes[1] & 0x7f == 96 { LinkFate::Pass } else { LinkFate::Lose }
        });
        c.run_until(Timestamp::from_secs(3));
        let events: Vec<_> = core::iter::from_fn(|| c.b.poll_playout(c.now)).collect();
        assert!(events.len() > 50);
        // Frames are captured every 40 ms and played 200 ms later; relative to the first arrival at least 50 ms after
        // that.
        let late = (events[20].at - Timestamp::ZERO).as_millis_f64() % 40.0;
        if rapid == RapidSynchronisation::Off {
            assert!((9.0..20.0).contains(&late), "{late}");
        } else {
            assert!(!(0.1..39.9).contains(&late), "{late}");
            let view = |bytes: &[u8]| PacketView::parse_header(bytes).unwrap().extensions().count();
            assert!(c.sent[0].iter().filter(|s| s.2.is_rtp()).all(|s| view(&s.1) == 1));
        }
    }
}

#[test]
fn a_missing_sender_report_is_asked_for_and_comes_early() {
    // The sender has no extension, and the receiver wants to synchronise: it requests per report, which is sent early.
    let asks = SessionParams { rapid_synchronisation: RapidSynchronisation::Ntp64(4), ..SessionParams::default() };
    let run = |params| {
        let mut s = system(Preferences::default());
        let mut lost = 0;
        let mut c = call(core::mem::replace(s.endpoint_mut(), receiver(params)), receiver(params), move |_, bytes| {
            // The first sender report is lost.
            let report = bytes[1] == 200 && lost == 0;
            lost += u32::from(report);
            if report { LinkFate::Lose } else { LinkFate::Pass }
        });
        c.run_until(Timestamp::from_secs(5));
        let is_request = |d: &[u8]| parse_compound(d).flatten().any(|p| matches!(p, Packet::SrRequest(_)));
        let requests = c.sent[1].iter().filter(|s| is_request(&s.1)).count();
        let reports: Vec<_> = c.sent[0].iter().filter(|s| s.1[1] == 200).map(|s| s.0).collect();
        (requests, reports[1])
    };
    let (none, later) = run(SessionParams::default());
    let (some, sooner) = run(asks);
    assert_eq!(none, 0);
    assert!((1..=5).contains(&some), "{some}");
    assert!(sooner < later, "{sooner} {later}");
}
