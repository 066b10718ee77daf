//! The entry of the plugin, which GStreamer reads from the library.

use gst::glib;

fn init(plugin: &gst::Plugin) -> Result<(), glib::BoolError> {
    crate::bwe::register(plugin)?;
    crate::fec::register(plugin)
}

gst::plugin_define!(
    weir,
    "Congestion control and repair for RTP, by Weir",
    init,
    env!("CARGO_PKG_VERSION"),
    "MIT/X11",
    "weir",
    "weir",
    "https://crates.io/crates/weir-cc"
);

/// Makes the elements available in a program that links this library instead of loading the plugin.
///
/// # Errors
/// GStreamer refuses the plugin: it is not initialised, or is another version.
pub fn register_static() -> Result<(), glib::BoolError> {
    plugin_desc::plugin_register_static()
}
