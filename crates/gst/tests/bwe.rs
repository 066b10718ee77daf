//! `weirbwe` in pipelines of this process.
#![cfg(feature = "gst")]

mod common;

use common::{Call, RTP, init};
use gst::prelude::*;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use weir_path::{Capacity, Limit, LinkConfig, Schedule, Step};
use weir_units::{DataRate, TimeDelta};

/// Length of each capacity, in s.
const PHASE: i64 = 3;

fn phases(kbps: &[u64]) -> LinkConfig {
    let delay = TimeDelta::from_millis(25);
    let step = |(i, kbps): (i64, &u64)| Step { at: TimeDelta::from_secs(i * PHASE), rate: DataRate::from_kbps(*kbps) };
    let schedule = Schedule::new((0..).zip(kbps).map(step).collect(), None).expect("in order");
    LinkConfig {
        capacity: Capacity::Schedule(schedule),
        limit: Limit::Time(TimeDelta::from_millis(300)),
        ..LinkConfig::constant(DataRate::from_kbps(500), delay)
    }
}

fn back() -> LinkConfig {
    LinkConfig::constant(DataRate::from_mbps(10), TimeDelta::from_millis(25))
}

/// Waits up to 5 s for what a live pipeline does soon.
fn soon(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..500 {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("{what}: not within 5 s");
}

fn stat<T: for<'v> gst::glib::value::FromValue<'v>>(element: &gst::Element, name: &str) -> Option<T> {
    element.property::<gst::Structure>("stats").get::<T>(name).ok()
}

#[test]
fn two_controllers_follow_a_link_down_and_up_again() {
    let run = |controller: &str| {
        let element =
            format!("weirbwe controller={controller} estimated-bitrate=1000000 min-bitrate=100000 max-bitrate=3000000");
        let call = Call::new(&element, &phases(&[2_000, 500, 2_000]), &back());
        call.play();
        std::thread::sleep(Duration::from_secs(3 * PHASE as u64));
        assert_eq!(call.fault(), None);
        let rates = || call.rates.lock().expect("no panic").clone();
        let p = PHASE as f64;
        let (first, second) = (call.received(1.0, p), call.received(p + 1.0, 2.0 * p));
        let lowest = rates().iter().filter(|r| r.0 >= p).map(|r| r.1).min().expect("rates change");
        let seen = format!("{controller}: received {first:?}, {second:?}, lowest {lowest} bit/s");
        // More than it began with, then within what the link carries, then upwards again.
        assert!(first.0 > 900.0 && first.0 < 2_060.0, "{seen}");
        assert!(second.0 > 100.0 && second.0 < 520.0, "{seen}");
        assert!((90_000..=560_000).contains(&lowest), "{seen}");
        // How soon depends on when the queue is empty again, and on the machine's load.
        soon(&format!("{seen}, a tenth more"), || {
            rates().last().is_some_and(|last| f64::from(last.1) > 1.1 * f64::from(lowest))
        });
        let matched: u64 = stat(&call.estimator, "feedback-matched").expect("counted");
        let unmatched: u64 = stat(&call.estimator, "feedback-unmatched").expect("counted");
        assert!(matched > 300 && unmatched * 20 < matched, "{matched} matched, {unmatched} not");
        let rtt: u64 = stat(&call.estimator, "round-trip-time").expect("measured");
        assert!((50_000_000..600_000_000).contains(&rtt), "{rtt} ns");
    };
    std::thread::scope(|s| {
        let runs = ["gcc", "nada"].map(|c| s.spawn(move || run(c)));
        runs.into_iter().for_each(|r| r.join().expect("both follow"));
    });
}

#[test]
fn the_controller_and_bounds_change_while_playing() {
    let call = Call::new("weirbwe estimated-bitrate=800000", &phases(&[2_000]), &back());
    call.play();
    let estimator = &call.estimator;
    let rate = || estimator.property::<u32>("estimated-bitrate");
    soon("packets leave", || stat::<u64>(estimator, "packets-sent").unwrap_or(0) > 20);
    estimator.set_property("max-bitrate", 400_000u32);
    assert!(rate() <= 400_000, "{}", rate());
    estimator.set_property("max-bitrate", 3_000_000u32);
    let before = rate();
    estimator.set_property("controller", "nada");
    soon("the other controller is reported on", || stat::<u64>(estimator, "feedback-matched").unwrap_or(0) > 200);
    assert_eq!(estimator.property::<String>("controller"), "nada");
    assert!(rate() > before / 2, "{before} -> {}", rate());
    if cfg!(feature = "onnx") {
        let decisions = || stat::<gst::Structure>(estimator, "metrics").and_then(|m| m.get::<f64>("decisions").ok());
        estimator.set_property("controller", POLICY);
        soon("decisions of a learned policy", || decisions().is_some_and(|n| n > 5.0));
        assert_eq!(estimator.property::<String>("controller"), POLICY);
        estimator.set_property("controller", "nada");
    }
    // An unusable value is reported, and changes nothing.
    estimator.set_property("controller", "scraem");
    soon("a warning", || call.fault().is_some_and(|f| f.contains("`scraem`; did you mean `scream`?")));
    let params = "params,no-such=1.0".parse::<gst::Structure>().expect("a structure");
    estimator.set_property("controller-params", params);
    soon("a warning", || call.fault().is_some_and(|f| f.contains("controller `nada` has no parameter `no-such`")));
    assert_eq!(estimator.property::<String>("controller"), "nada");
    assert!(estimator.property::<Option<gst::Structure>>("controller-params").is_none());
    // Neither do bounds that cross.
    estimator.set_property("min-bitrate", 200_000u32);
    estimator.set_property("max-bitrate", 150_000u32);
    let says = "min-bitrate=200000 is above max-bitrate=150000 (bit/s): set max-bitrate to 200000 or more first";
    soon("a warning", || call.fault().is_some_and(|f| f.contains(says)));
    assert_eq!(estimator.property::<u32>("max-bitrate"), 3_000_000);
    assert!(rate() >= 200_000, "{}", rate());
    estimator.set_property("max-bitrate", 300_000u32);
    soon("the upper bound", || rate() <= 300_000);
}

/// The examples' learned policy.
const POLICY: &str = concat!("onnx:", env!("CARGO_MANIFEST_DIR"), "/../../examples/python/policy.onnx");

#[test]
fn an_unknown_controller_stops_the_start_with_the_nearest_name() {
    init();
    let policies = if cfg!(feature = "onnx") { "absent.onnx`: cannot be read" } else { "--features gst,onnx" };
    for (given, says) in [
        ("controller=onnx:absent.onnx", policies),
        ("controller=nadda", "no controller is named `nadda`; did you mean `nada`?"),
        ("controller=gcc-remb", "`gcc-remb` needs more than per-packet feedback; these do not: "),
        (
            "controller=gcc controller-params=params,bta=(double)0.8",
            "controller `gcc` has no parameter `bta`; did you mean `",
        ),
        (
            "controller=gcc controller-params=params,beta=(double)99",
            "parameter `beta` of controller `gcc` is 99; it must lie between 0.5 and 0.99",
        ),
        ("min-bitrate=900000 max-bitrate=300000", "min-bitrate=900000 is above max-bitrate=300000 (bit/s)"),
    ] {
        let pipeline = gst::parse::launch(&format!("videotestsrc ! fakesink  weirbwe {given}")).expect("parsed");
        assert!(pipeline.set_state(gst::State::Ready).is_err(), "{given}");
        let bus = pipeline.bus().expect("a pipeline has one");
        let error = bus.pop_filtered(&[gst::MessageType::Error]).expect("posted");
        let gst::MessageView::Error(error) = error.view() else { unreachable!("filtered") };
        assert!(error.error().to_string().contains(says), "{}", error.error());
        let _ = pipeline.set_state(gst::State::Null);
    }
}

/// An element between two pads of the test.
struct Alone {
    element: gst::Element,
    to: gst::Pad,
    _from: gst::Pad,
    out: std::sync::mpsc::Receiver<Result<usize, gst::EventType>>,
}

impl Alone {
    fn new(element: gst::Element) -> Self {
        let (send, out) = channel();
        let events = Mutex::new(send.clone());
        let buffers = Mutex::new(send);
        let from = gst::Pad::builder(gst::PadDirection::Sink)
            .chain_function(move |_, _, buffer| {
                let _ = buffers.lock().expect("no panic").send(Ok(buffer.size()));
                Ok(gst::FlowSuccess::Ok)
            })
            .event_function(move |_, _, event| {
                let _ = events.lock().expect("no panic").send(Err(event.type_()));
                true
            })
            .build();
        let to = gst::Pad::builder(gst::PadDirection::Src).build();
        to.link(&element.static_pad("sink").expect("it has one")).expect("linked");
        element.static_pad("src").expect("it has one").link(&from).expect("linked");
        for pad in [&to, &from] {
            pad.set_active(true).expect("active");
        }
        Self { element, to, _from: from, out }
    }

    fn begin(&self) {
        self.begin_as(RTP);
    }

    fn begin_as(&self, caps: &str) {
        self.to.push_event(gst::event::StreamStart::new("test"));
        self.to.push_event(gst::event::Caps::new(&caps.parse::<gst::Caps>().expect("caps")));
        self.to.push_event(gst::event::Segment::new(&gst::FormattedSegment::<gst::ClockTime>::new()));
    }

    /// Packets of 1,000 bytes, numbered from 1.
    fn push(&self, count: u16) -> Result<gst::FlowSuccess, gst::FlowError> {
        let mut last = Ok(gst::FlowSuccess::Ok);
        for sequence in 1..=count {
            let mut packet = vec![0x80, 96, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7];
            packet[2..4].copy_from_slice(&sequence.to_be_bytes());
            packet.resize(1_000, 0);
            last = self.to.push(gst::Buffer::from_mut_slice(packet));
        }
        last
    }

    /// Collects the output until none comes for this long.
    fn until_quiet(&self, ms: u64) -> Vec<Result<usize, gst::EventType>> {
        std::iter::from_fn(|| self.out.recv_timeout(Duration::from_millis(ms)).ok()).collect()
    }
}

#[test]
fn packets_are_paced_in_order_before_the_end_and_the_element_is_used_again() {
    init();
    let element = gst::ElementFactory::make("weirbwe")
        .property("controller", "gcc")
        .property("estimated-bitrate", 400_000u32)
        .build()
        .expect("made");
    let rates = Arc::<Mutex<Vec<u32>>>::default();
    let log = rates.clone();
    element.connect_notify(Some("estimated-bitrate"), move |e, _| {
        log.lock().expect("no panic").push(e.property("estimated-bitrate"));
    });
    let alone = Alone::new(element);
    for _ in 0..2 {
        alone.element.set_state(gst::State::Playing).expect("plays");
        alone.begin();
        let begin = common::now();
        // 160 kbit, at no more than three times 400 kbit/s.
        assert!(alone.push(20).is_ok());
        alone.to.push_event(gst::event::Eos::new());
        let mut out = Vec::new();
        while out.last() != Some(&Err(gst::EventType::Eos)) {
            out.push(alone.out.recv_timeout(Duration::from_secs(5)).expect("an end after all packets"));
        }
        let took = (common::now() - begin).as_secs_f64();
        assert!((0.08..4.0).contains(&took), "{took} s");
        let packets: Vec<usize> = out.iter().filter_map(|o| o.as_ref().ok().copied()).collect();
        assert_eq!(packets, [1_000; 20]);
        let first: Vec<_> = out.iter().take(3).map(|o| o.err()).collect();
        let events = [gst::EventType::StreamStart, gst::EventType::Caps, gst::EventType::Segment];
        assert_eq!(first, events.map(Some));
        alone.element.set_state(gst::State::Null).expect("stops");
        assert!(alone.push(1).is_err(), "a stopped element takes nothing");
    }
    // Each start begins with the rate set, less the headers that it covers.
    let begun = rates.lock().expect("no panic").iter().filter(|r| (380_000..=400_000).contains(*r)).count();
    assert!(begun >= 2, "{rates:?}");
}

#[test]
fn a_flush_discards_what_is_queued_and_what_follows_passes() {
    init();
    let element = gst::ElementFactory::make("weirbwe").property("estimated-bitrate", 20_000u32).build().expect("made");
    let alone = Alone::new(element);
    alone.element.set_state(gst::State::Playing).expect("plays");
    alone.begin();
    // Far more than leaves at 50 kbit/s, or in two seconds.
    assert!(alone.push(200).is_ok());
    alone.to.push_event(gst::event::FlushStart::new());
    assert_eq!(alone.push(1), Err(gst::FlowError::Flushing));
    alone.to.push_event(gst::event::FlushStop::new(true));
    let before = alone.until_quiet(100).iter().filter(|o| o.is_ok()).count();
    assert!(before < 150, "{before} of 200 passed");
    alone.to.push_event(gst::event::Segment::new(&gst::FormattedSegment::<gst::ClockTime>::new()));
    assert!(alone.push(2).is_ok());
    soon("packets after the flush", || alone.until_quiet(50).iter().any(Result::is_ok));
    // Feedback of no packet of this element, and events that only look like feedback.
    let src = alone.element.static_pad("src").expect("it has one");
    let event = |s: gst::Structure| gst::event::CustomUpstream::new(s);
    src.send_event(event(gst::Structure::new_empty("RTPTWCCPackets")));
    src.send_event(event(gst::Structure::builder("RTPTWCCPackets").field("packets", 3i32).build()));
    assert_eq!(stat::<u64>(&alone.element, "feedback-matched"), Some(0));
    alone.element.set_state(gst::State::Null).expect("stops while packets are queued");
}

#[test]
fn the_rate_stays_where_the_caps_promise_no_feedback() {
    init();
    let played = |controller: &str| {
        let element = gst::ElementFactory::make("weirbwe")
            .property("controller", controller)
            .property("estimated-bitrate", 1_000_000u32)
            .build()
            .expect("made");
        let bus = gst::Bus::new();
        element.set_bus(Some(&bus));
        let alone = Alone::new(element);
        alone.element.set_state(gst::State::Playing).expect("plays");
        let begun = alone.element.property::<u32>("estimated-bitrate");
        let plain = RTP.split(",extmap").next().expect("the caps without the extension");
        alone.begin_as(plain);
        let rate = || alone.element.property::<u32>("estimated-bitrate");
        // 0.8 Mbit/s for four seconds: every controller would long have fallen.
        for _ in 0..40 {
            assert!(alone.push(10).is_ok());
            std::thread::sleep(Duration::from_millis(100));
        }
        assert!(rate().abs_diff(begun) <= begun / 100, "{controller}: {begun} to {} bit/s", rate());
        let passed = alone.until_quiet(200).iter().filter(|o| o.is_ok()).count();
        assert!((390..=400).contains(&passed), "{controller}: {passed} of 400 passed");
        let warnings: Vec<String> = std::iter::from_fn(|| bus.pop_filtered(&[gst::MessageType::Warning]))
            .map(|m| match m.view() {
                gst::MessageView::Warning(w) => w.error().to_string(),
                _ => String::new(),
            })
            .collect();
        assert_eq!(warnings.len(), 1, "{controller}: {warnings:?}");
        assert!(warnings[0].contains("the caps name no extension"), "{warnings:?}");
        assert!(warnings[0].contains(&format!("the rate stays at {begun} bit/s")), "{warnings:?}");
        if controller == "nada" {
            // With caps that do, it is controlled: silence lowers it.
            alone.to.push_event(gst::event::Caps::new(&RTP.parse::<gst::Caps>().expect("caps")));
            soon("a fall in silence", || {
                let _ = alone.push(2);
                rate() < begun * 9 / 10
            });
        }
        alone.element.set_state(gst::State::Null).expect("stops");
    };
    std::thread::scope(|s| {
        let runs = ["nada", "gcc", "scream", "sluice"].map(|c| s.spawn(move || played(c)));
        runs.into_iter().for_each(|r| r.join().expect("held"));
    });
}
