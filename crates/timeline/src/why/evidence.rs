//! The numbers around an episode that rules are written in.

use super::bins::{self, BIN, Bin};
use super::drift::{Drift, drift};
use super::episodes::Span;
use super::layers::{self, Layer};
use super::passage::{Fate, Passages};
use super::policing::{self, Bucket};
use super::waiting;
use std::collections::BTreeMap;

/// Times around an episode's begin, in s: signs come up to so long before a fall, and last so long into it.
const EARLY: f64 = 3.0;
const LATE: f64 = 4.0;
/// Time before, in which the path is taken for what it was.
const PAST: f64 = 12.0;
/// A queue stands where even the fastest packet of half a second is so much slower than before, in ms.
pub(super) const STANDING: f64 = 20.0;
/// Time behind the begin in which services are compared, in s, and least packets that a service is the median of.
const NEAR: f64 = 20.0;
const LEAST_SERVED: usize = 5;
/// Time behind the begin in which losses are compared with a bucket, in s.
const POLICED: f64 = 12.0;
/// Roughness of delays from which no queue makes them: half way to delays that are drawn one by one.
pub(super) const ROUGH: f64 = 1.0;
/// Least frames in a second whose delays are compared.
const LEAST_FRAMES: usize = 8;
/// Least standard deviation in a second of delays that are not steady, in ms: that of 12 ms of even jitter.
const DIFFER: f64 = 3.5;
/// Share of the distance of arrivals below which the distance of departures shows that the path spaced them; of those paced at the rate of
/// the link; and most differences of services of the latter.
const CLOSER: f64 = 0.5;
const PACED: f64 = 0.9;
const EVEN_PACED: f64 = 0.1;
/// Least size of packets that a service rate is measured with, in bytes.
const LARGE: f64 = 500.0;
/// Resolution of arrivals, in ms, from which the distance of two packets says nothing, and how many times as long what is measured with it is.
const COARSE: f64 = 0.5;
const TRAIN: f64 = 5.0;
/// Rate of service, over that before, beyond which some packets followed each other as the receiver's host took them, and not as the link served them.
const FASTER: f64 = 2.0;
/// Time into an outage in which answers to packets from before it may come, in s.
const ON_THE_WAY: f64 = 0.5;
/// Least resolution of captures, in ms.
const FINE: f64 = 0.05;

/// Numbers around an episode.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Evidence {
    /// Share of packets lost, and packets in a row, around the begin; packets lost.
    pub(super) loss: f64,
    pub(super) run: f64,
    pub(super) lost: u32,
    /// Share of packets lost before.
    pub(super) loss_before: f64,
    /// Median delay of bins with loss, above the floor before, in ms.
    pub(super) lossy_delay: f64,
    /// Arrived rates of bins with loss: mean, and spread as a share of the mean; the same of the sent rates.
    pub(super) lossy_arrived: (f64, f64),
    pub(super) lossy_sent: (f64, f64),
    /// The token bucket that predicts the losses best.
    pub(super) bucket: Option<Bucket>,
    /// Least delays of half seconds above those before: mean, and spread, in ms.
    pub(super) floor: (f64, f64),
    /// The same from the first one on that is much longer.
    pub(super) step: (f64, f64),
    /// Seconds for which the queue stands.
    pub(super) standing_s: f64,
    /// Median of the largest less the least delay of half seconds, before and in it, in ms.
    pub(super) spread: (f64, f64),
    /// The same of delay that is left when what the call's own packets wait for each other is taken away.
    pub(super) foreign: (f64, f64),
    /// Longest time without an arrival around the begin, while packets were sent, in ms.
    pub(super) gap: f64,
    /// How many were at least half as long.
    pub(super) gaps: usize,
    /// Largest delay above the floor before, in ms.
    pub(super) peak: f64,
    /// Separate peaks of more than 100 ms between half seconds without a queue.
    pub(super) spikes: u32,
    /// Longest time in which nothing that was sent arrived, in s, and the packets lost in it.
    pub(super) dark_s: f64,
    pub(super) dark_lost: u32,
    /// Answers that arrived in it, behind those that were on their way as it began.
    pub(super) dark_heard: usize,
    /// Longest time without an answer while packets arrived, or nobody knows, in s; the usual one.
    pub(super) unanswered_s: f64,
    pub(super) usual_unanswered_s: f64,
    /// Way of answers, above the least, before and in it, in ms.
    pub(super) answer_delay: Option<(f64, f64)>,
    /// Slopes of both ways' delays from the time before into it, by two clocks.
    pub(super) drift: Option<Drift>,
    /// A layer of a picture that stopped while another went on.
    pub(super) layer: Option<Layer>,
    /// Rates at which the path served packets one behind the other, before and in it: the median, in kbit/s; zero where it spaced none.
    pub(super) service: (f64, f64),
    /// Spread of the times that a byte took in the standing queue: the middle half of them over their median.
    pub(super) uneven: f64,
    /// Whether the slower half of them is even: the faster ones may be from before.
    pub(super) slow_even: bool,
    /// The fastest eighth of the services in the standing queue, in kbit/s.
    pub(super) fastest: f64,
    /// Slowest and fastest median service of a half second in which a queue stands, within 20 s, one on either side left out.
    pub(super) services: Option<(f64, f64)>,
    /// The logged estimate before and in it, in kbit/s, and whether it stays there to the bit.
    pub(super) estimate: Option<(f64, f64, bool)>,
    /// Whether the feedback can be read: what the other end asks for would be seen.
    pub(super) told: bool,
    /// Mean square of the change of delay from one frame's first packet to the next one's, over the variance within a second: 2 where each is
    /// drawn alone, far less in a queue, which grows and drains. Zero where delay is steady.
    pub(super) rough: f64,
    /// Share of packets that arrived together with the one before, faster than the path served before.
    pub(super) clumped: (f64, f64),
    /// Rates of others from the sender's host, before and in it, in kbit/s.
    pub(super) other: (f64, f64),
    /// Rate that arrived before, and in the standing queue, in kbit/s; the latter's spread as a share.
    pub(super) arrived_before: f64,
    pub(super) arrived: (f64, f64),
    /// Packets of more than 500 bytes a second in the fall, behind its first second.
    pub(super) large: f64,
    /// Whether arrivals are by a clock too coarse for the distance of two packets.
    pub(super) coarse: bool,
    /// Whether anything is known before.
    pub(super) has_past: bool,
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// Mean, and standard deviation.
fn moments(values: &[f64]) -> (f64, f64) {
    let n = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / n;
    (mean, libm::sqrt(variance))
}

fn share(values: &[f64]) -> (f64, f64) {
    let (mean, spread) = moments(values);
    (mean, if mean > 0.0 { spread / mean } else { 0.0 })
}

impl Evidence {
    /// The numbers around the begin of an episode; of a slow start, those in it.
    pub(super) fn around(of: &Passages, bins: &[Bin], span: &Span) -> Self {
        let whole = span.kind == super::EpisodeKind::SlowStart;
        let (from, to) = if whole { (1.0, span.to) } else { (span.from - EARLY, span.from + LATE) };
        let past = (span.from - PAST, span.from - EARLY);
        let within = |range: (f64, f64)| bins.iter().filter(move |b| b.at >= range.0 && b.at < range.1);
        let (past_bins, now): (Vec<&Bin>, Vec<&Bin>) = (within(past).collect(), within((from, to)).collect());
        let mut e = Self { has_past: past_bins.len() >= 4, coarse: of.resolution >= COARSE, ..Self::default() };
        let floor_before =
            if e.has_past { median(past_bins.iter().filter_map(|b| Some(b.delay?[0])).collect()) } else { 0.0 };
        let spread_of = |bins: &[&Bin]| median(bins.iter().filter_map(|b| b.delay.map(|d| d[2] - d[0])).collect());
        e.loss_before = ratio(past_bins.iter().map(|b| b.lost).sum(), past_bins.iter().map(|b| b.known).sum());
        e.lost = now.iter().map(|b| b.lost).sum();
        e.loss = ratio(e.lost, now.iter().map(|b| b.known).sum());
        e.run = f64::from(e.lost) / f64::from(now.iter().map(|b| b.runs).sum::<u32>().max(1));
        let lossy: Vec<&&Bin> = now.iter().filter(|b| b.lost > 0).collect();
        e.lossy_delay = median(lossy.iter().filter_map(|b| Some(b.delay?[1])).collect()) - floor_before;
        e.lossy_arrived = share(&lossy.iter().map(|b| b.arrived_kbps).collect::<Vec<_>>());
        e.lossy_sent = share(&lossy.iter().map(|b| b.sent_kbps).collect::<Vec<_>>());
        let policed = of.between(from, to.max(span.from + POLICED));
        e.bucket = policing::bucket(policed, e.lossy_arrived.0);
        // From the first sign on, which a bin of the fall's own second has at the latest.
        let begin =
            now.iter().position(|b| b.delay.is_some_and(|d| d[2] - floor_before > 40.0 + e.spread.0)).unwrap_or(0);
        let signs = &now[begin..];
        let floors: Vec<f64> = signs.iter().skip(1).filter_map(|b| Some(b.delay?[0] - floor_before)).take(8).collect();
        e.floor = moments(&floors);
        let longer = now.iter().filter_map(|b| Some(b.delay?[0] - floor_before)).skip_while(|f| *f <= STANDING);
        e.step = moments(&longer.skip(1).take(8).collect::<Vec<_>>());
        e.spread = (spread_of(&past_bins), spread_of(&signs.iter().skip(1).copied().collect::<Vec<_>>()));
        let standing: Vec<&&Bin> =
            now.iter().filter(|b| b.delay.is_some_and(|d| d[0] - floor_before > STANDING)).collect();
        e.standing_s = standing.len() as f64 * BIN;
        e.arrived = share(&standing.iter().map(|b| b.arrived_kbps).collect::<Vec<_>>());
        e.arrived_before = median(past_bins.iter().map(|b| b.arrived_kbps).collect());
        e.peak = now.iter().filter_map(|b| b.delay).map(|d| d[2] - floor_before).fold(0.0, f64::max);
        let wide: Vec<&Bin> = within((from, to + LATE)).collect();
        e.rough = rough(of, (span.from - 0.5, to));
        e.spikes = spikes(&wide, floor_before);
        e.other = (moments(&past_bins.iter().map(|b| b.other_kbps).collect::<Vec<_>>()).0, {
            let late: Vec<f64> = within((span.from - 1.0, span.from + LATE)).map(|b| b.other_kbps).collect();
            moments(&late).0
        });
        // The last second has what comes behind it.
        let end = (span.to - 1.0).min(span.from + LATE + 1.0).max(span.from + 1.5);
        let fallen = of.between(span.from + 1.0, end);
        let seconds = end - span.from - 1.0;
        e.large = fallen.iter().filter(|p| p.size > LARGE).count() as f64 / seconds;
        let (dark_from, dark_to, lost) = dark(of, (from, to));
        (e.dark_s, e.dark_lost) = (dark_to - dark_from, lost);
        let heard = of.answers.iter().filter_map(|a| a.arrived);
        e.dark_heard = heard.filter(|at| *at > dark_from + ON_THE_WAY && *at < dark_to).count();
        e.answers(of, past, (from, to));
        e.drift = drift(of, bins, (past.0, to)).filter(|_| e.has_past);
        e.layer = layers::stopped(of, span);
        // Frames that are sent at once make a queue of their own.
        let queue = bins::least_delay(of) + floor_before + e.spread.0 + STANDING;
        let first = now.get(begin).map_or(from, |b| b.at);
        e.serve(of, past, ((from, to), first), queue);
        e.foreign = (waiting::foreign(of, past, e.service.0), waiting::foreign(of, (first + BIN, to), e.service.0));
        (e.gap, e.gaps) = waiting::gaps(of, (from, to + LATE), bins::least_delay(of) + floor_before);
        let near = within((span.from - EARLY, span.from + NEAR));
        let queued = near.filter(|b| b.delay.is_some_and(|d| d[0] - floor_before > STANDING));
        let mut rates: Vec<f64> = queued
            .map(|b| served(of, (b.at, b.at + BIN), f64::NEG_INFINITY, CLOSER))
            .filter(|rates| rates.len() >= LEAST_SERVED)
            .map(median)
            .collect();
        rates.sort_by(f64::total_cmp);
        // The first half second may be of both, before and behind.
        match rates[..] {
            [_, slowest, .., fastest, _] | [slowest, fastest, _] => e.services = Some((slowest, fastest)),
            _ => {}
        }
        e
    }

    /// Whether the receiver's host took packets together that the path had spaced.
    pub(super) fn taken_together(&self) -> bool {
        self.service.0 > 0.0 && self.fastest > FASTER * self.service.0
    }

    fn answers(&mut self, of: &Passages, past: (f64, f64), now: (f64, f64)) {
        let gaps = |range: (f64, f64), whole: bool| {
            let mut times: Vec<f64> = of.answers.iter().filter_map(|a| a.arrived).collect();
            times.sort_by(f64::total_cmp);
            // Where no further answer came, also because the other end took another pair, none came until the last packet.
            if let Some(last) = of.packets.last().filter(|last| times.last().is_some_and(|at| *at < last.at)) {
                times.push(last.at);
            }
            let inside = |w: &&[f64]| w[1] >= range.0 && w[usize::from(whole)] < range.1;
            let inside = times.windows(2).filter(inside).map(|w| (w[0], w[1]));
            inside.collect::<Vec<_>>()
        };
        self.usual_unanswered_s = gaps(past, true).iter().map(|(a, b)| b - a).fold(0.0, f64::max);
        for (a, b) in gaps(now, false) {
            // An outage of the way there has no answers either: then packets are known to be lost.
            let inside = of.between(a + 0.1, b - 0.3);
            let lost = inside.iter().filter(|p| p.fate == Fate::Lost).count();
            // Feedback follows packets: for the time in which none was sent there is none to come.
            let sent_s = inside.last().zip(inside.first()).map_or(0.0, |(last, first)| last.at - first.at);
            if (lost as f64) < 0.3 * inside.len() as f64 && sent_s > 0.5 * (b - a) {
                self.unanswered_s = self.unanswered_s.max(b - a);
            }
        }
        let ways = |range: (f64, f64)| {
            let inside = of.answers.iter().filter_map(|a| Some((a.sent?, a.arrived?)));
            let ways: Vec<f64> =
                inside.filter(|(_, at)| (range.0..range.1).contains(at)).map(|(s, a)| (a - s) * 1000.0).collect();
            // Two clocks: without a time before there is nothing to compare with.
            (!ways.is_empty()).then(|| median(ways))
        };
        self.answer_delay = ways(past).zip(ways((now.0 + EARLY, now.1))).filter(|_| of.both_ends);
    }

    /// Rates of service. Behind a queue alone is it the path that spaces packets; before, bursts of a frame make one.
    /// The queue is looked at from the first sign on; `queued` is the delay in ms from which a packet was in it.
    fn serve(&mut self, of: &Passages, past: (f64, f64), (now, first): ((f64, f64), f64), queued: f64) {
        let (before, after) = (served(of, past, f64::NEG_INFINITY, CLOSER), served(of, now, f64::NEG_INFINITY, CLOSER));
        let of_queue = |closer: f64| {
            let mut rates = served(of, (first, now.1), queued, closer);
            rates.sort_by(f64::total_cmp);
            let part = |eighths: usize| rates.get(rates.len() * eighths / 8).copied().unwrap_or(0.0);
            let parts = [part(2), part(4), part(6), part(7)];
            (parts, if parts[0] > 0.0 { parts[1] / parts[0] - parts[1] / parts[2] } else { 0.0 }, rates.len())
        };
        let mut found = of_queue(CLOSER);
        if found.2 < LEAST_SERVED {
            // Packets that are paced as slowly as they arrive: then only a link that serves evenly is one.
            found = of_queue(PACED);
        }
        if found.2 < LEAST_SERVED || (found.1 >= EVEN_PACED && of_queue(CLOSER).2 < LEAST_SERVED) {
            found = ([0.0; 4], 0.0, 0);
        }
        let ([slow, middle, _, fastest], uneven, _) = found;
        self.service = (median(before.clone()), middle);
        (self.fastest, self.uneven) = (fastest, uneven);
        self.slow_even = slow > 0.0 && middle / slow - 1.0 < EVEN_PACED;
        let fast = 3.0 * self.service.0;
        let clumped = |r: &[f64]| r.iter().filter(|r| **r > fast).count() as f64 / r.len().max(1) as f64;
        self.clumped = (clumped(&before), clumped(&after));
    }
}

/// Rates at which large packets of a time left the path one behind the other, in kbit/s: of those that were sent closer together than they
/// arrived by this share, which the path has spaced, and both of which took so many ms at least.
fn served(of: &Passages, range: (f64, f64), least: f64, closer: f64) -> Vec<f64> {
    if of.resolution >= COARSE {
        return served_trains(of, range, least, closer);
    }
    let mut out = Vec::new();
    let mut last: Option<(f64, f64)> = None;
    for p in of.between(range.0, range.1) {
        let Fate::Arrived(delay) = p.fate else {
            last = None;
            continue;
        };
        let (sent, arrival) = (p.at * 1000.0, p.at * 1000.0 + delay);
        if let Some((sent_before, arrived)) = last {
            let (here, there) = (sent - sent_before, arrival - arrived);
            let queued = delay >= least && arrived - sent_before >= least;
            if p.size > LARGE && queued && here < closer * there.max(1.0) {
                out.push(p.size * 8.0 / there.max(FINE.max(of.resolution)));
            }
        }
        last = Some((sent, arrival));
    }
    out
}

/// The same from arrivals whose distance a coarse clock does not show: of packets one behind the other that take some of its units together.
fn served_trains(of: &Passages, range: (f64, f64), least: f64, closer: f64) -> Vec<f64> {
    let mut out = Vec::new();
    // When the first one was sent and arrived, and bytes and packets behind it.
    let mut train: Option<(f64, f64, f64, f64)> = None;
    for p in of.between(range.0, range.1) {
        let Fate::Arrived(delay) = p.fate else {
            train = None;
            continue;
        };
        let (sent, arrival) = (p.at * 1000.0, p.at * 1000.0 + delay);
        let begin = Some((sent, arrival, 0.0, 0.0));
        train = match train.filter(|_| delay >= least) {
            None => begin.filter(|_| delay >= least),
            Some((first, arrived, bytes, packets)) => {
                let (bytes, packets) = (bytes + p.size, packets + 1.0);
                let (here, there) = (sent - first, arrival - arrived);
                if there < TRAIN * of.resolution {
                    Some((first, arrived, bytes, packets))
                } else {
                    if here < closer * there && bytes > LARGE * packets {
                        out.push(bytes * 8.0 / there);
                    }
                    begin
                }
            }
        };
    }
    out
}

fn ratio(part: u32, whole: u32) -> f64 {
    f64::from(part) / f64::from(whole.max(1))
}

/// Median over seconds of von Neumann's ratio of the delays of frames' first packets, of the stream with most packets; zero where few
/// seconds have delays that differ.
fn rough(of: &Passages, range: (f64, f64)) -> f64 {
    let packets = of.between(range.0, range.1);
    let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
    packets.iter().for_each(|p| *counts.entry(p.ssrc).or_default() += 1);
    let Some((heaviest, _)) = counts.into_iter().max_by_key(|c| c.1) else { return 0.0 };
    let (mut firsts, mut frame) = (Vec::new(), None);
    for p in packets.iter().filter(|p| p.ssrc == heaviest) {
        if let Fate::Arrived(delay) = p.fate
            && frame != Some(p.timestamp)
        {
            firsts.push(((p.at - range.0) as usize, delay));
        }
        frame = Some(p.timestamp);
    }
    let ratio = |second: &[(usize, f64)]| {
        let delays: Vec<f64> = second.iter().map(|s| s.1).collect();
        let (_, deviation) = moments(&delays);
        let changes = delays.windows(2).map(|w| (w[1] - w[0]) * (w[1] - w[0])).sum::<f64>();
        let enough = delays.len() >= LEAST_FRAMES && deviation >= DIFFER;
        enough.then(|| changes / (delays.len() - 1) as f64 / (deviation * deviation))
    };
    let ratios: Vec<f64> = firsts.chunk_by(|a, b| a.0 == b.0).filter_map(ratio).collect();
    if ratios.len() < 2 { 0.0 } else { median(ratios) }
}

/// Peaks of delay of more than 100 ms, each between half seconds without a queue.
fn spikes(bins: &[&Bin], floor: f64) -> u32 {
    let (mut count, mut up) = (0, false);
    for delay in bins.iter().filter_map(|b| b.delay) {
        let (low, high) = (delay[0] - floor < STANDING, delay[2] - floor > 100.0);
        count += u32::from(high && !up);
        // A bin may end one peak and begin the next.
        up = high && !low;
    }
    count
}

/// Begin and end of the longest time in which what was sent was lost, in s, and how many packets that were.
fn dark(of: &Passages, range: (f64, f64)) -> (f64, f64, u32) {
    let (mut longest, mut run) = ((0.0, 0.0, 0), None::<(f64, u32)>);
    for p in of.between(range.0, range.1) {
        match p.fate {
            Fate::Lost => {
                let (since, n) = run.unwrap_or((p.at, 0));
                run = Some((since, n + 1));
                if p.at - since >= longest.1 - longest.0 {
                    longest = (since, p.at, n + 1);
                }
            }
            Fate::Arrived(_) => run = None,
            Fate::Unknown => {}
        }
    }
    longest
}
