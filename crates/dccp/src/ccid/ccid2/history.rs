use crate::ack_vector::{AckState, runs};
use crate::ccid::Acknowledgement;
use crate::packet::PacketType;
use std::collections::VecDeque;
use weir_units::{Seq48, TimeDelta, Timestamp};

/// Maximum packets kept. Data packets are bounded by the window; acknowledgements sent while one of these is
/// outstanding are not.
const MAX_PACKETS: usize = 1 << 17;
/// Numbers that the connection may skip before the history is dropped.
const MAX_HOLE: u64 = 1_024;
/// Capacity kept by an idle sender.
const IDLE_CAPACITY: usize = 64;

/// Drop Codes of the Data Dropped option (RFC 4340, table 7).
const PROTOCOL_CONSTRAINTS: u8 = 0;
const RECEIVE_BUFFER: u8 = 2;

/// The fate of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    /// A data packet is out.
    Out,
    /// A packet without data is out.
    OutWithoutData,
    /// It was received.
    Acked,
    /// It was lost.
    Lost,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    /// Send time, in microseconds that wrap: 71 minutes exceed any timeout.
    sent: u32,
    fate: Fate,
    /// Drop Code plus one, if the acknowledgement being processed reports its data dropped.
    dropped: u8,
}

/// News in an acknowledgement.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct News {
    /// Data packets received, marked or not.
    pub(super) acked: u32,
    /// Of these, unmarked, not dropped, and from a time when the window was full.
    pub(super) good: u32,
    /// Of these, packets without the last condition.
    pub(super) unmarked: u32,
    /// Data packets that were marked, or dropped at the receiver for a reason that counts as a mark.
    pub(super) marked: u32,
    /// The newest of them.
    pub(super) newest_marked: Option<Seq48>,
    /// Data packets lost.
    pub(super) lost: u32,
    /// The newest of them.
    pub(super) newest_lost: Option<Seq48>,
    /// Data packets dropped in the receive buffer.
    pub(super) receive_buffer_drops: u32,
    /// Data packets dropped at the receiver for any reason.
    pub(super) dropped: u32,
    /// Time from the sending of the packet acknowledged, if it is a data packet and new.
    pub(super) rtt: Option<TimeDelta>,
}

/// Packets sent since the oldest data packet that is still out. `pipe`, the data packets out, is its sum.
#[derive(Clone, Debug)]
pub(super) struct History {
    /// Number of the first entry.
    base: Seq48,
    entries: VecDeque<Entry>,
    /// Entries that are out and have data.
    pipe: u32,
    /// The newest received packet.
    newest_acked: Option<Seq48>,
    num_dup_ack: u32,
}

const fn micros(t: Timestamp) -> u32 {
    t.as_micros() as u32
}

impl History {
    pub(super) const fn new(num_dup_ack: u32) -> Self {
        Self { base: Seq48::new(0), entries: VecDeque::new(), pipe: 0, newest_acked: None, num_dup_ack }
    }
    pub(super) const fn pipe(&self) -> u32 {
        self.pipe
    }
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }
    #[cfg(test)]
    pub(super) fn count_out(&self) -> u32 {
        self.entries.iter().filter(|e| e.fate == Fate::Out).count() as u32
    }

    /// A packet was sent. Packets without data are kept only if they can reveal the loss of data before them.
    pub(super) fn on_sent(&mut self, seq: Seq48, now: Timestamp, is_data: bool) {
        if self.entries.is_empty() {
            if is_data {
                self.base = seq;
                self.push(now, Fate::Out);
            }
            return;
        }
        let ahead = seq.since(self.base.add(self.entries.len() as u64));
        if ahead < 0 {
            return;
        }
        let hole = ahead.unsigned_abs();
        if hole > MAX_HOLE || self.entries.len() as u64 + hole >= MAX_PACKETS as u64 {
            self.clear();
            return self.on_sent(seq, now, is_data);
        }
        (0..hole).for_each(|_| self.push(now, Fate::OutWithoutData));
        self.push(now, if is_data { Fate::Out } else { Fate::OutWithoutData });
    }
    fn push(&mut self, now: Timestamp, fate: Fate) {
        self.pipe += u32::from(fate == Fate::Out);
        self.entries.push_back(Entry { sent: micros(now), fate, dropped: 0 });
    }

    /// Treats everything as gone: nothing of it is counted again.
    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.pipe = 0;
    }
    /// Releases memory used by a large window.
    pub(super) fn shrink(&mut self) {
        self.entries.shrink_to(IDLE_CAPACITY);
    }

    /// Indices of the entries from `oldest` to `newest`.
    fn indices(&self, oldest: Seq48, newest: Seq48) -> core::ops::Range<usize> {
        let low = usize::try_from(oldest.since(self.base)).unwrap_or(0);
        let high = usize::try_from(newest.since(self.base) + 1).unwrap_or(0).min(self.entries.len());
        low..high.max(low)
    }

    /// Processes an acknowledgement. `full_until` is the newest packet that filled the window when it was sent.
    pub(super) fn on_acknowledgement(&mut self, ack: &Acknowledgement<'_>, full_until: Option<Seq48>) -> News {
        let mut news = News::default();
        // A Sync acknowledges an invalid packet (RFC 4340, section 7.5.4).
        if self.entries.is_empty() || ack.packet_type == PacketType::Sync {
            return news;
        }
        self.note_dropped(ack.acknowledged, ack.data_dropped);
        let offset = ack.acknowledged.since(self.base);
        if let Some(e) = usize::try_from(offset).ok().and_then(|i| self.entries.get(i)).filter(|e| e.fate == Fate::Out) {
            let took = TimeDelta::from_micros(i64::from(micros(ack.now).wrapping_sub(e.sent)));
            news.rtt = Some((took - ack.elapsed.unwrap_or(TimeDelta::ZERO)).max(TimeDelta::ZERO));
        }
        if ack.ack_vector.is_empty() {
            self.on_run(ack.acknowledged, ack.acknowledged, AckState::Received, full_until, &mut news);
        }
        for run in runs(ack.acknowledged, ack.ack_vector) {
            if self.base.is_after(run.newest) {
                break;
            }
            if run.state.came() {
                self.on_run(run.oldest(), run.newest, run.state, full_until, &mut news);
            }
        }
        self.find_lost(&mut news);
        self.forget();
        news
    }

    /// Records received packets.
    fn on_run(&mut self, oldest: Seq48, newest: Seq48, state: AckState, full_until: Option<Seq48>, news: &mut News) {
        for i in self.indices(oldest, newest).rev() {
            let seq = self.base.add(i as u64);
            let e = &mut self.entries[i];
            // A lost packet received late stays lost: it must not count twice.
            if matches!(e.fate, Fate::Acked | Fate::Lost) {
                continue;
            }
            let is_data = e.fate == Fate::Out;
            e.fate = Fate::Acked;
            self.newest_acked = Some(self.newest_acked.map_or(seq, |n| n.max(seq)));
            if !is_data {
                continue;
            }
            self.pipe -= 1;
            news.acked += 1;
            let dropped = e.dropped.checked_sub(1);
            news.dropped += u32::from(dropped.is_some());
            let drop_counts_as_mark = dropped.is_some_and(|code| !matches!(code, PROTOCOL_CONSTRAINTS | RECEIVE_BUFFER));
            if state == AckState::Marked || drop_counts_as_mark {
                news.marked += 1;
                news.newest_marked = Some(news.newest_marked.map_or(seq, |n| n.max(seq)));
            } else if dropped != Some(RECEIVE_BUFFER) {
                news.unmarked += 1;
                news.good += u32::from(full_until.is_some_and(|f| !seq.is_after(f)));
            }
            news.receive_buffer_drops += u32::from(dropped == Some(RECEIVE_BUFFER));
        }
    }

    /// Blocks of Data Dropped (RFC 4340, section 11.7): the run of a Normal Block has 7 bits, that of a Drop Block 4,
    /// after 3 bits of code.
    fn note_dropped(&mut self, acknowledged: Seq48, blocks: &[u8]) {
        let mut newest = acknowledged;
        for &b in blocks {
            let (len, dropped) = if b < 0x80 { (u64::from(b) + 1, 0) } else { (u64::from(b & 0xf) + 1, (b >> 4 & 7) + 1) };
            if dropped > 0 {
                for i in self.indices(newest.sub(len - 1), newest) {
                    self.entries[i].dropped = dropped;
                }
            }
            newest = newest.sub(len);
            if self.base.is_after(newest) {
                return;
            }
        }
    }

    /// A packet is lost if NUMDUPACK later packets were received (RFC 4341, section 5).
    fn find_lost(&mut self, news: &mut News) {
        let Some(newest) = self.newest_acked.filter(|n| !self.base.is_after(*n)) else { return };
        let mut left = self.num_dup_ack;
        let mut lost_below = 0;
        for i in self.indices(self.base, newest).rev() {
            if self.entries[i].fate == Fate::Acked {
                left -= 1;
                if left == 0 {
                    lost_below = i;
                    break;
                }
            }
        }
        for i in (0..lost_below).rev() {
            if self.entries[i].fate == Fate::Out {
                self.entries[i].fate = Fate::Lost;
                self.pipe -= 1;
                news.lost += 1;
                news.newest_lost = news.newest_lost.or(Some(self.base.add(i as u64)));
            }
        }
    }

    /// Removes entries before the oldest outstanding data packet. Everything below the NUMDUPACK-th newest received is
    /// decided, so little more than the outstanding packets remains.
    fn forget(&mut self) {
        while self.entries.front().is_some_and(|e| e.fate != Fate::Out) {
            self.entries.pop_front();
            self.base = self.base.next();
        }
    }
}
