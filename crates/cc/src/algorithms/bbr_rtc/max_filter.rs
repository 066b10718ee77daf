//! The greatest value over the last round trips: Kathleen Nichols' windowed filter (libwebrtc's `windowed_filter.h`).

/// The best, second-best and third-best values of a window, each no older than the one before.
#[derive(Clone, Copy, Debug)]
pub(super) struct MaxFilter<T> {
    window: u64,
    /// Each with the round of its sample, best first.
    best: [(T, u64); 3],
}

impl<T: Copy + Ord + Default> MaxFilter<T> {
    /// An empty filter over a window in round trips.
    pub(super) fn new(window: u64) -> Self {
        Self { window, best: [(T::default(), 0); 3] }
    }

    /// Takes a sample of a round, which is not before that of the last.
    pub(super) fn update(&mut self, value: T, round: u64) {
        let sample = (value, round);
        let window = self.window;
        let age = |of: (T, u64)| round.saturating_sub(of.1);
        let best = &mut self.best;
        if best[0].0 == T::default() || value >= best[0].0 || age(best[2]) > window {
            *best = [sample; 3];
            return;
        }
        if value >= best[1].0 {
            (best[1], best[2]) = (sample, sample);
        } else if value >= best[2].0 {
            best[2] = sample;
        }
        if age(best[0]) > window {
            *best = [best[1], best[2], sample];
            if age(best[0]) > window {
                (best[0], best[1]) = (best[1], best[2]);
            }
        } else if best[1].0 == best[0].0 && age(best[1]) > window / 4 {
            // A quarter of the window without a better sample: the second best is from the second quarter.
            (best[1], best[2]) = (sample, sample);
        } else if best[2].0 == best[1].0 && age(best[2]) > window / 2 {
            best[2] = sample;
        }
    }

    /// The greatest value of the window; the default value before the first sample.
    pub(super) fn best(&self) -> T {
        self.best[0].0
    }
    /// The third-best value.
    pub(super) fn third_best(&self) -> T {
        self.best[2].0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(samples: &[(u32, u64)]) -> MaxFilter<u32> {
        let mut f = MaxFilter::new(10);
        samples.iter().for_each(|&(value, round)| f.update(value, round));
        f
    }

    #[test]
    fn the_greatest_value_counts_for_the_window() {
        assert_eq!(filter(&[]).best(), 0);
        assert_eq!(filter(&[(500, 1), (300, 2), (400, 11)]).best(), 500, "10 rounds old");
        let f = filter(&[(500, 1), (300, 2), (400, 11), (350, 12)]);
        assert_eq!((f.best(), f.third_best()), (400, 350), "11 rounds old: the second best, and the newest as third");
        assert_eq!(filter(&[(500, 1), (300, 2), (600, 3)]).third_best(), 600, "a better sample replaces all");
    }

    #[test]
    fn the_runners_up_are_of_later_parts_of_the_window() {
        // Constant, then falling: after a quarter of the window the second best is newer, after a half the third.
        let f = filter(&[(500, 1), (400, 4)]);
        assert_eq!((f.best(), f.third_best()), (500, 400));
        let f = filter(&[(500, 1), (400, 4), (300, 10)]);
        assert_eq!((f.best(), f.third_best()), (500, 300));
        // After a whole window without samples nothing older counts.
        assert_eq!(filter(&[(500, 1), (400, 4), (300, 10), (100, 21)]).best(), 100);
    }
}
