//! `weirbwe`: pacing and bandwidth estimation before an RTP session.

mod imp;
mod properties;
mod sending;
mod settings;
mod state;
mod twcc;

use gst::glib;
use gst::prelude::*;

glib::wrapper! {
    /// The element.
    pub(crate) struct WeirBwe(ObjectSubclass<imp::WeirBwe>) @extends gst::Element, gst::Object;
}

pub(crate) fn register(plugin: &gst::Plugin) -> Result<(), glib::BoolError> {
    gst::Element::register(Some(plugin), "weirbwe", gst::Rank::NONE, WeirBwe::static_type())
}
