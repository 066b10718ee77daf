//! `weir testbed`.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
pub(crate) use linux::testbed;

/// A testbed needs TUN devices and namespaces.
#[cfg(not(target_os = "linux"))]
pub(crate) fn testbed(_: &crate::session::Session, _: &crate::args::TestbedArgs) -> crate::Done {
    Err(crate::output::Failure::Work("a testbed needs Linux: network namespaces and TUN devices".into()))
}
