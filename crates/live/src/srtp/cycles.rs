//! The rollover counter of a source: a packet's index is its sequence number and how often they have wrapped (RFC 3711,
//! section 3.3.1), which no packet carries.
//!
//! An end that did not see a wrap guesses wrong from then on, and authenticates nothing: one that has lost the first packets of a
//! source whose numbers begin shortly before the wrap, or more than half a cycle of them. It then tries the next cycle, at
//! packets refused in a row that become ever fewer, so that forgeries cost little more than before; the guess changes only
//! where the packet is authentic by it.

use rtc_rtp::Header;
use rtc_srtp::context::Context;

/// Numbers further apart than this are in different cycles (RFC 3711, section 3.3.1).
const MEDIAN: u64 = 1 << 15;
/// So many packets are refused in a row before the next cycle is tried, and at each doubling and each multiple of [`EVERY`] again.
const FIRST: u32 = 4;
const EVERY: u32 = 64;
/// Sources without an authentic packet of which refusals are counted; of the others none is tried.
const MAX_SUSPECTS: usize = 16;
/// Numbers by which the library's estimate is advanced at a time: less than half a cycle.
const STEP: u64 = 30_000;

/// An authenticated source of RTP: what the library knows of it, and packets refused since the last authentic one.
pub(super) struct Source {
    pub(super) id: u64,
    /// After a wrap that was not seen: the library's replay list of the former cycle would refuse what follows.
    pub(super) own: Option<Box<Context>>,
    /// The index of its last packet; `None` before the first, and for RTCP.
    index: Option<u64>,
    refused: u32,
}

impl Source {
    pub(super) const fn new(id: u64) -> Self {
        Self { id, own: None, index: None, refused: 0 }
    }
    /// An authentic packet, whose index the library has guessed.
    pub(super) fn on_opened(&mut self, sequence: u16) {
        self.index = Some(self.guess(sequence));
        self.refused = 0;
    }
    /// The library's guess of a packet's index.
    fn guess(&self, sequence: u16) -> u64 {
        let Some(index) = self.index else { return sequence.into() };
        let (local, sequence) = (index & 0xffff, u64::from(sequence));
        let cycle = index - local;
        match () {
            () if index <= MEDIAN => sequence,
            () if local < MEDIAN && sequence > local + MEDIAN => (cycle + sequence).saturating_sub(1 << 16),
            () if local >= MEDIAN && local - MEDIAN > sequence => cycle + (1 << 16) + sequence,
            () => cycle + sequence,
        }
    }
    /// The indices to try for a refused packet: in the cycle of the last one and the next, above the last. What the library guesses is
    /// among them, since its replay list takes a packet that is more than half a cycle ahead for an old one.
    fn others(&self, sequence: u16) -> impl Iterator<Item = u64> + use<> {
        let last = self.index.unwrap_or(0);
        let cycle = last & !0xffff;
        let above = [cycle, cycle + (1 << 16)].map(|c| c + u64::from(sequence));
        above.into_iter().filter(move |i| *i > last)
    }
    /// Counts a refused packet; the indices to try for it now.
    pub(super) fn on_refused(&mut self, sequence: u16) -> Option<impl Iterator<Item = u64> + use<>> {
        self.refused = self.refused.saturating_add(1);
        is_tried(self.refused).then(|| self.others(sequence))
    }
    /// Goes on with a context that has opened the packet of this index.
    pub(super) fn go_on_at(&mut self, index: u64, context: Context) {
        (self.own, self.index, self.refused) = (Some(Box::new(context)), Some(index), 0);
    }
}

fn is_tried(refused: u32) -> bool {
    refused >= FIRST && (refused.is_power_of_two() || refused.is_multiple_of(EVERY))
}

/// Advances a new context's estimate for a packet's source to this index, by packets that are thrown away: the library offers no
/// other way.
pub(super) fn advance(context: &mut Context, header: &Header, to: u64) -> Option<()> {
    let ssrc = header.ssrc.to_be_bytes();
    let mut pass = |index: u64| {
        let sequence_number = index as u16;
        let header = Header { version: 2, ssrc: header.ssrc, sequence_number, ..Header::default() };
        let mut packet = [0; 13];
        packet[0] = 0x80;
        packet[2..4].copy_from_slice(&sequence_number.to_be_bytes());
        packet[8..12].copy_from_slice(&ssrc);
        context.encrypt_rtp_with_header(&packet, &header).ok().map(|_| ())
    };
    let mut at = 0;
    pass(at)?;
    while at < to {
        at += (to - at).min(STEP);
        pass(at)?;
    }
    Some(())
}

/// Sources of which nothing authentic has come, and how many of their packets were refused.
#[derive(Clone, Debug, Default)]
pub(super) struct Suspects {
    sources: Vec<(u32, u32)>,
    next: usize,
}

impl Suspects {
    /// Counts a refused packet; the index to try for it now.
    pub(super) fn on_refused(&mut self, ssrc: u32, sequence: u16) -> Option<u64> {
        let place = self.sources.iter().position(|s| s.0 == ssrc);
        let place = place.unwrap_or_else(|| {
            if self.sources.len() < MAX_SUSPECTS {
                self.sources.push((ssrc, 0));
                return self.sources.len() - 1;
            }
            self.next = (self.next + 1) % MAX_SUSPECTS;
            self.sources[self.next] = (ssrc, 0);
            self.next
        });
        let refused = &mut self.sources[place].1;
        *refused = refused.saturating_add(1);
        is_tried(*refused).then_some((1 << 16) + u64::from(sequence))
    }
    pub(super) fn forget(&mut self, ssrc: u32) {
        self.sources.retain(|s| s.0 != ssrc);
    }
}
