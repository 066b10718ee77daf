//! Regions of a window onto the map.

use super::extract::Json;
use crate::server::problem::Problem;
use crate::server::regions::{Regions, RegionsRequest, overview};
use crate::server::shared::{Caller, Shared};
use axum::extract::State;
use std::sync::Arc;

/// Capacities of the regions in a window
///
/// Large windows are answered with coarser cells, under the same rule: a region answers if enough devices have reported. Of
/// cells that are more than two steps coarser than the map's, 49 of the map's cells are taken for all.
#[utoipa::path(post, path = "/v1/regions", request_body = RegionsRequest, tag = "page", responses(
    (status = 200, description = "The regions that are known, 4,000 at most", body = Regions),
    (status = 400, description = "No window"),
    (status = 401, description = "No valid key"),
    (status = 429, description = "Too many: again after Retry-After"),
))]
pub(crate) async fn regions(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Json(request): Json<RegionsRequest>,
) -> Result<axum::Json<Regions>, Problem> {
    let begin = shared.clock.elapsed();
    let regions = overview(&shared, &caller, &request).await?.shown();
    shared.metrics.overviews.observe(shared.clock.elapsed().saturating_since(begin).as_secs_f64());
    Ok(axum::Json(regions))
}
