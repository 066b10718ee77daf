//! Reading of numbers from a run: means, times until a rate is reached, queues.
//!
//! Times are of the run, in s; a span takes the samples that end after its beginning and not after its end.

use weir_lab::results::{FlowSummary, RunResult};
use weir_lab::series::{FlowSeries, LinkSeries, Series};

/// Tolerance of times, s: sums of sampling intervals are not exact.
const CLOSE: f64 = 1e-9;
/// Time over which a rate has to hold once it was reached, s, and the share of it.
const HOLD: (f64, f64) = (2.0, 0.9);

/// A run with its series.
#[derive(Clone, Copy, Debug)]
pub struct Reading<'a> {
    /// The summary.
    pub run: &'a RunResult,
    series: &'a Series,
}

impl<'a> Reading<'a> {
    /// `None` for a run without series.
    pub fn of(run: &'a RunResult) -> Option<Self> {
        run.series.as_ref().map(|series| Self { run, series })
    }

    /// A flow's summary.
    pub(crate) fn flow(&self, name: &str) -> Option<&'a FlowSummary> {
        self.run.flow(name)
    }

    fn flow_series(&self, name: &str) -> Option<&'a FlowSeries> {
        self.series.flows.iter().find(|f| f.name == name)
    }

    /// Mean of a column of a flow within a span; rows without a value count as zero.
    pub(crate) fn mean(&self, flow: &str, from: f64, to: f64, column: fn(&FlowSeries) -> &[f64]) -> f64 {
        let Some(flow) = self.flow_series(flow) else { return 0.0 };
        let rows = self.series.time_s.iter().zip(column(flow)).filter(|(t, _)| from < **t && **t <= to + CLOSE);
        let (sum, count) = rows.fold((0.0, 0u32), |(s, n), (_, v)| (s + or_zero(*v), n + 1));
        sum / f64::from(count.max(1))
    }

    /// Mean goodput within a span, bit/s.
    pub(crate) fn goodput(&self, flow: &str, from: f64, to: f64) -> f64 {
        self.mean(flow, from, to, |f| &f.goodput_bps)
    }

    /// Time and mean of a column over the last `window` s, row by row.
    fn trailing(&self, flow: &str, window: f64, column: fn(&FlowSeries) -> &[f64]) -> Vec<(f64, f64)> {
        let Some(flow) = self.flow_series(flow) else { return vec![] };
        let times = &self.series.time_s;
        let step = match times[..] {
            [a, b, ..] => b - a,
            [a] => a,
            [] => return vec![],
        };
        let n = libm::round(window / step).max(1.0) as usize;
        let (values, mut total, mut out) = (column(flow), 0.0, Vec::new());
        for (i, (t, v)) in times.iter().zip(values).enumerate() {
            total += or_zero(*v);
            if i >= n {
                total -= or_zero(values[i - n]);
            }
            if i + 1 >= n {
                out.push((*t, total / n as f64));
            }
        }
        out
    }

    /// Time from `after` until the rate sent, over a window of `window` s that begins after it, is at most `bps`; `None` if
    /// it is not before `before`.
    pub(crate) fn below(&self, flow: &str, after: f64, bps: f64, window: f64, before: f64) -> Option<f64> {
        let rates = self.trailing(flow, window, |f| &f.sent_bps);
        let found = rates.iter().find(|(t, rate)| after + window - CLOSE <= *t && *t <= before && *rate <= bps);
        found.map(|(t, _)| t - after)
    }

    /// Time from `after` until goodput over `window` s reaches a rate and stays: the mean of the next two seconds is 90 % of
    /// it or more. `None` for never.
    pub(crate) fn reached(&self, flow: &str, after: f64, bps: f64, window: f64) -> Option<f64> {
        let rates = self.trailing(flow, window, |f| &f.goodput_bps);
        let end = rates.last()?.0;
        let holds = |t: f64| self.goodput(flow, t, (t + HOLD.0).min(end)) >= HOLD.1 * bps;
        let found = rates.iter().find(|(t, rate)| after + window - CLOSE <= *t && *rate >= bps && holds(*t));
        found.map(|(t, _)| t - after)
    }

    /// Time from `after` until so many bits have arrived; `None` for never.
    pub(crate) fn carried(&self, flow: &str, after: f64, bits: f64) -> Option<f64> {
        let flow = self.flow_series(flow)?;
        let mut left = bits;
        for (t, rate) in self.series.time_s.iter().zip(&flow.goodput_bps).filter(|(t, _)| **t > after + CLOSE) {
            left -= or_zero(*rate) * self.series.interval_s;
            if left <= CLOSE {
                return Some(t - after);
            }
        }
        None
    }

    /// The queueing delays of a link within a span, in ms.
    pub(crate) fn queue_ms(&self, from: f64, to: f64) -> Vec<f64> {
        self.queue().filter(|(t, _)| from < *t && *t <= to).map(|(_, q)| q).collect()
    }

    /// The link that is read: that of the scoreboard's rows, else the first one.
    fn link(&self) -> Option<&'a LinkSeries> {
        let links = &self.series.links;
        links.iter().find(|l| l.name == super::text::LINK).or(links.first())
    }

    /// Mean capacity of the link within a span, bit/s; `None` if it has none.
    pub(crate) fn capacity(&self, from: f64, to: f64) -> Option<f64> {
        let rows = self.series.time_s.iter().zip(&self.link()?.capacity_bps);
        let inside = rows.filter(|(t, c)| from < **t && **t <= to + CLOSE && !c.is_nan());
        let (sum, count) = inside.fold((0.0, 0u32), |(s, n), (_, c)| (s + c, n + 1));
        (sum > 0.0).then(|| sum / f64::from(count))
    }

    fn queue(&self) -> impl Iterator<Item = (f64, f64)> + 'a {
        let link = self.link();
        let delays = link.map_or(&[][..], |l| &l.queue_delay_ms);
        self.series.time_s.iter().copied().zip(delays.iter().map(|q| or_zero(*q)))
    }

    /// Time from `after` until the queue, having been longer, is at most so many ms; `None` if it stays longer, 0 if it never
    /// was.
    pub(crate) fn drained(&self, after: f64, ms: f64) -> Option<f64> {
        let mut was_longer = false;
        for (t, q) in self.queue().filter(|(t, _)| *t > after) {
            was_longer |= q > ms;
            if was_longer && q <= ms {
                return Some(t - after);
            }
        }
        (!was_longer).then_some(0.0)
    }

    /// Mean delay of a flow beyond `base` ms, sample by sample; `None` if nothing arrived.
    pub(crate) fn extra_in(&self, flow: &str, from: f64, to: f64, base: f64) -> Option<f64> {
        let flow = self.flow_series(flow)?;
        let rows = self.series.time_s.iter().zip(&flow.delay_ms);
        let inside = rows.filter(|(t, d)| from < **t && **t <= to && !d.is_nan());
        let (sum, count) = inside.fold((0.0, 0u32), |(s, n), (_, d)| (s + d, n + 1));
        (count > 0).then(|| sum / f64::from(count) - base)
    }
}

fn or_zero(value: f64) -> f64 {
    if value.is_nan() { 0.0 } else { value }
}

/// Jain's index; `None` if nobody got anything.
pub(crate) fn jain(values: &[f64]) -> Option<f64> {
    let squares: f64 = values.iter().map(|v| v * v).sum();
    let sum: f64 = values.iter().sum();
    (squares > 0.0).then(|| sum * sum / (values.len() as f64 * squares))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of 0.1 s: nothing for a second, then 1 Mbit/s with a dip, and a queue that comes and goes.
    fn run() -> RunResult {
        let rows = 60;
        let time_s: Vec<f64> = (1..=rows).map(|i| f64::from(i) * 0.1).collect();
        let at = |t: f64| {
            if t <= 1.05 {
                0.0
            } else if (1.15..1.35).contains(&t) {
                0.1e6
            } else {
                1e6
            }
        };
        let goodput: Vec<f64> = time_s.iter().map(|t| at(*t)).collect();
        let queue = time_s.iter().map(|t| if (2.0..3.0).contains(t) { 80.0 } else { 5.0 }).collect();
        let flow = FlowSeries {
            name: "v".into(),
            sent_bps: goodput.clone(),
            delay_ms: time_s.iter().map(|t| if *t < 1.0 { f64::NAN } else { 60.0 }).collect(),
            goodput_bps: goodput,
            ..FlowSeries::default()
        };
        let link = LinkSeries { name: super::super::text::LINK.into(), queue_delay_ms: queue, ..LinkSeries::default() };
        let series = Series { interval_s: 0.1, time_s, flows: vec![flow], links: vec![link], jain: vec![] };
        RunResult {
            scenario: String::new(),
            condition: String::new(),
            controller: String::new(),
            seed: 1,
            duration_s: 6.0,
            flows: vec![],
            fairness: Default::default(),
            queue: None,
            links: vec![],
            live: None,
            windows: vec![],
            rates_over_time: Default::default(),
            outline: Default::default(),
            series: Some(series),
        }
    }

    #[test]
    fn a_rate_is_reached_where_it_stays() {
        let run = run();
        let r = Reading::of(&run).expect("series");
        // The first row of 1 Mbit/s is at 1.1 s; the two seconds after it have the dip: (2 * 0.1 + 18) / 20 = 0.91.
        let first = r.reached("v", 0.0, 1e6, 0.1).expect("reached");
        assert!((first - 1.1).abs() < 1e-6, "{first}");
        // Over half a second the dip counts: from 1.4 s on.
        let settled = r.reached("v", 0.0, 1e6, 0.5).expect("reached");
        assert!((settled - 1.8).abs() < 1e-6, "{settled}");
        assert_eq!(r.reached("v", 0.0, 1.1e6, 0.5), None);
        assert_eq!(r.reached("nobody", 0.0, 1.0, 0.5), None);
        // 1 Mbit/s from 1.1 s on, but for two rows of 0.1: half a megabit is there by 1.8 s.
        let carried = r.carried("v", 1.0, 0.515e6).expect("carried");
        assert!((carried - 0.7).abs() < 1e-6, "{carried}");
        assert_eq!(r.carried("v", 1.0, 1e9), None);
        let low = r.below("v", 1.0, 0.1e6, 0.2, 6.0).expect("below");
        assert!((low - 0.3).abs() < 1e-6, "{low}");
        assert!((r.goodput("v", 0.0, 2.0) - 0.41e6).abs() < 1.0);
    }

    #[test]
    fn queues_and_delays_are_read_within_their_span() {
        let run = run();
        let r = Reading::of(&run).expect("series");
        let drained = r.drained(1.0, 50.0).expect("drained");
        assert!((drained - 2.0).abs() < 1e-6, "{drained}");
        assert_eq!(r.drained(3.5, 50.0), Some(0.0));
        assert_eq!(r.drained(1.0, 1.0), None);
        assert_eq!(r.queue_ms(1.95, 2.15), [80.0, 80.0]);
        assert!((r.extra_in("v", 0.0, 6.0, 50.0).expect("arrived") - 10.0).abs() < 1e-9);
        assert_eq!(r.extra_in("v", 0.0, 0.5, 50.0), None);
    }

    #[test]
    fn jain_is_one_for_equals_and_half_for_one_of_two() {
        assert_eq!(jain(&[2.0, 2.0]), Some(1.0));
        assert_eq!(jain(&[2.0, 0.0]), Some(0.5));
        assert_eq!(jain(&[0.0, 0.0]), None);
    }
}
