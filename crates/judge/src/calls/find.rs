//! Files and folders as calls.

use std::fs;
use std::path::{Path, PathBuf};
use weir_lab::scenario::InputError;
use weir_timeline::{ReadError, recognise};

/// Most recordings of one call: a folder with more has calls of several kinds.
pub const MOST_FILES: usize = 16;
/// Folders within folders that are looked at.
const DEPTH: usize = 32;

/// The recordings of one call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FoundCall {
    /// The folder's path, or that of the file.
    pub name: String,
    /// The files, in the order of their names.
    pub files: Vec<PathBuf>,
    /// Whether it is a folder: then files that turn out to be no recordings are passed over.
    pub is_folder: bool,
}

/// Calls below some paths.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FoundCalls {
    /// The calls: in the order given, those of a folder by path.
    pub calls: Vec<FoundCall>,
    /// Files in folders that are no recordings.
    pub passed_over: usize,
    /// The first of them.
    pub passed_first: Option<PathBuf>,
}

/// Groups files into calls: a file that is named is a call; the recordings of a folder are one call, and so are those of each folder
/// below it. With `each_file` every recording in folders is a call of its own. Names that begin with a dot, links to folders and
/// files that no reader recognises are passed over in folders.
///
/// # Errors
/// A path that is not there, a folder that cannot be read or has more than [`MOST_FILES`] recordings; no recording at all.
pub fn find(paths: &[PathBuf], each_file: bool) -> Result<FoundCalls, InputError> {
    let mut found = FoundCalls::default();
    for path in paths {
        let meta = fs::metadata(path).map_err(|e| unreadable(path, &e))?;
        if meta.is_dir() {
            found.walk(path, each_file, 0)?;
        } else {
            let name = path.display().to_string();
            found.calls.push(FoundCall { name, files: vec![path.clone()], is_folder: false });
        }
    }
    if found.calls.is_empty() {
        let names: Vec<String> = paths.iter().map(|p| p.display().to_string()).collect();
        let error = InputError::whole(names.join(", "), "no recording is in it");
        return Err(error.help("weir help open lists the formats"));
    }
    Ok(found)
}

fn unreadable(path: &Path, e: &std::io::Error) -> InputError {
    let why = match e.kind() {
        std::io::ErrorKind::NotFound => "there is no such file or folder".to_owned(),
        _ => e.to_string(),
    };
    InputError::whole(path.display().to_string(), why)
}

impl FoundCalls {
    fn walk(&mut self, folder: &Path, each_file: bool, depth: usize) -> Result<(), InputError> {
        let (mut files, mut folders) = (Vec::new(), Vec::new());
        for entry in fs::read_dir(folder).map_err(|e| unreadable(folder, &e))? {
            let entry = entry.map_err(|e| unreadable(folder, &e))?;
            if entry.file_name().to_string_lossy().starts_with('.') {
                continue;
            }
            // Of a link this is the link itself: folders behind links could be a circle.
            let kind = entry.file_type().map_err(|e| unreadable(&entry.path(), &e))?;
            match kind.is_dir() {
                true => folders.push(entry.path()),
                false if entry.path().is_dir() => {}
                false => files.push(entry.path()),
            }
        }
        files.sort();
        folders.sort();
        files.retain(|path| {
            let may_be = may_be_recording(path);
            if !may_be {
                self.passed_over += 1;
                self.passed_first.get_or_insert_with(|| path.clone());
            }
            may_be
        });
        if each_file {
            let one =
                |path: PathBuf| FoundCall { name: path.display().to_string(), files: vec![path], is_folder: false };
            self.calls.extend(files.into_iter().map(one));
        } else if files.len() > MOST_FILES {
            let what = format!("{} recordings are in it, and a folder is taken for one call", files.len());
            let help = format!("--each-file takes each file for a call of its own; one call has at most {MOST_FILES}");
            return Err(InputError::whole(folder.display().to_string(), what).help(help));
        } else if !files.is_empty() {
            self.calls.push(FoundCall { name: folder.display().to_string(), files, is_folder: true });
        }
        if depth == DEPTH && !folders.is_empty() {
            let what = format!("folders are more than {DEPTH} deep");
            return Err(InputError::whole(folder.display().to_string(), what).help("name a folder further down"));
        }
        folders.iter().try_for_each(|below| self.walk(below, each_file, depth + 1))
    }
}

/// Whether a reader recognises a file, or its bytes cannot be had, which is for the call to say.
fn may_be_recording(path: &Path) -> bool {
    match weir_files::open(path) {
        Ok(file) => !matches!(recognise(file), Err(ReadError::Unknown(_))),
        Err(weir_files::ReadError::NotRegular) => false,
        Err(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "1747225741356, 100000\n1747225741456, 200000\n";

    fn names(found: &FoundCalls) -> Vec<(String, usize)> {
        let last = |c: &FoundCall| c.name.rsplit('/').next().unwrap_or_default().to_owned();
        found.calls.iter().map(|c| (last(c), c.files.len())).collect()
    }

    #[test]
    fn a_folder_is_a_call_and_so_is_a_file_that_is_named() {
        let root = tempfile::tempdir().expect("a folder");
        let at = |path: &str| root.path().join(path);
        for folder in ["all/b/deep", "all/a", "all/.hidden"] {
            fs::create_dir_all(at(folder)).expect("made");
        }
        for file in ["all/b/left", "all/b/right", "all/a/x", "all/b/deep/y", "all/.hidden/z", "all/b/.part"] {
            fs::write(at(file), LOG).expect("written");
        }
        fs::write(at("all/README.md"), "# Calls\n").expect("written");
        fs::write(at("all/b/notes.txt"), "loud\n").expect("written");
        #[cfg(unix)]
        std::os::unix::fs::symlink(at("all"), at("all/a/circle")).expect("linked");
        let found = find(&[at("all")], false).expect("calls");
        assert_eq!(names(&found), [("a".into(), 1), ("b".into(), 2), ("deep".into(), 1)]);
        assert_eq!(found.passed_over, 2);
        assert!(found.passed_first.is_some_and(|path| !may_be_recording(&path)));
        let each = find(&[at("all")], true).expect("calls");
        assert_eq!(names(&each), ["x", "left", "right", "y"].map(|n| (n.to_owned(), 1)));
        let named = find(&[at("all/b/left"), at("all/b/notes.txt"), at("all/a")], false).expect("calls");
        assert_eq!(names(&named), [("left".into(), 1), ("notes.txt".into(), 1), ("a".into(), 1)]);
    }

    #[test]
    fn faults_name_the_folder_and_the_way_out() {
        let root = tempfile::tempdir().expect("a folder");
        let error = |paths: &[PathBuf]| find(paths, false).expect_err("a fault");
        let help = |e: &InputError| e.help_text().unwrap_or_default().to_owned();
        assert!(error(&[root.path().join("none")]).message().contains("no such file or folder"));
        assert!(error(&[root.path().to_owned()]).message().contains("no recording"));
        for i in 0..=MOST_FILES {
            fs::write(root.path().join(format!("{i}.log")), LOG).expect("written");
        }
        let many = error(&[root.path().to_owned()]);
        assert!(many.message().contains("17 recordings") && help(&many).contains("--each-file"), "{many}");
        assert_eq!(find(&[root.path().to_owned()], true).expect("calls").calls.len(), MOST_FILES + 1);
    }
}
