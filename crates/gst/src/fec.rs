//! `weirfecenc` and `weirfecdec`: Reed-Solomon repair of an RTP stream.

mod dec;
mod enc;

use gst::glib;
use gst::prelude::*;
use gst::subclass::prelude::*;
use std::sync::LazyLock;

/// Payload type of repair packets unless another is set.
const DEFAULT_PAYLOAD_TYPE: u32 = 97;

static CAT: LazyLock<gst::DebugCategory> = LazyLock::new(|| {
    gst::DebugCategory::new("weirfec", gst::DebugColorFlags::empty(), Some("Weir's Reed-Solomon repair"))
});

glib::wrapper! {
    /// The encoder.
    pub(crate) struct WeirFecEnc(ObjectSubclass<enc::WeirFecEnc>) @extends gst::Element, gst::Object;
}
glib::wrapper! {
    /// The decoder.
    pub(crate) struct WeirFecDec(ObjectSubclass<dec::WeirFecDec>) @extends gst::Element, gst::Object;
}

pub(crate) fn register(plugin: &gst::Plugin) -> Result<(), glib::BoolError> {
    gst::Element::register(Some(plugin), "weirfecenc", gst::Rank::NONE, WeirFecEnc::static_type())?;
    gst::Element::register(Some(plugin), "weirfecdec", gst::Rank::NONE, WeirFecDec::static_type())
}

/// Of both elements: RTP in and out.
fn pad_templates() -> Vec<gst::PadTemplate> {
    let caps = gst::Caps::builder("application/x-rtp").build();
    let template = |name, direction| {
        gst::PadTemplate::new(name, direction, gst::PadPresence::Always, &caps).expect("a plain template")
    };
    vec![template("sink", gst::PadDirection::Sink), template("src", gst::PadDirection::Src)]
}

/// The pads of both elements, whose functions are methods of the implementation.
fn pads<T>(
    template: impl Fn(&str) -> Option<gst::PadTemplate>,
    chain: fn(&T, gst::Buffer) -> Result<gst::FlowSuccess, gst::FlowError>,
    event: fn(&T, &gst::Pad, gst::Event) -> bool,
) -> (gst::Pad, gst::Pad)
where
    T: ElementImpl,
    T::Type: IsA<gst::Element>,
{
    let template = |name| template(name).expect("both are declared");
    let sink = gst::Pad::builder_from_template(&template("sink"))
        .chain_function(move |_, parent, buffer| {
            T::catch_panic_pad_function(parent, || Err(gst::FlowError::Error), |imp| chain(imp, buffer))
        })
        .event_function(move |pad, parent, of| T::catch_panic_pad_function(parent, || false, |imp| event(imp, pad, of)))
        .flags(gst::PadFlags::PROXY_CAPS | gst::PadFlags::PROXY_ALLOCATION)
        .build();
    let src = gst::Pad::builder_from_template(&template("src")).flags(gst::PadFlags::PROXY_CAPS).build();
    (sink, src)
}

/// A buffer beside another: at its time.
fn beside(packet: Vec<u8>, times: (Option<gst::ClockTime>, Option<gst::ClockTime>)) -> gst::Buffer {
    let mut buffer = gst::Buffer::from_mut_slice(packet);
    if let Some(new) = buffer.get_mut() {
        new.set_pts(times.0);
        new.set_dts(times.1);
    }
    buffer
}

fn uint(name: &str, nick: &str, text: &str, range: (u32, u32, u32)) -> glib::ParamSpec {
    let (least, most, default) = range;
    let spec = glib::ParamSpecUInt::builder(name).nick(nick).blurb(text).minimum(least).maximum(most);
    spec.default_value(default).mutable_playing().build()
}
