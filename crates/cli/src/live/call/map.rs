//! The capacity that a map of network coverage expects on the way to this end, one for each path: `--map`.

use crate::args::live::call::{MapArgs, PartyArgs};
use crate::output::{Failure, remark};
use weir_lab::run::parts::ForecastFeeds;
use weir_lab::scenario::{Foretold, InputError};
use weir_live::call::CallObserver;
use weir_live::sdp::{Agreement, Direction, Feedback};
use weir_session::Endpoint;
use weir_units::Timestamp;

/// Greatest size of a file, in bytes.
const MAX_FILE: u64 = 16 << 20;

/// Announces a map's answer during a call.
pub(super) struct MapFeed {
    feeds: ForecastFeeds,
    begin: Option<Timestamp>,
}

impl CallObserver for MapFeed {
    fn on_look(&mut self, now: Timestamp, endpoint: &mut Endpoint) {
        let begin = *self.begin.get_or_insert(now);
        let since = Timestamp::ZERO + now.saturating_since(begin);
        if since >= self.feeds.due() {
            self.feeds.give(endpoint, since, now);
        }
    }
}

fn wrong(what: impl Into<String>) -> Failure {
    InputError::whole("--map", what.into()).into()
}

/// The maps of an end that receives, one for each path, if it has any.
pub(super) fn of(args: &MapArgs, paths: usize) -> Result<Option<MapFeed>, Failure> {
    let maps = args.map.len();
    if maps > 0 && maps != paths {
        return Err(wrong(format!("{maps} given for a call over {paths}: give one for each --path, in their order")));
    }
    let rows = |map: &String| if map.contains("://") { service::rows(map, args) } else { table(map) };
    let tables = args.map.iter().map(rows).collect::<Result<Vec<_>, _>>()?;
    Ok((!tables.is_empty()).then(|| MapFeed { feeds: ForecastFeeds::of_tables(tables), begin: None }))
}

/// The maps of an end of a call between processes.
pub(super) fn of_party(args: &PartyArgs, direction: Direction) -> Result<Option<MapFeed>, Failure> {
    if !args.media.map.map.is_empty() && !direction.receives() {
        return Err(wrong("it is of the end that receives media: give it there, and --controller NAME+map here"));
    }
    of(&args.media.map, args.paths.path.len().max(1))
}

/// Says whether the other end follows the map.
pub(super) fn remark_agreement(map: Option<&MapFeed>, agreement: &Agreement) {
    let is_safe = agreement.keys.is_some() || agreement.remote.ip().is_loopback();
    match map {
        Some(_) if !agreement.has(Feedback::CapacityVector) => {
            remark("the other end follows no map: it has no --controller NAME+map");
        }
        Some(_) if !is_safe => remark("the other end follows no map in the clear: leave out --no-srtp"),
        _ => {}
    }
}

fn table(file: &str) -> Result<Vec<Foretold>, Failure> {
    let text = weir_files::read_text(file.as_ref(), MAX_FILE).map_err(|e| wrong(format!("{file}: {e}")))?;
    Foretold::parse_table(&text).map_err(|e| wrong(format!("{file}: {e}")))
}

#[cfg(feature = "coverage")]
mod service {
    use super::{Failure, Foretold, MAX_FILE, MapArgs, wrong};
    use std::time::Duration;
    use weir_coverage::client::{Client, Endpoint, EndpointError, Trust};
    use weir_coverage::lookahead::Route;
    use weir_coverage::{CapacityVector, Filter};
    use weir_lab::scenario::Expected;
    use weir_units::TimeDelta;

    /// Time for the answer.
    const TIMEOUT: Duration = Duration::from_secs(10);
    /// How far the answer looks ahead, in seconds.
    const HORIZON_S: f64 = 7_200.0;

    /// The service's answer for the route, from the begin of the call on.
    pub(super) fn rows(url: &str, args: &MapArgs) -> Result<Vec<Foretold>, Failure> {
        let endpoint: Endpoint = url.parse().map_err(|e: EndpointError| wrong(e.to_string()))?;
        let Some(route) = &args.map_route else { return Err(wrong("a service needs the way: --map-route")) };
        let Some(key) = &args.map_key else { return Err(wrong("a service needs its key: --map-key")) };
        let read = |file| weir_files::read_text(file, MAX_FILE).map_err(|e| wrong(e.to_string()));
        let trust = match &args.map_cert {
            Some(file) => Trust::Certificates(read(file)?.into_bytes()),
            None => Trust::Nothing,
        };
        let route = Route {
            points: Vec::new(),
            polyline: Some(route.clone()),
            speed_mps: args.map_speed / 3.6,
            horizon_s: HORIZON_S,
            network: Filter::default(),
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::work)?;
        let key = read(key)?;
        let answer =
            runtime.block_on(async { Client::new(endpoint, key.trim(), &trust, TIMEOUT)?.look_route(&route).await });
        let vector = answer.map_err(|e| Failure::work(format!("--map {url}: {e}")))?;
        Ok(foretold(&vector.coarse()))
    }

    /// Rates over time, without what the other end could find the way by.
    fn foretold(vector: &CapacityVector) -> Vec<Foretold> {
        let time = |s: f32| TimeDelta::from_secs_f64(s.into());
        let mut rows: Vec<Foretold> = Vec::new();
        for s in &vector.segments {
            let capacity = s.capacity.map(|c| Expected {
                low: c.quantiles.p25,
                median: c.quantiles.p50,
                confidence: c.confidence.into(),
            });
            rows.push(Foretold { from: time(s.from_s), capacity });
        }
        rows.extend(vector.segments.last().map(|s| Foretold { from: time(s.to_s), capacity: None }));
        rows
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use weir_coverage::{Capacity, Level, Quantiles, Segment};
        use weir_units::DataRate;

        #[test]
        fn an_answer_becomes_a_table_of_rates() {
            let rate = DataRate::from_kbps(400);
            let quantiles = Quantiles::from_values([rate; 5]);
            let known = Capacity { quantiles, rtt_ms: None, loss: None, confidence: 0.5, level: Level::Cell };
            let segments = vec![
                Segment { from_s: 0.0, to_s: 5.0, capacity: Some(known) },
                Segment { from_s: 5.0, to_s: 9.0, capacity: None },
            ];
            let rows = foretold(&CapacityVector { segments });
            let capacity = Some(Expected { low: rate, median: rate, confidence: 0.5 });
            let row = |s, capacity| Foretold { from: TimeDelta::from_secs(s), capacity };
            assert_eq!(rows, [row(0, capacity), row(5, None), row(9, None)]);
        }
    }
}

#[cfg(not(feature = "coverage"))]
mod service {
    use super::{Failure, Foretold, MapArgs, wrong};

    /// There is no client in this build.
    pub(super) fn rows(_: &str, _: &MapArgs) -> Result<Vec<Foretold>, Failure> {
        Err(wrong("a service needs a build with --features coverage; a file does not"))
    }
}
