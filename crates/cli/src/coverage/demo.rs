//! `weir coverage demo`.

use super::{block_on, open, until_stopped};
use crate::Done;
use crate::args::coverage::DemoArgs;
use crate::output::{self, Failure};
use crate::session::Session;
use crate::tables::table;
use serde::Serialize;
use std::fs;
use std::path::Path;
use std::time::Duration;
use weir_coverage::client::{Client, Endpoint, Trust};
use weir_coverage::lookahead::{Route, encode_polyline};
use weir_coverage::rides::City;
use weir_coverage::server::store::Role;
use weir_coverage::server::{Clock, ServerConfig, issue, serve};
use weir_coverage::{Batch, Filter, Position, Update};
use weir_units::TimeDelta;

/// Seconds of a ride.
const LONG: u32 = 300;

/// The device that rides on while the service is kept.
const LIVE: &str = "ride";

/// Output of `weir coverage demo --json`.
#[derive(Serialize)]
pub(crate) struct DemoReport {
    /// Updates that were reported.
    updates: usize,
    /// Seconds from the start of the service to the answer of the look-ahead.
    seconds: f64,
    /// The look-ahead, and what the ride met.
    stretches: Vec<Stretch>,
}

/// A part of the ride.
#[derive(Serialize)]
struct Stretch {
    /// Begin, in seconds.
    from_s: f32,
    /// End, in seconds.
    to_s: f32,
    /// Lower quartile foretold, bit/s.
    p25_bps: Option<u64>,
    /// Median foretold, bit/s.
    p50_bps: Option<u64>,
    /// Upper quartile foretold, bit/s.
    p75_bps: Option<u64>,
    /// 0 to 1.
    confidence: Option<f32>,
    /// Mean that the ride measured, bit/s.
    measured_bps: Option<u64>,
}

pub(crate) fn demo(session: &Session, args: &DemoArgs) -> Done {
    let folder = std::env::temp_dir().join(format!("weir-coverage-demo-{}", std::process::id()));
    fs::create_dir_all(&folder).map_err(Failure::work)?;
    let done = block_on(show(session, args, &folder));
    fs::remove_dir_all(&folder).map_err(Failure::work)?;
    done?
}

async fn show(session: &Session, args: &DemoArgs, folder: &Path) -> Done {
    let clock = Clock::system();
    let mut store = open(&folder.join("coverage.db"))?;
    let key = issue(Role::Fleet, "demo", clock.wall(), None).map_err(Failure::work)?;
    store.add_key(&key.record).map_err(Failure::work)?;
    let config = ServerConfig { listen: ([127, 0, 0, 1], 0).into(), ..ServerConfig::default() };
    let running = serve(config, clock.clone(), store).await.map_err(Failure::work)?;
    let endpoint = Endpoint { tls: false, host: running.address.ip().to_string(), port: running.address.port() };
    let mut client =
        Client::new(endpoint, &key.text, &Trust::Nothing, Duration::from_secs(10)).map_err(Failure::work)?;
    let city = City::new(8, 8);
    let begin = clock.wall().plus(TimeDelta::from_secs(-i64::from(LONG)));
    let mut updates = 0;
    for device in 0..args.devices.clamp(3, 1_000) {
        let batch = Batch {
            sent_ms: clock.wall(),
            device: Some(format!("device {device}")),
            updates: city.ride(device, 0, begin, LONG),
        };
        updates += client.report(&batch).await.map_err(Failure::work)?.accepted;
    }
    // A ride that nobody reported.
    let ride = city.ride(1_000_000, 0, begin, LONG);
    let route = along(&ride, &city);
    let vector = client.look_route(&route).await.map_err(Failure::work)?;
    let seconds = clock.elapsed().as_secs_f64();
    let stretches = vector.segments.iter().map(|s| {
        let quantile = |i: usize| s.capacity.map(|c| c.quantiles.values()[i].as_bps());
        Stretch {
            from_s: s.from_s,
            to_s: s.to_s,
            p25_bps: quantile(1),
            p50_bps: quantile(2),
            p75_bps: quantile(3),
            confidence: s.capacity.map(|c| c.confidence),
            measured_bps: measured(&ride, s.from_s, s.to_s),
        }
    });
    let report = DemoReport { updates, seconds, stretches: stretches.collect() };
    if args.json {
        let text = serde_json::to_string_pretty(&report).map_err(Failure::work)?;
        output::print(&format!("{text}\n"))?;
    } else {
        print(&report)?;
    }
    if args.keep {
        // The fragment stays in the browser.
        output::remark(&format!("until Ctrl-C: http://{}/#key={}&{}", running.address, key.text, page(&route)));
        let ended = tokio::select! {
            () = until_stopped(session) => Ok(()),
            failed = ride_on(&mut client, &clock, &ride) => failed,
        };
        running.stop().await;
        return ended;
    }
    running.stop().await;
    Ok(())
}

/// Query of the demonstration page: a route, its speed, and the device that is on it.
fn page(route: &Route) -> String {
    let line = encode_polyline(corners(&route.points));
    let encoded: String = line
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_string() } else { format!("%{:02X}", u32::from(c)) })
        .collect();
    format!("route={encoded}&speed={:.2}&poor=900&follow={LIVE}", route.speed_mps * 3.6)
}

/// The points at which a way turns, and its ends.
fn corners(points: &[Position]) -> Vec<Position> {
    let turns = |w: &&[Position]| {
        let turn = (w[0].bearing_deg(w[1]) - w[1].bearing_deg(w[2])).abs();
        turn.min(360.0 - turn) > 1.0
    };
    let between = points.windows(3).filter(turns).map(|w| w[1]);
    points.first().copied().into_iter().chain(between).chain(points.last().copied()).collect()
}

/// Reports a ride as if it were made now, second by second, again and again.
async fn ride_on(client: &mut Client, clock: &Clock, ride: &[Update]) -> Done {
    let mut second = tokio::time::interval(Duration::from_secs(1));
    for (id, update) in (0..).zip(ride.iter().cycle()) {
        second.tick().await;
        let now = clock.wall();
        let updates = vec![Update { id, time_ms: now, ..update.clone() }];
        let batch = Batch { sent_ms: now, device: Some(LIVE.to_owned()), updates };
        client.report(&batch).await.map_err(Failure::work)?;
    }
    Ok(())
}

/// The way of a ride, as its end would ask for it.
fn along(ride: &[Update], city: &City) -> Route {
    let points: Vec<_> = ride.iter().map(|u| u.position).collect();
    let length: f64 = points.windows(2).map(|p| p[0].distance_m(p[1])).sum();
    let network = Filter { operator: Some(city.operator().clone()), technology: None };
    Route { points, polyline: None, speed_mps: length / f64::from(LONG - 1), horizon_s: f64::from(LONG), network }
}

fn measured(ride: &[Update], from_s: f32, to_s: f32) -> Option<u64> {
    let within: Vec<u64> = (0_u16..)
        .zip(ride)
        .filter(|(second, _)| (from_s..to_s).contains(&f32::from(*second)))
        .map(|(_, u)| u.throughput.as_bps())
        .collect();
    (within.iter().sum::<u64>()).checked_div(within.len() as u64)
}

fn print(report: &DemoReport) -> Done {
    let mut rows = table(&["seconds", "p25 kbit/s", "p50 kbit/s", "p75 kbit/s", "confidence", "measured kbit/s"], 1);
    let kbps = |bps: Option<u64>| bps.map_or("-".to_owned(), |bps| (bps / 1_000).to_string());
    for s in &report.stretches {
        rows.add_row([
            format!("{:.0} to {:.0}", s.from_s, s.to_s),
            kbps(s.p25_bps),
            kbps(s.p50_bps),
            kbps(s.p75_bps),
            s.confidence.map_or("-".to_owned(), |c| format!("{c:.2}")),
            kbps(s.measured_bps),
        ]);
    }
    output::print(&format!(
        "Look-ahead along a ride that nobody reported, from {} updates ({:.1} s):\n{rows}\n",
        report.updates, report.seconds
    ))
}
