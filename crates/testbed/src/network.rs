//! A scenario's network as the emulator's configuration.

use weir_lab::run::parts::access_link;
use weir_lab::scenario::{Flow, FlowKind, Scenario};
use weir_live::emulate::{Config, Route};
use weir_units::{DataSize, PathId};

/// All links and flows of a scenario. Links are in the simulator's order, so that their random draws are the same, and count a call's
/// packets with as many bytes of headers as the scenario says.
pub fn emulated(scenario: &Scenario, seed: u64) -> Config {
    let mut config = config(scenario, &scenario.flows, seed);
    for (route, (flow, _)) in config.flows.iter_mut().zip(hosts(&scenario.flows)) {
        route.headers = headers(&scenario.flows[flow]);
    }
    config
}

fn headers(flow: &Flow) -> Option<DataSize> {
    match &flow.kind {
        FlowKind::Rtp(r) => Some(r.dccp.as_ref().map_or(r.header_overhead, |d| d.header_overhead)),
        FlowKind::Dccp(d) => Some(d.connection.header_overhead),
        FlowKind::Tcp(_) | FlowKind::Udp(_) => None,
    }
}

/// The path of a scenario's first flow, with all its links.
pub fn emulated_path(scenario: &Scenario, seed: u64) -> Config {
    config(scenario, &scenario.flows[..1.min(scenario.flows.len())], seed)
}

/// One hop of a scenario, by the name of either of its directions; `None` if the name is unknown.
pub fn emulated_link(scenario: &Scenario, name: &str, seed: u64) -> Option<Config> {
    let forward = scenario.link(name)?;
    let other = match name.strip_suffix(".reverse") {
        Some(hop) => hop.to_owned(),
        None => format!("{name}.reverse"),
    };
    let route = Route { forward: vec![0], reverse: vec![1], headers: None };
    let links = [forward, scenario.link(&other)?].map(|i| &scenario.links[i]);
    let links = links.map(|l| (l.name.clone(), l.config.clone()));
    Some(Config { links: links.to_vec(), flows: vec![route], seed })
}

/// The flow and the path of each pair of hosts: the first path of every flow in the order of flows, then the others.
pub(super) fn hosts(flows: &[Flow]) -> Vec<(usize, PathId)> {
    let first = (0..flows.len()).map(|flow| (flow, PathId::FIRST));
    let further = flows.iter().enumerate().flat_map(|(flow, f)| {
        let count = f.rtp().and_then(|r| r.multipath.as_ref()).map_or(0, |m| m.paths.len());
        (1..u8::try_from(count).unwrap_or(u8::MAX)).map(move |n| (flow, PathId::new(n)))
    });
    first.chain(further).collect()
}

fn config(scenario: &Scenario, flows: &[Flow], seed: u64) -> Config {
    let mut links: Vec<_> = scenario.links.iter().map(|l| (l.name.clone(), l.config.clone())).collect();
    let mut routes = Vec::new();
    for flow in flows {
        let mut route = |ids: &[usize], way: &str| {
            let mut all = Vec::new();
            if let Some((name, access)) = access_link(flow) {
                all.push(links.len());
                links.push((format!("{name}{way}"), access));
            }
            all.extend(ids);
            all
        };
        let (forward, reverse) = (route(&flow.forward, ""), route(&flow.reverse, ", reverse"));
        routes.push(Route { forward, reverse, headers: None });
    }
    for (flow, path) in hosts(flows).into_iter().skip(flows.len()) {
        let paths = flows[flow].rtp().and_then(|r| r.multipath.as_ref()).map(|m| &m.paths);
        if let Some(p) = paths.and_then(|paths| paths.get(path.index())) {
            routes.push(Route { forward: p.forward.clone(), reverse: p.reverse.clone(), headers: None });
        }
    }
    Config { links, flows: routes, seed }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_cc::Registry;
    use weir_lab::scenario::ScenarioFile;

    fn scenario(text: &str) -> Scenario {
        let registry = Registry::builtin();
        let file = ScenarioFile::parse("t", text, ".".as_ref(), &registry).expect("sound");
        file.scenario(None, file.controllers().first().map(String::as_str), &registry).expect("sound")
    }

    #[test]
    fn routes_lead_over_access_links_first() {
        let s = scenario(
            r#"
            title = "t"
            duration = "5 s"
            topology = "dumbbell"
            [access]
            delay = "7 ms"
            [links.shared]
            rate = "2 Mbps"
            delay = "20 ms"
            [rtp.a]
            controller = "fixed"
            [tcp.b]
            algorithm = "cubic"
            "#,
        );
        let c = emulated(&s, 3);
        let names: Vec<&str> = c.links.iter().map(|l| &l.0[..]).collect();
        let access = ["access of a", "access of a, reverse", "access of b", "access of b, reverse"];
        assert_eq!(names, [&["shared", "shared.reverse"][..], &access].concat());
        let headers = Some(DataSize::from_bytes(28));
        assert_eq!(c.flows[0], Route { forward: vec![2, 0], reverse: vec![3, 1], headers });
        assert_eq!(c.flows[1], Route { forward: vec![4, 0], reverse: vec![5, 1], headers: None }, "the kernel's own");
        assert_eq!(c.links[5].1.delay.as_millis(), 7);
        assert_eq!(emulated_path(&s, 3).links.len(), 4);
        assert_eq!(hosts(&s.flows), [(0, PathId::FIRST), (1, PathId::FIRST)]);
        let one = emulated_link(&s, "shared.reverse", 3).expect("there");
        assert_eq!((&one.links[0].0[..], &one.links[1].0[..]), ("shared.reverse", "shared"));
        assert_eq!(emulated_link(&s, "none", 3), None);
    }

    #[test]
    fn further_paths_have_hosts_after_those_of_all_flows() {
        let s = scenario(
            r#"
            title = "t"
            duration = "5 s"
            topology = "network"
            [links.near]
            rate = "1 Mbps"
            delay = "20 ms"
            [links.far]
            rate = "2 Mbps"
            delay = "60 ms"
            [rtp.a]
            controller = "gcc"
            multipath = { paths = [["near"], ["far"]] }
            [rtp.b]
            path = ["far"]
            controller = "gcc"
            "#,
        );
        assert_eq!(hosts(&s.flows), [(0, PathId::FIRST), (1, PathId::FIRST), (0, PathId::new(1))]);
        let c = emulated(&s, 3);
        assert_eq!(c.flows.len(), 3);
        assert_eq!(c.flows[2], Route { forward: vec![2], reverse: vec![3], headers: Some(DataSize::from_bytes(28)) });
        assert_eq!(emulated_path(&s, 3).flows[0].headers, None, "packets of other programs count whole");
    }
}
