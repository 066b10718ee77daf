//! `weir live dccp serve`.

use super::{Report, failure, lines, mbit, percent};
use crate::Done;
use crate::args::live::dccp::{ServeArgs, address};
use crate::output::{Failure, print, print_report, remark};
use crate::session::Session;
use serde::Serialize;
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use weir_dccp::ccid::Registry;
use weir_dccp::connection::Config;
use weir_live::dccp::transfer::{Look, ReceiveReport, ServeObserver, ServePlan, serve as receive};
use weir_live::dccp::{DccpPort, DccpSocket, ListenerConfig, PortConfig, SocketId};
use weir_units::TimeDelta;

/// Time between remarks on a connection.
const EVERY: TimeDelta = TimeDelta::from_secs(1);
/// How long the other ends are waited for when this one closes.
const PATIENCE: TimeDelta = TimeDelta::from_secs(5);
/// How long the port stays open after the last connection has ended: a Close repeated by the other end, because the
/// answer to the first was lost, is still answered.
const LINGER: std::time::Duration = std::time::Duration::from_secs(1);
/// Maximum connections whose reports are kept for the end; the oldest are omitted first.
const MAX_KEPT: usize = 1_000;

/// A connection that has ended.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct ServedConnection {
    /// Address and UDP port of the other end.
    peer: String,
    /// DCCP port of the other end.
    dccp_port: u16,
    #[serde(flatten)]
    report: ReceiveReport,
}

/// A server's report at its end.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct ServeReport {
    /// Address and UDP port at which it received.
    listen: String,
    /// The last 1,000 connections with data, in the order of their ends.
    connections: VecDeque<ServedConnection>,
    /// Number of connections before these.
    omitted: u64,
    /// Number of connections that were reset because too many were open or waited to be accepted.
    turned_away: u64,
}

pub(super) fn serve(session: &Session, args: &ServeArgs) -> Done {
    // All available CCIDs, in the order of their numbers, so that the other end may choose.
    let mut all: Vec<u8> = Registry::builtin().specs().iter().map(|s| s.number).collect();
    all.sort_unstable();
    let connection = Config { local_port: args.connection.dccp_port, ..args.connection.config(&all)? };
    let listen = address("--listen", &args.listen)?;
    let limits = PortConfig {
        max_connections: args.max_connections,
        max_per_source: args.max_per_source,
        ..PortConfig::default()
    };
    let port = DccpPort::bind(listen, limits).map_err(failure)?;
    let listener = port.listen(ListenerConfig::new(connection, [0; 32])).map_err(failure)?;
    let at = listener.local_addr();
    if !args.output.quiet {
        remark(&format!("receiving at {at}, DCCP port {}; Ctrl-C ends it", args.connection.dccp_port));
    }
    let mut seen = Seen { session, args, port: &port, looks: BTreeMap::new(), ended: VecDeque::new(), omitted: 0 };
    let plan = ServePlan {
        concurrent: if args.once { 1 } else { args.max_connections },
        idle: TimeDelta::from_secs_f64(args.idle),
        patience: PATIENCE,
        every: EVERY,
    };
    let done = receive(&listener, &plan, &mut seen).map_err(failure);
    let Seen { ended: connections, omitted, .. } = seen;
    let failed = connections.iter().any(|c| c.report.ended_by.is_some());
    if args.output.json {
        let counters = port.counters();
        let turned_away = counters.turned_away + counters.gave_way;
        let report = ServeReport { listen: at.to_string(), connections, omitted, turned_away };
        print_report("dccp", &Report::Serve(report))?;
    }
    done?;
    if args.once {
        std::thread::sleep(LINGER);
    }
    if args.once && failed {
        return Err(Failure::Work("the connection has not ended in order".into()));
    }
    Ok(())
}

/// Data received so far.
struct Seen<'a> {
    session: &'a Session,
    args: &'a ServeArgs,
    port: &'a DccpPort,
    /// The last report on each connection with data.
    looks: BTreeMap<SocketId, Look>,
    ended: VecDeque<ServedConnection>,
    omitted: u64,
}

impl ServeObserver for Seen<'_> {
    fn stops(&mut self) -> bool {
        let is_over = self.args.duration.is_some_and(|d| self.port.uptime() >= TimeDelta::from_secs_f64(d));
        self.session.stopped() || is_over || self.args.once && !self.ended.is_empty()
    }

    fn on_data(&mut self, socket: &DccpSocket) {
        self.looks.insert(socket.id(), Look::default());
        if !self.args.output.quiet {
            let ccid = socket.ccids().map_or("-".into(), |c| c.1.to_string());
            remark(&format!("{} has connected, CCID {ccid}", socket.peer_addr()));
        }
    }

    fn on_look(&mut self, socket: &DccpSocket, look: &Look) {
        let Some(before) = self.looks.get_mut(&socket.id()).filter(|_| !self.args.output.quiet) else { return };
        let time = look.at_s - before.at_s;
        if time >= 0.2 {
            let rate = (look.bytes - before.bytes) as f64 * 8.0 / time;
            let (received, lost) = (look.datagrams - before.datagrams, look.lost.saturating_sub(before.lost));
            let (rate, loss) = (mbit(rate), percent(lost, received + lost));
            remark(&format!("{:7.1} s  {}  {rate}, {lost} lost ({loss})", look.at_s, socket.peer_addr()));
            *before = *look;
        }
    }

    fn on_end(&mut self, socket: &DccpSocket, report: ReceiveReport) {
        self.looks.remove(&socket.id());
        let peer: SocketAddr = socket.peer_addr();
        if !self.args.output.json {
            // Whether standard output is closed is detected by the print at the end.
            let _ = print(&table(&peer.to_string(), &report));
        }
        if self.ended.len() >= MAX_KEPT {
            self.ended.pop_front();
            self.omitted += 1;
        }
        self.ended.push_back(ServedConnection { peer: peer.to_string(), dccp_port: socket.dccp_ports().1, report });
    }
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
