//! Applicability of each mechanism: figure 5.4 of the dissertation as numbers.

/// A rectangle of loss and delay in which a mechanism applies.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Region {
    /// Range of the fraction of packets lost.
    pub loss: (f64, f64),
    /// Range of the one-way delay relative to the longest delay that playout allows.
    pub delay: (f64, f64),
}

impl Region {
    /// Whether a point is inside, edges included; the region is enlarged by this share of its edges.
    pub(super) fn contains(&self, loss: f64, delay: f64, margin: f64) -> bool {
        let inside = |x: f64, (from, to): (f64, f64)| x >= from * (1.0 - margin) && x <= to * (1.0 + margin);
        inside(loss, self.loss) && inside(delay, self.delay)
    }
}

/// The region of each mechanism.
///
/// The figure has no scale. Its rectangles are read from the drawing: loss to the right, end-to-end delay upwards.
///
/// - Delay: the rectangle of adaptive slices covers the whole operating region, so its top is taken as the longest
///   delay that playout allows. That of retransmission then ends at 0.338 of it: about a third, the longest one-way
///   delay at which a packet, its request and the response fit into the delay one after the other.
/// - Loss: the right edge of retransmission is taken as 2 %, above which, by the text, a single mechanism no longer
///   suffices. The other edges are then at 4.5 % (reference selection), 3.1 % and 6.2 % (repair packets) and 8 %
///   (slices).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Applicability {
    /// Retransmission.
    pub nack: Region,
    /// Reference picture selection.
    pub references: Region,
    /// Adaptive slice size.
    pub slices: Region,
    /// Repair packets for frames that others refer to.
    pub protection: Region,
    /// Mean loss burst above which reference selection replaces retransmission, if the encoder supports it.
    pub nack_burst: f64,
    /// Whether mechanisms also apply outside the figure's regions:
    ///
    /// - Retransmission, if there is time for more than one: up to the loss at which the residual loss equals that of
    ///   one at the figure's edge.
    /// - Slices and repair packets, to the right of the figure. The text limits repair by its chosen protection, which
    ///   here grows with loss.
    /// - Repair packets, if packets are lost and neither retransmission nor references apply.
    pub extended: bool,
}

impl Applicability {
    /// The figure only.
    pub const FIGURE: Self = Self {
        nack: Region { loss: (0.0, 0.020), delay: (0.0, 0.338) },
        references: Region { loss: (0.0, 0.045), delay: (0.0, 0.746) },
        slices: Region { loss: (0.0, 0.080), delay: (0.0, 1.0) },
        protection: Region { loss: (0.031, 0.062), delay: (0.149, 1.0) },
        nack_burst: 3.0,
        extended: false,
    };

    /// The same for an end that cannot request packets: retransmission applies nowhere.
    pub const fn without_retransmission(self) -> Self {
        // Beyond the loss of everything.
        Self { nack: Region { loss: (2.0, 2.0), ..self.nack }, ..self }
    }

    /// Whether retransmission applies anywhere.
    pub fn retransmits(&self) -> bool {
        self.nack.loss.0 <= 1.0
    }

    /// The largest loss at which this number of retransmissions leaves no more than one leaves at the figure's edge.
    pub(super) fn nack_loss(&self, retransmissions: f64) -> f64 {
        let edge = self.nack.loss.1;
        if !self.extended || retransmissions <= 1.0 { edge } else { libm::pow(edge, 2.0 / (1.0 + retransmissions)) }
    }
}

impl Default for Applicability {
    fn default() -> Self {
        Self { extended: true, ..Self::FIGURE }
    }
}
