//! Receiving from many connections by one thread.

use super::receive::{Progress, ReceiveReport, Receiving};
use super::{LOOK, Look, Looks};
use crate::dccp::error::DccpError;
use crate::dccp::listener::DccpListener;
use crate::dccp::socket::{DccpSocket, SocketId};
use std::collections::BTreeMap;
use std::time::Duration;
use weir_units::{TimeDelta, Timestamp};

/// Interval at which idle connections are searched for.
const SWEEP: TimeDelta = TimeDelta::from_millis(250);

/// How a server receives. How many connections there may be, in all and of one source, is its port's:
/// [`PortConfig`](crate::dccp::PortConfig).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ServePlan {
    /// Maximum connections received from at a time; others wait in the port's backlog.
    pub concurrent: usize,
    /// A connection without a received datagram for this time is reset.
    pub idle: TimeDelta,
    /// How long the other ends are waited for when the server closes.
    pub patience: TimeDelta,
    /// Time between progress reports of a connection.
    pub every: TimeDelta,
}

/// The observer of a server.
pub trait ServeObserver {
    /// Whether to close all connections and end.
    fn stops(&mut self) -> bool;
    /// The first datagram of a connection was received.
    fn on_data(&mut self, socket: &DccpSocket);
    /// Progress of a connection with data, at intervals.
    fn on_look(&mut self, socket: &DccpSocket, look: &Look);
    /// A connection has ended.
    fn on_end(&mut self, socket: &DccpSocket, report: ReceiveReport);
}

struct Open {
    socket: DccpSocket,
    receiving: Receiving,
    is_idle: bool,
}

impl Open {
    /// Receives pending datagrams.
    fn step(&mut self, observer: &mut dyn ServeObserver, every: TimeDelta) -> Progress {
        let had_data = self.receiving.has_data();
        let progress = self.receiving.take(&self.socket);
        if self.receiving.has_data() {
            if !had_data {
                observer.on_data(&self.socket);
            }
            let report_to = &mut |look: &Look| observer.on_look(&self.socket, look);
            self.receiving.look(&self.socket, &mut Looks { every, report_to });
        }
        progress
    }

    fn end(self, observer: &mut dyn ServeObserver) {
        let Self { socket, receiving, is_idle } = self;
        let had_data = receiving.has_data();
        let mut report = receiving.report(&socket, &mut |look| {
            if had_data {
                observer.on_look(&socket, look);
            }
        });
        if is_idle {
            report.ended_by = Some("nothing has arrived for too long".into());
        }
        observer.on_end(&socket, report);
    }
}

/// Receives from all clients until the observer stops it, then closes all connections. It uses only the caller's
/// thread.
///
/// # Errors
/// The port fails.
pub fn serve(listener: &DccpListener, plan: &ServePlan, observer: &mut dyn ServeObserver) -> Result<(), DccpError> {
    let now = || Timestamp::ZERO + listener.port().uptime();
    let mut open: BTreeMap<SocketId, Open> = BTreeMap::new();
    let (mut news, mut unfinished) = (Vec::new(), Vec::new());
    let mut sweep = now();
    let mut closing: Option<Timestamp> = None;
    loop {
        if closing.is_none() && observer.stops() {
            open.values().for_each(|o| o.socket.close());
            closing = Some(now() + plan.patience);
        }
        if let Some(until) = closing
            && (open.is_empty() || now() >= until)
        {
            std::mem::take(&mut open).into_values().for_each(|o| o.end(observer));
            return Ok(());
        }
        let accepts = closing.is_none() && open.len() < plan.concurrent;
        let wait = if unfinished.is_empty() { LOOK } else { Duration::ZERO };
        listener.wait(accepts, wait, &mut news)?;
        news.append(&mut unfinished);
        news.sort_unstable();
        news.dedup();
        for id in news.drain(..) {
            let Some(one) = open.get_mut(&id) else { continue };
            match one.step(observer, plan.every) {
                Progress::Waiting => {}
                Progress::More => unfinished.push(id),
                Progress::Over => {
                    if let Some(one) = open.remove(&id) {
                        one.end(observer);
                    }
                }
            }
        }
        while accepts && open.len() < plan.concurrent {
            match listener.accept_timeout(Duration::ZERO) {
                Ok(socket) => {
                    socket.set_nonblocking(true);
                    socket.watch();
                    let receiving = Receiving::new(&socket, plan.every);
                    open.insert(socket.id(), Open { socket, receiving, is_idle: false });
                }
                Err(e) if e.is_would_block() => break,
                Err(e) => return Err(e),
            }
        }
        if now() >= sweep {
            sweep = now() + SWEEP;
            // Reports are due with or without received datagrams.
            unfinished.extend(open.iter().filter(|(_, o)| o.receiving.has_data()).map(|(id, _)| *id));
            for one in open.values_mut() {
                // The Reset is an event, which ends it.
                if !one.is_idle && closing.is_none() && one.socket.now() - one.receiving.last() >= plan.idle {
                    one.is_idle = true;
                    one.socket.abort();
                }
            }
        }
    }
}
