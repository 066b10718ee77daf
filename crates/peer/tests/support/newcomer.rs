//! A newcomer that asks a service of HTTP, from an address of its own.

use super::flood::connect_from;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

/// The answer to a request that ends the connection, and how long it took; empty where there was none.
#[expect(clippy::disallowed_methods, reason = "how long a service takes")]
pub(crate) fn ask(at: SocketAddr, request: &[u8]) -> (Duration, String) {
    let begin = std::time::Instant::now();
    let mut answer = Vec::new();
    if let Some(mut stream) = connect_from(Ipv4Addr::new(127, 200, 0, 2), at) {
        let ready = stream.set_nonblocking(false).and_then(|()| stream.set_read_timeout(Some(Duration::from_secs(10))));
        if ready.is_ok() && stream.write_all(request).is_ok() {
            let _ = stream.read_to_end(&mut answer);
        }
    }
    (begin.elapsed(), String::from_utf8_lossy(&answer).into_owned())
}
