//! Where calls are made: a network namespace of their own. Firefox and libnice have no candidates on a loopback device, so that there is
//! another one, whose packets leave the machine as little.

use std::net::{IpAddr, Ipv4Addr};
use std::process::Command;
use weir_live::netns::Namespace;

const OWN: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
const NOBODY: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);

/// Runs a closure in such a namespace; it is given the address for media. Threads and programs that it starts are there too.
pub(crate) fn inside<T: Send + 'static>(
    job: impl FnOnce(IpAddr) -> T + Send + 'static,
) -> Result<T, weir_live::netns::SetupError> {
    let namespace = Namespace::new("interop")?;
    namespace.run(move || {
        for line in [
            "link add weir0 type veth peer name weir1".to_owned(),
            format!("addr add {OWN}/24 dev weir0"),
            "link set weir0 up".to_owned(),
            "link set weir1 up".to_owned(),
            // Firefox looks for the address of the default route. There is nobody behind it.
            format!("route add default via {NOBODY}"),
        ] {
            let done = Command::new("ip").args(line.split(' ')).output().expect("ip runs");
            assert!(done.status.success(), "ip {line}: {}", String::from_utf8_lossy(&done.stderr));
        }
        job(OWN.into())
    })
}
