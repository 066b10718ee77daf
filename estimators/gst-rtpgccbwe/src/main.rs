//! GStreamer's element `rtpgccbwe` (gst-plugins-rs, `gst-plugin-rtp`) behind Weir's `exec:` protocol.
//!
//! The element gets what an `rtpsession` sends it for each feedback: the event `RTPTWCCPackets` at its source pad. It reads the clock of the
//! system in many places; `clock_gettime` of this program stands before that of the C library, for the element and for GStreamer alike.
//!
//! Left out: `rtpsession`, whose parser of feedback has no part in this, and the thread with which the element paces. Weir paces at
//! the estimate, as that thread does.

#[path = "../../exec.rs"]
#[allow(dead_code, reason = "each adapter needs a part of it")]
mod exec;
/// By `estimators/build`.
mod gcc;

use exec::{Answer, Call, Estimator, Reported};
use gst::glib::{
    self,
    translate::{UnsafeFrom, from_glib_full},
};
use gst::prelude::*;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

/// Times of zero mean that there is none.
const ZERO_NS: i64 = 3600 * NANOS;
const NANOS: i64 = 1_000_000_000;
/// A fixed header with the transport-wide sequence number. `rtpsession` counts payload alone.
const HEADER: usize = 20;

static NOW_NS: AtomicI64 = AtomicI64::new(ZERO_NS);

#[repr(C)]
pub struct Timespec {
    seconds: i64,
    nanos: i64,
}

/// The C library's function of this name, of all clocks.
///
/// # Safety
/// As there: `time` is null, or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clock_gettime(_clock: i32, time: *mut Timespec) -> i32 {
    let now = NOW_NS.load(Relaxed);
    if !time.is_null() {
        // SAFETY: the caller's promise.
        unsafe { time.write(Timespec { seconds: now / NANOS, nanos: now % NANOS }) };
    }
    0
}

struct Adapter {
    element: gst::Element,
    pad: gst::Pad,
}

impl Adapter {
    fn new(call: Call) -> Self {
        NOW_NS.store(ZERO_NS + call.now_ns, Relaxed);
        gst::init().expect("GStreamer starts");
        let element: gst::Element = glib::Object::builder::<gcc::BandwidthEstimator>().build().upcast();
        let rate = |bps: u64| u32::try_from(bps).unwrap_or(u32::MAX).max(1);
        element.set_property("min-bitrate", rate(call.floor_bps));
        element.set_property("max-bitrate", rate(call.ceiling_bps));
        element.set_property("estimated-bitrate", rate(call.start_bps));
        let pad = element.static_pad("src").expect("the element has a source pad");
        // SAFETY: nothing has been done with the pad. The function of the element starts its thread.
        unsafe { pad.set_activatemode_function(|_, _, _, _| Ok(())) };
        pad.set_active(true).expect("the pad becomes active");
        Self { element, pad }
    }
}

impl Estimator for Adapter {
    const RTCP: bool = false;

    fn feedback(&mut self, now_ns: i64, packets: &[Reported]) {
        NOW_NS.store(ZERO_NS + now_ns, Relaxed);
        let clock = |ns: i64| gst::ClockTime::from_nseconds((ZERO_NS + ns) as u64);
        // SAFETY: an empty array of its own. `ValueArray::new` has another meaning in each version of the crate.
        let mut array: glib::ValueArray = unsafe { from_glib_full(glib::gobject_ffi::g_value_array_new(0)) };
        for p in packets {
            let mut structure = gst::Structure::builder("RTPTWCCPacket")
                .field("seqnum", u32::from(p.sequence as u16))
                .field("local-ts", clock(p.sent_ns))
                .field("size", p.size_bytes.saturating_sub(HEADER) as u32)
                .field("lost", p.arrived_ns.is_none());
            if let Some(arrived_ns) = p.arrived_ns {
                structure = structure.field("remote-ts", clock(arrived_ns));
            }
            array.append(&structure.build().to_value());
        }
        let array = array.to_value();
        let mut structure = gst::Structure::new_empty("RTPTWCCPackets");
        // SAFETY: this program has one thread.
        structure.set_value("packets", unsafe { glib::SendValue::unsafe_from(array.into_raw()) });
        // No element before this one is there to take the event from it.
        let _ = self.pad.send_event(gst::event::CustomUpstream::new(structure));
    }

    fn limits(&mut self, _: i64, floor_bps: u64, ceiling_bps: u64) {
        self.element.set_property("min-bitrate", floor_bps.clamp(1, u32::MAX.into()) as u32);
        self.element.set_property("max-bitrate", ceiling_bps.clamp(1, u32::MAX.into()) as u32);
    }

    fn answer(&mut self, _: i64) -> Answer {
        let rate = f64::from(self.element.property::<u32>("estimated-bitrate"));
        Answer { media_bps: rate, pacing_bps: Some(rate), ..Answer::default() }
    }
}

fn main() -> std::io::Result<()> {
    exec::serve(concat!("gst-plugin-rtp ", env!("LIBRARY")), Adapter::new)
}
