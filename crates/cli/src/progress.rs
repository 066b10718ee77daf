//! How far work has come, on standard error: a bar on a terminal, elsewhere a line every ten seconds.

use crate::output::remark;
use indicatif::{ProgressBar, ProgressStyle};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// Time between two lines where there is no terminal.
const LINES: Duration = Duration::from_secs(10);
/// Steps of a bar that shows a share.
const STEPS: u64 = 1_000;

/// Shows how far work has come. It disappears with this value.
pub(crate) struct Progress {
    bar: ProgressBar,
    /// Ends the thread that prints lines.
    _lines: Option<Sender<()>>,
}

impl Progress {
    /// Of work whose share that is done is known.
    pub(crate) fn share(quiet: bool) -> Self {
        let template = "{bar:20} {percent:>3} % {elapsed} (about {eta} left) {wide_msg}";
        Self::new(quiet, ProgressBar::new(STEPS), template, |bar| {
            let share = bar.position() as f64 / STEPS as f64;
            format!("{:.0} %{}", 100.0 * share, left(bar.elapsed(), share))
        })
    }

    /// Of so many pictures, or of any number.
    pub(crate) fn pictures(quiet: bool, total: Option<u64>) -> Self {
        match total {
            Some(n) => {
                let template = "{bar:20} {pos}/{len} pictures {elapsed} (about {eta} left)";
                Self::new(quiet, ProgressBar::new(n), template, |bar| {
                    let (at, of) = (bar.position(), bar.length().unwrap_or_default());
                    format!("{at} of {of} pictures{}", left(bar.elapsed(), at as f64 / of.max(1) as f64))
                })
            }
            None => Self::new(quiet, ProgressBar::no_length(), "{pos} pictures {elapsed}", |bar| {
                format!("{} pictures", bar.position())
            }),
        }
    }

    fn new(quiet: bool, bar: ProgressBar, template: &str, text: fn(&ProgressBar) -> String) -> Self {
        if quiet {
            return Self { bar: ProgressBar::hidden(), _lines: None };
        }
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        let mut lines = None;
        if bar.is_hidden() {
            let (end, ended) = channel::<()>();
            let bar = bar.clone();
            std::thread::spawn(move || {
                while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(LINES) {
                    let (elapsed, what) = (bar.elapsed().as_secs(), bar.message());
                    let what = if what.is_empty() { String::new() } else { format!("; {what}") };
                    remark(&format!("{elapsed} s: {}{what}", text(&bar)));
                }
            });
            lines = Some(end);
        } else {
            bar.enable_steady_tick(Duration::from_millis(500));
        }
        Self { bar, _lines: lines }
    }

    /// The share that is done, 0 to 1.
    pub(crate) fn set_share(&self, share: f64) {
        self.bar.set_position((share * STEPS as f64) as u64);
    }
    /// How many are done.
    pub(crate) fn set(&self, count: u64) {
        self.bar.set_position(count);
    }
    /// Shows the name of the work in progress.
    pub(crate) fn set_message(&self, what: String) {
        self.bar.set_message(what);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// How long the rest takes at the pace so far; nothing before there is one.
fn left(elapsed: Duration, share: f64) -> String {
    if share <= 0.0 {
        return String::new();
    }
    let seconds = elapsed.as_secs_f64() * (1.0 - share) / share;
    let text = match seconds {
        s if s < 90.0 => format!("{s:.0} s"),
        s if s < 5_400.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3_600.0),
    };
    format!(", about {text} left")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_takes_as_long_as_the_pace_so_far_says() {
        let at = |seconds, share| left(Duration::from_secs(seconds), share);
        assert_eq!(at(30, 0.0), "");
        assert_eq!(at(30, 0.5), ", about 30 s left");
        assert_eq!(at(60, 0.1), ", about 9 min left");
        assert_eq!(at(3_600, 0.25), ", about 3.0 h left");
        assert_eq!(at(10, 1.0), ", about 0 s left");
    }
}
