//! Look-aheads, and parts of the map for clients that look themselves.

use super::extract::Json;
use crate::lookahead::{Area, LookaheadError, Route};
use crate::server::problem::Problem;
use crate::server::shared::{Caller, Shared};
use crate::{CachedPart, CapacityVector, Cell, Filter, Map, Operator, Resolution, Technology};
use axum::extract::{Path, RawQuery, State};
use axum::http::StatusCode;
use std::sync::Arc;

/// Most cells of one download.
const MAX_PART: usize = 20_000;

/// A part of the map, as clients keep it.
pub type MapPart = CachedPart;

fn look(
    shared: &Shared,
    caller: &Caller,
    look: impl FnOnce(&Map) -> Result<CapacityVector, LookaheadError>,
) -> Result<axum::Json<CapacityVector>, Problem> {
    shared.take_look(caller, 1.0)?;
    let begin = shared.clock.elapsed();
    let vector = look(&shared.map());
    shared.metrics.looks.observe(shared.clock.elapsed().saturating_since(begin).as_secs_f64());
    vector.map(axum::Json).map_err(|e| Problem::bad(e.to_string()))
}

/// Looks ahead along a route
#[utoipa::path(post, path = "/v1/lookahead/route", request_body = Route, tag = "look-ahead", responses(
    (status = 200, description = "The capacity over time", body = CapacityVector),
    (status = 400, description = "No route"),
    (status = 401, description = "No valid key"),
    (status = 429, description = "Too many: again after Retry-After"),
))]
pub(crate) async fn route(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Json(request): Json<Route>,
) -> Result<axum::Json<CapacityVector>, Problem> {
    look(&shared, &caller, |map| request.look(map, shared.now()))
}

/// Looks ahead in the sector of a moving end
#[utoipa::path(post, path = "/v1/lookahead/area", request_body = Area, tag = "look-ahead", responses(
    (status = 200, description = "The capacity over time", body = CapacityVector),
    (status = 400, description = "No area"),
    (status = 401, description = "No valid key"),
    (status = 429, description = "Too many: again after Retry-After"),
))]
pub(crate) async fn area(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Json(request): Json<Area>,
) -> Result<axum::Json<CapacityVector>, Problem> {
    look(&shared, &caller, |map| request.look(map, shared.now()))
}

/// Reads `operator` and `technology` of a query.
fn network(query: Option<&str>) -> Result<Filter, Problem> {
    let mut network = Filter::default();
    for pair in query.unwrap_or_default().split('&').filter(|p| !p.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        match name {
            "operator" => network.operator = Some(value.parse::<Operator>().map_err(Problem::bad)?),
            "technology" => {
                let known = serde_json::from_value::<Technology>(value.into());
                network.technology = Some(known.map_err(|e| Problem::bad(e.to_string()))?);
            }
            _ => return Err(Problem::bad("the parameters are operator and technology")),
        }
    }
    Ok(network)
}

/// Capacities of all cells inside a coarser one
///
/// For a client that looks ahead itself: nobody learns of its way then but in which part of the country it is.
#[utoipa::path(get, path = "/v1/map/{cell}", tag = "look-ahead",
    params(
        ("cell" = String, Path, description = "An H3 cell, four or five steps coarser than the map's: about 10 km across by default"),
        ("operator" = Option<String>, Query, description = "One operator, or all taken together"),
        ("technology" = Option<Technology>, Query, description = "One technology, or all taken together"),
    ),
    responses(
        (status = 200, description = "The cells that are known", body = MapPart),
        (status = 400, description = "No cell, or one that is too large"),
        (status = 401, description = "No valid key"),
        (status = 429, description = "Too many: again after Retry-After"),
    ),
)]
pub(crate) async fn part(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Path(cell): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<axum::Json<MapPart>, Problem> {
    let cell: Cell =
        cell.parse().map_err(|e: crate::CellError| Problem::new(StatusCode::BAD_REQUEST, e.to_string()))?;
    let network = network(query.as_deref())?;
    let resolution = shared.config.map.resolution;
    let steps = i16::from(u8::from(resolution)) - i16::from(u8::from(cell.resolution()));
    if !(0..=5).contains(&steps) {
        let coarsest = Resolution::try_from(u8::from(resolution).saturating_sub(5)).unwrap_or(Resolution::Zero);
        return Err(Problem::bad(format!("a part has a cell of resolution {coarsest} to {resolution}")));
    }
    // A download costs as much as ten look-aheads.
    shared.take_look(&caller, 10.0)?;
    let now = shared.now();
    let map = shared.map();
    let cells = map.cells_in(cell, &network, now, MAX_PART);
    Ok(axum::Json(MapPart { made_ms: now, area: cell, resolution: u8::from(map.resolution()), network, cells }))
}
