//! `weir dccp serve`.

use super::{failure, lines, mbit, percent};
use crate::Done;
use crate::args::dccp::{ServeArgs, address};
use crate::output::{Failure, print, print_json, remark};
use crate::session::Session;
use serde::Serialize;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use weir_dccp::ccid::Registry;
use weir_dccp::connection::Config;
use weir_live::dccp::transfer::{Look, ReceiveReport, receive_all};
use weir_live::dccp::{DccpListener, DccpSocket};
use weir_units::TimeDelta;

/// How often a connection is told of.
const EVERY: TimeDelta = TimeDelta::from_secs(1);
/// How often the stop flag is seen while nobody calls.
const LOOK: Duration = Duration::from_millis(50);
/// How long the other end is waited for when this one closes.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Serialize)]
struct Ended {
    /// The other end's address and UDP port.
    peer: String,
    /// Its DCCP port.
    dccp_port: u16,
    #[serde(flatten)]
    report: ReceiveReport,
}

#[derive(Serialize)]
struct All {
    listen: String,
    connections: Vec<Ended>,
    turned_away: u64,
}

pub(super) fn serve(session: &Session, args: &ServeArgs) -> Done {
    // All that there are, in the order of their numbers, so that the other end may choose.
    let mut all: Vec<u8> = Registry::builtin().specs().iter().map(|s| s.number).collect();
    all.sort_unstable();
    let connection = Config { local_port: args.connection.dccp_port, ..args.connection.config(&all)? };
    let listen = address("--listen", &args.listen)?;
    let listener = DccpListener::bind(listen, connection).map_err(failure)?;
    let at = listener.local_addr();
    if !args.output.quiet {
        remark(&format!("receiving at {at}, DCCP port {}; Ctrl-C ends it", args.connection.dccp_port));
    }
    let over = AtomicBool::new(false);
    let ended = Mutex::new(Vec::new());
    let done = std::thread::scope(|scope| {
        let (over, ended) = (&over, &ended);
        let mut threads = Vec::new();
        let result = loop {
            threads.retain(|t: &std::thread::ScopedJoinHandle<'_, ()>| !t.is_finished());
            let has_one = !lock(ended).is_empty();
            if session.stopped() || (args.once && has_one) {
                break Ok(());
            }
            if args.once && !threads.is_empty() {
                std::thread::sleep(LOOK);
                continue;
            }
            match listener.accept_timeout(LOOK) {
                Ok(socket) => {
                    threads.push(scope.spawn(move || {
                        let one = receive(session, args, &socket, over);
                        lock(ended).push(one);
                    }));
                }
                Err(e) if e.is_would_block() => {}
                Err(e) => break Err(failure(e)),
            }
            if args.duration.is_some_and(|d| listener.port().uptime() >= TimeDelta::from_secs_f64(d)) {
                break Ok(());
            }
        };
        over.store(true, Ordering::Relaxed);
        result
    });
    let connections = std::mem::take(&mut *lock(&ended));
    let turned_away = listener.port().counters().turned_away;
    let failed = connections.iter().any(|c: &Ended| c.report.ended_by.is_some());
    if args.output.json {
        print_json(&All { listen: at.to_string(), connections, turned_away })?;
    }
    done?;
    if args.once && failed {
        return Err(Failure::Work("the connection has not ended in order".into()));
    }
    Ok(())
}

fn lock<T>(m: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    m.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// One connection, from its beginning to its end.
fn receive(session: &Session, args: &ServeArgs, socket: &DccpSocket, over: &AtomicBool) -> Ended {
    let peer = socket.peer_addr();
    let tells = !args.output.quiet;
    if tells {
        let ccid = socket.ccids().map_or("-".into(), |c| c.1.to_string());
        remark(&format!("{peer} has connected, CCID {ccid}"));
    }
    let mut before = Look::default();
    let mut tell = |look: &Look| {
        let time = look.at_s - before.at_s;
        if tells && time >= 0.2 {
            let rate = (look.bytes - before.bytes) as f64 * 8.0 / time;
            let (came, lost) = (look.datagrams - before.datagrams, look.lost.saturating_sub(before.lost));
            let loss = percent(lost, came + lost);
            remark(&format!("{:7.1} s  {peer}  {}, {lost} lost ({loss})", look.at_s, mbit(rate)));
            before = *look;
        }
    };
    // Ctrl-C and the command's end both close it.
    let stop = || session.stopped() || over.load(Ordering::Relaxed);
    let report = receive_all(socket, &stop, PATIENCE, (EVERY, &mut tell));
    if !args.output.json {
        // That standard output is gone is seen by who prints last.
        let _ = print(&table(&peer.to_string(), &report));
    }
    Ended { peer: peer.to_string(), dccp_port: socket.dccp_ports().1, report }
}

fn table(peer: &str, r: &ReceiveReport) -> String {
    let t = &r.tally;
    lines(&[
        ("from", peer.to_owned()),
        ("CCID", r.ccid.map_or("-".into(), |c| c.to_string())),
        ("time", format!("{:.2} s", r.seconds)),
        ("received", format!("{} datagrams whole, {:.3} MB", t.datagrams, t.bytes as f64 / 1e6)),
        ("rate", mbit(r.rate_bps)),
        ("lost", format!("{}, {}", t.lost, percent(t.lost, t.datagrams + t.lost))),
        ("marked", t.marked.to_string()),
        ("late", t.late.to_string()),
        ("twice", t.duplicates.to_string()),
        ("damaged", t.damaged.to_string()),
        ("not taken", r.dropped.to_string()),
        ("ended", r.ended_by.clone().unwrap_or_else(|| if r.closed { "in order".into() } else { "unanswered".into() })),
    ])
}
