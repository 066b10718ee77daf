//! FEC schemes, and which packets they protect.

use std::fmt::Display;

use crate::rlc::DENSEST;
use crate::{Coverage, RlcField};

/// An invalid number in a scheme.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{scheme}: {field} is {value}: expected {expected}")]
pub struct SchemeError {
    /// The scheme.
    pub scheme: &'static str,
    /// The field.
    pub field: &'static str,
    /// Its value.
    pub value: String,
    /// The valid values.
    pub expected: &'static str,
}

/// A code and its shape.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scheme {
    /// One repair packet, the XOR of the previous `interval` source packets (RFC 5109). It repairs one loss.
    Parity {
        /// Source packets per repair packet, from 1 (which repeats every packet); FBRA varies it between 2 and 14.
        interval: u8,
    },
    /// Blocks of `columns` times `rows` source packets, and for each column the XOR of its packets, at intervals of
    /// `columns` (RFC 6015). It repairs a burst of `columns` losses.
    Interleaved {
        /// L: columns of a block, and its repair packets.
        columns: u8,
        /// D: source packets of a column.
        rows: u8,
    },
    /// Blocks of `columns` times `rows` source packets with one repair packet per row and one per column (RFC 8627,
    /// section 1.1.4). A packet recovered by a row may make a column solvable, and so on.
    TwoDimensional {
        /// L: source packets of a row, and repair packets over columns.
        columns: u8,
        /// D: source packets of a column, and repair packets over rows.
        rows: u8,
    },
    /// Systematic Reed-Solomon over GF(2^8) (RFC 6865): blocks of `n - repair` source packets and `repair` repair
    /// packets, of which any `repair` may be lost.
    ReedSolomon {
        /// Packets of a block, including repair packets; DP-FEC's is 127.
        n: u8,
        /// Repair packets of a block, fewer than `n`; DP-FEC varies it between 0 and 63.
        repair: u8,
    },
    /// Sliding-window random linear code (RFC 8681): `repairs` repair packets for each `sources` source packets, evenly
    /// among them, each a combination of the last `window` source packets. A loss is recovered by the next repair packet,
    /// and as many losses as there are repair packets whose windows have them, but for few of them by chance.
    Rlc {
        /// Most source packets of a repair packet's window (`ew_max_size`), at least as many as there are between two
        /// repair packets.
        window: u8,
        /// Source packets for which there are `repairs` repair packets.
        sources: u8,
        /// Repair packets for `sources` source packets.
        repairs: u8,
        /// DT, 0 to 15: `(DT + 1) / 16` of the coefficients are nonzero. Windows of some dozens of packets need 15
        /// (section 8.2).
        density: u8,
        /// The field of the coefficients.
        field: RlcField,
    },
}

impl Scheme {
    /// [`Scheme::Parity`], validated.
    pub fn parity(interval: u8) -> Result<Self, SchemeError> {
        Self::Parity { interval }.checked()
    }
    /// [`Scheme::Interleaved`], validated.
    pub fn interleaved(columns: u8, rows: u8) -> Result<Self, SchemeError> {
        Self::Interleaved { columns, rows }.checked()
    }
    /// [`Scheme::TwoDimensional`], validated.
    pub fn two_dimensional(columns: u8, rows: u8) -> Result<Self, SchemeError> {
        Self::TwoDimensional { columns, rows }.checked()
    }
    /// [`Scheme::ReedSolomon`], validated.
    pub fn reed_solomon(n: u8, repair: u8) -> Result<Self, SchemeError> {
        Self::ReedSolomon { n, repair }.checked()
    }
    /// [`Scheme::Rlc`] over GF(2^8) with all coefficients nonzero, validated.
    pub fn rlc(window: u8, sources: u8, repairs: u8) -> Result<Self, SchemeError> {
        Self::Rlc { window, sources, repairs, density: DENSEST, field: RlcField::Gf256 }.checked()
    }

    /// Returns the scheme if it is valid.
    ///
    /// # Errors
    /// A count other than `repair` and `repairs` is zero, a block of columns and rows has more than 256 packets (the span of a
    /// [`Coverage`]), a Reed-Solomon block has no source packet, packets leave a window before a repair packet is made of it, or
    /// a density is above 15.
    pub fn checked(self) -> Result<Self, SchemeError> {
        match self {
            Self::Parity { interval: 0 } => Err(fault("parity", "interval", 0, "1 to 255")),
            Self::Interleaved { columns, rows } => shape("interleaved parity", columns, rows).map(|()| self),
            Self::TwoDimensional { columns, rows } => shape("two-dimensional parity", columns, rows).map(|()| self),
            Self::ReedSolomon { n: 0, .. } => Err(fault("Reed-Solomon", "n", 0, "1 to 255")),
            Self::ReedSolomon { n, repair } if repair >= n => {
                Err(fault("Reed-Solomon", "repair", format_args!("{repair} of {n}"), "less than n"))
            }
            Self::Rlc { window: 0, .. } => Err(fault("RLC", "window", 0, "1 to 255")),
            Self::Rlc { sources: 0, .. } => Err(fault("RLC", "sources", 0, "1 to 255")),
            Self::Rlc { density: density @ 16.., .. } => Err(fault("RLC", "density", density, "0 to 15")),
            Self::Rlc { window, sources, repairs: repairs @ 1.., .. } if window < sources.div_ceil(repairs) => {
                let expected = "at least the source packets between two repair packets";
                Err(fault("RLC", "window", format_args!("{window} for {repairs} in {sources}"), expected))
            }
            _ => Ok(self),
        }
    }

    /// Source packets of a full block; of a sliding-window code, those between which its repair packets are spread.
    pub const fn sources(&self) -> usize {
        match *self {
            Self::Parity { interval } => interval as usize,
            Self::Interleaved { columns, rows } | Self::TwoDimensional { columns, rows } => {
                columns as usize * rows as usize
            }
            Self::ReedSolomon { n, repair } => n.saturating_sub(repair) as usize,
            Self::Rlc { sources, .. } => sources as usize,
        }
    }
    /// Repair packets of a full block.
    pub const fn repairs(&self) -> usize {
        match *self {
            Self::Parity { .. } => 1,
            Self::Interleaved { columns, .. } => columns as usize,
            Self::TwoDimensional { columns, rows } => columns as usize + rows as usize,
            Self::ReedSolomon { repair, .. } => repair as usize,
            Self::Rlc { repairs, .. } => repairs as usize,
        }
    }
    /// Repair packets per source packet.
    pub fn overhead(&self) -> f64 {
        self.repairs() as f64 / self.sources().max(1) as f64
    }
}

fn fault(scheme: &'static str, field: &'static str, value: impl Display, expected: &'static str) -> SchemeError {
    SchemeError { scheme, field, value: value.to_string(), expected }
}

fn shape(scheme: &'static str, columns: u8, rows: u8) -> Result<(), SchemeError> {
    if columns == 0 {
        return Err(fault(scheme, "columns", 0, "1 to 255"));
    }
    if rows == 0 {
        return Err(fault(scheme, "rows", 0, "1 to 255"));
    }
    if u64::from(columns) * u64::from(rows) > Coverage::SPAN {
        let value = format_args!("{columns} x {rows}").to_string();
        return Err(fault(scheme, "columns x rows", value, "256 packets at most"));
    }
    Ok(())
}

/// The cost of a packet's loss for the picture, which determines unequal protection.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Importance {
    /// Part of a key frame, on which all later frames depend.
    Key,
    /// Part of a frame that others refer to.
    Reference,
    /// Part of a frame that nothing refers to, or unknown.
    #[default]
    Other,
}

impl Importance {
    /// All of them, most important first.
    pub const ALL: [Self; 3] = [Self::Key, Self::Reference, Self::Other];
}

/// A scheme for packets of each importance; `None` leaves them without protection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Protection {
    /// Nothing is protected.
    #[default]
    Off,
    /// One scheme over all packets in send order.
    Equal(Scheme),
    /// Separate blocks for each importance, so that a key frame's packets may have more repair packets.
    ByImportance {
        /// For [`Importance::Key`].
        key: Option<Scheme>,
        /// For [`Importance::Reference`].
        reference: Option<Scheme>,
        /// For [`Importance::Other`].
        other: Option<Scheme>,
    },
}

impl Protection {
    /// Returns the plan if all of its schemes are valid.
    ///
    /// # Errors
    /// As [`Scheme::checked`].
    pub fn checked(self) -> Result<Self, SchemeError> {
        for importance in Importance::ALL {
            self.scheme(importance).map(Scheme::checked).transpose()?;
        }
        Ok(self)
    }
    /// The scheme for an importance.
    pub const fn scheme(&self, importance: Importance) -> Option<Scheme> {
        match (*self, importance) {
            (Self::Off, _) => None,
            (Self::Equal(scheme), _) => Some(scheme),
            (Self::ByImportance { key, .. }, Importance::Key) => key,
            (Self::ByImportance { reference, .. }, Importance::Reference) => reference,
            (Self::ByImportance { other, .. }, Importance::Other) => other,
        }
    }
}

impl From<Scheme> for Protection {
    fn from(scheme: Scheme) -> Self {
        Self::Equal(scheme)
    }
}

impl From<Option<Scheme>> for Protection {
    fn from(scheme: Option<Scheme>) -> Self {
        scheme.map_or(Self::Off, Self::Equal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_shapes_that_no_code_has() {
        for (scheme, message) in [
            (Scheme::parity(0), "parity: interval is 0: expected 1 to 255"),
            (Scheme::interleaved(0, 4), "interleaved parity: columns is 0: expected 1 to 255"),
            (Scheme::interleaved(4, 0), "interleaved parity: rows is 0: expected 1 to 255"),
            (
                Scheme::two_dimensional(16, 17),
                "two-dimensional parity: columns x rows is 16 x 17: expected 256 packets at most",
            ),
            (Scheme::reed_solomon(0, 0), "Reed-Solomon: n is 0: expected 1 to 255"),
            (Scheme::reed_solomon(10, 10), "Reed-Solomon: repair is 10 of 10: expected less than n"),
            (Scheme::rlc(0, 5, 1), "RLC: window is 0: expected 1 to 255"),
            (Scheme::rlc(10, 0, 1), "RLC: sources is 0: expected 1 to 255"),
            (
                Scheme::rlc(3, 10, 3),
                "RLC: window is 3 for 3 in 10: expected at least the source packets between two repair packets",
            ),
            (
                Scheme::Rlc { window: 9, sources: 5, repairs: 1, density: 16, field: RlcField::Gf2 }.checked(),
                "RLC: density is 16: expected 0 to 15",
            ),
        ] {
            assert_eq!(scheme.unwrap_err().to_string(), message);
        }
    }

    #[test]
    fn counts_packets() {
        let count = |s: Result<Scheme, SchemeError>| s.map(|s| (s.sources(), s.repairs())).unwrap();
        assert_eq!(count(Scheme::parity(14)), (14, 1));
        assert_eq!(count(Scheme::interleaved(5, 4)), (20, 5));
        assert_eq!(count(Scheme::two_dimensional(16, 16)), (256, 32));
        assert_eq!(count(Scheme::reed_solomon(127, 63)), (64, 63));
        assert_eq!(count(Scheme::reed_solomon(255, 0)), (255, 0));
        assert_eq!(count(Scheme::rlc(40, 5, 1)), (5, 1));
        assert_eq!(count(Scheme::rlc(1, 200, 0)), (200, 0));
        assert_eq!(Scheme::Parity { interval: 4 }.overhead(), 0.25);
    }

    #[test]
    fn plans_by_importance() {
        let key = Some(Scheme::Parity { interval: 2 });
        let plan = Protection::ByImportance { key, reference: Some(Scheme::Parity { interval: 8 }), other: None };
        assert_eq!(plan.scheme(Importance::Key), key);
        assert_eq!(plan.scheme(Importance::Other), None);
        assert!(plan.checked().is_ok());
        let plan = Protection::ByImportance { key, reference: None, other: Some(Scheme::Parity { interval: 0 }) };
        assert!(plan.checked().is_err());
        assert_eq!(Protection::from(key), Protection::Equal(Scheme::Parity { interval: 2 }));
        assert_eq!(Protection::from(None), Protection::Off);
    }
}
