//! Subscriptions of the page, over a WebSocket: regions of its window as they change, and the reports of its own key.

use super::connections::Place;
use super::problem::Problem;
use super::regions::{Overview, RegionShown, Regions, RegionsRequest, overview, show};
use super::shared::{Caller, Reported, Sample, Shared};
use super::socket::{Counted, Event, Line, bounded};
use crate::{Cell, Region, WallTime};
use axum::Extension;
use axum::extract::State;
use axum::extract::ws::{WebSocket, WebSocketUpgrade};
use axum::response::Response;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use weir_units::{TimeDelta, Timestamp};

/// Shown values decay also where nobody reports: after this long it is computed again.
const STALE: TimeDelta = TimeDelta::from_secs(60);

/// A page's message.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Said {
    /// Begins to watch regions, or others than before.
    Watch(RegionsRequest),
    /// Begins to follow what a device of this key reports; nothing, with `null`.
    Follow {
        /// The name of a fleet's device, empty for a key of one device.
        device: Option<String>,
    },
}

/// An answer to a page.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Answered<'a> {
    /// All regions of the window.
    Regions(Regions),
    /// Regions of the window that have changed since.
    Changes { made_ms: WallTime, regions: Vec<RegionShown>, gone: Vec<Cell> },
    /// Samples that the device followed has reported.
    Reports { reports: &'a [Sample] },
}

/// Follows regions as they change, and one's own reports (WebSocket)
///
/// The caller sends `{"type": "watch", "window": …, …}` with the fields of RegionsRequest, and gets `{"type": "regions", …}`
/// (Regions), then `{"type": "changes", "regions": […], "gone": […]}` at most each five seconds. With
/// `{"type": "follow", "device": "NAME"}` it gets what that device of its own key reports, as `{"type": "reports", …}`.
/// The key is in `Authorization`, or in the subprotocols as `weir.coverage, bearer.KEY`.
#[utoipa::path(get, path = "/v1/live", tag = "page", responses(
    (status = 101, description = "The subscription"),
    (status = 401, description = "No valid key"),
    (status = 429, description = "Too many subscriptions"),
))]
pub(super) async fn live(
    State(shared): State<Arc<Shared>>,
    Extension(place): Extension<Arc<Place>>,
    caller: Caller,
    upgrade: WebSocketUpgrade,
) -> Result<Response, Problem> {
    let ends = Counted::begin(&shared, &caller)?;
    let all = || Problem::busy("too many pages follow the map", TimeDelta::from_secs(60));
    let page = Arc::clone(&shared.pages).try_acquire_owned().map_err(|_| all())?;
    Ok(bounded(upgrade).on_upgrade(move |socket| async move {
        tokio::select! {
            () = Page::new(socket, &shared, &caller, &place).run() => {}
            () = place.gives_way() => {}
        }
        drop((ends, page, place));
    }))
}

/// The window that a page watches, and the regions it was sent.
struct Watch {
    request: RegionsRequest,
    sent: BTreeMap<Cell, Region>,
    resolution: Option<u8>,
    /// The map's changes that are in `sent`.
    changes: u64,
    at: Timestamp,
}

struct Page<'a> {
    line: Line<'a>,
    watch: Option<Watch>,
    device: Option<String>,
}

impl<'a> Page<'a> {
    fn new(socket: WebSocket, shared: &'a Shared, caller: &'a Caller, place: &'a Place) -> Self {
        Self { line: Line::new(socket, shared, caller, place).with_reports(), watch: None, device: None }
    }

    /// Serves until the page or the service ends it.
    async fn run(mut self) {
        while let Some(event) = self.line.next().await {
            let goes_on = match event {
                Event::Text(text) => self.hear(&text).await,
                Event::Reported(reported) => self.pass_on(&reported).await,
                Event::Refresh => self.refresh().await,
            };
            if !goes_on {
                break;
            }
        }
        self.line.close().await;
    }

    async fn hear(&mut self, text: &str) -> bool {
        match serde_json::from_str(text) {
            Ok(Said::Watch(request)) => {
                let at = self.line.heard;
                self.watch = Some(Watch { request, sent: BTreeMap::new(), resolution: None, changes: 0, at });
                self.look().await
            }
            Ok(Said::Follow { device }) => {
                self.device = device;
                true
            }
            Err(e) => self.line.refuse(&e.to_string()).await,
        }
    }

    async fn pass_on(&mut self, reported: &Reported) -> bool {
        let own = reported.key == self.line.caller.key && self.device.as_deref() == Some(reported.device.as_str());
        !own || self.line.send(&Answered::Reports { reports: &reported.samples }).await
    }

    async fn refresh(&mut self) -> bool {
        let now = self.line.shared.clock.elapsed();
        let changes = self.line.shared.changes.load(Ordering::Relaxed);
        let due = |w: &Watch| w.changes != changes || now.saturating_since(w.at) > STALE;
        !self.watch.as_ref().is_some_and(due) || self.look().await
    }

    /// Looks at the map, and sends what is new.
    async fn look(&mut self) -> bool {
        let Some(mut watch) = self.watch.take() else { return true };
        let changes = self.line.shared.changes.load(Ordering::Relaxed);
        let next = match overview(self.line.shared, self.line.caller, &watch.request).await {
            Ok(next) => next,
            Err(problem) => {
                // The next turn asks again.
                watch.changes = changes.wrapping_sub(1);
                self.watch = Some(watch);
                return self.line.refuse(problem.detail()).await;
            }
        };
        let first = watch.resolution != Some(u8::from(next.resolution));
        let sent = if first {
            self.line.send(&Answered::Regions(next.shown())).await
        } else {
            self.changes(&watch, &next).await
        };
        let at = self.line.shared.clock.elapsed();
        let resolution = Some(u8::from(next.resolution));
        let known = if first { next.known } else { merged(watch.sent, next.known) };
        self.watch = Some(Watch { request: watch.request, sent: known, resolution, changes, at });
        sent
    }

    async fn changes(&mut self, watch: &Watch, next: &Overview) -> bool {
        let new = next.known.iter().filter(|(cell, region)| watch.sent.get(cell).is_none_or(|s| differs(s, region)));
        let regions = show(new);
        let gone: Vec<Cell> = watch.sent.keys().filter(|cell| !next.known.contains_key(cell)).copied().collect();
        if regions.is_empty() && gone.is_empty() {
            return true;
        }
        self.line.send(&Answered::Changes { made_ms: next.made, regions, gone }).await
    }
}

/// The regions of the page after the changes; later values are compared with those sent last.
fn merged(sent: BTreeMap<Cell, Region>, mut next: BTreeMap<Cell, Region>) -> BTreeMap<Cell, Region> {
    for (cell, region) in &mut next {
        if let Some(before) = sent.get(cell)
            && !differs(before, region)
        {
            *region = *before;
        }
    }
    next
}

/// Whether a change can be seen: 2 % of a quantile, the accuracy of the sketches, or 2 % of confidence.
fn differs(before: &Region, after: &Region) -> bool {
    let (a, b) = (&before.capacity, &after.capacity);
    let rates = a.quantiles.values().into_iter().zip(b.quantiles.values());
    let moved = rates.map(|(a, b)| (a.as_bps_f64(), b.as_bps_f64())).any(|(a, b)| (a - b).abs() > 0.02 * a.max(b));
    moved || (a.confidence - b.confidence).abs() > 0.02 || before.devices != after.devices || a.level != b.level
}
