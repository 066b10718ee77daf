//! Adding a controller takes its own file or folder, its `mod` on a shelf and one line in the list. Programs that make it
//! without a registry need it exported from the shelf, in one line too.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The sources of this crate by path below `src`.
fn sources() -> BTreeMap<String, String> {
    fn walk(dir: &Path, prefix: &str, out: &mut BTreeMap<String, String>) {
        for entry in fs::read_dir(dir).expect("readable").flatten() {
            let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
            if entry.path().is_dir() {
                walk(&entry.path(), &format!("{name}/"), out);
            } else {
                out.insert(name, fs::read_to_string(entry.path()).expect("UTF-8"));
            }
        }
    }
    let mut out = BTreeMap::new();
    walk(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), "", &mut out);
    out
}

/// Lines of code containing `word` before the tests of a file.
fn lines_with<'a>(text: &'a str, word: &str) -> Vec<&'a str> {
    let code = text.lines().take_while(|l| !l.starts_with("#[cfg(test)]"));
    code.filter(|l| !l.trim_start().starts_with("//") && l.contains(word)).collect()
}

#[test]
fn a_file_and_one_line_of_the_list_are_a_controller() {
    let sources = sources();
    let list = &sources["registry.rs"];
    let listed = list.split_once("\ncontrollers! {\n").expect("the list").1;
    let mut seen = 0;
    for line in listed.lines().take_while(|l| *l != "}").filter(|l| l.contains("(crate::")) {
        let path = line.split_once("(crate::").and_then(|(_, p)| p.strip_suffix("),")).expect("one controller a line");
        let (module, name) = path.rsplit_once("::").expect("a module and a type");
        let (shelf, module) = module.split_once("::").expect("a shelf and a module");
        let home = module.split("::").next().expect("a first part");
        let shelf_file = format!("{shelf}.rs");
        assert_eq!(lines_with(list, &format!("(crate::{path})")).len(), 1, "{path} stands once in the list");
        let named = [format!("pub(crate) mod {home};"), format!(" {home}::")];
        let [modules, exports] = named.map(|word| lines_with(&sources[&shelf_file], &word).len());
        // SCReAM's two versions are one folder.
        assert!(modules == 1 && exports <= if home == "scream" { 2 } else { 1 }, "{home} in {shelf_file}");
        let section = format!("    {}{} {{", shelf[..1].to_uppercase(), &shelf[1..]);
        assert!(listed.split_once(&section).is_some_and(|(_, rest)| rest.contains(line)), "{path} under its shelf");
        for (file, text) in &sources {
            let own = *file == format!("{shelf}/{home}.rs") || file.starts_with(&format!("{shelf}/{home}/"));
            if own || ["registry.rs", shelf_file.as_str()].contains(&file.as_str()) || file.ends_with("tests.rs") {
                continue;
            }
            // TMMBR-B is C-NADU's sender with another receiver, one controller hands over from GCC to SCReAM, and Vidaptive is Copa with
            // another encoder's rate: the only ones made from others.
            let reused = [
                ("Cnadu", "papers/tmmbr/assisted.rs"),
                ("Gcc", "papers/gcc_scream2.rs"),
                ("Copa", "papers/vidaptive.rs"),
            ]
            .contains(&(name, file));
            let type_name = format!("{home}::{name}");
            assert!(reused || lines_with(text, &type_name).is_empty(), "{file} names {type_name}");
        }
        seen += 1;
    }
    assert!(seen >= 16, "only {seen} controllers found: the search has gone blind");
}

#[test]
fn no_controller_imports_the_registry() {
    for (file, text) in sources() {
        // Neither makes controllers for another: the drive is for benches, the flow for other stacks.
        let makes =
            ["lib.rs", "registry.rs", "drive.rs", "flow.rs"].contains(&file.as_str()) || file.ends_with("tests.rs");
        let imports = lines_with(&text, "registry::").len() + lines_with(&text, "Registry").len();
        assert!(makes || imports == 0, "{file} imports the registry");
    }
}
