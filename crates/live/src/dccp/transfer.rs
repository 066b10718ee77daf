//! Bulk data whose arrival is checked, datagram by datagram: what `weir dccp` sends and counts.
//!
//! Each datagram tells its number, its length and a checksum of all of it, so that loss, copies and damage are counted apart.

use super::error::DccpError;
use super::socket::{DccpSocket, Interest};
use serde::Serialize;
use std::time::Duration;
use weir_dccp::connection::State;
use weir_units::{DataRate, DataSize, Ecn, TimeDelta, Timestamp};

/// First bytes of each datagram.
const MAGIC: [u8; 4] = *b"WDC1";
/// Bytes of magic, length, number and checksum: the shortest datagram.
pub const MIN_DATAGRAM: usize = 24;
/// Datagrams handed over at a time.
const BATCH: usize = 16;
/// How long a blocked sender or a waiting receiver may be without seeing whether to stop.
const LOOK: Duration = Duration::from_millis(50);
/// Data that a sender with a rate may be behind with before it gives it up.
const MAX_DEBT: TimeDelta = TimeDelta::from_millis(50);
/// Datagrams that may come out of order or twice and still be told apart.
const WINDOW: u64 = 1 << 16;

fn mixed(h: u64, word: u64) -> u64 {
    (h ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
}

fn checksum(number: u64, datagram: &[u8]) -> u64 {
    let body = &datagram[MIN_DATAGRAM..];
    let mut h = mixed(datagram.len() as u64, number);
    let mut words = body.chunks_exact(8);
    for w in words.by_ref() {
        h = mixed(h, w.iter().fold(0, |n, &b| n << 8 | u64::from(b)));
    }
    let rest = words.remainder().iter().fold(1, |n, &b| n << 8 | u64::from(b));
    mixed(mixed(h, rest), 0)
}

/// Writes datagram `number` over the whole of a buffer of at least [`MIN_DATAGRAM`] bytes.
pub fn write_datagram(number: u64, datagram: &mut [u8]) {
    let length = datagram.len();
    let mut word = number;
    for chunk in datagram[MIN_DATAGRAM..].chunks_mut(8) {
        word = mixed(word, number);
        chunk.copy_from_slice(&word.to_be_bytes()[..chunk.len()]);
    }
    datagram[..4].copy_from_slice(&MAGIC);
    datagram[4..8].copy_from_slice(&(length as u32).to_be_bytes());
    datagram[8..16].copy_from_slice(&number.to_be_bytes());
    let sum = checksum(number, datagram);
    datagram[16..24].copy_from_slice(&sum.to_be_bytes());
}

/// The number of a datagram that is whole; `None` where it is damaged or none of these.
pub fn read_datagram(datagram: &[u8]) -> Option<u64> {
    let header = datagram.first_chunk::<MIN_DATAGRAM>()?;
    let word = |at: usize| header[at..at + 8].iter().fold(0u64, |n, &b| n << 8 | u64::from(b));
    let (length, number, sum) = (word(4) >> 32, word(8), word(16));
    // One more has to be a number as well.
    let whole = header[..4] == MAGIC
        && number < u64::MAX
        && length == datagram.len() as u64
        && sum == checksum(number, datagram);
    whole.then_some(number)
}

/// What has come of a stream of such datagrams.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Tally {
    /// Datagrams that came whole, each once.
    pub datagrams: u64,
    /// Bytes of these.
    pub bytes: u64,
    /// Datagrams that have not come, as far as later ones tell.
    pub lost: u64,
    /// Datagrams that came after a later one.
    pub late: u64,
    /// Datagrams that came again.
    pub duplicates: u64,
    /// Datagrams whose checksum, length or magic is wrong.
    pub damaged: u64,
    /// Datagrams that came with ECN's congestion mark.
    pub marked: u64,
}

/// Checks and counts.
#[derive(Clone, Debug)]
pub struct Checker {
    tally: Tally,
    /// One after the newest.
    next: u64,
    /// A bit for each of the newest [`WINDOW`] datagrams: whether it has come.
    came: Vec<u64>,
}

impl Default for Checker {
    fn default() -> Self {
        Self { tally: Tally::default(), next: 0, came: vec![0; (WINDOW / 64) as usize] }
    }
}

impl Checker {
    /// A datagram has come.
    pub fn take(&mut self, datagram: &[u8], ecn: Ecn) {
        self.tally.marked += u64::from(ecn == Ecn::Ce);
        let Some(n) = read_datagram(datagram) else {
            self.tally.damaged += 1;
            return;
        };
        let slot = |n: u64| ((n % WINDOW / 64) as usize, 1u64 << (n % 64));
        if n >= self.next {
            // Those between are lost until they come.
            let gap = n - self.next;
            self.tally.lost += gap;
            for missing in self.next.max(n.saturating_sub(WINDOW))..n {
                let (word, bit) = slot(missing);
                self.came[word] &= !bit;
            }
            self.next = n + 1;
        } else {
            let (word, bit) = slot(n);
            let is_known = self.next - n <= WINDOW;
            if !is_known || self.came[word] & bit != 0 {
                self.tally.duplicates += 1;
                return;
            }
            self.tally.lost -= 1;
            self.tally.late += 1;
        }
        let (word, bit) = slot(n);
        self.came[word] |= bit;
        self.tally.datagrams += 1;
        self.tally.bytes += datagram.len() as u64;
    }

    /// What has come so far.
    pub fn tally(&self) -> Tally {
        self.tally
    }
}

/// What is to be sent: until the first of the ends that are given, or until it is told to stop.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct SendPlan {
    /// Ends after this much data.
    pub size: Option<DataSize>,
    /// Ends after this time.
    pub duration: Option<TimeDelta>,
    /// The application's own rate; as fast as congestion control allows if absent.
    pub rate: Option<DataRate>,
    /// Bytes of a datagram; as many as fit if absent.
    pub datagram: Option<DataSize>,
}

/// How a transfer goes, told every so often and at its end.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Look {
    /// Seconds since it began.
    pub at_s: f64,
    /// Datagrams so far: handed over, or come whole.
    pub datagrams: u64,
    /// Bytes of these.
    pub bytes: u64,
    /// Lost so far: as acknowledgements tell, or as numbers tell.
    pub lost: u64,
    /// With ECN's congestion mark.
    pub marked: u64,
    /// What congestion control allows, bit/s.
    pub allowed_bps: Option<f64>,
    /// Round-trip time in ms.
    pub rtt_ms: Option<f64>,
    /// Datagrams in the send queue.
    pub queued: usize,
}

/// What a sender tells at the end.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct SendReport {
    /// Seconds from the first datagram until the last has left the queue.
    pub seconds: f64,
    /// Datagrams handed over.
    pub datagrams: u64,
    /// Bytes of these.
    pub bytes: u64,
    /// Bytes over time.
    pub rate_bps: f64,
    /// Data packets that have left.
    pub packets: u64,
    /// Data packets lost, as Ack Vectors tell; `None` where the CCID has none.
    pub lost: Option<u64>,
    /// Data packets marked, as Ack Vectors tell.
    pub marked: Option<u64>,
    /// CCID of what is sent.
    pub ccid: Option<u8>,
    /// Last round-trip time in ms.
    pub rtt_ms: Option<f64>,
    /// Whether both ends have closed in order.
    pub closed: bool,
    /// Why not, where something else has ended it.
    pub ended_by: Option<String>,
}

/// What a receiver tells at the end.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct ReceiveReport {
    /// Seconds from the first datagram to the last.
    pub seconds: f64,
    /// What has come.
    #[serde(flatten)]
    pub tally: Tally,
    /// Bytes over time.
    pub rate_bps: f64,
    /// Share of what was sent, as numbers tell, that has not come.
    pub loss: f64,
    /// CCID of what is received.
    pub ccid: Option<u8>,
    /// Datagrams that came and had no room: the application was slow.
    pub dropped: u64,
    /// Whether both ends have closed in order.
    pub closed: bool,
    /// Why not, where something else has ended it.
    pub ended_by: Option<String>,
}

fn rate(bytes: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 }
}

fn look_of(socket: &DccpSocket, at: TimeDelta, datagrams: u64, bytes: u64) -> Look {
    let c = socket.counters();
    Look {
        at_s: at.as_secs_f64(),
        datagrams,
        bytes,
        lost: c.data_lost,
        marked: c.data_marked,
        allowed_bps: socket.rate().map(DataRate::as_bps_f64),
        rtt_ms: socket.rtt().map(TimeDelta::as_millis_f64),
        queued: socket.queued().0,
    }
}

/// Sends what is planned, tells how it goes every `every`, and closes, waiting up to `patience` for the other end.
///
/// # Errors
/// Where datagrams of that length cannot be sent. Any other end of the connection is told in the report.
pub fn send_all(
    socket: &DccpSocket,
    plan: &SendPlan,
    stop: &dyn Fn() -> bool,
    patience: Duration,
    (every, tell): (TimeDelta, &mut dyn FnMut(&Look)),
) -> Result<SendReport, DccpError> {
    let longest = socket.max_packet_size();
    let size = plan.datagram.unwrap_or(longest);
    if size > longest || size.as_bytes() < MIN_DATAGRAM as u64 {
        return Err(DccpError::TooLong { size, max: longest });
    }
    socket.set_write_timeout(Some(LOOK));
    let mut buffers = vec![vec![0; size.as_bytes() as usize]; BATCH];
    let (mut number, mut bytes, mut ready) = (0u64, 0u64, 0usize);
    let mut ended_by = None;
    let begin = socket.now();
    let mut look = begin + every;
    // What a rate has to make up for is counted from here.
    let mut paced_from = begin;
    let mut paced = 0u64;
    while !stop() {
        let now = socket.now();
        let time = now - begin;
        if now >= look {
            tell(&look_of(socket, time, number, bytes));
            look = now + every;
        }
        let left = plan.size.map_or(u64::MAX, |s| s.as_bytes().saturating_sub(bytes));
        if left == 0 || plan.duration.is_some_and(|d| time >= d) {
            break;
        }
        let mut count = BATCH.min(left.div_ceil(size.as_bytes()) as usize);
        if let Some(rate) = plan.rate {
            if now - paced_from > MAX_DEBT {
                let owed = rate.size_in(now - paced_from).as_bytes();
                let debt = rate.size_in(MAX_DEBT).as_bytes();
                if owed.saturating_sub(paced) > debt {
                    (paced_from, paced) = (now - MAX_DEBT, 0);
                }
            }
            let owed = rate.size_in(now - paced_from).as_bytes().saturating_sub(paced);
            count = count.min((owed / size.as_bytes()) as usize);
            if count == 0 {
                let wait = rate.time_for(size).unwrap_or(MAX_DEBT).min(TimeDelta::from_millis(20));
                std::thread::sleep(Duration::from_nanos(wait.as_nanos().unsigned_abs() / 2));
                continue;
            }
        }
        // The last one is as long as what is left, or as it has to be.
        let lengths: [usize; BATCH] = std::array::from_fn(|i| {
            let rest = left.saturating_sub(i as u64 * size.as_bytes());
            rest.min(size.as_bytes()).max(MIN_DATAGRAM as u64) as usize
        });
        // Those made earlier and refused are made already.
        for i in ready..count {
            write_datagram(number + i as u64, &mut buffers[i][..lengths[i]]);
        }
        ready = ready.max(count);
        let slices: [&[u8]; BATCH] = std::array::from_fn(|i| &buffers[i][..lengths[i]]);
        match socket.send_many(&slices[..count]) {
            Ok(taken) => {
                let sent: u64 = lengths[..taken].iter().map(|l| *l as u64).sum();
                (bytes, paced, number) = (bytes + sent, paced + sent, number + taken as u64);
                buffers[..ready].rotate_left(taken);
                ready -= taken;
            }
            Err(e) if e.is_would_block() => {}
            Err(e) => {
                ended_by = Some(e.to_string());
                break;
            }
        }
    }
    // What waits leaves before the connection closes; a stop has it leave no more than patience allows.
    let until = socket.now() + TimeDelta::from_secs_f64(patience.as_secs_f64());
    while ended_by.is_none() && socket.queued().0 > 0 && socket.state() <= State::Open {
        let now = socket.now();
        if now >= until && stop() {
            break;
        }
        if now >= look {
            tell(&look_of(socket, now - begin, number, bytes));
            look = now + every;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    let time = socket.now() - begin;
    let ccid = socket.ccids().map(|c| c.0);
    let has_vectors = socket.has_ack_vectors();
    let rtt_ms = socket.rtt().map(TimeDelta::as_millis_f64);
    let closed = match socket.finish(patience) {
        Ok(closed) => closed,
        Err(e) => {
            ended_by.get_or_insert(e.to_string());
            false
        }
    };
    tell(&look_of(socket, time, number, bytes));
    let (c, seconds) = (socket.counters(), time.as_secs_f64());
    Ok(SendReport {
        seconds,
        datagrams: number,
        bytes,
        rate_bps: rate(bytes, seconds),
        packets: c.data_sent,
        lost: Some(c.data_lost).filter(|_| has_vectors),
        marked: Some(c.data_marked).filter(|_| has_vectors),
        ccid,
        rtt_ms,
        closed,
        ended_by,
    })
}

/// Receives until the other end closes, or `stop` says so, which closes from this end. Tells how it goes every `every`.
pub fn receive_all(
    socket: &DccpSocket,
    stop: &dyn Fn() -> bool,
    patience: Duration,
    (every, tell): (TimeDelta, &mut dyn FnMut(&Look)),
) -> ReceiveReport {
    socket.set_read_timeout(Some(LOOK));
    let mut checker = Checker::default();
    let mut buffer = Vec::new();
    let (mut first, mut last): (Option<Timestamp>, Timestamp) = (None, Timestamp::ZERO);
    let begin = socket.now();
    let mut look = begin + every;
    let mut ended = None;
    let mut told = 0u32;
    let mut ccid = None;
    let look_of = |socket: &DccpSocket, at: TimeDelta, t: Tally| Look {
        at_s: at.as_secs_f64(),
        datagrams: t.datagrams,
        bytes: t.bytes,
        lost: t.lost,
        marked: t.marked,
        allowed_bps: None,
        rtt_ms: socket.rtt().map(TimeDelta::as_millis_f64),
        queued: 0,
    };
    loop {
        match socket.recv_into(&mut buffer) {
            Ok(received) => {
                checker.take(&buffer, received.ecn);
                told += 1;
                // The clock is looked at for the first and every so often.
                if first.is_some() && !told.is_multiple_of(8) {
                    continue;
                }
                last = socket.now();
                first.get_or_insert(last);
            }
            Err(e) if e.is_would_block() => {}
            Err(e) => {
                ended = Some(e);
                break;
            }
        }
        let now = socket.now();
        if now >= look {
            tell(&look_of(socket, now - begin, checker.tally()));
            ccid = socket.ccids().map(|c| c.1).or(ccid);
            look = now + every;
        }
        if stop() {
            break;
        }
    }
    ccid = socket.ccids().map(|c| c.1).or(ccid);
    let ended = match ended {
        Some(e) => Err(e),
        None => socket.finish(patience),
    };
    let tally = checker.tally();
    tell(&look_of(socket, socket.now() - begin, tally));
    let seconds = first.map_or(0.0, |f| (last - f).as_secs_f64());
    let expected = tally.datagrams + tally.lost;
    let closed = match &ended {
        Ok(closed) => *closed,
        Err(e) => e.is_closed(),
    };
    ReceiveReport {
        seconds,
        tally,
        rate_bps: rate(tally.bytes, seconds),
        loss: if expected > 0 { tally.lost as f64 / expected as f64 } else { 0.0 },
        ccid,
        dropped: socket.counters().data_dropped,
        closed,
        ended_by: ended.err().filter(|e| !e.is_closed()).map(|e| e.to_string()),
    }
}

/// Waits until a connection is open, unless `stop` says so first; then, and where it takes too long, `false`.
///
/// # Errors
/// The connection's end.
pub fn wait_open(socket: &DccpSocket, time: Duration, stop: &dyn Fn() -> bool) -> Result<bool, DccpError> {
    let until = socket.now() + TimeDelta::from_secs_f64(time.as_secs_f64());
    while socket.now() < until && !stop() {
        if socket.wait(Interest::Open, Some(LOOK))? {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn datagram(n: u64, length: usize) -> Vec<u8> {
        let mut d = vec![0; length];
        write_datagram(n, &mut d);
        d
    }

    #[test]
    fn every_changed_bit_is_seen() {
        for length in [24, 25, 31, 32, 100] {
            let whole = datagram(77, length);
            assert_eq!(read_datagram(&whole), Some(77));
            for bit in 0..length * 8 {
                let mut d = whole.clone();
                d[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(read_datagram(&d), None, "bit {bit} of {length} bytes");
            }
            assert_eq!(read_datagram(&whole[..length - 1]), None);
        }
        assert_eq!(read_datagram(&[]), None);
    }

    #[test]
    fn lost_late_and_double_datagrams_are_told_apart() {
        let mut c = Checker::default();
        for n in [0, 1, 4, 3, 3, 1, 5] {
            c.take(&datagram(n, 40), Ecn::NotEct);
        }
        c.take(b"something else", Ecn::Ce);
        let t = c.tally();
        assert_eq!((t.datagrams, t.lost, t.late, t.duplicates, t.damaged, t.marked), (5, 1, 1, 2, 1, 1));
        assert_eq!(t.bytes, 200);
        // A leap past all that is remembered; what is older than that counts as having come.
        c.take(&datagram(WINDOW * 3 + 7, 40), Ecn::NotEct);
        c.take(&datagram(2, 40), Ecn::NotEct);
        c.take(&datagram(WINDOW * 2 + 8, 40), Ecn::NotEct);
        let t = c.tally();
        assert_eq!((t.datagrams, t.duplicates, t.late), (7, 3, 2));
        assert_eq!(t.lost, 1 + WINDOW * 3 + 7 - 6 - 1);
        c.take(&datagram(u64::MAX - 1, 40), Ecn::NotEct);
        c.take(&datagram(u64::MAX - 1, 40), Ecn::NotEct);
        c.take(&datagram(u64::MAX, 40), Ecn::NotEct);
        let t = c.tally();
        assert_eq!((t.datagrams, t.duplicates, t.damaged), (8, 4, 2));
    }
}
