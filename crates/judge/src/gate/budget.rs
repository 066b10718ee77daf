//! Budgets as text: `METRIC <= N`, `METRIC >= N`, `METRIC no worse than NAME by N %`.

use crate::rows::Better;
use std::ops::Range;

/// Word that stands for the file of `--baseline` in place of a controller.
pub const BASELINE: &str = "baseline";
/// Most characters of a budget.
const MAX_LENGTH: usize = 300;
const COMPARISON: &str = " no worse than ";
/// The three forms, for messages.
pub(super) const FORMS: &str = "METRIC <= N, METRIC >= N, or METRIC no worse than NAME by N %";

/// A budget of one metric.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Budget {
    /// Flow, or row, that alone it is for.
    pub(super) of: Option<String>,
    /// The metric's name.
    pub(super) metric: String,
    pub(super) bound: Bound,
}

/// Bound of a metric.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Bound {
    AtMost(f64),
    AtLeast(f64),
    /// As near to one as this, on either side.
    Near(f64),
    /// As good as another's value of the same seed, less a share of that.
    NoWorse {
        than: Than,
        share: f64,
    },
}

/// Owner of the value that a metric is compared with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Than {
    Controller(String),
    Baseline,
}

/// A fault in a budget: bytes of its text, the fault with the value, and a way out.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Fault {
    pub(super) span: Range<usize>,
    pub(super) message: String,
    pub(super) help: String,
}

impl Budget {
    /// A budget from its text. Errors: it has none of the forms, or a number that is none.
    pub(super) fn parse(text: &str) -> Result<Self, Fault> {
        let fault = |part: &str, message: String, help: &str| {
            let start = part.as_ptr() as usize - text.as_ptr() as usize;
            Fault { span: start..start + part.len(), message, help: help.into() }
        };
        if text.chars().count() > MAX_LENGTH {
            return Err(fault(text, format!("longer than {MAX_LENGTH} characters"), FORMS));
        }
        let number = |part: &str, example: &str| {
            let value = part.trim().parse::<f64>().ok().filter(|n| n.is_finite());
            value.ok_or_else(|| {
                let message = format!("expected a number, found `{}`", part.trim());
                fault(part, message, &format!("a number in the metric's unit, which is not written, such as {example}"))
            })
        };
        let (name, bound) = if let Some((name, rest)) = text.split_once(COMPARISON) {
            let other = || fault(rest, format!("`{rest}` is not NAME by N %"), "such as `no worse than gcc by 10 %`");
            let (than, share) = rest.rsplit_once(" by ").ok_or_else(other)?;
            let digits = share.trim_end().strip_suffix('%').ok_or_else(other)?;
            let share = number(digits, "10")? / 100.0;
            if !(0.0..=10.0).contains(&share) {
                let message = format!("`{}` %: expected 0 to 1000", digits.trim());
                return Err(fault(digits, message, "0 % asks for the very value"));
            }
            let than = match than.trim() {
                "" => return Err(other()),
                BASELINE => Than::Baseline,
                name => Than::Controller(name.into()),
            };
            (name, Bound::NoWorse { than, share })
        } else if let Some((name, limit)) = text.split_once("<=") {
            (name, Bound::AtMost(number(limit, "150")?))
        } else if let Some((name, limit)) = text.split_once(">=") {
            (name, Bound::AtLeast(number(limit, "0.8")?))
        } else {
            return Err(fault(text, format!("`{text}` is no budget"), FORMS));
        };
        let (of, metric) = match name.split_once(": ") {
            Some((of, metric)) => (Some(of.trim().to_owned()), metric.trim()),
            None => (None, name.trim()),
        };
        if metric.is_empty() || of.as_deref() == Some("") {
            return Err(fault(text, format!("`{text}` names no metric"), FORMS));
        }
        Ok(Self { of, metric: metric.into(), bound })
    }
}

impl Bound {
    /// Whether a value keeps the bound; `other` is the value that it is compared with. `None` is "never", which only
    /// another "never" is no better than.
    pub(super) fn meets(&self, better: Better, value: Option<f64>, other: Option<f64>) -> bool {
        match (self, other) {
            (Self::AtMost(limit), _) => Better::Low.meets(*limit, value),
            (Self::AtLeast(limit), _) => Better::High.meets(*limit, value),
            (Self::Near(goal), _) => Better::One.meets(*goal, value),
            (Self::NoWorse { .. }, None) => true,
            (Self::NoWorse { share, .. }, Some(other)) => better.meets(worse(better, other, *share), value),
        }
    }
}

/// A value that is worse than another by a share of it.
pub(super) fn worse(better: Better, value: f64, share: f64) -> f64 {
    match better {
        Better::High => value - value.abs() * share,
        Better::Low => value + value.abs() * share,
        // As far from one as the value, and the share beyond.
        Better::One => libm::exp(-(libm::log(value.max(1e-9)).abs() + libm::log(1.0 + share))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_is_read() {
        let read = |text: &str| Budget::parse(text).unwrap_or_else(|f| panic!("{text}: {f:?}"));
        let is = |text: &str, of: Option<&str>, metric: &str, bound: Bound| {
            assert_eq!(read(text), Budget { of: of.map(str::to_owned), metric: metric.into(), bound }, "{text}");
        };
        is("loss <= 0.02", None, "loss", Bound::AtMost(0.02));
        is("video: utilisation>=.8", Some("video"), "utilisation", Bound::AtLeast(0.8));
        is("use, mean of ten 20 s >= 9e-1", None, "use, mean of ten 20 s", Bound::AtLeast(0.9));
        is("extra delay p95 <= -1", None, "extra delay p95", Bound::AtMost(-1.0));
        let than = |name: &str, share| Bound::NoWorse { than: Than::Controller(name.into()), share };
        is("loss no worse than gcc by 10 %", None, "loss", than("gcc", 0.1));
        is("loss no worse than exec:python3 a.py by 3 by 2.5%", None, "loss", than("exec:python3 a.py by 3", 0.025));
        is(
            "h10: time to 80 % no worse than baseline by 0 %",
            Some("h10"),
            "time to 80 %",
            Bound::NoWorse { than: Than::Baseline, share: 0.0 },
        );
    }

    #[test]
    fn faults_have_their_place_and_a_way_out() {
        for (text, at, message) in [
            ("loss", "loss", "is no budget"),
            ("loss < 0.1", "loss < 0.1", "is no budget"),
            ("loss <= 80 ms", " 80 ms", "expected a number, found `80 ms`"),
            ("loss >= inf", " inf", "expected a number, found `inf`"),
            ("loss no worse than gcc", "gcc", "`gcc` is not NAME by N %"),
            ("loss no worse than gcc by 10", "gcc by 10", "is not NAME by N %"),
            ("loss no worse than gcc by ten %", "ten ", "expected a number, found `ten`"),
            ("loss no worse than gcc by -1 %", "-1 ", "expected 0 to 1000"),
            ("loss no worse than  by 1 %", " by 1 %", "is not NAME by N %"),
            ("<= 3", "<= 3", "names no metric"),
            (": loss <= 3", ": loss <= 3", "names no metric"),
        ] {
            let fault = Budget::parse(text).expect_err(text);
            assert_eq!(&text[fault.span.clone()], at, "{text}");
            assert!(fault.message.contains(message) && !fault.help.is_empty(), "{text}: {fault:?}");
        }
        assert!(Budget::parse(&"x".repeat(301)).expect_err("long").message.contains("300"));
    }

    #[test]
    fn no_worse_is_towards_the_worse_side() {
        let bound = Bound::NoWorse { than: Than::Baseline, share: 0.1 };
        for (better, other, met, missed) in [
            (Better::High, 100.0, 90.0, 89.9),
            (Better::Low, 100.0, 110.0, 110.1),
            // 0.8 is 1.25 from one: up to 1.375 away on either side.
            (Better::One, 0.8, 1.374, 1.376),
            (Better::One, 1.25, 0.728, 0.726),
            // A delay below the path's own, by rounding.
            (Better::Low, -1.0, -0.9, -0.89),
        ] {
            assert!(bound.meets(better, Some(met), Some(other)), "{better:?} {met} beside {other}");
            assert!(!bound.meets(better, Some(missed), Some(other)), "{better:?} {missed} beside {other}");
        }
        assert!(bound.meets(Better::Low, None, None) && bound.meets(Better::Low, Some(9.0), None));
        assert!(!bound.meets(Better::Low, None, Some(9.0)));
        assert!(!Bound::AtMost(1.0).meets(Better::Low, None, None), "never is no value");
        assert!(!Bound::AtMost(1.0).meets(Better::Low, Some(f64::NAN), None));
    }
}
