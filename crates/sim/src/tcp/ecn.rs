//! ECN of a connection: what is sent, and how the receiver reports marks.

use crate::tcp_segment::TcpSegment;
use weir_units::Ecn;

/// Whether a connection uses ECN, and how its receiver reports CE marks.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum EcnFeedback {
    /// No ECN: data is sent as not-ECT.
    #[default]
    Off,
    /// RFC 3168: ECT(0), and one congestion event a round trip is reported.
    Classic,
    /// DCTCP (RFC 8257, section 3.2): ECT(0), and the echo of each acknowledgement is the mark of the segments that it
    /// acknowledges.
    Dctcp,
    /// Accurate ECN (RFC 9768) by the ACE field alone: ECT(1), and the marked segments are counted.
    Accurate,
}

impl EcnFeedback {
    /// The ECN field of new data.
    pub const fn codepoint(self) -> Ecn {
        match self {
            Self::Off => Ecn::NotEct,
            Self::Classic | Self::Dctcp => Ecn::Ect0,
            Self::Accurate => Ecn::Ect1,
        }
    }
}

/// A receiver's state of marks.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct MarkEcho {
    /// Classic: a mark that the sender has not yet confirmed (RFC 3168, section 6.1.3). DCTCP: whether the last
    /// segment was marked (DCTCP.CE).
    congestion: bool,
    /// Marked segments, modulo 8.
    ace: u8,
}

impl MarkEcho {
    /// A segment with data. Returns whether what is waiting must be acknowledged first, since its mark differs
    /// (RFC 8257, section 3.2).
    pub(super) fn on_segment(&mut self, feedback: EcnFeedback, is_marked: bool, is_cwr: bool) -> bool {
        self.ace = (self.ace + u8::from(is_marked)) % 8;
        match feedback {
            EcnFeedback::Dctcp => {
                let differs = self.congestion != is_marked;
                self.congestion = is_marked;
                differs
            }
            _ => {
                self.congestion = is_marked || (self.congestion && !is_cwr);
                false
            }
        }
    }

    /// Whether the last segment was marked.
    pub(super) fn is_congested(&self) -> bool {
        self.congestion
    }

    /// Fills in an acknowledgement. `before` is for DCTCP's acknowledgement of what was waiting when the mark changed.
    pub(super) fn write(&self, feedback: EcnFeedback, before: Option<bool>, s: &mut TcpSegment) {
        match feedback {
            EcnFeedback::Off => {}
            EcnFeedback::Classic => s.is_ece = self.congestion,
            EcnFeedback::Dctcp => s.is_ece = before.unwrap_or(self.congestion),
            EcnFeedback::Accurate => s.ace = self.ace,
        }
    }
}

/// A sender's state of marks.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct MarkCount {
    ace: u8,
}

impl MarkCount {
    /// Marked segments reported by an acknowledgement of `segments` more segments.
    ///
    /// The ACE field wraps after 8 marks. With more than 7 segments acknowledged the most marks that fit are taken
    /// (RFC 9768, section 3.2.2.5: `dCEP.safer`).
    pub(super) fn on_ack(&mut self, feedback: EcnFeedback, s: &TcpSegment, segments: u64) -> u64 {
        match feedback {
            EcnFeedback::Dctcp if s.is_ece => segments,
            EcnFeedback::Accurate => {
                let change = u64::from(s.ace.wrapping_sub(self.ace) % 8);
                self.ace = s.ace % 8;
                if segments < 8 { change.min(segments) } else { segments - (segments - change) % 8 }
            }
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_is_exact_up_to_seven_and_the_most_that_fits_above() {
        let segment = |ace| TcpSegment { ace, ..TcpSegment::default() };
        let mut c = MarkCount::default();
        assert_eq!(c.on_ack(EcnFeedback::Accurate, &segment(2), 2), 2);
        assert_eq!(c.on_ack(EcnFeedback::Accurate, &segment(2), 2), 0);
        // Over the wrap.
        assert_eq!(c.on_ack(EcnFeedback::Accurate, &segment(1), 7), 7);
        // 20 segments and a change of 3: 3, 11 or 19 marks.
        assert_eq!(c.on_ack(EcnFeedback::Accurate, &segment(4), 20), 19);
        // More marks than segments cannot be.
        assert_eq!(c.on_ack(EcnFeedback::Accurate, &segment(3), 1), 1);
        let mut c = MarkCount { ace: 7 };
        assert_eq!(c.on_ack(EcnFeedback::Classic, &segment(1), 2), 0);
    }

    #[test]
    fn dctcp_acknowledges_before_a_change_of_marks() {
        let mut e = MarkEcho::default();
        assert!(!e.on_segment(EcnFeedback::Dctcp, false, false));
        assert!(e.on_segment(EcnFeedback::Dctcp, true, false));
        assert!(!e.on_segment(EcnFeedback::Dctcp, true, false));
        let mut s = TcpSegment::default();
        e.write(EcnFeedback::Dctcp, Some(false), &mut s);
        assert!(!s.is_ece);
        e.write(EcnFeedback::Dctcp, None, &mut s);
        assert!(s.is_ece);
    }

    #[test]
    fn classic_echoes_until_the_window_was_reduced() {
        let mut e = MarkEcho::default();
        e.on_segment(EcnFeedback::Classic, true, false);
        e.on_segment(EcnFeedback::Classic, false, false);
        assert!(e.is_congested());
        e.on_segment(EcnFeedback::Classic, false, true);
        assert!(!e.is_congested());
        // A mark on the segment that confirms the last is a new one.
        e.on_segment(EcnFeedback::Classic, true, true);
        assert!(e.is_congested());
    }
}
