//! What strangers send while a call runs: offers that browsers would not make, requests without the token, and random datagrams.

use std::net::UdpSocket;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use weir_peer::server::RunningServer;

/// Datagrams to the running call's port.
const DATAGRAMS: u32 = 20_000;
/// Offers.
const OFFERS: u32 = 300;
/// Growth of the process that others may cause meanwhile, in bytes: some calls begin for a while.
const GROWTH: u64 = 120_000_000;

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

/// The status of an answer.
async fn post(service: &RunningServer, path: &str, token: &str, body: &[u8]) -> u16 {
    let mut stream = TcpStream::connect(service.address).await.expect("connected");
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: weir\r\nauthorization: Bearer {token}\r\ncontent-type: application/sdp\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    // What is refused early is not read to its end.
    let _ = stream.write_all(&[head.as_bytes(), body].concat()).await;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    let status = std::str::from_utf8(answer.get(9..12).unwrap_or_default()).unwrap_or_default();
    status.parse().unwrap_or(0)
}

/// Resident memory of this process.
fn memory() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").expect("Linux");
    4_096 * pages.split(' ').nth(1).and_then(|p| p.parse::<u64>().ok()).expect("a number")
}

pub(crate) async fn come(service: &RunningServer, offer: &str) {
    let before = memory();
    let mut random = Random(7);
    let (_, running) = service.calls().into_iter().find(|(_, c)| c.state == "connected").expect("a call");

    assert_eq!(post(service, "/whip", "", offer.as_bytes()).await, 401);
    assert_eq!(post(service, "/whip", &service.token[1..], offer.as_bytes()).await, 401);
    assert_eq!(post(service, "/whip", &service.token, &[b'a'; 100_000]).await, 413);
    let mut statuses = std::collections::BTreeMap::<u16, u32>::new();
    for n in 0..OFFERS {
        let path = ["/call", "/whip", "/whep"][n as usize % 3];
        let status = post(service, path, &service.token, &mutated(offer, &mut random)).await;
        *statuses.entry(status).or_default() += 1;
    }
    // Refused, or accepted for as long as there are places; nothing else, and no failure of the service.
    assert!(statuses.keys().all(|s| [201, 400, 413, 422, 503].contains(s)), "{statuses:?}");
    assert!(statuses.contains_key(&422) && statuses.contains_key(&503), "{statuses:?}");

    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let mut datagram = [0u8; 1_500];
    // Beginnings of STUN, DTLS, RTP and RTCP.
    let first = [0, 1, 20, 22, 23, 63, 128, 144, 191, 255];
    for n in 0..DATAGRAMS {
        let len = 1 + random.below(if n % 8 == 0 { 1_500 } else { 120 });
        datagram[..len].fill_with(|| random.next() as u8);
        datagram[0] = first[random.below(first.len())];
        if n % 3 == 0 && len > 8 {
            datagram[2..8].copy_from_slice(&[0, (len as u8).saturating_sub(20) & !3, 0x21, 0x12, 0xA4, 0x42]);
        }
        // What the kernel has no room for is not sent.
        let _ = socket.send_to(&datagram[..len], &running.local);
        if n % 100 == 0 {
            tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        }
    }
    let (_, running) = service.calls().into_iter().find(|(_, c)| c.local == running.local).expect("the same call");
    assert_eq!(running.state, "connected");
    assert!(running.totals.strangers > u64::from(DATAGRAMS) / 2, "{:?}", running.totals);
    let growth = memory().saturating_sub(before);
    assert!(growth < GROWTH, "{growth} bytes");
}
