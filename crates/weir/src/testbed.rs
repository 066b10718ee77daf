//! `weir testbed`.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
pub(crate) use linux::{Json, testbed};

#[cfg(not(target_os = "linux"))]
pub(crate) fn testbed(_: &crate::session::Session, _: &crate::args::TestbedArgs) -> crate::Done {
    crate::output::needs_linux("weir testbed", "network namespaces and TUN devices")
}
