use crate::checks::check_share;
use crate::error::ConfigError;
use crate::position::LossPosition;
use crate::random::Random;
use crate::stats::{Action, LinkStats};
use weir_units::Ecn;

/// Changes of packets' ECN field that no router should make (RFC 3168, section 18.1). Of one packet they are made in this
/// order: `mark`, `erase`, `bleach`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct EcnFaults {
    /// Share of packets marked CE whatever their field, 0 to 1 (falsely reporting congestion, section 18.1.2).
    pub mark: f64,
    /// Share of packets with CE that become ECT(0), 0 to 1 (erasing the congestion indication, section 18.1.1).
    pub erase: f64,
    /// Share of packets with any codepoint that become Not-ECT, 0 to 1 (disabling ECN-capability, section 18.1.3).
    pub bleach: f64,
    /// Whether they are made before the queue, which then sees the changed field, or after it, so that also the
    /// link's own marks are changed.
    pub position: LossPosition,
}

impl EcnFaults {
    /// Rejects invalid shares.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        check_share("ecn.mark", self.mark)?;
        check_share("ecn.erase", self.erase)?;
        check_share("ecn.bleach", self.bleach)
    }

    /// Draws the faults of one packet. What is not configured draws nothing.
    pub(crate) fn draw(&self, random: &mut Random) -> EcnDraw {
        let mut drawn = |share: f64| share > 0.0 && random.uniform() < share;
        EcnDraw { mark: drawn(self.mark), erase: drawn(self.erase), bleach: drawn(self.bleach) }
    }
}

/// The faults of one packet.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct EcnDraw {
    mark: bool,
    erase: bool,
    bleach: bool,
}

impl EcnDraw {
    /// Makes the changes that have an effect, and counts them.
    pub(crate) fn apply(self, ecn: &mut Ecn, bytes: u32, stats: &mut LinkStats) {
        if self.mark && *ecn != Ecn::Ce {
            *ecn = Ecn::Ce;
            stats.count(Action::MarkedFalsely, bytes);
        }
        if self.erase && *ecn == Ecn::Ce {
            *ecn = Ecn::Ect0;
            stats.count(Action::MarkErased, bytes);
        }
        if self.bleach && *ecn != Ecn::NotEct {
            *ecn = Ecn::NotEct;
            stats.count(Action::Bleached, bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fault_changes_the_fields_that_it_can() {
        const ALL: [Ecn; 4] = [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce];
        for (faults, after, counts) in [
            ([false; 3], ALL, [0, 0, 0]),
            ([true, false, false], [Ecn::Ce; 4], [3, 0, 0]),
            ([false, true, false], [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ect0], [0, 1, 0]),
            ([false, false, true], [Ecn::NotEct; 4], [0, 0, 3]),
            ([true, true, false], [Ecn::Ect0; 4], [3, 4, 0]),
            ([true, true, true], [Ecn::NotEct; 4], [3, 4, 4]),
        ] {
            let [mark, erase, bleach] = faults;
            let mut stats = LinkStats::default();
            let got = ALL.map(|mut ecn| {
                EcnDraw { mark, erase, bleach }.apply(&mut ecn, 100, &mut stats);
                ecn
            });
            assert_eq!(got, after, "{faults:?}");
            let counted = [stats.marked_falsely, stats.marks_erased, stats.bleached].map(|c| c.packets);
            assert_eq!(counted, counts, "{faults:?}");
            assert_eq!(stats.bleached.size.as_bytes(), 100 * counts[2]);
        }
    }

    #[test]
    fn shares_are_kept() {
        let faults = EcnFaults { mark: 0.1, erase: 0.0, bleach: 0.5, position: LossPosition::Exit };
        assert_eq!(faults.check(), Ok(()));
        let mut random = Random::new(1);
        let drawn: Vec<_> = (0..40_000).map(|_| faults.draw(&mut random)).collect();
        let share = |f: fn(&EcnDraw) -> bool| drawn.iter().filter(|d| f(d)).count() as f64 / 40_000.0;
        // Four standard errors.
        assert!((share(|d| d.mark) - 0.1).abs() < 0.006 && (share(|d| d.bleach) - 0.5).abs() < 0.01);
        assert_eq!(share(|d| d.erase), 0.0);
        assert_eq!(EcnFaults { erase: 1.5, ..faults }.check().expect_err("above 1").field, "ecn.erase");
    }
}
