//! Sequence and acknowledgement numbers and their windows (RFC 4340, sections 7.1 to 7.5).

use crate::packet::PacketType;
use weir_units::Seq48;

/// Sequence Window of new connections (RFC 4340, section 7.5.2).
pub(super) const DEFAULT_WINDOW: u64 = 100;

/// The numbers of one end, named as in RFC 4340, section 7.1. ISS and ISR are kept as the distances of other numbers
/// from them.
#[derive(Clone, Debug)]
pub(super) struct Sequences {
    /// Greatest number sent; one less than ISS before the first packet.
    pub(super) gss: Seq48,
    /// Greatest number received on an acknowledgeable packet.
    pub(super) gsr: Seq48,
    /// Greatest acknowledgement number received on an acknowledgeable packet other than a Sync.
    pub(super) gar: Seq48,
    /// First number received in OPEN.
    pub(super) osr: Option<Seq48>,
    /// Sequence Window of the data sent by this end: W' here, and the other end's W.
    pub(super) local_window: u64,
    /// Sequence Window of the data sent by the other end.
    pub(super) remote_window: u64,
    /// Numbers from ISS to GSS.
    sent: u64,
    /// Numbers from ISR to GSR.
    came: u64,
}

impl Sequences {
    pub(super) fn new(iss: Seq48) -> Self {
        Self {
            gss: iss.sub(1),
            gsr: Seq48::default(),
            gar: iss,
            osr: None,
            local_window: DEFAULT_WINDOW,
            remote_window: DEFAULT_WINDOW,
            sent: 0,
            came: 0,
        }
    }
    /// The number of a packet being sent.
    pub(super) fn send(&mut self) -> Seq48 {
        self.gss = self.gss.next();
        self.sent += 1;
        self.gss
    }
    /// Initialises the other end's numbers from its first packet.
    pub(super) fn begin(&mut self, sequence: Seq48) {
        (self.gsr, self.came) = (sequence, 1);
    }
    /// Whether anything has arrived.
    pub(super) fn has_begun(&self) -> bool {
        self.came > 0
    }
    /// Low end of the valid sequence numbers. The RFC's `max(.., ISR)`, relevant only at the beginning of a connection,
    /// is a window that does not extend below ISR.
    pub(super) fn swl(&self) -> Seq48 {
        self.gsr.next().sub((self.remote_window / 4).min(self.came))
    }
    /// High end.
    pub(super) fn swh(&self) -> Seq48 {
        self.gsr.add((self.remote_window * 3).div_ceil(4))
    }
    /// Low end of the valid acknowledgement numbers.
    pub(super) fn awl(&self) -> Seq48 {
        self.gss.next().sub(self.local_window.min(self.sent))
    }
    /// High end.
    pub(super) fn awh(&self) -> Seq48 {
        self.gss
    }
    /// Whether a number of ours is one that may be acknowledged now.
    pub(super) fn may_be_acknowledged(&self, ack: Seq48) -> bool {
        self.sent > 0 && ack.is_within(self.awl(), self.awh())
    }
    /// Step 5's check of Syncs and SyncAcks. While the connection is active, numbers above the window are refused as well
    /// (section 7.5.3's more stringent table).
    pub(super) fn sync_is_valid(&self, sequence: Seq48, ack: Seq48, active: bool) -> bool {
        let ours = self.may_be_acknowledged(ack);
        let theirs = if active { sequence.is_within(self.swl(), self.swh()) } else { sequence.since(self.swl()) >= 0 };
        ours && theirs
    }
    /// Step 6's check (section 7.5.3's first table).
    pub(super) fn is_valid(&self, packet_type: PacketType, sequence: Seq48, ack: Option<Seq48>) -> bool {
        let ends = matches!(packet_type, PacketType::CloseReq | PacketType::Close | PacketType::Reset);
        let (lswl, lawl) = if ends { (self.gsr.next(), self.gar) } else { (self.swl(), self.awl()) };
        let acknowledges = |a: Seq48| self.sent > 0 && a.is_within(lawl, self.awh());
        sequence.is_within(lswl, self.swh()) && ack.is_none_or(acknowledges)
    }
    /// A valid packet has this number.
    pub(super) fn received(&mut self, sequence: Seq48) {
        let ahead = sequence.since(self.gsr);
        if ahead > 0 {
            self.gsr = sequence;
            self.came = self.came.saturating_add(ahead.unsigned_abs());
        }
    }
    /// A valid packet other than a Sync acknowledges this.
    pub(super) fn acknowledged(&mut self, ack: Seq48) {
        self.gar = self.gar.max(ack);
    }
}

/// Remembers which of the newest numbers have arrived, to recognise copies.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    newest: Option<Seq48>,
    bits: [u64; Self::WORDS],
}

impl Seen {
    const WORDS: usize = 16;
    /// Numbers remembered.
    const SPAN: u64 = Self::WORDS as u64 * 64;

    pub(super) fn new() -> Self {
        Self { newest: None, bits: [0; Self::WORDS] }
    }
    fn place(sequence: Seq48) -> (usize, u64) {
        let bit = sequence.get() % Self::SPAN;
        ((bit / 64) as usize, 1 << (bit % 64))
    }
    /// Records a number; returns whether it was received before, as far as it is remembered.
    pub(super) fn note(&mut self, sequence: Seq48) -> bool {
        let ahead = match self.newest {
            None => i64::MAX,
            Some(n) => sequence.since(n),
        };
        if ahead <= -(Self::SPAN as i64) {
            return false;
        }
        if ahead > 0 {
            if ahead.unsigned_abs() >= Self::SPAN {
                self.bits = [0; Self::WORDS];
            } else {
                for back in 0..ahead.unsigned_abs() {
                    let (word, bit) = Self::place(sequence.sub(back));
                    self.bits[word] &= !bit;
                }
            }
            self.newest = Some(sequence);
        }
        let (word, bit) = Self::place(sequence);
        let came = self.bits[word] & bit != 0;
        self.bits[word] |= bit;
        came
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use PacketType as T;

    fn begun(iss: u64, sent: u64, isr: u64, gsr: u64) -> Sequences {
        let mut s = Sequences::new(Seq48::new(iss));
        for _ in 0..sent {
            s.send();
        }
        s.begin(Seq48::new(isr));
        s.received(Seq48::new(gsr));
        s
    }
    fn n(x: u64) -> Seq48 {
        Seq48::new(x)
    }

    #[test]
    fn windows_are_those_of_the_rfc() {
        // RFC 4340, section 7.5.1, with W = W' = 100: SWL = GSR + 1 - 25, SWH = GSR + 75, AWL = GSS + 1 - 100.
        let s = begun(1_000, 500, 7_000, 7_400);
        assert_eq!((s.swl(), s.swh()), (n(7_376), n(7_475)));
        assert_eq!((s.awl(), s.awh()), (n(1_400), n(1_499)));
        // A width not divisible by four: floor(W / 4) of 25 below, ceil(3 W / 4) of 77 above.
        let odd = Sequences { remote_window: 102, ..s };
        assert_eq!((odd.swl(), odd.swh()), (n(7_376), n(7_477)));
    }

    #[test]
    fn windows_do_not_reach_behind_the_beginning_until_the_numbers_have_gone_round() {
        let s = begun(1_000, 3, 7_000, 7_002);
        assert_eq!((s.swl(), s.awl()), (n(7_000), n(1_000)));
        // GSR and GSS just behind their start, a whole circle later: no clamp.
        let mut s = begun(0, 150, (1 << 48) - 1, 40);
        s.came = 1 << 48;
        assert_eq!(s.swl(), n(16));
    }

    #[test]
    fn each_type_has_its_row_of_the_table() {
        let mut s = begun(1_000, 200, 7_000, 7_400);
        s.acknowledged(n(1_150));
        let (old, new, gar) = (n(7_380), n(7_401), n(1_150));
        for t in [T::Data, T::Request] {
            assert!(s.is_valid(t, old, None) && s.is_valid(t, n(7_475), None));
            assert!(!s.is_valid(t, n(7_375), None) && !s.is_valid(t, n(7_476), None));
        }
        for t in [T::Ack, T::DataAck, T::Response] {
            assert!(s.is_valid(t, old, Some(n(1_100))) && s.is_valid(t, new, Some(n(1_199))), "{t}");
            assert!(!s.is_valid(t, new, Some(n(1_099))) && !s.is_valid(t, new, Some(n(1_200))), "{t}");
        }
        for t in [T::CloseReq, T::Close, T::Reset] {
            assert!(s.is_valid(t, new, Some(gar)), "{t}");
            assert!(!s.is_valid(t, n(7_400), Some(gar)) && !s.is_valid(t, new, Some(n(1_149))), "{t}");
        }
        let far = n(7_000 + (1 << 40));
        assert!(s.sync_is_valid(far, n(1_100), false) && !s.sync_is_valid(far, n(1_100), true));
        assert!(!s.sync_is_valid(n(7_300), n(1_100), false) && !s.sync_is_valid(new, n(1_200), false));
    }

    #[test]
    fn duplicates_are_reported() {
        let mut seen = Seen::new();
        assert!(!seen.note(n(5)) && seen.note(n(5)) && !seen.note(n(9)) && !seen.note(n(7)));
        assert!(seen.note(n(7)) && seen.note(n(9)) && !seen.note(n(8)));
        // Numbers too far behind are not remembered, and a jump ahead drops everything.
        assert!(!seen.note(n(9 + Seen::SPAN)) && !seen.note(n(9)));
        assert!(!seen.note(n(10 + Seen::SPAN)) && !seen.note(n(11)));
        assert!(!seen.note(n(1 << 40)) && seen.note(n(1 << 40)));
    }
}
