//! Where each mechanism applies: figure 5.4 of the dissertation as numbers.

/// A rectangle of loss and delay in which a mechanism applies.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Region {
    /// Fraction of packets lost, from and to.
    pub loss: (f64, f64),
    /// One-way delay over the longest delay that playout bears, from and to.
    pub delay: (f64, f64),
}

impl Region {
    /// Whether a point is inside, both edges included; the region is made larger by this share of its edges.
    pub(super) fn contains(&self, loss: f64, delay: f64, margin: f64) -> bool {
        let inside = |x: f64, (from, to): (f64, f64)| x >= from * (1.0 - margin) && x <= to * (1.0 + margin);
        inside(loss, self.loss) && inside(delay, self.delay)
    }
}

/// Where each mechanism applies.
///
/// The figure has no scale. Its rectangles are read from its drawing: to the right, loss; upwards, end-to-end delay.
///
/// - Delay: the rectangle of adaptive slices covers all of the operating region, so its top is taken for the longest delay
///   that playout bears. That of retransmission then ends at 0.338 of it: hardly above a third, the longest one-way delay at
///   which a packet, the request for it and its answer come in time one after the other.
/// - Loss: the right edge of retransmission is taken for 2 %, above which the text has a single mechanism scale no more. The
///   other edges then come to 4.5 % (reference selection), 3.1 % and 6.2 % (repair packets) and 8 % (slices).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Applicability {
    /// Retransmission.
    pub nack: Region,
    /// Reference picture selection.
    pub references: Region,
    /// Adaptive slice size.
    pub slices: Region,
    /// Repair packets for what others refer to.
    pub protection: Region,
    /// Losses in a row above which references are selected rather than packets sent again, where the encoder can.
    pub nack_burst: f64,
    /// Whether mechanisms also apply where the figure ends or leaves nothing:
    ///
    /// - Retransmission, where there is time for more than one: up to the loss at which no more is left than one leaves at
    ///   the figure's edge.
    /// - Slices and repair packets, to the right of the figure. The text bounds repair by the protection that was chosen, and
    ///   here the protection grows.
    /// - Repair packets, where packets are lost and neither retransmission nor references can do anything about it.
    pub extended: bool,
}

impl Applicability {
    /// The figure and nothing else.
    pub const FIGURE: Self = Self {
        nack: Region { loss: (0.0, 0.020), delay: (0.0, 0.338) },
        references: Region { loss: (0.0, 0.045), delay: (0.0, 0.746) },
        slices: Region { loss: (0.0, 0.080), delay: (0.0, 1.0) },
        protection: Region { loss: (0.031, 0.062), delay: (0.149, 1.0) },
        nack_burst: 3.0,
        extended: false,
    };

    /// The largest loss at which so many retransmissions leave no more than one leaves at the figure's edge.
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
