//! The recorder: processes events and returns the result.

use super::fairness::FairnessMeter;
use super::links::LinkMeter;
use super::meter::{Meter, RowContext, TRAILING};
use super::outline::OutlineMeter;
use super::rates_over_time::{RatesOverTimeMeter, RowGoodput};
use super::windows::WindowMeter;
use super::{DropCause, FlowEnd, FrameRecord, RecorderConfig, instant, seconds};
use crate::results::{Distribution, Fairness, FlowKind, LinkSummary, RunResult};
use crate::series::Series;
use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};

/// The tail of a run, unless a quarter of the run is shorter.
const TAIL: TimeDelta = TimeDelta::from_secs(20);
/// Later than every other time.
const NEVER: Timestamp = Timestamp::MAX;

/// Measures one run. Flows and links are identified by their index in the configuration; an index out of range is a bug
/// of the caller and panics. The times of calls never decrease.
///
/// Events exactly at the end of a row or window count into the next one; states (target, link, internals) recorded at
/// that time still count into the one that ends. A runner that reports them at each [`Recorder::next_row`], before the
/// packets of that time, thus has them in the right row.
pub struct Recorder {
    config: RecorderConfig,
    row_length: TimeDelta,
    tail_start: Timestamp,
    meters: Vec<Meter>,
    links: Vec<LinkMeter>,
    windows: Vec<WindowMeter>,
    /// Starts and ends of windows and the start of the tail, latest first.
    edges: Vec<(Timestamp, Edge)>,
    row_end: Timestamp,
    /// The earlier of the next row's end and the next edge.
    boundary: Timestamp,
    time_s: Vec<f64>,
    jain: Vec<f64>,
    fairness: FairnessMeter,
    rates_over_time: RatesOverTimeMeter,
    outline: OutlineMeter,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Edge {
    WindowEnd(usize),
    WindowStart(usize),
    Tail,
}

impl Recorder {
    /// A recorder of one run that begins at time zero.
    pub fn new(config: RecorderConfig) -> Self {
        let end = Timestamp::ZERO + config.duration;
        let row_length = config.sampling.max(TimeDelta::from_millis(1));
        let rows_a_second = (TRAILING.as_nanos() / row_length.as_nanos()).max(1) as usize;
        let tail_start = end - TAIL.min(config.duration / 4);
        let mut edges = vec![(tail_start, Edge::Tail)];
        for (i, w) in config.windows.iter().enumerate() {
            edges.extend([(w.start, Edge::WindowStart(i)), (w.end, Edge::WindowEnd(i))]);
        }
        edges.sort_unstable_by(|a, b| b.cmp(a));
        let mut recorder = Self {
            row_length,
            tail_start,
            meters: (config.flows.iter())
                .map(|f| Meter::new(f.clone(), end, config.series, rows_a_second).with_burstiness(config.burstiness))
                .collect(),
            links: config.links.iter().map(|l| LinkMeter::new(l, config.series)).collect(),
            windows: config.windows.iter().map(|_| WindowMeter::default()).collect(),
            edges,
            row_end: Timestamp::ZERO + row_length,
            boundary: Timestamp::ZERO,
            time_s: Vec::new(),
            jain: Vec::new(),
            rates_over_time: RatesOverTimeMeter::default(),
            outline: OutlineMeter::new(config.flows.len()),
            fairness: FairnessMeter::new(&config.flows, config.links.len()),
            config,
        };
        recorder.set_boundary();
        recorder
    }
    /// The end of the current row: the time to report targets, links and internals.
    pub fn next_row(&self) -> Timestamp {
        self.row_end
    }
    /// Ends the rows and windows that end by `now`, and returns when the next ones do. Between two such times the order of events does not matter.
    pub fn next_boundary(&mut self, now: Timestamp) -> Timestamp {
        self.event(now);
        self.boundary
    }
    /// Whether time series are kept, so that internals are useful.
    pub fn wants_series(&self) -> bool {
        self.config.series
    }
    /// A flow's packet was sent: its RTP bytes (TCP payload), and the same with UDP or TCP and IP headers.
    #[inline]
    pub fn sent(&mut self, flow: usize, now: Timestamp, size: DataSize, wire: DataSize) {
        self.event(now);
        let m = &mut self.meters[flow];
        m.last_sent = Some(now);
        m.totals.sent += size.as_bytes();
        m.totals.wire += wire.as_bytes();
        m.totals.packets.sent += 1;
        if let Some(bursts) = &mut m.bursts {
            bursts.on_sent(m.info.start, now, size);
        }
    }
    /// A flow's repair packet was sent. It counts only in the rates sent.
    pub fn repair_sent(&mut self, flow: usize, now: Timestamp, size: DataSize, wire: DataSize) {
        self.event(now);
        let m = &mut self.meters[flow];
        let t = &mut m.totals;
        t.sent += size.as_bytes();
        t.wire += wire.as_bytes();
        t.repair += size.as_bytes();
        t.repair_sent += 1;
        if let Some(bursts) = &mut m.bursts {
            bursts.on_sent(m.info.start, now, size);
        }
    }
    /// A flow's repair packet has arrived.
    pub fn repair_received(&mut self, flow: usize, now: Timestamp) {
        self.event(now);
        self.meters[flow].totals.repair_received += 1;
    }
    /// A flow's packet sent at `sent_at` was received.
    #[inline]
    pub fn received(&mut self, flow: usize, now: Timestamp, sent_at: Timestamp, size: DataSize) {
        self.event(now);
        let m = &mut self.meters[flow];
        m.totals.received += size.as_bytes();
        m.totals.packets.received += 1;
        m.on_delay(now.saturating_since(sent_at));
    }
    /// A flow's packet was dropped.
    #[inline]
    pub fn dropped(&mut self, flow: usize, now: Timestamp, cause: DropCause) {
        self.event(now);
        let p = &mut self.meters[flow].totals.packets;
        match cause {
            DropCause::Queue => p.dropped_queue += 1,
            DropCause::Aqm => p.dropped_aqm += 1,
            DropCause::Channel => p.dropped_channel += 1,
            DropCause::Sender => p.dropped_sender += 1,
        }
    }
    /// A link has marked a flow's packet CE.
    pub fn marked(&mut self, flow: usize, now: Timestamp) {
        self.event(now);
        self.meters[flow].totals.packets.marked += 1;
    }
    /// The packet last counted by [`Self::received`] was marked CE.
    #[inline]
    pub fn received_marked(&mut self, flow: usize) {
        self.meters[flow].totals.packets.ce_received += 1;
    }
    /// A packet that arrived was of no use: too late for playout.
    #[inline]
    pub fn discarded(&mut self, flow: usize, now: Timestamp, size: DataSize) {
        self.event(now);
        let m = &mut self.meters[flow];
        m.totals.discarded += size.as_bytes();
        m.totals.packets.discarded += 1;
    }
    /// The source has made media.
    #[inline]
    pub fn generated(&mut self, flow: usize, now: Timestamp, size: DataSize) {
        self.event(now);
        let m = &mut self.meters[flow];
        m.totals.generated += size.as_bytes();
        if let Some(bursts) = &mut m.bursts {
            bursts.on_chunk(size);
        }
    }
    /// The controller's target media rate, valid until the next call. A call on each change gives an exact mean.
    pub fn target(&mut self, flow: usize, now: Timestamp, rate: DataRate) {
        self.state(now);
        self.meters[flow].on_target(now, rate);
    }
    /// The fate of a frame of stream number `stream`, 0 for a flow with one; called in each stream's order of capture.
    pub fn frame(&mut self, flow: usize, stream: usize, frame: FrameRecord) {
        self.meters[flow].frames.on_frame(stream, frame);
    }
    /// Bytes in a link's queue and the queueing delay of a packet arriving now, valid until the next call.
    pub fn link(&mut self, link: usize, now: Timestamp, queue: DataSize, delay: TimeDelta) {
        self.state(now);
        self.links[link].set(now, queue, delay);
    }
    /// As `count` calls of [`Self::link`] with an empty queue, the last one at `now`, each `step` after the one before, and no end of a row or
    /// window between them.
    pub fn link_empty(&mut self, link: usize, now: Timestamp, count: u64, step: TimeDelta) {
        self.links[link].set_empty(now, count, step);
        self.state(now);
    }
    /// One of the controller's internals by name; kept only with time series.
    pub fn metric(&mut self, flow: usize, now: Timestamp, name: &'static str, value: f64) {
        if self.config.series {
            self.state(now);
            self.meters[flow].on_internal(name, value);
        }
    }
    /// A stream's share of its flow's target; kept only with time series.
    pub fn stream(&mut self, flow: usize, now: Timestamp, stream: usize, name: &str, rate: DataRate) {
        if self.config.series {
            self.state(now);
            self.meters[flow].on_stream(stream, name, rate.as_bps_f64());
        }
    }
    /// The rate sent on one of a flow's paths in the row that ends; kept only with time series.
    pub fn path(&mut self, flow: usize, now: Timestamp, path: usize, name: &str, rate: DataRate) {
        if self.config.series {
            self.state(now);
            self.meters[flow].on_path(path, name, rate.as_bps_f64());
        }
    }
    /// Sets the values of a flow that are known only at the end of the run.
    pub fn flow_end(&mut self, flow: usize, end: FlowEnd) {
        self.meters[flow].end = end;
    }
    /// Ends the run. Rows and windows truncated by `end` count up to it; a truncated last row is omitted from the
    /// series.
    pub fn finish(mut self, end: Timestamp) -> RunResult {
        self.pass(end);
        for l in &mut self.links {
            l.hold(end);
            l.record();
        }
        while let Some((_, edge)) = self.edges.pop() {
            self.on_edge(end, edge);
        }
        let length = instant(end);
        let links: Vec<LinkSummary> = (self.links.iter().zip(&self.config.links))
            .map(|(m, info)| LinkSummary {
                name: info.name.clone(),
                capacity_bps: Some(info.capacity.bits(Timestamp::ZERO, end) / length)
                    .filter(|&c| c > 0.0 && length > 0.0),
                delay_ms: Distribution::of(&m.delay, 1e-6),
                bytes: Distribution::of(&m.bytes, 1.0),
            })
            .collect();
        let windows = self.windows.into_iter().filter_map(WindowMeter::finish).collect();
        let tail = end.saturating_since(self.tail_start);
        let (mut flows, mut flow_series) = (Vec::new(), Vec::new());
        for (i, m) in self.meters.into_iter().enumerate() {
            self.outline.on_flow_end(i, &m.delay, m.frames.delay().as_ref());
            let capacity = self.config.capacity_bits(&m.info, m.info.start, m.stop.min(end));
            let bottleneck = self.config.links.get(m.info.bottleneck).map_or(String::new(), |l| l.name.clone());
            let (mut summary, series) = m.finish(end, tail, capacity);
            summary.bottleneck = bottleneck;
            flows.push(summary);
            flow_series.extend(series);
        }
        let active: Vec<f64> = flows.iter().filter_map(|f| f.rates.active_bps).collect();
        let tcp_throughput_bps = (!active.is_empty()).then(|| active.iter().sum::<f64>() / active.len() as f64);
        let tcp = || flows.iter().filter(|f| f.kind == FlowKind::Tcp);
        let tcp_goodput_bps = tcp().next().map(|_| tcp().map(|f| f.rates.goodput_bps).sum());
        let tcp_fair_share = self.config.tcp_fair_share(&flows, &links);
        let series = self.config.series.then(|| Series {
            interval_s: seconds(self.row_length),
            time_s: self.time_s,
            flows: flow_series,
            links: self.links.into_iter().filter_map(|l| l.series).collect(),
            jain: self.jain,
        });
        RunResult {
            scenario: self.config.scenario,
            condition: self.config.condition,
            controller: self.config.controller,
            seed: self.config.seed,
            duration_s: length,
            fairness: Fairness {
                tcp_throughput_bps,
                tcp_goodput_bps,
                tcp_fair_share,
                ..self.fairness.finish(&flows, self.tail_start)
            },
            flows,
            queue: links.get(self.config.bottleneck).cloned(),
            links,
            live: None,
            windows,
            rates_over_time: self.rates_over_time.finish(),
            outline: self.outline.finish(),
            series,
        }
    }

    /// Values in vectors that could grow, for the test that they do not.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        let meters = self.meters.iter().map(Meter::held).sum::<usize>();
        self.time_s.capacity() + self.jain.capacity() + self.edges.len() + meters
    }

    #[inline]
    fn event(&mut self, now: Timestamp) {
        if now >= self.boundary {
            self.pass(now);
        }
    }
    #[inline]
    fn state(&mut self, now: Timestamp) {
        if now > self.boundary {
            self.pass(now - TimeDelta::from_nanos(1));
        }
    }
    /// Processes every row and edge up to and including `upto`.
    #[cold]
    fn pass(&mut self, upto: Timestamp) {
        while self.boundary <= upto {
            let at = self.boundary;
            while let Some(&(when, edge)) = self.edges.last().filter(|e| e.0 <= at) {
                self.edges.pop();
                self.on_edge(when, edge);
            }
            if self.row_end <= at {
                self.end_row();
                self.row_end += self.row_length;
            }
            self.set_boundary();
        }
    }
    fn set_boundary(&mut self) {
        self.boundary = self.row_end.min(self.edges.last().map_or(NEVER, |e| e.0));
    }
    fn on_edge(&mut self, at: Timestamp, edge: Edge) {
        match edge {
            Edge::Tail => self.meters.iter_mut().for_each(|m| m.tail = m.counted()),
            Edge::WindowStart(i) => {
                self.links.iter_mut().for_each(|l| l.hold(at));
                self.windows[i].begin(&self.meters, &self.links);
            }
            Edge::WindowEnd(i) => {
                self.links.iter_mut().for_each(|l| l.hold(at));
                self.windows[i].end(&self.config, i, at, &self.meters, &self.links);
            }
        }
    }
    fn end_row(&mut self) {
        let (end, length) = (self.row_end, self.row_length);
        let start = end - length;
        self.fairness.sharing.fill((0, 0));
        let (mut rtp, mut tcp) = (RowGoodput::default(), RowGoodput::default());
        // Of flows with rivals of the other kind.
        let (mut rtp_shared, mut tcp_shared) = (RowGoodput::default(), RowGoodput::default());
        for (m, rivals) in self.meters.iter().zip(&self.fairness.rivals) {
            let active = m.is_active(end);
            let mut shares = active;
            match m.info.kind {
                FlowKind::Rtp | FlowKind::Dccp if active && m.info.adapts => {
                    rtp.add_flow(m.row_goodput());
                    if rivals.tcp {
                        rtp_shared.add_flow(m.row_goodput());
                    }
                }
                FlowKind::Tcp if active => {
                    tcp.add_flow(m.row_goodput());
                    if rivals.media {
                        tcp_shared.add_flow(m.row_goodput());
                    }
                    shares = m.last_sent.is_some_and(|t| end - t <= TRAILING);
                }
                _ => shares = false,
            }
            if let Some(link) = self.fairness.sharing.get_mut(m.info.bottleneck) {
                link.0 += u64::from(shares);
                let takes = !m.info.adapts;
                link.1 += if takes { m.row_wire() } else { 0 };
            }
        }
        let target = self.meters.iter().find(|m| m.info.is_adaptive_media()).and_then(Meter::target_bps);
        self.rates_over_time.on_row(seconds(length), rtp, tcp, target);
        let queue_delay = self.links.get_mut(self.config.bottleneck).map_or(f64::NAN, |l| l.row_delay_ms(end));
        self.outline.on_row(seconds(length), queue_delay, self.meters.iter().map(|m| m.row_counts(end)));
        if let (Some(rtp), Some(tcp)) = (rtp_shared.mean(), tcp_shared.mean()) {
            self.fairness.rtp += rtp;
            self.fairness.tcp += tcp;
        }
        let fair = |link: usize, sharing: &[(u64, u64)]| {
            let Some(&(flows, udp)) = sharing.get(link).filter(|s| s.0 > 0) else { return 0.0 };
            let bits = self.config.links[link].capacity.bits(start, end) - udp as f64 * 8.0;
            bits.max(0.0) / seconds(length) / flows as f64
        };
        let mut shares = std::mem::take(&mut self.fairness.fair_bps);
        shares.clear();
        shares.extend((0..self.links.len()).map(|l| fair(l, &self.fairness.sharing)));
        let (mut n, mut sum, mut squares) = (0.0, 0.0, 0.0);
        for (m, rivals) in self.meters.iter_mut().zip(&self.fairness.rivals) {
            let fair_bps = shares.get(m.info.bottleneck).copied().unwrap_or(0.0);
            let changes = self.links.get(m.info.bottleneck).map_or(&[][..], |l| &l.changes);
            let most = m.info.most.as_ref().map(|c| c.bits(start, end) / seconds(length));
            let within_bps = most.map_or(fair_bps, |most| fair_bps.min(most));
            m.end_row(RowContext { end, length, within_bps, changes });
            let counts = m.info.is_adaptive_media() && rivals.media && m.is_active(end);
            if counts && end - m.info.start >= TRAILING && fair_bps > 0.0 {
                let x = m.trailing_bps(length) / fair_bps;
                n += 1.0;
                sum += x;
                squares += x * x;
            }
        }
        let jain = (n >= 2.0 && squares > 0.0).then(|| sum * sum / (n * squares));
        self.fairness.on_jain(jain);
        self.fairness.fair_bps = shares;
        for (l, info) in self.links.iter_mut().zip(&self.config.links) {
            l.end_row(info, start, end);
        }
        if self.config.series {
            self.time_s.push(instant(end));
            self.jain.push(jain.unwrap_or(f64::NAN));
        }
    }
}
