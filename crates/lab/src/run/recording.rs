//! Configuration of the recorder of a scenario's run.

use crate::metrics::{self, FlowInfo, LinkInfo, RecorderConfig};
use crate::results;
use crate::scenario::bottleneck;
use crate::scenario::{self as sc, Flow, FlowKind, Scenario};
use weir_path as path;
use weir_units::{DataRate, TimeDelta, Timestamp};

/// The capacity for the metrics, at most the rate of the link's token buckets, on a radio link what its flows get together
/// beside the other users of each time: exact for steps, in rows of 100 ms for recorded traces and where users come and go.
fn measured_capacity(link: &sc::Link, duration: TimeDelta) -> metrics::Capacity {
    let buckets = [link.config.policer, link.config.shaper];
    let lasting = buckets.iter().flatten().map(|bucket| bucket.rate).min();
    let config = &link.config;
    let at = |at: Timestamp| {
        let rate = config.shared_at(at);
        lasting.map_or(rate, |lasting| rate.min(lasting))
    };
    match &config.capacity {
        path::Capacity::Unlimited => metrics::Capacity::constant(lasting.unwrap_or(DataRate::ZERO)),
        _ if config.has_changing_users() => metrics::Capacity::sampled(duration, TimeDelta::from_millis(100), at),
        path::Capacity::Constant(_) => metrics::Capacity::constant(at(Timestamp::ZERO)),
        path::Capacity::Schedule(schedule) if link.trace.is_none() => {
            let mut all = Vec::new();
            let mut epoch = TimeDelta::ZERO;
            while epoch < duration {
                all.extend(schedule.steps().iter().map(|s| Timestamp::ZERO + epoch + s.at).map(|t| (t, at(t))));
                match schedule.period() {
                    Some(period) => epoch += period,
                    None => break,
                }
            }
            metrics::Capacity::steps(all)
        }
        _ => metrics::Capacity::sampled(duration, TimeDelta::from_millis(100), at),
    }
}

/// The links with a limit on a flow's paths, each once. Both directions of a Wi-Fi link share its medium.
fn limited_links(s: &Scenario, f: &Flow) -> Vec<usize> {
    let further = f.rtp().and_then(|r| r.multipath.as_ref()).map_or(&[][..], |m| &m.paths);
    let all = f.forward.iter().chain(further.iter().flat_map(|p| &p.forward));
    let is_limited = |l: &&usize| s.links.get(**l).is_some_and(|l| !is_unlimited(l));
    let medium = |&l: &usize| {
        let is_wifi = matches!(s.links[l].config.radio, Some(path::Radio::Wifi(_)));
        let forward = || s.link(s.links[l].name.strip_suffix(".reverse")?);
        forward().filter(|_| is_wifi).unwrap_or(l)
    };
    let mut links: Vec<usize> = all.filter(is_limited).map(medium).collect();
    links.sort_unstable();
    links.dedup();
    links
}

/// The greatest rate of a media flow by its own limits.
fn most_of(rtp: &sc::RtpFlow, flow: &Flow) -> metrics::Capacity {
    let streams: u64 = rtp.streams.iter().map(|s| s.demand.most.as_bps()).fold(0, u64::saturating_add);
    let most = if rtp.streams.is_empty() { rtp.ceiling } else { rtp.ceiling.min(DataRate::from_bps(streams)) };
    let start = Timestamp::ZERO + flow.start;
    match &rtp.demand {
        None => metrics::Capacity::constant(most),
        Some(demand) => {
            let rates = demand.steps_until(flow.stop - flow.start).into_iter();
            metrics::Capacity::steps(rates.map(|(at, rate)| (start + at, rate.min(most))).collect())
        }
    }
}

fn is_unlimited(link: &sc::Link) -> bool {
    let has_bucket = link.config.policer.is_some() || link.config.shaper.is_some();
    matches!(link.config.capacity, path::Capacity::Unlimited) && !has_bucket
}

/// Configuration of the recorder of a scenario's run.
pub fn recorder_config(s: &Scenario, seed: u64, series: bool) -> RecorderConfig {
    let means = bottleneck::mean_capacities(&s.links, s.duration);
    let named = Some(s.bottleneck).filter(|_| s.has_named_bottleneck);
    let measured = |f: &Flow| bottleneck::limiting_links(f, named, &means);
    let flow = |f: &Flow| FlowInfo {
        name: f.name.clone(),
        controller: match &f.kind {
            FlowKind::Rtp(r) => s.controller_of(r).to_owned(),
            FlowKind::Tcp(t) => t.algorithm.name().into(),
            FlowKind::Udp(_) => "none".into(),
            FlowKind::Dccp(d) => format!("ccid{}", d.connection.ccid),
        },
        kind: match &f.kind {
            FlowKind::Rtp(_) => results::FlowKind::Rtp,
            FlowKind::Tcp(_) => results::FlowKind::Tcp,
            FlowKind::Udp(_) => results::FlowKind::Udp,
            FlowKind::Dccp(_) => results::FlowKind::Dccp,
        },
        adapts: match &f.kind {
            FlowKind::Rtp(r) => r.adapts,
            FlowKind::Tcp(_) | FlowKind::Dccp(_) => true,
            FlowKind::Udp(_) => false,
        },
        start: Timestamp::ZERO + f.start,
        stop: (f.stop < s.duration).then(|| Timestamp::ZERO + f.stop),
        playout_deadline: f.rtp().and_then(|r| r.playout_deadline),
        reported_headers: f.rtp().map_or(0, |r| r.reported_headers.as_bytes()),
        bottleneck: measured(f).first().copied().unwrap_or(0),
        further: measured(f).get(1..).unwrap_or_default().to_vec(),
        links: limited_links(s, f),
        most: f.rtp().map(|r| most_of(r, f)),
    };
    let link = |l: &sc::Link| LinkInfo { name: l.name.clone(), capacity: measured_capacity(l, s.duration) };
    RecorderConfig {
        scenario: s.name.clone(),
        condition: s.variant.clone().unwrap_or_default(),
        controller: s.controller.clone().unwrap_or_else(|| controllers(s)),
        seed,
        flows: s.flows.iter().map(flow).collect(),
        links: s.links.iter().map(link).collect(),
        bottleneck: s.bottleneck,
        sampling: s.sample_interval,
        series,
        duration: s.duration,
        burstiness: s.burstiness,
        windows: (s.windows.iter())
            .map(|w| metrics::Window {
                label: w.name.clone(),
                start: Timestamp::ZERO + w.from,
                end: Timestamp::ZERO + w.to,
            })
            .collect(),
    }
}

/// The controllers of a scenario without a placeholder, each once, joined by "+".
fn controllers(s: &Scenario) -> String {
    let mut names: Vec<&str> = s.flows.iter().filter_map(|f| f.rtp().map(|r| &r.controller[..])).collect();
    names.dedup();
    names.join("+")
}

#[cfg(test)]
mod tests {
    use crate::scenario::{Scenario, ScenarioFile};
    use weir_cc::Registry;

    fn only(text: &str) -> Scenario {
        let registry = Registry::builtin();
        let file = ScenarioFile::parse("test", text, ".".as_ref(), &registry).expect("a scenario");
        file.scenario(None, None, &registry).expect("one run")
    }

    #[test]
    fn a_flow_is_measured_against_the_link_that_limits_it() {
        let text = |core: &str, named: &str| {
            format!(
                r#"
                title = "Two ways into a core"
                duration = "10 s"
                topology = "network"
                {named}
                links.a = {{ rate = "5 Mbps", delay = "10 ms" }}
                links.b = {{ rate = "4 Mbps", delay = "10 ms" }}
                links.core = {{ rate = "{core}", delay = "10 ms" }}
                rtp.both = {{ controller = "gcc", multipath = {{ paths = [["a", "core"], ["b", "core"]] }} }}
                rtp.one = {{ controller = "gcc", path = ["a", "core"] }}
            "#
            )
        };
        let measured = |core: &str, named: &str| {
            let s = only(&text(core, named));
            let config = super::recorder_config(&s, 1, false);
            let name = |&l: &usize| s.links[l].name.clone();
            let of = |i: usize| {
                let f = &config.flows[i];
                std::iter::once(&f.bottleneck).chain(&f.further).map(name).collect::<Vec<_>>().join("+")
            };
            (name(&config.bottleneck), of(0), of(1))
        };
        let expected = |a: [&str; 3]| (a[0].to_owned(), a[1].to_owned(), a[2].to_owned());
        assert_eq!(measured("1 Mbps", ""), expected(["core", "core", "core"]));
        // More than each path, less than both.
        assert_eq!(measured("6 Mbps", ""), expected(["core", "core", "a"]));
        assert_eq!(measured("20 Mbps", ""), expected(["a", "a+b", "a"]));
        assert_eq!(measured("1 Mbps", "bottleneck = \"a\""), expected(["a", "a+core", "a"]));
    }
}
