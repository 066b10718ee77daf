//! Licences of what is built in, by the list in `deny.toml`.

use super::root;
use serde_json::Value;
use std::fs;
use std::process::Command;

/// Whether an SPDX expression is satisfied by licences of the list; `/` is an older way to write OR.
fn is_satisfied(expression: &str, allowed: &[String]) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let mut tokens = spaced.split_whitespace().peekable();
    let value = either(&mut tokens, allowed);
    value && tokens.next().is_none()
}

type Tokens<'a, 'b> = &'b mut std::iter::Peekable<std::str::SplitWhitespace<'a>>;

fn either(tokens: Tokens<'_, '_>, allowed: &[String]) -> bool {
    let mut value = both(tokens, allowed);
    while tokens.next_if_eq(&"OR").is_some() {
        value |= both(tokens, allowed);
    }
    value
}

fn both(tokens: Tokens<'_, '_>, allowed: &[String]) -> bool {
    let mut value = one(tokens, allowed);
    while tokens.next_if_eq(&"AND").is_some() {
        value &= one(tokens, allowed);
    }
    value
}

fn one(tokens: Tokens<'_, '_>, allowed: &[String]) -> bool {
    if tokens.next_if_eq(&"(").is_some() {
        let value = either(tokens, allowed);
        return tokens.next() == Some(")") && value;
    }
    let mut name = tokens.next().unwrap_or_default().to_owned();
    if tokens.next_if_eq(&"WITH").is_some() {
        name = format!("{name} WITH {}", tokens.next().unwrap_or_default());
    }
    allowed.contains(&name)
}

#[test]
fn every_dependency_has_an_allowed_licence() {
    let deny: toml::Table = fs::read_to_string(root().join("deny.toml")).expect("a file").parse().expect("TOML");
    let allowed = deny["licenses"]["allow"].as_array().expect("a list");
    let allowed: Vec<String> = allowed.iter().filter_map(|l| l.as_str().map(str::to_owned)).collect();
    let host = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let args = ["metadata", "--format-version", "1", "--locked", "--offline", "--filter-platform", &host];
    let out = Command::new(env!("CARGO")).args(args).current_dir(root()).output().expect("cargo runs");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let all: Value = serde_json::from_slice(&out.stdout).expect("JSON");
    let packages: Vec<&Value> = all["packages"].as_array().expect("a list").iter().collect();
    assert!(packages.len() > 100, "{}", packages.len());
    let refused: Vec<String> = packages
        .iter()
        .filter(|p| !p["license"].as_str().is_some_and(|l| is_satisfied(l, &allowed)))
        .map(|p| format!("{} {}: {}", p["name"], p["version"], p["license"]))
        .collect();
    assert!(refused.is_empty(), "{refused:#?}");
}

#[test]
fn expressions_are_read_as_spdx_means_them() {
    let allowed = ["MIT".to_owned(), "BSD-3-Clause".to_owned(), "Apache-2.0 WITH LLVM-exception".to_owned()];
    let is = |e| is_satisfied(e, &allowed);
    assert!(is("MIT") && is("GPL-3.0 OR MIT") && is("MIT/Apache-2.0") && is("MIT AND BSD-3-Clause"));
    assert!(is("(MIT OR Apache-2.0) AND BSD-3-Clause") && is("Apache-2.0 WITH LLVM-exception OR GPL-2.0"));
    assert!(!is("GPL-3.0") && !is("MIT AND GPL-3.0") && !is("Apache-2.0") && !is("(MIT") && !is("MIT MIT") && !is(""));
}
