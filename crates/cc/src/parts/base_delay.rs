//! The baseline one-way delay (as RFC 8698, section 5.1.1).

use weir_units::TimeDelta;

/// The minimum one-way delay of the last one to two windows.
#[derive(Clone, Debug, Default)]
pub(crate) struct BaseDelay {
    current: Option<TimeDelta>,
    previous: Option<TimeDelta>,
    window_start: TimeDelta,
}

impl BaseDelay {
    /// Takes a delay measured at `at`; `window` is the age at which a minimum may expire.
    pub(crate) fn observe(&mut self, delay: TimeDelta, at: TimeDelta, window: TimeDelta) {
        match self.current {
            None => self.window_start = at,
            Some(_) if at - self.window_start > window => {
                self.previous = self.current.take();
                self.window_start = at;
            }
            Some(_) => {}
        }
        self.current = Some(self.current.map_or(delay, |c| c.min(delay)));
    }

    /// d_base, `None` before the first delay.
    pub(crate) fn get(&self) -> Option<TimeDelta> {
        match (self.current, self.previous) {
            (Some(c), Some(p)) => Some(c.min(p)),
            (c, p) => c.or(p),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_minimum_for_one_to_two_windows() {
        let ms = TimeDelta::from_millis;
        let mut b = BaseDelay::default();
        assert_eq!(b.get(), None);
        b.observe(ms(-30), ms(0), ms(1_000));
        b.observe(ms(-20), ms(1_000), ms(1_000));
        assert_eq!(b.get(), Some(ms(-30)));
        b.observe(ms(-20), ms(1_500), ms(1_000));
        assert_eq!(b.get(), Some(ms(-30)));
        b.observe(ms(-10), ms(2_600), ms(1_000));
        assert_eq!(b.get(), Some(ms(-20)));
    }
}
