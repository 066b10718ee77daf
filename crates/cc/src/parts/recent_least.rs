//! The least value of a span of time: Kathleen Nichols' windowed filter (Linux, `lib/win_minmax.c`), by time.

use weir_units::{TimeDelta, Timestamp};

/// The least, second-least and third-least delay of a window, each no older than the one before; three values whatever the
/// window holds, so the least one is exact while delays rise or fall, and else at most a quarter of the window too old or too
/// new. For the greatest delay pass and read negative ones.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RecentLeast {
    best: Option<[(TimeDelta, Timestamp); 3]>,
}

impl RecentLeast {
    /// Takes a delay measured at `at`; those older than `window` no longer count.
    pub(crate) fn observe(&mut self, delay: TimeDelta, at: Timestamp, window: TimeDelta) {
        let sample = (delay, at);
        let Some(best) = &mut self.best else {
            self.best = Some([sample; 3]);
            return;
        };
        let age = |of: (TimeDelta, Timestamp)| at - of.1;
        if delay <= best[0].0 || age(best[2]) > window {
            *best = [sample; 3];
            return;
        }
        if delay <= best[1].0 {
            (best[1], best[2]) = (sample, sample);
        } else if delay <= best[2].0 {
            best[2] = sample;
        }
        if age(best[0]) > window {
            *best = [best[1], best[2], sample];
            if age(best[0]) > window {
                (best[0], best[1]) = (best[1], best[2]);
            }
        } else if best[1].1 == best[0].1 && age(best[1]) > window / 4 {
            // A quarter of the window without a better one: the second is from the second quarter.
            (best[1], best[2]) = (sample, sample);
        } else if best[2].1 == best[1].1 && age(best[2]) > window / 2 {
            best[2] = sample;
        }
    }

    /// The least delay of the window at the last sample; `None` before the first.
    pub(crate) fn get(&self) -> Option<TimeDelta> {
        self.best.map(|b| b[0].0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: TimeDelta = TimeDelta::from_millis(100);

    fn least(samples: &[(i64, i64)]) -> Option<i64> {
        let mut r = RecentLeast::default();
        for &(at, delay) in samples {
            r.observe(TimeDelta::from_millis(delay), Timestamp::from_millis(at), WINDOW);
        }
        r.get().map(|d| d.as_millis())
    }

    #[test]
    fn the_least_counts_for_a_window() {
        assert_eq!(least(&[]), None);
        assert_eq!(least(&[(0, 20), (10, 30), (90, 40)]), Some(20));
        assert_eq!(least(&[(0, 20), (30, 30), (90, 40), (101, 50)]), Some(30));
        assert_eq!(least(&[(0, 20), (50, 5), (140, 40)]), Some(5));
    }

    #[test]
    fn after_a_pause_only_the_new_one_counts() {
        assert_eq!(least(&[(0, 20), (10, 30), (500, 90)]), Some(90));
    }

    #[test]
    fn a_rising_delay_leaves_the_least_of_the_last_window() {
        let samples: Vec<_> = (0..400).map(|t| (t, 10 + t)).collect();
        let found = least(&samples).expect("samples");
        assert!((10 + 299..=10 + 299 + 30).contains(&found), "{found}");
    }
}
