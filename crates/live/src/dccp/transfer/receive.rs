//! Receiving and checking data.

use super::check::{Checker, Tally};
use super::{LOOK, Look, Looks, rate};
use crate::dccp::error::DccpError;
use crate::dccp::socket::DccpSocket;
use serde::Serialize;
use std::time::Duration;
use weir_units::{TimeDelta, Timestamp};

/// Maximum datagrams received in one turn.
const MAX_AT_ONCE: usize = 256;

/// A receiver's report at the end.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReceiveReport {
    /// Seconds from the first datagram to the last.
    pub seconds: f64,
    /// Counters of received datagrams.
    #[serde(flatten)]
    pub tally: Tally,
    /// Bytes over time.
    pub rate_bps: f64,
    /// Share of the datagrams sent, by their numbers, that has not arrived.
    pub loss: f64,
    /// CCID of the data received.
    pub ccid: Option<u8>,
    /// Datagrams dropped for lack of room: the application was slow.
    pub dropped: u64,
    /// Whether both ends have closed in order.
    pub closed: bool,
    /// The reason otherwise.
    pub ended_by: Option<String>,
}

/// A connection that is received from.
pub(super) struct Receiving {
    checker: Checker,
    buffer: Vec<u8>,
    begin: Timestamp,
    first: Option<Timestamp>,
    last: Timestamp,
    next_look: Timestamp,
    ccid: Option<u8>,
    /// Why the connection has ended.
    ended: Option<DccpError>,
}

/// Remaining work for a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Progress {
    /// Nothing until a datagram is received.
    Waiting,
    /// More datagrams may have arrived.
    More,
    /// The connection has ended, and all that arrived has been taken.
    Over,
}

impl Receiving {
    pub(super) fn new(socket: &DccpSocket, every: TimeDelta) -> Self {
        let now = socket.now();
        Self {
            checker: Checker::default(),
            buffer: Vec::new(),
            begin: now,
            first: None,
            last: now,
            next_look: now + every,
            ccid: None,
            ended: None,
        }
    }

    /// Whether a datagram has arrived.
    pub(super) fn has_data(&self) -> bool {
        self.first.is_some()
    }
    /// When the last datagram was received; the beginning before the first.
    pub(super) fn last(&self) -> Timestamp {
        self.last
    }

    /// Receives datagrams, waiting as long as the socket allows if there is none.
    pub(super) fn take(&mut self, socket: &DccpSocket) -> Progress {
        let mut progress = Progress::More;
        let mut taken = 0;
        while taken < MAX_AT_ONCE {
            match socket.recv_into(&mut self.buffer) {
                Ok(received) => {
                    self.checker.take(&self.buffer, received.ecn);
                    taken += 1;
                    if self.first.is_none() {
                        self.first = Some(socket.now());
                    }
                }
                Err(e) if e.is_would_block() => {
                    progress = Progress::Waiting;
                    break;
                }
                Err(e) => {
                    self.ended = Some(e);
                    progress = Progress::Over;
                    break;
                }
            }
        }
        if taken > 0 {
            self.last = socket.now();
        }
        progress
    }

    /// Reports progress, if that is due.
    pub(super) fn look(&mut self, socket: &DccpSocket, looks: &mut Looks<'_>) {
        let now = socket.now();
        if now >= self.next_look {
            self.next_look = now + looks.every;
            self.ccid = socket.ccids().map(|c| c.1).or(self.ccid);
            (looks.report_to)(&self.state(socket));
        }
    }

    fn state(&self, socket: &DccpSocket) -> Look {
        let tally = self.checker.tally();
        Look {
            at_s: (socket.now() - self.begin).as_secs_f64(),
            datagrams: tally.datagrams,
            bytes: tally.bytes,
            lost: tally.lost,
            marked: tally.marked,
            allowed_bps: None,
            rtt_ms: socket.rtt().map(TimeDelta::as_millis_f64),
            queued: 0,
        }
    }

    /// The report at the end, after a last progress report.
    pub(super) fn report(self, socket: &DccpSocket, report_to: &mut dyn FnMut(&Look)) -> ReceiveReport {
        report_to(&self.state(socket));
        let tally = self.checker.tally();
        let seconds = self.first.map_or(0.0, |f| (self.last - f).as_secs_f64());
        let expected = tally.datagrams + tally.lost;
        ReceiveReport {
            seconds,
            tally,
            rate_bps: rate(tally.bytes, seconds),
            loss: if expected > 0 { tally.lost as f64 / expected as f64 } else { 0.0 },
            ccid: socket.ccids().map(|c| c.1).or(self.ccid),
            dropped: socket.counters().data_dropped,
            closed: self.ended.as_ref().is_some_and(DccpError::is_closed),
            ended_by: self.ended.filter(|e| !e.is_closed()).map(|e| e.to_string()),
        }
    }
}

/// Receives until the other end closes or `stop` says so; the latter closes from this end and waits up to `patience`
/// for the other.
pub fn receive_all(
    socket: &DccpSocket,
    stop: &dyn Fn() -> bool,
    patience: Duration,
    mut looks: Looks<'_>,
) -> ReceiveReport {
    socket.set_read_timeout(Some(LOOK));
    let mut receiving = Receiving::new(socket, looks.every);
    let mut until = None;
    while receiving.take(socket) != Progress::Over {
        receiving.look(socket, &mut looks);
        if until.is_none() && stop() {
            socket.close();
            until = Some(socket.now() + TimeDelta::from_secs_f64(patience.as_secs_f64()));
        }
        if until.is_some_and(|u| socket.now() >= u) {
            break;
        }
    }
    receiving.report(socket, looks.report_to)
}
