//! The estimator's side of Weir's `exec:` protocol in its binary form (docs/estimators.md), for adapters in Rust.

use std::io::{BufRead, BufReader, Error, ErrorKind, Read, Result, Write};

const HEAD: usize = 16;
/// Bytes of an event of each kind, without a feedback's packets and the bytes of RTCP.
const SIZES: [usize; 12] = [0, 48, 32, 64, 24, 40, 32, 16, 16, 40, 24, 32];
const SENT: u8 = 1;
const FEEDBACK: u8 = 2;
const LIMITS: u8 = 6;
const TIMER: u8 = 7;
const RTCP: u8 = 8;
const PACKET: usize = 40;

/// Bounds and start of a call, in bit/s.
#[derive(Clone, Copy)]
pub struct Call {
    pub now_ns: i64,
    pub floor_bps: u64,
    pub ceiling_bps: u64,
    pub start_bps: u64,
}

/// A packet that has been sent.
pub struct Sent {
    pub sequence: u64,
    pub size_bytes: usize,
    pub is_padding: bool,
    /// 0 outside of probes.
    pub probe: u32,
}

/// A packet of which feedback tells. Times are by the clock of each end.
pub struct Reported {
    pub sequence: u64,
    pub sent_ns: i64,
    /// None for a packet that is lost.
    pub arrived_ns: Option<i64>,
    pub size_bytes: usize,
}

#[derive(Default)]
pub struct Probe {
    pub id: u32,
    pub rate_bps: f64,
    pub min_packets: u32,
    pub min_bytes: u64,
}

#[derive(Default)]
pub struct Answer {
    pub media_bps: f64,
    pub pacing_bps: Option<f64>,
    pub padding_bps: Option<f64>,
    pub timer_ns: Option<i64>,
    pub probes: Vec<Probe>,
}

/// A library's estimator. `now_ns` never goes back.
pub trait Estimator {
    /// Whether it parses RTCP itself. Else it gets `feedback`.
    const RTCP: bool;
    fn sent(&mut self, _now_ns: i64, _packet: &Sent) {}
    fn rtcp(&mut self, _now_ns: i64, _datagram: &[u8]) {}
    fn feedback(&mut self, _now_ns: i64, _packets: &[Reported]) {}
    fn limits(&mut self, now_ns: i64, floor_bps: u64, ceiling_bps: u64);
    fn timer(&mut self, _now_ns: i64) {}
    fn answer(&mut self, now_ns: i64) -> Answer;
}

/// One call over standard input and output.
pub fn serve<E: Estimator>(name: &str, make: impl FnOnce(Call) -> E) -> Result<()> {
    let (mut input, mut output) = (BufReader::new(std::io::stdin().lock()), std::io::stdout().lock());
    let mut line = String::new();
    input.read_line(&mut line)?;
    let field = |name: &str| {
        let digits = line.split(&format!("\"{name}\":")).nth(1)?;
        digits[..digits.find(|c: char| !c.is_ascii_digit())?].parse::<u64>().ok()
    };
    let needed =
        |name: &str| field(name).ok_or_else(|| Error::new(ErrorKind::InvalidData, format!("configure has no {name}")));
    let mut now_ns = needed("now_ns")? as i64;
    let call = Call {
        now_ns,
        floor_bps: needed("floor_bps")?,
        ceiling_bps: needed("ceiling_bps")?,
        start_bps: needed("start_bps")?,
    };
    let mut estimator = make(call);
    let first = estimator.answer(now_ns);
    let optional = |name: &str, value: Option<f64>| value.map_or(String::new(), |v| format!(",\"{name}\":{v:?}"));
    let timer = first.timer_ns.map_or(String::new(), |t| format!(",\"timer_ns\":{}", t.max(now_ns + 1)));
    let probes: Vec<String> = first
        .probes
        .iter()
        .map(|p| {
            let (id, rate, packets, bytes) = (p.id, p.rate_bps, p.min_packets, p.min_bytes);
            format!("{{\"id\":{id},\"rate_bps\":{rate:?},\"min_packets\":{packets},\"min_bytes\":{bytes}}}")
        })
        .collect();
    let (events, answers) = if E::RTCP { ("sent\",\"rtcp", "rtcp") } else { ("feedback", "feedback") };
    writeln!(
        output,
        "{{\"turn\":0,\"media_bps\":{:?}{}{}{timer},\"probes\":[{}],\"about\":{{\"version\":2,\"name\":\"{name}\",\"form\":\"binary\",\
         \"events\":[\"{events}\",\"limits\",\"timer\"],\"answers\":[\"{answers}\",\"limits\",\"timer\"]}}}}",
        first.media_bps,
        optional("pacing_bps", first.pacing_bps),
        optional("padding_bps", first.padding_bps),
        probes.join(","),
    )?;
    output.flush()?;

    let (mut head, mut body) = ([0; HEAD], Vec::new());
    loop {
        match input.read_exact(&mut head) {
            Err(e) if e.kind() == ErrorKind::UnexpectedEof => return Ok(()),
            other => other?,
        }
        body.resize(u32_at(&head, 0) as usize, 0);
        input.read_exact(&mut body)?;
        let mut rest = &body[..];
        while let Some(&kind) = rest.first() {
            let mut size = SIZES.get(usize::from(kind)).copied().unwrap_or(0);
            if size == 0 || rest.len() < size {
                return Err(Error::new(
                    ErrorKind::InvalidData,
                    format!("no event of kind {kind} in {} bytes", rest.len()),
                ));
            }
            now_ns = u64_at(rest, 8) as i64;
            match kind {
                SENT => {
                    let packet = Sent {
                        sequence: u64_at(rest, 16),
                        size_bytes: u64_at(rest, 24) as usize,
                        is_padding: u16::from_le_bytes([rest[2], rest[3]]) == 1,
                        probe: u32_at(rest, 4),
                    };
                    estimator.sent(now_ns, &packet);
                }
                FEEDBACK => {
                    let packets = rest[size..].chunks_exact(PACKET).take(u32_at(rest, 4) as usize);
                    size += PACKET * u32_at(rest, 4) as usize;
                    let reported = |p: &[u8]| Reported {
                        sequence: u64_at(p, 0),
                        sent_ns: u64_at(p, 8) as i64,
                        arrived_ns: (u32_at(p, 32) & 1 == 1).then(|| u64_at(p, 16) as i64),
                        size_bytes: u32_at(p, 24) as usize,
                    };
                    estimator.feedback(now_ns, &packets.map(reported).collect::<Vec<_>>());
                }
                LIMITS => estimator.limits(now_ns, u64_at(rest, 16), u64_at(rest, 24)),
                TIMER => estimator.timer(now_ns),
                RTCP => {
                    let length = u32_at(rest, 4) as usize;
                    size += length.next_multiple_of(8);
                    let datagram = rest.get(size - length.next_multiple_of(8)..).and_then(|r| r.get(..length));
                    estimator.rtcp(now_ns, datagram.ok_or(ErrorKind::UnexpectedEof)?);
                }
                _ => {}
            }
            rest = rest.get(size..).ok_or(ErrorKind::UnexpectedEof)?;
        }
        output.write_all(&binary(&estimator.answer(now_ns), u64_at(&head, 8), now_ns))?;
        output.flush()?;
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"))
}

fn binary(answer: &Answer, turn: u64, now_ns: i64) -> Vec<u8> {
    let mut bytes = vec![0; 72];
    let mut put = |at: usize, field: &[u8]| bytes[at..at + field.len()].copy_from_slice(field);
    put(0, &(56 + 24 * answer.probes.len() as u32).to_le_bytes());
    put(4, &(answer.probes.len() as u32).to_le_bytes());
    put(8, &turn.to_le_bytes());
    let flags = u32::from(answer.pacing_bps.is_some())
        + 4 * u32::from(answer.padding_bps.is_some())
        + 64 * u32::from(answer.timer_ns.is_some());
    put(16, &flags.to_le_bytes());
    put(24, &answer.media_bps.to_le_bytes());
    put(32, &answer.pacing_bps.unwrap_or(0.0).to_le_bytes());
    put(40, &answer.padding_bps.unwrap_or(0.0).to_le_bytes());
    // A timer has to be later than the turn's last event.
    put(64, &answer.timer_ns.map_or(0, |t| t.max(now_ns + 1)).to_le_bytes());
    for p in &answer.probes {
        bytes.extend(p.id.to_le_bytes());
        bytes.extend(p.min_packets.to_le_bytes());
        bytes.extend(p.rate_bps.to_le_bytes());
        bytes.extend(p.min_bytes.to_le_bytes());
    }
    bytes
}
