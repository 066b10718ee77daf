//! Bulk data whose delivery is verified, datagram by datagram: what `weir live dccp` sends and counts.
//!
//! Each datagram contains its number, its length and a checksum of all of it, so that loss, duplicates and damage are
//! counted separately.

mod check;
mod receive;
mod serve;

pub use check::{Checker, MIN_DATAGRAM, Tally, read_datagram, write_datagram};
pub use receive::{ReceiveReport, receive_all};
pub use serve::{ServeObserver, ServePlan, serve};

use super::error::DccpError;
use super::socket::{DccpSocket, Interest};
use serde::Serialize;
use std::time::Duration;
use weir_dccp::connection::State;
use weir_units::{DataRate, DataSize, TimeDelta};

/// Datagrams submitted at a time.
const BATCH: usize = 16;
/// How long a blocked sender or a waiting receiver may be without seeing whether to stop.
const LOOK: Duration = Duration::from_millis(50);
/// Maximum backlog of a sender with a rate; the rest is given up.
const MAX_DEBT: TimeDelta = TimeDelta::from_millis(50);
/// Data to send: until the first of the given limits, or until it is stopped.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct SendPlan {
    /// Ends after this much data.
    pub size: Option<DataSize>,
    /// Ends after this time.
    pub duration: Option<TimeDelta>,
    /// The application's own rate; as fast as congestion control permits if absent.
    pub rate: Option<DataRate>,
    /// Bytes of a datagram; as many as fit if absent.
    pub datagram: Option<DataSize>,
}

/// Progress of a transfer, at intervals and at its end.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Look {
    /// Seconds since it began.
    pub at_s: f64,
    /// Datagrams so far: submitted, or received intact.
    pub datagrams: u64,
    /// Bytes of these.
    pub bytes: u64,
    /// Lost so far: by acknowledgements at the sender, by numbers at the receiver.
    pub lost: u64,
    /// With ECN's congestion mark.
    pub marked: u64,
    /// The rate permitted by congestion control, bit/s.
    pub allowed_bps: Option<f64>,
    /// Round-trip time in ms.
    pub rtt_ms: Option<f64>,
    /// Datagrams in the send queue.
    pub queued: usize,
}

/// A sender's report at the end.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SendReport {
    /// Seconds from the first datagram until the queue is empty.
    pub seconds: f64,
    /// Datagrams submitted.
    pub datagrams: u64,
    /// Bytes of these.
    pub bytes: u64,
    /// Bytes over time.
    pub rate_bps: f64,
    /// Data packets sent.
    pub packets: u64,
    /// Data packets lost, by Ack Vectors; `None` if the CCID has none.
    pub lost: Option<u64>,
    /// Data packets marked, by Ack Vectors.
    pub marked: Option<u64>,
    /// CCID of the data sent.
    pub ccid: Option<u8>,
    /// Last round-trip time in ms.
    pub rtt_ms: Option<f64>,
    /// Whether both ends have closed in order.
    pub closed: bool,
    /// The reason otherwise.
    pub ended_by: Option<String>,
}

/// The observer of a transfer's progress, and its interval.
pub struct Looks<'a> {
    /// Time between reports; there is another one at the end.
    pub every: TimeDelta,
    /// Receives each report.
    pub report_to: &'a mut dyn FnMut(&Look),
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

/// Sends by the plan and closes, waiting up to `patience` for the other end.
///
/// # Errors
/// Datagrams of that length cannot be sent. Any other end of the connection is in the report.
pub fn send_all(
    socket: &DccpSocket,
    plan: &SendPlan,
    stop: &dyn Fn() -> bool,
    patience: Duration,
    Looks { every, report_to }: Looks<'_>,
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
    // A rate's backlog is counted from here.
    let mut paced_from = begin;
    let mut paced = 0u64;
    while !stop() {
        let now = socket.now();
        let time = now - begin;
        if now >= look {
            report_to(&look_of(socket, time, number, bytes));
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
        // The last one has the remaining length, or the minimum.
        let lengths: [usize; BATCH] = std::array::from_fn(|i| {
            let rest = left.saturating_sub(i as u64 * size.as_bytes());
            rest.min(size.as_bytes()).max(MIN_DATAGRAM as u64) as usize
        });
        // Those made earlier and refused are reused.
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
    // Queued data is sent before the connection closes; after a stop, only as long as patience allows.
    let until = socket.now() + TimeDelta::from_secs_f64(patience.as_secs_f64());
    while ended_by.is_none() && socket.queued().0 > 0 && socket.state() <= State::Open {
        let now = socket.now();
        if now >= until && stop() {
            break;
        }
        if now >= look {
            report_to(&look_of(socket, now - begin, number, bytes));
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
    report_to(&look_of(socket, time, number, bytes));
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

/// Waits until a connection is open; returns `false` if `stop` comes first or it takes too long.
///
/// # Errors
/// The connection has ended.
pub fn wait_open(socket: &DccpSocket, time: Duration, stop: &dyn Fn() -> bool) -> Result<bool, DccpError> {
    let until = socket.now() + TimeDelta::from_secs_f64(time.as_secs_f64());
    while socket.now() < until && !stop() {
        if socket.wait(Interest::Open, Some(LOOK))? {
            return Ok(true);
        }
    }
    Ok(false)
}
