//! The definitions, imports and names of a source file, read from its text.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// One source file before its tests.
#[derive(Debug, Default)]
pub(super) struct Module {
    pub(super) file: PathBuf,
    /// Names defined in it.
    pub(super) defined: BTreeSet<String>,
    /// The imports of `use`: name, and the path as written.
    pub(super) imports: BTreeMap<String, Vec<String>>,
    /// Paths after which `use` writes a star.
    pub(super) globs: Vec<Vec<String>>,
    /// Every path that begins with `crate`, `super` or `self`, and its line.
    pub(super) paths: Vec<(Vec<String>, usize)>,
    /// Children that are built for tests alone.
    pub(super) test_children: BTreeSet<String>,
}

/// The text without comments and without quoted text; line breaks stay.
fn without_comments_and_strings(text: &str) -> String {
    let bytes: Vec<char> = text.chars().collect();
    let (mut out, mut i) = (String::with_capacity(text.len()), 0);
    let at = |i: usize| bytes.get(i).copied().unwrap_or('\0');
    while i < bytes.len() {
        let c = bytes[i];
        match c {
            '/' if at(i + 1) == '/' => {
                while i < bytes.len() && bytes[i] != '\n' {
                    i += 1;
                }
            }
            '/' if at(i + 1) == '*' => {
                i += 2;
                while i < bytes.len() && !(bytes[i] == '*' && at(i + 1) == '/') {
                    if bytes[i] == '\n' {
                        out.push('\n');
                    }
                    i += 1;
                }
                i += 2;
            }
            'r' if (at(i + 1) == '"' || (at(i + 1) == '#' && matches!(at(i + 2), '"' | '#'))) && !in_word(&out) => {
                let hashes = bytes[i + 1..].iter().take_while(|c| **c == '#').count();
                i += hashes + 2;
                while i < bytes.len() && !(bytes[i] == '"' && (1..=hashes).all(|h| at(i + h) == '#')) {
                    if bytes[i] == '\n' {
                        out.push('\n');
                    }
                    i += 1;
                }
                i += hashes + 1;
            }
            '"' => {
                i += 1;
                while i < bytes.len() && bytes[i] != '"' {
                    if bytes[i] == '\\' {
                        i += 1;
                    }
                    if at(i) == '\n' {
                        out.push('\n');
                    }
                    i += 1;
                }
                i += 1;
            }
            // A character, not a lifetime.
            '\'' if at(i + 1) == '\\' || at(i + 2) == '\'' => {
                i += if at(i + 1) == '\\' { 3 } else { 2 };
                while i < bytes.len() && bytes[i] != '\'' {
                    i += 1;
                }
                i += 1;
            }
            _ => {
                out.push(c);
                i += 1;
            }
        }
    }
    out
}

fn in_word(before: &str) -> bool {
    before.chars().next_back().is_some_and(|c| c.is_alphanumeric() || c == '_')
}

/// Words, `::` and single signs, each with its line.
fn tokens(text: &str) -> Vec<(String, usize)> {
    let chars: Vec<char> = text.chars().collect();
    let (mut out, mut line, mut i) = (Vec::new(), 1, 0);
    while i < chars.len() {
        let c = chars[i];
        if c.is_alphanumeric() || c == '_' {
            let from = i;
            while i < chars.len() && (chars[i].is_alphanumeric() || chars[i] == '_') {
                i += 1;
            }
            out.push((chars[from..i].iter().collect(), line));
            continue;
        }
        if c == ':' && chars.get(i + 1) == Some(&':') {
            out.push(("::".into(), line));
            i += 2;
            continue;
        }
        line += usize::from(c == '\n');
        if !c.is_whitespace() {
            out.push((c.to_string(), line));
        }
        i += 1;
    }
    out
}

/// The tokens without items for tests, and the names of modules that are such items.
fn without_tests(tokens: Vec<(String, usize)>) -> (Vec<(String, usize)>, BTreeSet<String>) {
    let (mut kept, mut tests, mut i) = (Vec::new(), BTreeSet::new(), 0);
    let starts = |i: usize| {
        let want = ["#", "[", "cfg", "(", "test", ")", "]"];
        want.iter().enumerate().all(|(k, w)| tokens.get(i + k).is_some_and(|t| t.0 == *w))
    };
    while i < tokens.len() {
        if !starts(i) {
            kept.push(tokens[i].clone());
            i += 1;
            continue;
        }
        i += 7;
        if let Some(at) = tokens[i..].iter().take(3).position(|t| t.0 == "mod") {
            tests.extend(tokens.get(i + at + 1).map(|t| t.0.clone()));
        }
        let mut depth = 0;
        while let Some((word, _)) = tokens.get(i) {
            i += 1;
            match word.as_str() {
                "{" | "(" | "[" => depth += 1,
                "}" | ")" | "]" => depth -= 1,
                _ => {}
            }
            if depth == 0 && matches!(word.as_str(), "}" | ";" | ",") {
                break;
            }
        }
    }
    (kept, tests)
}

/// Reads the tree of a `use` from `i` on; returns the position of its end.
fn use_tree(tokens: &[(String, usize)], mut i: usize, prefix: &[String], found: &mut Vec<Use>) -> usize {
    let mut path = prefix.to_vec();
    loop {
        let Some((word, line)) = tokens.get(i) else { return i };
        match word.as_str() {
            "::" => i += 1,
            "{" => {
                i += 1;
                while tokens.get(i).is_some_and(|t| t.0 != "}") {
                    i = use_tree(tokens, i, &path, found);
                    if tokens.get(i).is_some_and(|t| t.0 == ",") {
                        i += 1;
                    }
                }
                return i + 1;
            }
            "*" => {
                found.push(Use { path, name: "*".into(), line: *line });
                return i + 1;
            }
            "," | "}" | ";" => break,
            "as" => {
                let name = tokens.get(i + 1).map_or(String::new(), |t| t.0.clone());
                found.push(Use { path, name, line: *line });
                return i + 2;
            }
            _ => {
                path.push(word.clone());
                i += 1;
            }
        }
    }
    if path.last().is_some_and(|l| l == "self") && path.len() > 1 {
        path.pop();
    }
    let line = tokens.get(i).map_or(0, |t| t.1);
    if let Some(name) = path.last().cloned() {
        found.push(Use { path, name, line });
    }
    i
}

/// One name imported by a `use`.
struct Use {
    path: Vec<String>,
    name: String,
    line: usize,
}

/// Reads a source file.
pub(super) fn read(file: &Path, text: &str) -> Module {
    let (tokens, test_children) = without_tests(tokens(&without_comments_and_strings(text)));
    let mut module = Module { file: file.into(), test_children, ..Module::default() };
    let is_root = |word: &str| matches!(word, "crate" | "super" | "self");
    let mut i = 0;
    while i < tokens.len() {
        let (word, line) = &tokens[i];
        let next = tokens.get(i + 1).map_or("", |t| t.0.as_str());
        if word == "use" && next != "<" {
            let mut found = Vec::new();
            i = use_tree(&tokens, i + 1, &[], &mut found);
            for u in found {
                if u.path.first().is_some_and(|p| is_root(p)) {
                    module.paths.push((u.path.clone(), u.line));
                }
                if u.name == "*" {
                    module.globs.push(u.path);
                } else {
                    module.imports.insert(u.name, u.path);
                }
            }
            continue;
        }
        if is_root(word) && next == "::" {
            let mut path = vec![word.clone()];
            while tokens.get(i + 1).is_some_and(|t| t.0 == "::")
                && tokens.get(i + 2).is_some_and(|t| t.0.starts_with(|c: char| c.is_alphabetic() || c == '_'))
            {
                path.push(tokens[i + 2].0.clone());
                i += 2;
            }
            module.paths.push((path, *line));
        }
        let defines = ["struct", "enum", "fn", "trait", "type", "const", "static", "union", "macro_rules"];
        if defines.contains(&word.as_str()) && next != "!" {
            module.defined.insert(next.to_owned());
        }
        i += 1;
    }
    module
}
