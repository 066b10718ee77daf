//! `weir emulate`.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
pub(crate) use linux::{emulate, with_privilege};

#[cfg(not(target_os = "linux"))]
pub(crate) fn emulate(_: &crate::session::Session, _: &crate::args::EmulateArgs) -> crate::Done {
    crate::output::needs_linux("weir emulate", "network namespaces and TUN devices")
}
