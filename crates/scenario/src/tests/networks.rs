//! A scenario's network as text for another file.

use super::*;

/// A call over a network, in a file that reads no other.
fn call_over(network: &NetworkText) -> Scenario {
    let NetworkText { fields, tables, flow } = network;
    let text = format!(
        "title = \"t\"\nduration = \"9 s\"\n{fields}\n{tables}\n[rtp.call]\ncontroller = \"fixed\"\nstart_rate = \"1 Mbps\"\n{flow}"
    );
    let registry = Registry::builtin();
    let file = ScenarioFile::parse_with_files("call", &text, Default::default(), &registry);
    file.and_then(|f| f.scenario(None, None, &registry)).unwrap_or_else(|e| panic!("{e:?}\n{text}"))
}

#[test]
fn the_path_of_every_shipped_scenario_is_the_same_in_a_file_of_its_own() {
    let registry = Registry::builtin();
    let (mut traces, mut several) = (0, 0);
    for (name, _) in builtin_scenarios() {
        let file = ScenarioFile::builtin(name, &registry).expect("a scenario");
        for variant in [file.variants().first(), file.variants().last()].into_iter().flatten() {
            let original = file.one(*variant, None, &registry).expect("a scenario");
            let copy = call_over(&file.network_text(*variant, &registry).expect("a network"));
            let (a, b) = (&original.flows[0], &copy.flows[0]);
            for (a, b) in [(&a.forward, &b.forward), (&a.reverse, &b.reverse)] {
                // The members of links are other flows, which the copy has not: they are not compared.
                let path = |s: &Scenario, ids: &[usize]| -> Vec<(String, weir_path::LinkConfig)> {
                    let link = |&i: &usize| {
                        let mut config = s.links[i].config.clone();
                        config.members = weir_path::Members::default();
                        (s.links[i].name.clone(), config)
                    };
                    ids.iter().map(link).collect()
                };
                assert_eq!(path(&original, a), path(&copy, b), "{name} {variant:?}");
                several += usize::from(a.len() > 1);
            }
            let access = |f: &Flow| (f.access_delay, f.access_rate, f.reversed, f.dscp);
            assert_eq!((access(a), original.topology), (access(b), copy.topology), "{name} {variant:?}");
            traces += original.links.iter().filter(|l| l.trace.is_some()).count();
        }
    }
    assert!(traces > 5 && several > 1, "{traces} {several}");
}

#[test]
fn opportunities_stay_in_their_file_by_its_full_path() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("up.mahi"), "0\n10\n20\n").expect("written");
    let text = SMALL.replace("rate = \"2 Mbps\"", "rate.trace = \"up.mahi\"");
    let registry = Registry::builtin();
    let file = ScenarioFile::parse("t", &text, folder.path(), &registry).expect("a scenario");
    let network = file.network_text(None, &registry).expect("a network");
    assert!(network.tables.contains(&*folder.path().join("up.mahi").to_string_lossy()), "{}", network.tables);
}
