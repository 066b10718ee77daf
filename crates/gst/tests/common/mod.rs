//! Two RTP sessions of GStreamer with an emulated link between them, in this process and in real time.
#![allow(dead_code, clippy::allow_attributes, reason = "each test uses its part of it")]

use gst::prelude::*;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, Once};
use std::thread::JoinHandle;
use std::time::Duration;
use weir_path::{Departure, Link, LinkConfig, Packet, Verdict};
use weir_units::{DataSize, Ecn, Timestamp};

/// RTP of the tests: VP8 with transport-wide numbers.
pub(crate) const RTP: &str = "application/x-rtp,media=video,clock-rate=90000,encoding-name=VP8,payload=96,\
    extmap-1=(string)http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01";
const RTCP: &str = "application/x-rtcp";

/// GStreamer with the elements of this crate.
pub(crate) fn init() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        gst::init().expect("GStreamer");
        gstweir::register_static().expect("the elements");
    });
}

pub(crate) fn now() -> Timestamp {
    Timestamp::from_nanos(gst::SystemClock::obtain().time().nseconds() as i64)
}

/// A packet that arrived at the end of a link, and its wait in the queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrived {
    pub(crate) at: Timestamp,
    pub(crate) bytes: u64,
    pub(crate) queued_ms: f64,
}

enum Entered {
    Buffer(gst::Buffer),
    End,
}

/// A link between two pads of other elements, run by a thread until it is dropped.
pub(crate) struct Wire {
    input: Sender<Entered>,
    entry: gst::Pad,
    exit: gst::Pad,
    thread: Option<JoinHandle<()>>,
    pub(crate) arrived: Arc<Mutex<Vec<Arrived>>>,
    pub(crate) dropped: Arc<Mutex<u64>>,
}

impl Wire {
    /// From the source pad `from` to the sink pad `to`, whose data have `caps`. The link's time begins now.
    pub(crate) fn new(config: &LinkConfig, from: &gst::Pad, to: &gst::Pad, caps: &str) -> Self {
        let (input, output) = channel();
        let to_link = Mutex::new(input.clone());
        let entry = gst::Pad::builder(gst::PadDirection::Sink)
            .chain_function(move |_, _, buffer| {
                // The link may have ended before the session.
                let _ = to_link.lock().expect("no panic").send(Entered::Buffer(buffer));
                Ok(gst::FlowSuccess::Ok)
            })
            .event_function(|_, _, _| true)
            .build();
        let exit = gst::Pad::builder(gst::PadDirection::Src).build();
        for pad in [&entry, &exit] {
            pad.set_active(true).expect("active");
        }
        from.link(&entry).expect("linked");
        exit.link(to).expect("linked");
        let caps = caps.parse::<gst::Caps>().expect("caps");
        let (arrived, dropped) = (Arc::<Mutex<Vec<Arrived>>>::default(), Arc::<Mutex<u64>>::default());
        let link = Link::new(config, 1).expect("a link");
        let (pad, log, lost) = (exit.clone(), arrived.clone(), dropped.clone());
        let thread = std::thread::spawn(move || run(link, &output, &pad, &caps, &log, &lost));
        Self { input, entry, exit, thread: Some(thread), arrived, dropped }
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        let _ = self.input.send(Entered::End);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn run(
    mut link: Link<gst::Buffer>,
    input: &Receiver<Entered>,
    exit: &gst::Pad,
    caps: &gst::Caps,
    log: &Mutex<Vec<Arrived>>,
    lost: &Mutex<u64>,
) {
    let begin = now();
    let time = || Timestamp::ZERO + (now() - begin);
    exit.push_event(gst::event::StreamStart::new("link"));
    exit.push_event(gst::event::Caps::new(caps));
    exit.push_event(gst::event::Segment::new(&gst::FormattedSegment::<gst::ClockTime>::new()));
    loop {
        let wait = link.next_event().map_or(100_000_000, |at| at.saturating_since(time()).as_nanos().max(0));
        match input.recv_timeout(Duration::from_nanos(wait as u64)) {
            Ok(Entered::Buffer(buffer)) => {
                // With the headers of UDP and IPv4.
                let size = DataSize::from_bytes(buffer.size() as u64 + 28);
                let packet = Packet { item: buffer, size, ecn: Ecn::NotEct, flow: 0 };
                if let Verdict::Dropped(..) = link.push(time(), packet) {
                    *lost.lock().expect("no panic") += 1;
                }
            }
            Ok(Entered::End) | Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) => {}
        }
        while let Some(departure) = link.pop(time()) {
            match departure {
                Departure::Delivered(d) => {
                    let arrived =
                        Arrived { at: d.at, bytes: d.item.size() as u64, queued_ms: d.queued_for.as_millis_f64() };
                    log.lock().expect("no panic").push(arrived);
                    let _ = exit.push(d.item);
                }
                Departure::Dropped(_) => *lost.lock().expect("no panic") += 1,
            }
        }
    }
}

/// A sender of VP8 through a congestion controller, and a receiver that gives transport-wide feedback.
pub(crate) struct Call {
    pub(crate) pipeline: gst::Pipeline,
    receiver: gst::Pipeline,
    pub(crate) estimator: gst::Element,
    pub(crate) forward: Wire,
    _back: Wire,
    /// Rates notified, in bit/s, with their time since the call's begin.
    pub(crate) rates: Arc<Mutex<Vec<(f64, u32)>>>,
}

impl Call {
    /// `element` is the description of the controlling element; `encoder` follows its rate.
    pub(crate) fn new(element: &str, forward: &LinkConfig, back: &LinkConfig) -> Self {
        init();
        // Noise of this size takes from 0.37 to 2 Mbit/s in VP8.
        let description = format!(
            "videotestsrc is-live=true pattern=snow ! video/x-raw,width=128,height=96,framerate=30/1 ! \
             vp8enc name=encoder deadline=1 cpu-used=8 end-usage=cbr threads=1 keyframe-max-dist=3000 \
             buffer-size=500 buffer-initial-size=300 buffer-optimal-size=400 ! \
             rtpvp8pay mtu=1200 ! {RTP} ! {element} name=estimator ! session.send_rtp_sink rtpsession name=session rtp-profile=avpf"
        );
        let pipeline = gst::parse::launch(&description).expect("the sender's elements");
        let pipeline = pipeline.downcast::<gst::Pipeline>().expect("a pipeline");
        // Linked below: rtpsession 1.22 holds its lock while it shows a new pad.
        let receiver = "rtpsession name=session rtp-profile=avpf  fakesink name=sink sync=false async=false";
        let receiver = gst::parse::launch(receiver)
            .expect("the receiver's elements")
            .downcast::<gst::Pipeline>()
            .expect("a pipeline");
        let named = |p: &gst::Pipeline, name| p.by_name(name).expect("named");
        let (estimator, encoder) = (named(&pipeline, "estimator"), named(&pipeline, "encoder"));
        let (from, to) = (named(&pipeline, "session"), named(&receiver, "session"));
        let request = |session: &gst::Element, name| session.request_pad_simple(name).expect("a pad of the session");
        let receives = to.static_pad("recv_rtp_sink").unwrap_or_else(|| request(&to, "recv_rtp_sink"));
        let sends = from.static_pad("send_rtp_src").expect("made with the sink pad");
        to.link_pads(Some("recv_rtp_src"), &named(&receiver, "sink"), Some("sink")).expect("linked");
        let (reports, takes) = (request(&to, "send_rtcp_src"), request(&from, "recv_rtcp_sink"));
        let forward = Wire::new(forward, &sends, &receives, RTP);
        let back = Wire::new(back, &reports, &takes, RTCP);
        encoder.set_property("target-bitrate", estimator.property::<u32>("estimated-bitrate") as i32);
        let (rates, begin) = (Arc::<Mutex<Vec<(f64, u32)>>>::default(), now());
        let log = rates.clone();
        estimator.connect_notify(Some("estimated-bitrate"), move |estimator, _| {
            let rate = estimator.property::<u32>("estimated-bitrate");
            log.lock().expect("no panic").push(((now() - begin).as_secs_f64(), rate));
            encoder.set_property("target-bitrate", rate as i32);
        });
        receiver.set_state(gst::State::Playing).expect("the receiver plays");
        Self { pipeline, receiver, estimator, forward, _back: back, rates }
    }

    /// A fault that the sender posted.
    pub(crate) fn fault(&self) -> Option<String> {
        let kinds = [gst::MessageType::Error, gst::MessageType::Warning];
        let message = self.pipeline.bus().expect("a pipeline has one").pop_filtered(&kinds)?;
        Some(match message.view() {
            gst::MessageView::Error(e) => e.error().to_string(),
            gst::MessageView::Warning(w) => w.error().to_string(),
            _ => String::new(),
        })
    }

    pub(crate) fn play(&self) {
        self.pipeline.set_state(gst::State::Playing).expect("the sender plays");
    }

    /// Rate received in kbit/s between two times of the link in s, and the 95th percentile of the wait in its queue in ms.
    pub(crate) fn received(&self, from: f64, to: f64) -> (f64, f64) {
        let arrived = self.forward.arrived.lock().expect("no panic");
        let inside = |a: &&Arrived| (from..to).contains(&(a.at - Timestamp::ZERO).as_secs_f64());
        let bytes: u64 = arrived.iter().filter(inside).map(|a| a.bytes).sum();
        let mut waits: Vec<f64> = arrived.iter().filter(inside).map(|a| a.queued_ms).collect();
        waits.sort_by(f64::total_cmp);
        let p95 = waits.get(waits.len() * 95 / 100).copied().unwrap_or(0.0);
        (bytes as f64 * 8.0 / 1e3 / (to - from), p95)
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        for pipeline in [&self.pipeline, &self.receiver] {
            let _ = pipeline.set_state(gst::State::Null);
        }
    }
}
