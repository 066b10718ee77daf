//! Network interfaces of a namespace.

/// Runs iproute2's `ip`, with arguments parted by spaces.
pub(crate) fn ip(arguments: &str) {
    let done = std::process::Command::new("ip").args(arguments.split(' ')).status().expect("iproute2");
    assert!(done.success(), "ip {arguments}");
}
