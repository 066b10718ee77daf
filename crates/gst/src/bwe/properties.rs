//! The element's description, pads and properties, as `gst-inspect-1.0` shows them.

use super::settings::{DEFAULT_CONTROLLER, DEFAULT_MAX, DEFAULT_MIN, DEFAULT_START, controllers};
use gst::glib;
use gst::prelude::*;
use std::sync::LazyLock;

pub(super) static METADATA: LazyLock<gst::subclass::ElementMetadata> = LazyLock::new(|| {
    gst::subclass::ElementMetadata::new(
        "Weir bandwidth estimator",
        "Network/WebRTC/RTP/Filter",
        "Paces RTP and estimates the rate that the path carries, by the controller named, from the transport-wide \
         feedback that the rtpsession directly after it receives. It takes the place of rtpgccbwe",
        "the Weir authors",
    )
});

pub(super) static PADS: LazyLock<Vec<gst::PadTemplate>> = LazyLock::new(|| {
    let caps = gst::Caps::builder("application/x-rtp").build();
    let template = |name, direction| {
        gst::PadTemplate::new(name, direction, gst::PadPresence::Always, &caps).expect("a plain template")
    };
    vec![template("sink", gst::PadDirection::Sink), template("src", gst::PadDirection::Src)]
});

pub(super) fn all() -> Vec<glib::ParamSpec> {
    let bitrate = |name, nick, text, default| {
        glib::ParamSpecUInt::builder(name)
            .nick(nick)
            .blurb(text)
            .minimum(1)
            .default_value(default)
            .mutable_playing()
            .build()
    };
    let names = format!(
        "Name of the controller; the present rate is kept when it changes. onnx:FILE for a learned policy, in builds with the \
         feature onnx, or one of: {}",
        controllers().join(", ")
    );
    vec![
        glib::ParamSpecString::builder("controller")
            .nick("Controller")
            .blurb(&names)
            .default_value(Some(DEFAULT_CONTROLLER))
            .mutable_playing()
            .build(),
        glib::ParamSpecBoxed::builder::<gst::Structure>("controller-params")
            .nick("Parameters of the controller")
            .blurb("Numbers by name, such as \"params,beta=0.8\"; `weir show controllers --json` has them all")
            .mutable_playing()
            .build(),
        bitrate(
            "estimated-bitrate",
            "Estimated bitrate",
            "Rate for all encoders together, in bit/s; notified when it changes. Set before the element starts, it is \
             the rate to begin with",
            DEFAULT_START,
        ),
        bitrate("min-bitrate", "Least bitrate", "Lower bound of the estimate, in bit/s", DEFAULT_MIN),
        bitrate("max-bitrate", "Greatest bitrate", "Upper bound of the estimate, in bit/s", DEFAULT_MAX),
        glib::ParamSpecBoxed::builder::<gst::Structure>("stats")
            .nick("Statistics")
            .blurb(
                "What was sent, is queued and was reported; rates in bit/s, times in ns; the controller's own values \
             under \"metrics\"",
            )
            .read_only()
            .build(),
    ]
}
