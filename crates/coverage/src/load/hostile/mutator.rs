//! Valid requests, and what a seeded mutator makes of them.

use crate::rides::City;
use crate::{Batch, Resolution, WallTime};

/// Longest request in bytes: somewhat more than a head may have.
const MAX_REQUEST: usize = 100_000;

/// Draws from a seed (SplitMix64).
#[derive(Clone, Debug)]
pub(super) struct Draws(u64);

impl Draws {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    /// 0 to `n - 1`; 0 if there is nothing to choose from.
    pub(super) fn below(&mut self, n: usize) -> usize {
        (self.next() % (n as u64).max(1)) as usize
    }

    fn one_of<'a, T: ?Sized>(&mut self, all: &[&'a T]) -> &'a T {
        all[self.below(all.len())]
    }

    fn bytes(&mut self, most: usize) -> Vec<u8> {
        (0..self.below(most + 1)).map(|_| self.next() as u8).collect()
    }
}

/// A valid request in parts.
#[derive(Clone, Debug)]
struct Valid {
    method: &'static str,
    path: String,
    body: Vec<u8>,
}

/// Requests that the service answers with 200 or 101.
#[derive(Clone, Debug)]
pub(super) struct Mutator {
    valid: Vec<Valid>,
    key: String,
}

/// Bytes to send on a connection, and how to go on.
#[derive(Clone, Debug)]
pub(super) enum Attack {
    /// Bytes as they are, after which nothing more will come.
    Bytes(Vec<u8>),
    /// A request whose head is right: the connection may be used again.
    Request(Vec<u8>),
    /// A WebSocket that is opened as it should be, and what is sent on it.
    Frames(Vec<u8>, Vec<u8>),
}

/// Values that numbers and texts of JSON are replaced by.
const VALUES: [&str; 22] = [
    "null",
    "true",
    "-0.0",
    "-1",
    "1e308",
    "1e999",
    "-1e-400",
    "NaN",
    "18446744073709551615",
    "18446744073709551616",
    "-9223372036854775809",
    "0.1e",
    "\"\"",
    "\"\\ud800\"",
    "\"\\u0000\"",
    "\"\u{202e}\u{fffd}\"",
    "[]",
    "{}",
    "[[[[[[[[[[[[[[[[",
    "{\"a\":{\"a\":{\"a\":",
    "/*",
    ",",
];

/// Lines that are added to a head.
const FIELDS: [&str; 24] = [
    "content-length: -1",
    "content-length: 0",
    "content-length: 99999999999999999999",
    "content-length: 7, 7",
    "content-length: +5",
    "transfer-encoding: chunked",
    "transfer-encoding: chunked, chunked",
    "transfer-encoding: identity, chunked",
    "transfer-encoding : chunked",
    "expect: 100-continue",
    "expect: 200-maybe",
    "host: elsewhere\r\nhost: here",
    "connection: upgrade, keep-alive, close",
    "upgrade: h2c",
    "upgrade: websocket\r\nconnection: upgrade",
    "authorization: Bearer",
    "authorization: Basic d2VpcjpzZWNyZXQ=",
    "authorization: Bearer wcm_000000000000_0000000000000000000000000000000000000000000000000000000000000000",
    "x-forwarded-for: 127.0.0.1",
    "x-http-method-override: DELETE",
    "content-type: application/json; charset=utf-7",
    "content-encoding: gzip",
    "range: bytes=0-,0-,0-,0-,0-,0-",
    " folded: line",
];

const PATHS: [&str; 16] = [
    "/x/../../../../etc/passwd",
    "/v1/../v1/admin/keys",
    "/v1/map/..%2f..%2fcoverage.db",
    "/v1/map/%00",
    "/v1/map/8a1126d33a57fff",
    "/v1/map/ffffffffffffffff",
    "/v1/admin/keys/' OR 1=1 --",
    "/v1//updates",
    "//v1/updates",
    "/v1/updates?device=%ff%fe",
    "/v1/updates?device=a&device=b",
    "/v1/updates;/admin",
    "http://127.0.0.1:1/v1/admin/keys",
    "*",
    "/%",
    "/\u{e4}\u{1f30d}",
];

const METHODS: [&str; 10] = ["GET", "POST", "DELETE", "PUT", "HEAD", "OPTIONS", "TRACE", "CONNECT", "get", "PRI"];
const VERSIONS: [&str; 6] = ["HTTP/1.1", "HTTP/1.0", "HTTP/2.0", "HTTP/0.9", "HTTP/1.1 ", ""];

impl Mutator {
    /// Around a city and a time, with a key.
    pub(super) fn new(city: &City, now: WallTime, key: &str) -> Self {
        let ride = city.ride(3_000_000, 0, now, 8);
        let at = city.at(1_000.0, 1_000.0);
        let (north, position) = (city.at(3_000.0, 3_000.0), serde_json::to_string(&at).unwrap_or_default());
        let points: Vec<_> = ride.iter().map(|u| u.position).collect();
        let batch = Batch { sent_ms: now, device: Some("stranger".to_owned()), updates: ride };
        let cell = at.cell(Resolution::Five).index();
        let route = serde_json::json!({ "points": points, "speed_mps": 12.0, "horizon_s": 60.0 });
        let window =
            serde_json::json!({ "south": at.lat(), "west": at.lon(), "north": north.lat(), "east": north.lon() });
        let valid = |method, path: &str, body: Vec<u8>| Valid { method, path: path.to_owned(), body };
        let area = format!(r#"{{"position":{position},"heading_deg":90,"speed_mps":12,"radius_m":900}}"#);
        let valid = vec![
            valid("POST", "/v1/updates", serde_json::to_vec(&batch).unwrap_or_default()),
            valid("POST", "/v1/lookahead/route", route.to_string().into_bytes()),
            valid("POST", "/v1/lookahead/area", area.into_bytes()),
            valid("POST", "/v1/regions", serde_json::json!({ "window": window, "most": 50 }).to_string().into_bytes()),
            valid("POST", "/v1/admin/keys", br#"{"role":"reporter","note":"x"}"#.to_vec()),
            valid("GET", &format!("/v1/map/{cell:x}"), Vec::new()),
            valid("DELETE", "/v1/updates?device=stranger", Vec::new()),
            valid("GET", "/v1/fences", Vec::new()),
            valid("GET", "/v1/live", Vec::new()),
            valid("GET", "/metrics", Vec::new()),
            valid("GET", "/health/ready", Vec::new()),
            valid("GET", "/", Vec::new()),
        ];
        Self { valid, key: key.to_owned() }
    }

    /// The nth attack of a seed.
    pub(super) fn attack(&self, seed: u64, n: u64) -> Attack {
        let mut draws = Draws::new(seed ^ n.wrapping_mul(0x2545_f491_4f6c_dd1d));
        match draws.below(10) {
            0..=3 => self.body(&mut draws),
            4 | 5 => self.head(&mut draws),
            6 | 7 => self.edited(&mut draws),
            8 => self.path(&mut draws),
            _ => self.frames(&mut draws),
        }
    }

    fn pick(&self, draws: &mut Draws) -> Valid {
        self.valid[draws.below(self.valid.len())].clone()
    }

    fn bytes(&self, request: &Valid, version: &str, fields: &str) -> Vec<u8> {
        let length = request.body.len();
        let mut bytes = format!(
            "{} {} {version}\r\nhost: here\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\n{fields}\
            content-length: {length}\r\n\r\n",
            request.method, request.path, self.key
        )
        .into_bytes();
        bytes.extend_from_slice(&request.body);
        bytes
    }

    /// JSON that is none, or something else, in a request that is right.
    fn body(&self, draws: &mut Draws) -> Attack {
        let mut request = self.valid[draws.below(5)].clone();
        for _ in 0..=draws.below(3) {
            let length = request.body.len();
            let from = draws.below(length + 1);
            let to = (from + draws.below(12)).min(length);
            let with = match draws.below(5) {
                0 => draws.bytes(8),
                1 => Vec::new(),
                // A part of it, once more.
                2 => request.body[from.min(to / 2)..to].to_vec(),
                3 => vec![b"[{9a"[draws.below(4)]; draws.below(4_000)],
                _ => VALUES[draws.below(VALUES.len())].as_bytes().to_vec(),
            };
            // Most replacements take the place of a value.
            let value = draws.below(2) == 0;
            let colon = request.body.iter().enumerate().skip(from).find(|(_, b)| **b == b':').map(|(i, _)| i + 1);
            let (from, to) = match colon.filter(|_| value) {
                Some(begin) => {
                    let end = request.body[begin..].iter().position(|b| b",}]".contains(b));
                    (begin, end.map_or(length, |end| begin + end))
                }
                None => (from, to),
            };
            request.body.splice(from..to, with);
        }
        Attack::Request(self.bytes(&request, "HTTP/1.1", ""))
    }

    fn head(&self, draws: &mut Draws) -> Attack {
        let mut request = self.pick(draws);
        if draws.below(4) == 0 {
            request.method = METHODS[draws.below(METHODS.len())];
        }
        let mut fields = String::new();
        for _ in 0..=draws.below(3) {
            match draws.below(8) {
                0 => fields.push_str(&format!("a{}: b\r\n", "x".repeat(draws.below(20_000)))),
                1 => fields.push_str(&"a: b\r\n".repeat(draws.below(100))),
                2 => fields.push_str(&format!("{}\r\n", String::from_utf8_lossy(&draws.bytes(40)))),
                _ => fields.push_str(&format!("{}\r\n", FIELDS[draws.below(FIELDS.len())])),
            }
        }
        let version = if draws.below(5) == 0 { VERSIONS[draws.below(VERSIONS.len())] } else { "HTTP/1.1" };
        Attack::Bytes(self.bytes(&request, version, &fields))
    }

    fn path(&self, draws: &mut Draws) -> Attack {
        let mut request = self.pick(draws);
        match draws.below(3) {
            0 => request.path = PATHS[draws.below(PATHS.len())].to_owned(),
            1 => {
                let at = (0..=request.path.len()).filter(|i| request.path.is_char_boundary(*i)).nth(draws.below(8));
                let text = String::from_utf8_lossy(&draws.bytes(12)).into_owned();
                request.path.insert_str(at.unwrap_or(0), &text);
            }
            _ => request.path.push_str(draws.one_of(&["/", "/..", "?", "?a=b&&=", "%", "%zz", "\r\nx: y", " ", "#"])),
        }
        Attack::Bytes(self.bytes(&request, "HTTP/1.1", ""))
    }

    /// Edits of bytes wherever they are; also a request that ends too early.
    fn edited(&self, draws: &mut Draws) -> Attack {
        let request = self.pick(draws);
        let mut bytes = self.bytes(&request, "HTTP/1.1", "");
        for _ in 0..=draws.below(6) {
            let at = draws.below(bytes.len());
            match draws.below(5) {
                0 => bytes[at] ^= 1 << draws.below(8),
                1 => drop(bytes.splice(at..at, draws.bytes(16))),
                2 => drop(bytes.drain(at..(at + draws.below(16)).min(bytes.len()))),
                3 => bytes.truncate(at.max(1)),
                _ => {
                    let end = (at + draws.below(200)).min(bytes.len());
                    let part = bytes[at..end].to_vec();
                    drop(bytes.splice(at..at, part));
                }
            }
            if bytes.is_empty() || bytes.len() > MAX_REQUEST {
                break;
            }
        }
        Attack::Bytes(bytes)
    }

    fn frames(&self, draws: &mut Draws) -> Attack {
        let path = draws.one_of(&["/v1/fences", "/v1/live"]);
        let head = format!(
            "GET {path} HTTP/1.1\r\nhost: here\r\nauthorization: Bearer {}\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
            sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
            self.key
        );
        let texts = [
            r#"{"type":"subscribe","below_bps":500000,"radius_m":800}"#,
            r#"{"type":"position","position":{"lat":60.2,"lon":24.9}}"#,
            r#"{"type":"position","position":{"lat":1e999,"lon":"#,
            r#"{"type":"subscribe","below_bps":-1,"radius_m":1e300}"#,
            "",
        ];
        let mut sent = Vec::new();
        for _ in 0..=draws.below(5) {
            let mut payload = draws.one_of(&texts).as_bytes().to_vec();
            if draws.below(2) == 0 {
                let at = draws.below(payload.len() + 1);
                drop(payload.splice(at..at, draws.bytes(140)));
            }
            // Text, binary, continuation, close, ping, pong, and those that are reserved; whole and not; masked and not.
            let opcode = [1, 1, 1, 1, 2, 0, 8, 9, 10, 3, 15][draws.below(11)];
            let first = if draws.below(5) == 0 { draws.next() as u8 & 0xf0 } else { 0x80 };
            let masked = if draws.below(6) == 0 { 0 } else { 0x80 };
            sent.push(first | opcode);
            let stated = if draws.below(6) == 0 { draws.next() >> draws.below(64) } else { payload.len() as u64 };
            match (stated, u16::try_from(stated)) {
                (0..=125, _) => sent.push(masked | stated as u8),
                (_, Ok(short)) => {
                    sent.push(masked | 126);
                    sent.extend_from_slice(&short.to_be_bytes());
                }
                _ => {
                    sent.push(masked | 127);
                    sent.extend_from_slice(&stated.to_be_bytes());
                }
            }
            let mask = if masked == 0 { [0; 4] } else { (draws.next() as u32).to_be_bytes() };
            if masked != 0 {
                sent.extend_from_slice(&mask);
            }
            sent.extend(payload.iter().enumerate().map(|(i, b)| b ^ mask[i % 4]));
        }
        Attack::Frames(head.into_bytes(), sent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn attacks_are_those_of_their_seed_and_differ() {
        let (city, now) = (City::new(1, 10), WallTime::from_unix_millis(1_700_000_000_000));
        let mutator = Mutator::new(&city, now, "wcm_x_y");
        let all = |seed| (0..3_000).map(|n| format!("{:?}", mutator.attack(seed, n))).collect::<Vec<_>>();
        let first = all(1);
        assert_eq!(first, all(1));
        let different: BTreeSet<&String> = first.iter().collect();
        assert!(different.len() > 2_800, "{}", different.len());
        assert!(all(2).iter().zip(&first).filter(|(a, b)| a == b).count() < 30);
        for kind in ["Bytes", "Request", "Frames"] {
            let count = first.iter().filter(|a| a.starts_with(kind)).count();
            assert!((200..2_200).contains(&count), "{kind}: {count}");
        }
    }
}
