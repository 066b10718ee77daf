//! How evenly flows share what there is, over a run.

use super::{FlowInfo, instant};
use crate::results::{Fairness, FlowKind, FlowSummary};
use weir_units::Timestamp;

/// The kinds of adaptive flows with which a flow shares a link.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rivals {
    pub(super) media: bool,
    pub(super) tcp: bool,
}

/// Those of each flow. Flows of separate links take nothing from each other: comparing them says nothing of fairness.
fn rivals(flows: &[FlowInfo], links: usize) -> Vec<Rivals> {
    // Adaptive media and TCP flows of each link.
    let mut counts = vec![(0u64, 0u64); links];
    let is_tcp = |f: &FlowInfo| f.kind == FlowKind::Tcp;
    for (f, l) in flows.iter().flat_map(|f| f.links.iter().map(move |&l| (f, l))) {
        if let Some(link) = counts.get_mut(l) {
            link.0 += u64::from(f.is_adaptive_media());
            link.1 += u64::from(is_tcp(f));
        }
    }
    let of = |f: &FlowInfo| {
        let with = |at_least: &dyn Fn(&(u64, u64)) -> bool| f.links.iter().filter_map(|&l| counts.get(l)).any(at_least);
        let (own_media, own_tcp) = (u64::from(f.is_adaptive_media()), u64::from(is_tcp(f)));
        Rivals { media: with(&|c| c.0 > own_media), tcp: with(&|c| c.1 > own_tcp) }
    };
    flows.iter().map(of).collect()
}

#[derive(Debug, Default)]
pub(super) struct FairnessMeter {
    /// Of each flow.
    pub(super) rivals: Vec<Rivals>,
    jain_sum: f64,
    jain_rows: u64,
    jain_min: Option<f64>,
    /// Goodput bytes of a mean RTP and of a mean TCP flow while both kinds were active.
    pub(super) rtp: f64,
    pub(super) tcp: f64,
    /// Scratch: RTP and TCP flows that share each link, and UDP bytes on it.
    pub(super) sharing: Vec<(u64, u64)>,
    /// Scratch: the fair share of a flow at each link.
    pub(super) fair_bps: Vec<f64>,
}

impl FairnessMeter {
    /// Of a run with these flows and so many links.
    pub(super) fn new(flows: &[FlowInfo], links: usize) -> Self {
        Self { rivals: rivals(flows, links), sharing: vec![(0, 0); links], ..Self::default() }
    }
    pub(super) fn on_jain(&mut self, jain: Option<f64>) {
        let Some(j) = jain else { return };
        self.jain_sum += j;
        self.jain_rows += 1;
        self.jain_min = Some(self.jain_min.map_or(j, |m| m.min(j)));
    }
    pub(super) fn finish(&self, flows: &[FlowSummary], tail: Timestamp) -> Fairness {
        let tails: Vec<f64> = (flows.iter().zip(&self.rivals))
            .filter(|(f, rivals)| {
                matches!(f.kind, FlowKind::Rtp | FlowKind::Dccp)
                    && f.adapts
                    && rivals.media
                    && f.start_s <= instant(tail)
                    && f.stop_s > instant(tail)
            })
            .map(|(f, _)| f.tail_goodput_bps)
            .collect();
        let several = tails.len() >= 2;
        let (sum, squares) = tails.iter().fold((0.0, 0.0), |(s, q), x| (s + x, q + x * x));
        let (low, high) = tails.iter().fold((f64::INFINITY, 0.0f64), |(l, h), &x| (l.min(x), h.max(x)));
        let both = self.rtp + self.tcp;
        Fairness {
            jain_mean: (self.jain_rows > 0).then(|| self.jain_sum / self.jain_rows as f64),
            jain_min: self.jain_min,
            jain_end: (several && squares > 0.0).then(|| sum * sum / (tails.len() as f64 * squares)),
            end_ratio: (several && low > 0.0).then(|| high / low),
            tcp_share: (both > 0.0).then(|| self.rtp / both),
            tcp_throughput_bps: None,
            tcp_goodput_bps: None,
            tcp_fair_share: None,
        }
    }
}
