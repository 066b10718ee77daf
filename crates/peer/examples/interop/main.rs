//! Calls of other programs with Weir, one for each cell of a table: who calls, which end sends, the codec, and the feedback that both agree on.
//! Each goes through a link that loses packets, 3 % each way if nothing else is said.
//!
//!     cargo run -p weir-peer --example interop --features weir-codecs/vpx -- [PEER...] [--seconds N] [--loss PERCENT] [--delay MS] [--repair KIND] [--vp8] [--keep FOLDER]
//!
//! They are made in a network namespace of their own, which takes the privilege to make one.
//!
//! Peers: chromium, firefox, gstreamer, aiortc, pion; all if none is named. What is missing for one is said, and it is left out. aiortc is
//! installed from PyPI below the target folder, Pion by Go. `--keep` writes each call's offer and answer there, `--vp8` leaves out
//! the calls in H.264, `--repair ulpfec` (or another of `Repair`) those with other kinds of repair.

mod cell;
mod peers;
mod place;

use cell::{Cell, Path, run};
use peers::{Job, Peer, Repair};
use std::net::IpAddr;
use std::path::PathBuf;
use weir_media::VideoCodec;
use weir_units::TimeDelta;

/// Load of the machine in the last minute.
fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or_default().to_owned()
}

const HEAD: &str = "\
| peer | sends | codec | feedback | frames decoded | retransmitted | recovered | FEC offered | sent | received | load |
|---|---|---|---|---|---|---|---|---|---|---|";

fn number(n: Option<u64>) -> String {
    n.map_or_else(|| "not counted".into(), |n| n.to_string())
}

fn row(c: &Cell) -> String {
    let (peer, codec) = (c.job.peer.name(), if c.job.codec == VideoCodec::H264 { "H.264" } else { "VP8" });
    let sends = if c.job.weir_sends { "Weir" } else { peer };
    if let Some(error) = &c.said.error {
        let wanted = if c.job.ccfb { "RFC 8888" } else { "" };
        return format!("| {peer} | {sends} | {codec} | {wanted} | none: {} | | | | | | |", error.replace('|', "/"));
    }
    let repair = c.repair_offered();
    let repair = if repair.is_empty() { "none" } else { &repair };
    let nack = if c.job.repair.has_nack() { "" } else { ", no NACK" };
    // Repair packets, if they were agreed upon.
    let agreed = c.agrees_on_fec();
    let count = |n: Option<u64>| if agreed { number(n) } else { "-".into() };
    let (sent, received) = c.repair();
    format!(
        "| {peer} | {sends} | {codec} | {}{nack} | {} | {} | {} | {repair} | {} | {} | {} |",
        c.feedback(),
        c.frames(),
        number(c.retransmitted()),
        number(c.recovered()),
        count(sent),
        count(received),
        load()
    )
}

/// The calls of a peer.
fn jobs(peer: Peer, seconds: u32) -> Vec<Job> {
    let mut jobs = Vec::new();
    // Peers that offer RFC 8888's feedback if they are asked to.
    let formats: &[bool] = if matches!(peer, Peer::Chromium | Peer::Pion) { &[false, true] } else { &[false] };
    for weir_sends in [true, false] {
        for codec in [VideoCodec::Vp8, VideoCodec::H264] {
            let job = Job { peer, weir_sends, codec, ccfb: false, repair: Repair::Usual, seconds };
            jobs.extend(formats.iter().map(|&ccfb| Job { ccfb, ..job }));
            let others: &[Repair] = match (peer, weir_sends, codec) {
                (Peer::Chromium, true, VideoCodec::Vp8) => {
                    &[Repair::Nack, Repair::Fec, Repair::None, Repair::UlpFec, Repair::UlpFecAlone]
                }
                (Peer::Chromium, true, _) => &[Repair::Nack, Repair::Fec, Repair::None],
                (Peer::Chromium, false, VideoCodec::Vp8) => &[Repair::Asked, Repair::Fec],
                (Peer::Chromium, false, _) => &[Repair::Asked],
                (Peer::Firefox, _, VideoCodec::Vp8) => &[Repair::Fec, Repair::None],
                _ => &[],
            };
            jobs.extend(others.iter().map(|&repair| Job { repair, ..job }));
        }
    }
    jobs
}

fn keep(folder: &std::path::Path, n: usize, c: &Cell) {
    let name = format!("{n:02}-{}-{}", c.job.peer.name(), if c.job.weir_sends { "receives" } else { "sends" });
    for (kind, text) in [("offer", &c.said.offer), ("answer", &c.said.answer)] {
        std::fs::write(folder.join(format!("{name}-{kind}.sdp")), text).expect("written");
    }
}

/// Options of the command line.
struct Asked {
    peers: Vec<Peer>,
    seconds: u32,
    loss: f64,
    delay: i64,
    folder: Option<PathBuf>,
    codec: Option<VideoCodec>,
    /// Name of a [`Repair`].
    repair: Option<String>,
}

fn asked() -> Asked {
    let mut arguments = std::env::args().skip(1);
    let delay = Path::DELAY.as_millis();
    let mut asked = Asked { peers: Vec::new(), seconds: 8, loss: 3.0, delay, folder: None, codec: None, repair: None };
    while let Some(argument) = arguments.next() {
        let peer = Peer::ALL.into_iter().find(|p| p.name() == argument);
        match (argument.as_str(), peer) {
            (_, Some(peer)) => asked.peers.push(peer),
            ("--seconds", _) => asked.seconds = arguments.next().and_then(|s| s.parse().ok()).unwrap_or(asked.seconds),
            ("--loss", _) => asked.loss = arguments.next().and_then(|s| s.parse().ok()).unwrap_or(asked.loss),
            ("--delay", _) => asked.delay = arguments.next().and_then(|s| s.parse().ok()).unwrap_or(asked.delay),
            ("--repair", _) => asked.repair = arguments.next(),
            ("--vp8", _) => asked.codec = Some(VideoCodec::Vp8),
            ("--keep", _) => asked.folder = arguments.next().map(PathBuf::from),
            (other, _) => {
                eprintln!(
                    "{other}: expected chromium, firefox, gstreamer, aiortc, pion, --seconds N, --loss PERCENT, \
                     --delay MS, --repair KIND, --vp8 or --keep FOLDER"
                );
                std::process::exit(2);
            }
        }
    }
    if asked.peers.is_empty() {
        asked.peers = Peer::ALL.to_vec();
    }
    asked
}

async fn table(asked: Asked, address: IpAddr) {
    println!("{HEAD}");
    let jobs = asked.peers.into_iter().flat_map(|peer| jobs(peer, asked.seconds));
    let is_asked =
        |job: &Job| asked.repair.as_ref().is_none_or(|r| format!("{:?}", job.repair).eq_ignore_ascii_case(r));
    let jobs = jobs.filter(is_asked).filter(|job| asked.codec.is_none_or(|codec| job.codec == codec));
    for (n, job) in jobs.enumerate() {
        let path = Path { loss: asked.loss / 100.0, delay: TimeDelta::from_millis(asked.delay) };
        let cell = run(job, address, path).await;
        println!("{}", row(&cell));
        if let Some(folder) = &asked.folder {
            keep(folder, n, &cell);
        }
        let totals = cell.call.map(|c| (c.state, c.reason, c.totals));
        eprintln!("{job:?}: {} {} packets, {}, {totals:?}", cell.said.state, cell.said.packets, cell.said.more);
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime")
}

fn main() {
    let mut asked = asked();
    // Installs from registries, before there is no network.
    let versions: Vec<(Peer, String)> = runtime().block_on(async {
        let mut versions = Vec::new();
        for peer in asked.peers.clone() {
            match peers::prepare(peer).await {
                Ok(_) => versions.push((peer, peers::version(peer).await.unwrap_or_else(|e| e))),
                Err(e) => println!("{} cannot be had here: {e}", peer.name()),
            }
        }
        versions
    });
    asked.peers.retain(|p| versions.iter().any(|(peer, _)| peer == p));
    let (seconds, loss, delay) = (asked.seconds, asked.loss, asked.delay);
    if let Err(e) = place::inside(move |address| runtime().block_on(table(asked, address))) {
        eprintln!("{e}");
        std::process::exit(1);
    }
    let versions: Vec<String> = versions.into_iter().map(|(_, v)| v).collect();
    println!("\n{seconds} s connected, {loss} % of the packets lost and {delay} ms each way. {}", versions.join("; "));
}
