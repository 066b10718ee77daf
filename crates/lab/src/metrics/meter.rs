//! Metrics of one flow.

use super::burstiness::BurstMeter;
use super::outline::RowCounts;
use super::{FlowEnd, FlowInfo, frames::FlowFrames, instant, seconds};
use crate::histogram::Histogram;
use crate::results::{Distribution, FlowKind, FlowSummary, PacketCounts, Probing, Rates, RepairSummary, Settling};
use crate::series::FlowSeries;
use weir_units::{DataRate, TimeDelta, Timestamp};

/// Fraction of the fair share that ends ramp-up.
const RAMP_UP_SHARE: f64 = 0.9;
/// Relative distance from the fair share within which a flow has settled.
const SETTLE_BAND: f64 = 0.2;
/// How long it must stay there.
const SETTLE_HOLD: TimeDelta = TimeDelta::from_secs(2);
/// Time over which trailing rates are taken.
pub(super) const TRAILING: TimeDelta = TimeDelta::from_secs(1);

/// Monotonic counters; an interval is the difference of two copies.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Totals {
    pub(super) generated: u64,
    pub(super) sent: u64,
    pub(super) wire: u64,
    pub(super) received: u64,
    pub(super) discarded: u64,
    /// Bytes of repair packets sent; part of `sent` and `wire`.
    pub(super) repair: u64,
    pub(super) repair_sent: u64,
    pub(super) repair_received: u64,
    /// Sum of one-way delays in ns.
    pub(super) delay: u128,
    pub(super) packets: PacketCounts,
}

impl Totals {
    /// With `header` bytes more in each packet.
    fn with_headers(mut self, header: u64) -> Self {
        self.sent += header * (self.packets.sent + self.repair_sent);
        self.received += header * self.packets.received;
        self.discarded += header * self.packets.discarded;
        self.repair += header * self.repair_sent;
        self
    }
    pub(super) fn goodput(&self) -> u64 {
        self.received.saturating_sub(self.discarded)
    }
    /// Bytes made by the source; for flows without a source that reports them (TCP, UDP) the bytes sent.
    pub(super) fn offered(&self) -> u64 {
        if self.generated > 0 { self.generated } else { self.sent }
    }
    /// Bytes that `utilisation` counts. Nothing says what a TCP flow would have liked to send, and a UDP flow may send many
    /// times what the link carries: what arrived stands for both.
    pub(super) fn used(&self, kind: FlowKind) -> u64 {
        if matches!(kind, FlowKind::Tcp | FlowKind::Udp) { self.goodput() } else { self.offered() }
    }
    pub(super) fn lost(&self) -> u64 {
        self.packets.dropped_queue + self.packets.dropped_aqm + self.packets.dropped_channel
    }
}

/// Metrics of one flow.
#[derive(Debug)]
// Field order: data used by each packet is adjacent, so that few cache lines are touched with many flows.
#[repr(C)]
pub(super) struct Meter {
    pub(super) last_sent: Option<Timestamp>,
    pub(super) totals: Totals,
    row_delay_max: TimeDelta,
    pub(super) delay: Histogram,
    pub(super) info: FlowInfo,
    /// Stop, or the end of the run.
    pub(super) stop: Timestamp,
    pub(super) frames: FlowFrames,
    pub(super) series: Option<FlowSeries>,
    /// Totals at the last row.
    row: Totals,
    /// Totals at the start of the tail.
    pub(super) tail: Totals,
    target: Option<DataRate>,
    target_since: Timestamp,
    /// Integral of the target in bit/s times ns, and the time it covers in ns.
    target_area: (f64, f64),
    /// Goodput bytes of the rows that make the last second, a ring.
    ring: Vec<u64>,
    ring_at: usize,
    ring_sum: u64,
    second: Second,
    ramp_up: Option<TimeDelta>,
    settling: Vec<Settling>,
    next_change: usize,
    /// When the last entry of `settling` began.
    changed_at: Timestamp,
    in_band_since: Option<Timestamp>,
    pub(super) end: FlowEnd,
    /// Only if it is asked for.
    pub(super) bursts: Option<Box<BurstMeter>>,
    /// Index of the next internal, since a controller reports them in the same order each time.
    internal_at: usize,
}

/// Welford's mean and variance of the rate in whole seconds.
#[derive(Debug, Default)]
struct Second {
    rows: usize,
    from: Option<u64>,
    n: f64,
    mean: f64,
    m2: f64,
}

/// Context of a row's metrics.
#[derive(Clone, Copy)]
pub(super) struct RowContext<'a> {
    pub(super) end: Timestamp,
    pub(super) length: TimeDelta,
    /// The fair share, or what the flow itself may send where that is lower.
    pub(super) within_bps: f64,
    pub(super) changes: &'a [(Timestamp, DataRate)],
}

impl Meter {
    pub(super) fn new(info: FlowInfo, end: Timestamp, series: bool, rows_a_second: usize) -> Self {
        let series = series.then(|| FlowSeries {
            name: info.name.clone(),
            controller: info.controller.clone(),
            ..<_>::default()
        });
        Self {
            stop: info.stop.map_or(end, |s| s.min(end)),
            info,
            totals: Totals::default(),
            delay: Histogram::new(),
            frames: FlowFrames::default(),
            series,
            row: Totals::default(),
            row_delay_max: TimeDelta::ZERO,
            tail: Totals::default(),
            target: None,
            target_since: Timestamp::ZERO,
            target_area: (0.0, 0.0),
            ring: vec![0; rows_a_second],
            ring_at: 0,
            ring_sum: 0,
            last_sent: None,
            second: Second::default(),
            ramp_up: None,
            settling: Vec::new(),
            next_change: 0,
            changed_at: Timestamp::ZERO,
            in_band_since: None,
            end: FlowEnd::default(),
            bursts: None,
            internal_at: 0,
        }
    }
    /// The same meter, with a measurement of burstiness if `measured`.
    pub(super) fn with_burstiness(self, measured: bool) -> Self {
        Self { bursts: measured.then(Box::default), ..self }
    }
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.ring.capacity() + self.settling.capacity() + usize::from(self.series.is_some())
    }
    /// The counters with the headers that results count.
    pub(super) fn counted(&self) -> Totals {
        self.totals.with_headers(self.info.reported_headers)
    }
    pub(super) fn is_active(&self, t: Timestamp) -> bool {
        t > self.info.start && t <= self.stop
    }
    #[inline]
    pub(super) fn on_delay(&mut self, d: TimeDelta) {
        self.delay.record(d.as_nanos().unsigned_abs());
        self.totals.delay += u128::from(d.as_nanos().unsigned_abs());
        self.row_delay_max = self.row_delay_max.max(d);
    }
    /// The current target, in bit/s.
    pub(super) fn target_bps(&self) -> Option<f64> {
        self.target.map(DataRate::as_bps_f64)
    }
    pub(super) fn on_target(&mut self, now: Timestamp, rate: DataRate) {
        self.hold_target(now);
        self.target = Some(rate);
    }
    /// Adds the duration of the current target to its mean.
    fn hold_target(&mut self, now: Timestamp) {
        let from = self.target_since.max(self.info.start);
        let held = now.min(self.stop).saturating_since(from).as_nanos() as f64;
        if let Some(rate) = self.target {
            self.target_area.0 += rate.as_bps_f64() * held;
            self.target_area.1 += held;
        }
        self.target_since = now;
    }
    pub(super) fn on_internal(&mut self, name: &'static str, value: f64) {
        let Some(series) = &mut self.series else { return };
        let row = series.target_bps.len();
        let at = match series.internals.get(self.internal_at) {
            Some((known, _)) if *known == name => self.internal_at,
            _ => series.internals.iter().position(|(known, _)| *known == name).unwrap_or_else(|| {
                series.internals.push((name.into(), Vec::new()));
                series.internals.len() - 1
            }),
        };
        let column = &mut series.internals[at].1;
        // The current row follows the completed ones; a second value in it replaces the first.
        column.resize(row, f64::NAN);
        column.push(value);
        self.internal_at = (at + 1) % series.internals.len();
    }
    /// Goodput over the last second in bit/s.
    pub(super) fn trailing_bps(&self, row: TimeDelta) -> f64 {
        self.ring_sum as f64 * 8.0 / (seconds(row) * self.ring.len() as f64)
    }
    /// Bytes of goodput in the row that ends now; call before [`Self::end_row`].
    pub(super) fn row_goodput(&self) -> u64 {
        self.counted().goodput().saturating_sub(self.row.goodput())
    }
    /// Counts for the outline of the row that ends now; call before [`Self::end_row`].
    pub(super) fn row_counts(&self, end: Timestamp) -> RowCounts {
        let (t, r) = (&self.counted(), &self.row);
        let received = t.packets.received - r.packets.received;
        let delay_ms = if received > 0 { (t.delay - r.delay) as f64 * 1e-6 / received as f64 } else { f64::NAN };
        RowCounts {
            is_active: self.is_active(end),
            sent_bytes: t.sent - r.sent,
            sent: t.packets.sent - r.packets.sent,
            lost: t.lost() - r.lost(),
            delay_ms,
        }
    }
    /// Wire bytes sent in the row that ends now; call before [`Self::end_row`].
    pub(super) fn row_wire(&self) -> u64 {
        self.totals.wire - self.row.wire
    }
    /// A stream's share of the target at the row's end.
    pub(super) fn on_stream(&mut self, stream: usize, name: &str, bps: f64) {
        let Some(series) = &mut self.series else { return };
        let row = series.target_bps.len();
        set(&mut series.streams, stream, row, || format!("share_bps:{name}"), bps);
    }
    /// Records the rate sent on a path in the row.
    pub(super) fn on_path(&mut self, path: usize, name: &str, bps: f64) {
        let Some(series) = &mut self.series else { return };
        let row = series.target_bps.len();
        set(&mut series.paths, path, row, || format!("path_bps:{name}"), bps);
    }

    /// Ends a row: updates the trailing rate, detects ramp-up and settling, writes the series.
    pub(super) fn end_row(&mut self, ctx: RowContext<'_>) {
        let goodput = self.row_goodput();
        self.ring_sum = self.ring_sum + goodput - self.ring[self.ring_at];
        self.ring[self.ring_at] = goodput;
        self.ring_at = (self.ring_at + 1) % self.ring.len();
        if self.is_active(ctx.end) {
            self.watch(ctx);
        }
        self.end_second(ctx);
        if self.series.is_some() {
            self.push_row(ctx, goodput);
        }
        self.row = self.counted();
        self.row_delay_max = TimeDelta::ZERO;
    }
    fn watch(&mut self, ctx: RowContext<'_>) {
        let rate = self.trailing_bps(ctx.length);
        if self.ramp_up.is_none() && ctx.within_bps > 0.0 && rate >= RAMP_UP_SHARE * ctx.within_bps {
            self.ramp_up = Some(ctx.end - self.info.start);
        }
        while let Some(&(at, capacity)) = ctx.changes.get(self.next_change).filter(|c| c.0 < ctx.end) {
            self.next_change += 1;
            self.in_band_since = None;
            if at > self.info.start {
                let capacity_bps = capacity.as_bps_f64();
                self.changed_at = at;
                self.settling.push(Settling { at_s: instant(at), capacity_bps, settled_after_s: None });
            }
        }
        let Some(open) = self.settling.last_mut().filter(|s| s.settled_after_s.is_none()) else { return };
        let in_band = (rate - ctx.within_bps).abs() <= SETTLE_BAND * ctx.within_bps;
        if !in_band || ctx.end - self.changed_at < TRAILING {
            self.in_band_since = None;
            return;
        }
        let since = *self.in_band_since.get_or_insert(ctx.end);
        if ctx.end - since >= SETTLE_HOLD {
            open.settled_after_s = Some(seconds(since - self.changed_at));
        }
    }
    /// Adds the second that ends with this row to the rate's variation, if the flow was active throughout.
    fn end_second(&mut self, ctx: RowContext<'_>) {
        self.second.rows += 1;
        if self.second.rows < self.ring.len() {
            return;
        }
        self.second.rows = 0;
        let total = self.totals.offered();
        let from = self.second.from.replace(total);
        let begun = ctx.end - ctx.length * self.ring.len() as i64;
        if let Some(from) = from.or(Some(0)).filter(|_| begun >= self.info.start && ctx.end <= self.stop) {
            let x = total.saturating_sub(from) as f64;
            self.second.n += 1.0;
            let d = x - self.second.mean;
            self.second.mean += d / self.second.n;
            self.second.m2 += d * (x - self.second.mean);
        }
    }
    fn push_row(&mut self, ctx: RowContext<'_>, goodput: u64) {
        let (t, r) = (&self.counted(), &self.row);
        let length = seconds(ctx.length);
        let bps = |bytes: u64| bytes as f64 * 8.0 / length;
        let ratio = |part: u64, whole: u64| if whole > 0 { (part as f64 / whole as f64).min(1.0) } else { f64::NAN };
        let received = t.packets.received - r.packets.received;
        let delay = if received > 0 { (t.delay - r.delay) as f64 * 1e-6 / received as f64 } else { f64::NAN };
        let delay_max = if received > 0 { self.row_delay_max.as_millis_f64() } else { f64::NAN };
        let active = ctx.end > self.info.start && ctx.end - ctx.length < self.stop;
        let target = self.target.filter(|_| active).map_or(f64::NAN, DataRate::as_bps_f64);
        let (generated, sent) = (bps(t.generated - r.generated), bps(t.sent - r.sent));
        let repair = bps(t.repair - r.repair);
        let loss = ratio(t.lost() - r.lost(), t.packets.sent - r.packets.sent);
        let discard = ratio(t.packets.discarded - r.packets.discarded, received);
        let Some(series) = &mut self.series else { return };
        series.target_bps.push(target);
        series.generated_bps.push(generated);
        series.sent_bps.push(sent);
        series.repair_bps.push(repair);
        series.goodput_bps.push(bps(goodput));
        series.delay_ms.push(delay);
        series.delay_max_ms.push(delay_max);
        series.loss.push(loss);
        series.discard.push(discard);
        let rows = series.target_bps.len();
        let parts = series.streams.iter_mut().chain(&mut series.paths);
        parts.for_each(|(_, column)| column.resize(rows, f64::NAN));
        series.internals.iter_mut().for_each(|(_, column)| column.resize(rows, f64::NAN));
    }
    /// The flow's summary and its series. `capacity_bits` is the capacity of its bottleneck while it was active.
    pub(super) fn finish(
        mut self,
        end: Timestamp,
        tail: TimeDelta,
        capacity_bits: f64,
    ) -> (FlowSummary, Option<FlowSeries>) {
        self.hold_target(end);
        let stop = self.stop.min(end);
        let active = seconds(stop.saturating_since(self.info.start));
        let t = self.counted();
        let bps = |bytes: u64| if active > 0.0 { bytes as f64 * 8.0 / active } else { 0.0 };
        let share = |part: u64, whole: u64| if whole > 0 { part as f64 / whole as f64 } else { 0.0 };
        let of_capacity = |bytes: u64| (capacity_bits > 0.0).then(|| bytes as f64 * 8.0 / capacity_bits);
        let tail_bytes = t.goodput().saturating_sub(self.tail.goodput());
        let tail_s = seconds(tail);
        let frames = self.frames.finish(&self.info, &mut self.end, stop);
        let s = &self.second;
        let summary = FlowSummary {
            kind: self.info.kind,
            adapts: self.info.adapts,
            bottleneck: String::new(),
            start_s: instant(self.info.start),
            stop_s: instant(stop),
            rates: Rates {
                target_bps: (self.target_area.1 > 0.0).then(|| self.target_area.0 / self.target_area.1),
                generated_bps: bps(t.generated),
                sent_bps: bps(t.sent),
                wire_bps: bps(t.wire),
                received_bps: bps(t.received),
                goodput_bps: bps(t.goodput()),
                repair_bps: bps(t.repair),
                active_bps: match self.end.transfers {
                    // A bulk flow always has data to send.
                    None => (self.info.kind == FlowKind::Tcp).then(|| bps(t.goodput())),
                    Some(transfers) => transfers.active_bps,
                },
            },
            utilisation: of_capacity(t.used(self.info.kind)),
            utilisation_goodput: of_capacity(t.goodput()),
            one_way_delay_ms: Distribution::of(&self.delay, 1e-6),
            rtt_ms: self.end.rtt_ms,
            loss: share(t.lost(), t.packets.sent),
            discard: share(t.packets.discarded, t.packets.received),
            packets: t.packets,
            ramp_up_s: self.ramp_up.map(seconds),
            settling: self.settling,
            rate_variation: (s.n >= 2.0 && s.mean > 0.0).then(|| (s.m2 / (s.n - 1.0)).sqrt() / s.mean),
            burstiness: (self.bursts.take())
                .and_then(|b| b.finish(stop.saturating_since(self.info.start)))
                .map(Box::new),
            tail_goodput_bps: if tail_s > 0.0 { tail_bytes as f64 * 8.0 / tail_s } else { 0.0 },
            playout_deadline_ms: self.info.playout_deadline.map(TimeDelta::as_millis_f64),
            frames,
            transfers: self.end.transfers,
            streams: core::mem::take(&mut self.end.streams),
            multipath: self.end.multipath.take(),
            coded: self.end.coded,
            quality: self.end.quality,
            picture_quantiles: self.end.picture_quantiles.take(),
            repair: (t.repair_sent > 0).then(|| self.end.repair(&t)),
            probing: self.end.probing(),
            tripped: self.end.tripped.map(|(at, rule)| (instant(at), rule)),
            internals: self.end.internals.iter().filter(|i| i.1.is_finite()).map(|i| (i.0.into(), i.1)).collect(),
            name: self.info.name,
            controller: self.info.controller,
        };
        (summary, self.series)
    }
}

/// Puts a value into row `row` of the column at `index`, which gets its name with its first value.
fn set(columns: &mut Vec<(String, Vec<f64>)>, index: usize, row: usize, name: impl Fn() -> String, value: f64) {
    while columns.len() <= index {
        columns.push((String::new(), Vec::new()));
    }
    let (known, column) = &mut columns[index];
    if known.is_empty() {
        *known = name();
    }
    column.resize(row, f64::NAN);
    column.push(value);
}

impl FlowEnd {
    fn repair(&self, t: &Totals) -> RepairSummary {
        let share = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
        let (lost, recovered) = (t.lost(), self.recovered);
        RepairSummary {
            sent: t.repair_sent,
            received: t.repair_received,
            recovered,
            frames_recovered: self.frames_recovered,
            frames_unrecovered: self.frames_unrecovered,
            ffre: share(self.frames_recovered, self.frames_recovered + self.frames_unrecovered),
            residual_loss: share(lost.saturating_sub(recovered), t.packets.sent).unwrap_or(0.0),
            recovery: share(recovered, lost),
            delay_ms: self.recovery_delay_ms,
        }
    }
    /// From the counters of controllers that probe by forward error correction.
    fn probing(&self) -> Option<Probing> {
        let count = |name| self.internals.iter().find(|i| i.0 == name).map(|i| i.1 as u64);
        let enabled = count("fec_enabled")?;
        let (raised, kept, failed) = (count("fec_raised")?, count("fec_kept")?, count("fec_failed")?);
        let frcc = (enabled > 0).then(|| (raised + kept) as f64 / enabled as f64);
        Some(Probing { enabled, raised, kept, failed, frcc })
    }
}
