//! Messages of strangers while a call runs: offers that browsers would not make, requests without the token, and random datagrams.

use std::collections::BTreeMap;
use std::net::{SocketAddr, UdpSocket};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use weir_peer::server::RunningServer;

/// Datagrams between two pauses, which leave the call's thread time to read its socket.
const AT_ONCE: u32 = 100;

/// SplitMix64 (Steele, Lea, Flood 2014).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }
}

/// An offer with lines lost, repeated, exchanged, cut, or with characters changed.
fn mutated(offer: &str, random: &mut Random) -> Vec<u8> {
    let mut lines: Vec<Vec<u8>> = offer.split_inclusive('\n').map(|l| l.as_bytes().to_vec()).collect();
    for _ in 0..1 + random.below(6) {
        let n = random.below(lines.len());
        match random.below(6) {
            0 => drop(lines.remove(n)),
            1 => lines.insert(n, lines[random.below(lines.len())].clone()),
            2 => {
                let other = random.below(lines.len());
                lines.swap(n, other);
            }
            3 => lines[n].truncate(random.below(20)),
            4 => {
                let at = random.below(lines[n].len());
                if let Some(byte) = lines[n].get_mut(at) {
                    *byte = random.next() as u8;
                }
            }
            _ => lines[n] = lines[n].repeat(1 + random.below(200)),
        }
        if lines.is_empty() {
            break;
        }
    }
    lines.concat()
}

/// The status of an answer, and the answer.
pub(crate) async fn post(service: &RunningServer, path: &str, token: &str, body: &[u8]) -> (u16, String) {
    request(service, "POST", path, token, body).await
}

/// Ends a call.
pub(crate) async fn end(service: &RunningServer, call: &str) {
    assert_eq!(request(service, "DELETE", call, &service.token, b"").await.0, 200);
}

async fn request(service: &RunningServer, method: &str, path: &str, token: &str, body: &[u8]) -> (u16, String) {
    with_headers(
        service,
        method,
        path,
        &format!("authorization: Bearer {token}\r\ncontent-type: application/sdp\r\n"),
        body,
    )
    .await
}

/// A request with these headers, each with its line end.
pub(crate) async fn with_headers(
    service: &RunningServer,
    method: &str,
    path: &str,
    headers: &str,
    body: &[u8],
) -> (u16, String) {
    let mut stream = TcpStream::connect(service.address).await.expect("connected");
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: weir\r\n{headers}\
         content-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    // A request refused early is not read to its end.
    let _ = stream.write_all(&[head.as_bytes(), body].concat()).await;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    let answer = String::from_utf8_lossy(&answer).into_owned();
    (answer.get(9..12).and_then(|s| s.parse().ok()).unwrap_or(0), answer)
}

/// Resident memory of this process.
pub(crate) fn memory() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").expect("Linux");
    4_096 * pages.split(' ').nth(1).and_then(|p| p.parse::<u64>().ok()).expect("a number")
}

/// Statuses of the answers to this many offers, most of which no browser would make. The calls that begin by some of them are ended.
pub(crate) async fn offer(service: &RunningServer, offer: &str, count: u32, random: &mut Random) -> BTreeMap<u16, u32> {
    let mut statuses = BTreeMap::new();
    for n in 0..count {
        let path = ["/call", "/whip", "/whep"][n as usize % 3];
        let (status, answer) = post(service, path, &service.token, &mutated(offer, random)).await;
        *statuses.entry(status).or_default() += 1;
        // So that there is a place for the next.
        if let Some(call) = answer.lines().find_map(|l| l.strip_prefix("location: ")) {
            end(service, call).await;
        }
    }
    statuses
}

/// Sends this many datagrams to a call's port.
pub(crate) async fn throw(to: SocketAddr, count: u32, random: &mut Random) {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let mut datagram = [0u8; 1_500];
    // Beginnings of STUN, DTLS, RTP and RTCP.
    let first = [0, 1, 20, 22, 23, 63, 128, 144, 191, 255];
    for n in 0..count {
        let len = 1 + random.below(if n % 8 == 0 { 1_500 } else { 120 });
        datagram[..len].fill_with(|| random.next() as u8);
        datagram[0] = first[random.below(first.len())];
        if n % 3 == 0 && len > 8 {
            datagram[2..8].copy_from_slice(&[0, (len as u8).saturating_sub(20) & !3, 0x21, 0x12, 0xA4, 0x42]);
        }
        // Datagrams for which the kernel has no room are not sent.
        let _ = socket.send_to(&datagram[..len], to);
        if n % AT_ONCE == 0 {
            tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        }
    }
}
