//! Metrics in Prometheus's text format.

use crate::MapStats;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// Of a request that was answered.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Answer {
    pub(super) route: String,
    pub(super) status: u16,
}

/// Of an update.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Outcome {
    pub(super) outcome: &'static str,
}

#[derive(Debug)]
pub(super) struct Metrics {
    registry: Registry,
    pub(super) requests: Family<Answer, Counter>,
    pub(super) updates: Family<Outcome, Counter>,
    pub(super) commits: Histogram,
    pub(super) commit_updates: Histogram,
    pub(super) looks: Histogram,
    pub(super) overviews: Histogram,
    pub(super) store_errors: Counter,
    pub(super) connections: Gauge,
    pub(super) refused_connections: Counter,
    pub(super) subscribers: Gauge,
    pub(super) queued: Gauge,
    pub(super) database_bytes: Gauge,
    cells: Gauge,
    entries: Gauge,
    devices: Gauge,
}

/// Bounds of histograms of seconds: from 100 µs to 10 s, each about 2.5 times the one before.
const SECONDS: [f64; 13] = [1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 2e-2, 5e-2, 0.1, 0.5, 2.5, 10.0];

impl Metrics {
    pub(super) fn new() -> Self {
        let mut registry = Registry::with_prefix("weir_coverage");
        let metrics = Self {
            registry: Registry::default(),
            requests: Family::default(),
            updates: Family::default(),
            commits: Histogram::new(SECONDS),
            commit_updates: Histogram::new([1.0, 10.0, 100.0, 1_000.0, 10_000.0, 100_000.0]),
            looks: Histogram::new(SECONDS),
            overviews: Histogram::new(SECONDS),
            store_errors: Counter::default(),
            connections: Gauge::default(),
            refused_connections: Counter::default(),
            subscribers: Gauge::default(),
            queued: Gauge::default(),
            database_bytes: Gauge::default(),
            cells: Gauge::default(),
            entries: Gauge::default(),
            devices: Gauge::default(),
        };
        let m = &metrics;
        registry.register("requests", "Requests answered, by route and status", m.requests.clone());
        registry.register("updates", "Updates received, by what became of them", m.updates.clone());
        registry.register("commit_seconds", "Time of transactions", m.commits.clone());
        registry.register("commit_updates", "Updates of transactions", m.commit_updates.clone());
        registry.register("look_seconds", "Time of look-aheads in the map", m.looks.clone());
        registry.register("overview_seconds", "Time of answers about windows", m.overviews.clone());
        registry.register("store_errors", "Transactions that failed", m.store_errors.clone());
        registry.register("connections", "Connections open", m.connections.clone());
        registry.register("refused_connections", "Connections closed by a limit", m.refused_connections.clone());
        registry.register("subscribers", "WebSocket subscriptions", m.subscribers.clone());
        registry.register("queued_updates", "Updates that wait to be written", m.queued.clone());
        registry.register("database_bytes", "Size of the database", m.database_bytes.clone());
        registry.register("map_cells", "Cells of the map", m.cells.clone());
        registry.register(
            "map_entries",
            "Devices by cell, operator, technology and part of the week",
            m.entries.clone(),
        );
        registry.register("map_devices", "Devices of the map", m.devices.clone());
        Self { registry, ..metrics }
    }

    pub(super) fn count_updates(&self, outcome: &'static str, count: usize) {
        if count > 0 {
            self.updates.get_or_create(&Outcome { outcome }).inc_by(count as u64);
        }
    }

    pub(super) fn text(&self, map: MapStats) -> String {
        let number = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
        self.cells.set(number(map.cells));
        self.entries.set(number(map.entries));
        self.devices.set(number(map.devices));
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}
