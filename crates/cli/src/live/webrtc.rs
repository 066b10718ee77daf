//! `weir live webrtc`.

use super::CallReport;
use super::call::WebrtcReport;
use crate::Done;
use crate::args::live::call::{live_controller, start_rate};
use crate::args::live::webrtc::{BrowserCodec, WebrtcArgs};
use crate::output::{Failure, check_folder, print, print_report, remark};
use crate::session::Session;
use crate::tables::pairs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use weir_cc::Limits;
use weir_lab::scenario::{InputError, suggest};
use weir_media::VideoCodec;
use weir_media::clip::{Character, parse_size};
use weir_peer::call::{LinkPlan, Settings, Snapshot};
use weir_peer::server::{ClipConfig, Limits as ServerLimits, Report, ServeError, ServerConfig, serve};
use weir_report::atomic_write::write_atomically;
use weir_testbed::emulated_path;
use weir_units::DataRate;

/// Interval at which the stop flag is looked at.
const LOOK: Duration = Duration::from_millis(100);
/// Bounds of media rates.
const LEAST_RATE: DataRate = DataRate::from_kbps(1);
const MOST_RATE: DataRate = DataRate::from_mbps(50);

fn wrong(option: &str, what: impl ToString) -> Failure {
    InputError::whole(option, what.to_string()).into()
}

/// The path of a scenario's first flow.
fn link(session: &Session, args: &WebrtcArgs) -> Result<Option<LinkPlan>, Failure> {
    let Some(name) = &args.link else { return Ok(None) };
    let file = session.open(name)?;
    let scenario = file.one(args.variant.as_deref(), None, &session.registry)?;
    let network = Some(file.network_text(args.variant.as_deref(), &session.registry)?);
    let path = emulated_path(&scenario, scenario.seed);
    let route = path.flows.first().ok_or_else(|| wrong("--link", "the scenario has no flow, so no path"))?;
    let links = |ids: &[usize]| ids.iter().map(|&n| path.links[n].1.clone()).collect();
    Ok(Some(LinkPlan { forward: links(&route.forward), reverse: links(&route.reverse), seed: path.seed, network }))
}

fn config(session: &Session, args: &WebrtcArgs) -> Result<ServerConfig, Failure> {
    let Some(character) = Character::by_name(&args.clip) else {
        let error = InputError::whole("--clip", format!("no built-in clip is named `{}`", args.clip));
        return Err(error.help(suggest::help(&args.clip, &Character::ALL.map(Character::name))).into());
    };
    let (min, max) = (args.min_rate, args.max_rate);
    if min < LEAST_RATE || min > max || max > MOST_RATE {
        let what = format!("{min} to {max}: expected 1kbps to 50mbps, the least below the most");
        return Err(wrong("--min-rate, --max-rate", what));
    }
    if args.token.as_ref().is_some_and(|t| t.len() < 16 || !t.bytes().all(|b| b.is_ascii_alphanumeric())) {
        return Err(wrong("--token", "expected 16 letters and digits or more, that nobody can guess"));
    }
    if !(1..=64).contains(&args.calls) {
        return Err(wrong("--calls", format!("{}: expected 1 to 64", args.calls)));
    }
    let has_vp8 = weir_codecs::list().iter().any(|l| l.codec == VideoCodec::Vp8 && l.built_in);
    let codec = match args.codec {
        Some(BrowserCodec::Vp8) => VideoCodec::Vp8,
        None if has_vp8 => VideoCodec::Vp8,
        Some(BrowserCodec::H264) | None => VideoCodec::H264,
    };
    weir_codecs::decoder(codec).map_err(|e| wrong("--codec", e))?;
    let limits = Limits { floor: min, ceiling: max };
    Ok(ServerConfig {
        listen: args.listen,
        media: args.address,
        token: args.token.clone(),
        settings: Settings { controller: args.controller.clone(), limits },
        start_rate: start_rate(args.start_rate, limits)?,
        codec,
        clip: ClipConfig { character, size: parse_size(&args.size).map_err(|e| wrong("--size", e))?, rate: args.fps },
        link: link(session, args)?,
        limits: ServerLimits { calls: args.calls, ..ServerLimits::default() },
    })
}

pub(super) fn serve_page(session: &Session, args: &WebrtcArgs) -> Done {
    let config = config(session, args)?;
    // Of the user's names some are files; those that pages choose are found here or listed.
    live_controller(&session.registry, &args.controller, false)?;
    args.out.as_ref().map_or(Ok(()), |folder| check_folder("--out", folder))?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let registry = Arc::new(session.registry.clone());
    let report = runtime.map_err(Failure::work)?.block_on(async {
        let running = serve(config, registry).await.map_err(|e| match e {
            ServeError::Controller(e) => wrong("--controller", e),
            ServeError::Clip(e) => wrong("--clip, --size", e),
            e @ (ServeError::Listen(..) | ServeError::Unspecified(_)) => wrong("--listen", e),
            e => Failure::work(e),
        })?;
        if !args.output.quiet {
            remark(&format!("open {} ; Ctrl-C ends", running.page()));
            remark("rooms are at /room there, two calls beside each other at /ab");
            if !args.listen.ip().is_loopback() {
                remark("others can reach this, and signalling is not encrypted: put a proxy that speaks TLS in front");
            }
        }
        let mut left = args.duration.map(Duration::from_secs_f64);
        while !session.stopped() && left != Some(Duration::ZERO) {
            tokio::time::sleep(LOOK).await;
            left = left.map(|left| left.saturating_sub(LOOK));
        }
        let (calls, page) = running.stop_and_report().await;
        if let Some(folder) = &args.out {
            write(folder, page, args.output.quiet)?;
        }
        Ok::<_, Failure>(WebrtcReport { calls: calls.into_iter().map(|(_, call)| call).collect() })
    })?;
    if args.output.json {
        return print_report("call", &CallReport::Webrtc(&report));
    }
    for call in &report.calls {
        print(&table(call))?;
    }
    Ok(())
}

/// Writes the report of all calls into a folder.
fn write(folder: &Path, page: Report, quiet: bool) -> Done {
    let path = folder.join("report.html");
    let failed = |e: io::Error| Failure::Work(format!("cannot write {}: {e}", path.display()));
    let html = page.html().map_err(Failure::work)?;
    std::fs::create_dir_all(folder).map_err(failed)?;
    write_atomically(&path, |out| out.write_all(html.as_bytes())).map_err(failed)?;
    if !quiet {
        remark(&format!("report: {}", path.display()));
    }
    Ok(())
}

fn table(s: &Snapshot) -> String {
    let t = &s.totals;
    let share = |part: u64, rest: u64| 100.0 * part as f64 / (part + rest).max(1) as f64;
    let mut rows = vec![
        ("call", format!("{}, {}, {}", s.codec, s.controller, s.direction)),
        ("connected after", s.setup_ms.map_or("-".into(), |x| format!("{x:.0} ms"))),
        ("ended", s.reason.clone().unwrap_or_else(|| "not yet".into())),
        ("sent", format!("{} packets, {:.3} MB, {} frames", t.packets_sent, t.bytes_sent as f64 / 1e6, t.frames_sent)),
        ("reported lost", format!("{:.2} %", share(t.reported_lost, t.reported_received))),
        ("retransmitted", format!("{} packets", t.retransmitted)),
        ("repair (FEC)", format!("{} packets, {:.3} MB", t.fec_sent, t.fec_bytes_sent as f64 / 1e6)),
        (
            "recovered",
            format!(
                "{} packets by retransmissions, {} by {} repair packets",
                t.recovered, t.fec_recovered, t.fec_received
            ),
        ),
        ("circuit breaker", format!("stopped the media {} times", t.media_stops)),
        ("received", format!("{} packets, {:.3} MB", t.packets_received, t.bytes_received as f64 / 1e6)),
        ("decoded", format!("{} frames, {} damaged", t.frames_decoded, t.frames_damaged)),
        ("sound", format!("{} packets sent, {} decoded, {} missing", t.audio_sent, t.audio_decoded, t.audio_concealed)),
        ("refused", format!("{} packets, {} datagrams of strangers", t.refused, t.strangers)),
    ];
    if let Some(room) = &s.room {
        let layers = room.places.iter().map(|p| p.encoding.map_or("-".into(), |n| (n + 1).to_string()));
        let layers: Vec<String> = layers.collect();
        rows.extend([
            ("room", format!("member {}, {} present at the end", room.member, room.members)),
            ("layers of the others", if layers.is_empty() { "none".into() } else { layers.join(" ") }),
            ("key frames requested", format!("{} for others", room.key_frames_requested)),
        ]);
    }
    if let Some(cpu) = t.cpu_ms {
        rows.push(("CPU of its thread", format!("{:.2} s", cpu as f64 / 1e3)));
    }
    if let Some(b) = &s.browser {
        let rtt = b.round_trip_ms.map_or("-".into(), |x| format!("{x:.1} ms"));
        let lost = share(b.packets_lost.max(0).unsigned_abs(), b.packets_received);
        rows.extend([
            ("browser received", format!("{} packets, {lost:.2} % lost", b.packets_received)),
            ("browser decoded", format!("{} frames, {} freezes", b.frames_decoded, b.freezes)),
            ("browser sent", format!("{} packets, {} frames", b.packets_sent, b.frames_encoded)),
            ("browser's round trip", rtt),
        ]);
    }
    pairs(&rows)
}
