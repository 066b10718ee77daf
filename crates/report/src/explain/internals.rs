//! Reasons from the internals of controllers, by their names.

use super::reasons::Reason;
use weir_lab::series::FlowSeries;

/// Relative distance from a bound at which a rate is at it.
const AT_BOUND: f64 = 0.005;
/// Rise of the delay in a row that counts, ms, and share of the target below which the source does not use it.
const RISE: f64 = 5.0;
const UNUSED: f64 = 0.6;
/// Distance from the queue wanted at which a queue is at it, ms.
const AT_WANTED: f64 = 0.5;
/// Loss that counts, and packets lost of those marked.
const LOST: f64 = 0.005;

/// A row of a flow's series.
#[derive(Clone, Copy)]
pub(super) struct Row<'a> {
    flow: &'a FlowSeries,
    at: usize,
    bounds: Option<(f64, f64)>,
}

impl<'a> Row<'a> {
    pub(super) fn of(flow: &'a FlowSeries, at: usize, bounds: Option<(f64, f64)>) -> Self {
        Self { flow, at, bounds }
    }

    fn value(column: &[f64], at: usize) -> f64 {
        column.get(at).copied().unwrap_or(f64::NAN)
    }

    pub(super) fn target(&self) -> f64 {
        Self::value(&self.flow.target_bps, self.at)
    }

    fn loss(&self) -> f64 {
        Self::value(&self.flow.loss, self.at)
    }

    /// The delay of this row, and of the last one before it that has one.
    fn delays(&self) -> (f64, f64) {
        let before = (0..self.at).rev().take(20).map(|i| Self::value(&self.flow.delay_ms, i)).find(|d| d.is_finite());
        (before.unwrap_or(f64::NAN), Self::value(&self.flow.delay_ms, self.at))
    }

    /// An internal by name, with or without the prefix of series files; NaN if there is none.
    fn get(&self, name: &str) -> f64 {
        let found = self.flow.internals.iter().find(|(n, _)| n.strip_prefix("cc_").unwrap_or(n) == name);
        found.map_or(f64::NAN, |(_, values)| Self::value(values, self.at))
    }

    fn has(&self, name: &str) -> bool {
        !self.get(name).is_nan()
    }

    /// How much an internal rose in this row.
    fn rise(&self, name: &str) -> f64 {
        let before = Row { at: self.at.saturating_sub(1), ..*self };
        self.get(name) - before.get(name)
    }

    /// Why the rate moved by so much.
    pub(super) fn reason(&self, moved: f64) -> Reason {
        if let Some((floor, ceiling)) = self.bounds {
            let target = self.target();
            if target >= ceiling * (1.0 - AT_BOUND) && moved >= 0.0 {
                return Reason::Ceiling;
            }
            if target <= floor * (1.0 + AT_BOUND) && moved.abs() <= AT_BOUND * floor {
                return Reason::Floor;
            }
        }
        // By internals that tell controllers apart, whatever the run calls them.
        if self.has("queue_expected_ms") && self.has("mode") {
            self.sluice(moved)
        } else if self.has("usage") {
            self.gcc(moved)
        } else if self.has("x_curr_ms") && self.has("rmode") {
            self.nada()
        } else if self.has("qdelay_target_ms") {
            self.scream(moved)
        } else if self.has("x_calc_bps") {
            self.tfrc()
        } else {
            self.any(moved)
        }
    }

    /// Why the rate moved by so much, up or down with the span that it is in: a reason for the other direction is none.
    pub(super) fn reason_with(&self, moved: f64, is_up: bool) -> Reason {
        let reason = self.reason(moved);
        if self.agrees(reason, is_up) {
            return reason;
        }
        // A sign of congestion beside a rise does not explain it, nor is it room.
        let other = if is_up { Reason::Unknown } else { self.any(moved) };
        if self.agrees(other, is_up) { other } else { Reason::Unknown }
    }

    /// Whether a reason can move a rate in this direction.
    fn agrees(&self, reason: Reason, is_up: bool) -> bool {
        match reason {
            Reason::Start | Reason::Room => is_up,
            // The controller increases until it loses.
            Reason::Competition => is_up,
            Reason::Delay | Reason::Marks | Reason::Drain | Reason::Silence => !is_up,
            // An equation gives a rate for each share, above or below the last.
            Reason::Loss => !is_up || self.has("x_calc_bps"),
            Reason::Queue => self.queue_side().is_none_or(|above| above != is_up),
            Reason::Ceiling => is_up,
            Reason::Floor => !is_up,
            Reason::Source | Reason::Unknown => true,
        }
    }

    fn sluice(&self, moved: f64) -> Reason {
        match self.get("mode") as i64 {
            0 => Reason::Start,
            1 => Reason::Room,
            2 if self.get("marked") > 0.1 => Reason::Marks,
            2 => Reason::Queue,
            3 => Reason::Drain,
            4 => Reason::Competition,
            5 => Reason::Silence,
            6 => Reason::Source,
            7 | 8 if moved <= 0.0 => Reason::Loss,
            8 => Reason::Room,
            _ => self.any(moved),
        }
    }

    /// Whether losses bound Sluice's rate.
    fn is_bounded(&self) -> bool {
        self.get("mode") >= 6.5 && !self.get("answer_bound_bps").is_nan()
    }

    fn gcc(&self, moved: f64) -> Reason {
        let (delay, loss) = (self.get("delay_based_bps"), self.get("loss_based_bps"));
        if self.get("usage") > 0.5 {
            Reason::Delay
        } else if self.get("loss_share") > LOST && loss < delay {
            Reason::Loss
        } else if self.get("in_alr") > 0.5 && moved <= 0.0 {
            Reason::Source
        } else {
            self.any(moved)
        }
    }

    fn nada(&self) -> Reason {
        // Part of the congestion signal that is due to loss and marks, ms.
        let penalty = self.get("x_curr_ms") - self.get("d_tilde_ms");
        if self.get("rmode") < 0.5 {
            Reason::Room
        } else if penalty > self.get("d_tilde_ms").max(1.0) {
            if self.get("p_mark") > self.get("p_loss") { Reason::Marks } else { Reason::Loss }
        } else {
            Reason::Queue
        }
    }

    fn scream(&self, moved: f64) -> Reason {
        if self.rise("loss_events") > 0.0 {
            Reason::Loss
        } else if self.rise("ecn_events") > 0.0 {
            Reason::Marks
        } else if self.get("qdelay_ms") > self.get("qdelay_target_ms") {
            Reason::Queue
        } else if self.get("in_fast_increase") > 0.5 && moved > 0.0 {
            Reason::Room
        } else {
            self.any(moved)
        }
    }

    fn tfrc(&self) -> Reason {
        if self.get("data_limited") > 0.5 {
            Reason::Source
        } else if self.get("loss_event_rate") > 0.0 {
            Reason::Loss
        } else {
            Reason::Start
        }
    }

    /// From what every flow has.
    fn any(&self, moved: f64) -> Reason {
        let (before, delay) = self.delays();
        if self.loss() > LOST && moved < 0.0 {
            Reason::Loss
        } else if delay - before > RISE && moved < 0.0 {
            Reason::Delay
        } else if Self::value(&self.flow.generated_bps, self.at) < UNUSED * self.target() {
            Reason::Source
        } else if moved > 0.0 {
            Reason::Room
        } else {
            Reason::Unknown
        }
    }

    /// A reason in words.
    pub(super) fn words(&self, reason: Reason) -> String {
        match reason {
            Reason::Ceiling => "at the greatest rate allowed".into(),
            Reason::Floor => format!("at the least rate allowed; {}", self.situation()),
            Reason::Start => format!("starting: grows until a queue or loss answers; {}", self.situation()),
            Reason::Room if self.is_bounded() => format!(
                "losses answered to the rate: grows while few are lost; at most {}; {}",
                mbps(self.get("answer_bound_bps")),
                self.situation()
            ),
            Reason::Room if self.has("queue_wanted_ms") => {
                format!("room: queue {} ms of wanted {} ms", ms(self.get("queue_ms")), ms(self.get("queue_wanted_ms")))
            }
            Reason::Room => format!("no sign of congestion; {}", self.situation()),
            Reason::Queue => self.queue(),
            Reason::Delay if self.has("trend_ms") => {
                let (trend, limit) = (self.get("trend_ms"), self.get("threshold_ms"));
                format!("delay rises: trend {} ms above threshold {} ms; {}", ms(trend), ms(limit), self.situation())
            }
            Reason::Delay => {
                let (before, delay) = self.delays();
                format!("delay up, {} to {} ms", ms(before), ms(delay))
            }
            Reason::Loss if self.has("loss_event_rate") && self.has("x_calc_bps") => {
                let equation = self.get("x_calc_bps");
                let percent = 100.0 * self.get("loss_event_rate");
                format!("loss event rate {percent:.3} % allows {}", mbps(equation))
            }
            Reason::Loss if self.has("p_loss") => {
                format!("loss, {:.1} %; {}", 100.0 * self.get("p_loss"), self.queue())
            }
            Reason::Loss if self.is_bounded() && self.get("mode") < 7.5 => {
                format!("loss without a queue: a lower rate shows whether it answers; {}", self.situation())
            }
            Reason::Loss if self.is_bounded() => {
                let bound = mbps(self.get("answer_bound_bps"));
                format!("losses answer to the rate: stays at what arrives, {bound}; {}", self.situation())
            }
            Reason::Loss => format!("loss, {} %; {}", percent(self.lost()), self.situation()),
            Reason::Marks => match self.wanted_queue() {
                Some((queue, wanted)) => format!("marks; queue {} ms, wanted {} ms", ms(queue), ms(wanted)),
                None => format!("marks; {}", self.queue()),
            },
            Reason::Drain => {
                format!("drain: empties the queue, {} ms, to see the least delay", ms(self.get("queue_ms")))
            }
            Reason::Competition => format!(
                "another flow keeps the queue at {} ms, wanted {} ms: increases until loss; lost {} %",
                ms(self.get("queue_ms")),
                ms(self.get("queue_wanted_ms")),
                percent(self.loss())
            ),
            Reason::Silence => "feedback is missing: what was sent is in a queue at least that long".into(),
            Reason::Source => {
                let share = Self::value(&self.flow.generated_bps, self.at) / self.target().max(1.0);
                format!("the source makes {} % of the target", percent(share))
            }
            Reason::Unknown => self.situation(),
        }
    }

    /// The share of packets lost as the controller has it, or of this row.
    fn lost(&self) -> f64 {
        let share = self.get("loss_share");
        if share.is_nan() { self.loss() } else { share }
    }

    /// The queue and the one wanted in ms, for controllers that have one.
    fn wanted_queue(&self) -> Option<(f64, f64)> {
        let pair = |queue, wanted| self.has(wanted).then(|| (self.get(queue), self.get(wanted)));
        pair("queue_expected_ms", "queue_wanted_ms").or_else(|| pair("qdelay_ms", "qdelay_target_ms"))
    }

    /// Whether the queue is above the one wanted, or below it; `None` at it, or if that is unknown.
    fn queue_side(&self) -> Option<bool> {
        let (queue, wanted) = self.wanted_queue()?;
        ((queue - wanted).abs() > AT_WANTED).then_some(queue > wanted)
    }

    fn queue(&self) -> String {
        let Some((queue, wanted)) = self.wanted_queue() else {
            return format!(
                "queue {} ms, congestion signal {} ms",
                ms(self.get("d_queue_ms")),
                ms(self.get("x_curr_ms"))
            );
        };
        let side = match self.queue_side() {
            Some(true) => "above",
            Some(false) => "below",
            None => "at",
        };
        let mut text = format!("queue {} ms {side} wanted {} ms", ms(queue), ms(wanted));
        if self.has("capacity_bps") {
            text += &format!("; service rate {}", mbps(self.get("capacity_bps")));
        }
        text
    }

    fn situation(&self) -> String {
        format!("delay {} ms, lost {} %", ms(self.delays().1), percent(self.loss()))
    }
}

/// A rate in Mbit/s, in three digits.
pub fn mbps(bps: f64) -> String {
    let mbit = bps / 1e6;
    match mbit {
        m if m >= 100.0 => format!("{m:.0}"),
        m if m >= 10.0 => format!("{m:.1}"),
        m if m >= 1.0 => format!("{m:.2}"),
        m => format!("{m:.3}"),
    }
}

fn ms(value: f64) -> String {
    if value.is_nan() { "-".into() } else { format!("{value:.0}") }
}

fn percent(share: f64) -> String {
    if share.is_nan() { "-".into() } else { format!("{:.0}", 100.0 * share) }
}
