//! Recording of received pictures, which the other end chooses: bounds on the file, and how it is opened.

use nix::libc::{ELOOP, O_CLOEXEC, O_NOCTTY, O_NOFOLLOW, O_NONBLOCK};
use nix::sys::statvfs::fstatvfs;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use weir_media::y4m::Y4mWriter;
use weir_media::{FrameRate, Picture};
use weir_units::Timestamp;

/// Most bytes of a recording unless stated otherwise, 4 GB: some 290 s of 640x480 at 30 pictures a second.
pub const SIZE_LIMIT: u64 = 4_000_000_000;
/// Bytes that a recording leaves free in its file system, 256 MiB.
pub const LEAST_FREE: u64 = 256 << 20;
/// Bytes before each picture in a file.
const PICTURE_HEADER: u64 = 6;
/// Bytes written at once.
const BUFFER: usize = 1 << 20;

/// Where pictures are written, as YUV4MPEG2 of one rate; each missing one repeats the last.
pub struct Recording {
    writer: Box<dyn Write + Send>,
    rate: FrameRate,
    limit: u64,
    largest: Option<(u32, u32)>,
    /// Bytes free in the file system, where that is known.
    free: Option<Box<dyn Fn() -> Option<u64> + Send>>,
}

impl Recording {
    /// Without bounds.
    pub fn new(writer: Box<dyn Write + Send>, rate: FrameRate) -> Self {
        Self { writer, rate, limit: u64::MAX, largest: None, free: None }
    }
    /// Into a file, of [`SIZE_LIMIT`] and with [`LEAST_FREE`].
    ///
    /// # Errors
    /// The file's descriptor cannot be copied.
    pub fn to_file(RecordFile(file): RecordFile, rate: FrameRate) -> io::Result<Self> {
        let asked = file.try_clone()?;
        let free = move || fstatvfs(&asked).ok().map(|s| s.blocks_available().saturating_mul(s.fragment_size()));
        let writer = Box::new(BufWriter::with_capacity(BUFFER, file));
        Ok(Self { limit: SIZE_LIMIT, free: Some(Box::new(free)), ..Self::new(writer, rate) })
    }
    /// The same, ending before the file has more bytes than this.
    #[must_use]
    pub fn of_at_most(self, limit: u64) -> Self {
        Self { limit, ..self }
    }
    /// The same, ending at a picture with more pixels than one of this width and height.
    #[must_use]
    pub fn with_largest(self, largest: (u32, u32)) -> Self {
        Self { largest: Some(largest), ..self }
    }
}

/// A file for a recording.
#[derive(Debug)]
pub struct RecordFile(File);

impl RecordFile {
    /// Makes or empties a file. Links are not followed, so that nobody who may write the folder chooses another file; those of
    /// /dev and /proc are the system's.
    ///
    /// # Errors
    /// The path leads to a link; the file cannot be made.
    pub fn create(path: &Path) -> io::Result<Self> {
        let of_system = path.starts_with("/dev") || path.starts_with("/proc");
        let flags = O_CLOEXEC | O_NOCTTY | if of_system { 0 } else { O_NOFOLLOW | O_NONBLOCK };
        let made = OpenOptions::new().write(true).create(true).truncate(true).custom_flags(flags).open(path);
        made.map(Self).map_err(|e| match e.raw_os_error() {
            Some(ELOOP) => io::Error::new(e.kind(), "this is a link: name the file that it leads to"),
            _ => e,
        })
    }
}

/// Writes pictures at their rate, filling in missing ones.
pub(super) struct Recorder {
    plan: Option<Recording>,
    file: Option<Y4mWriter<Box<dyn Write + Send>>>,
    rate: FrameRate,
    limit: u64,
    free: Option<Box<dyn Fn() -> Option<u64> + Send>>,
    size: (u32, u32),
    /// Time of the first picture.
    first: Option<Timestamp>,
    written: u64,
    bytes: u64,
    error: Option<String>,
}

impl Recorder {
    pub(super) fn new(plan: Recording) -> Self {
        Self {
            rate: plan.rate,
            limit: plan.limit,
            plan: Some(plan),
            file: None,
            free: None,
            size: (0, 0),
            first: None,
            written: 0,
            bytes: 0,
            error: None,
        }
    }

    pub(super) fn write(&mut self, at: Timestamp, picture: &Picture) {
        let size = (picture.width(), picture.height());
        if let Some(plan) = self.plan.take() {
            self.begin(plan, size);
        }
        if self.file.is_none() {
            return;
        }
        if size != self.size {
            // YUV4MPEG2 has one size for all pictures: those after a change are omitted.
            self.error.get_or_insert(format!("the pictures changed from {:?} to {size:?}", self.size));
            return;
        }
        let time = at.saturating_since(*self.first.get_or_insert(at)).as_secs_f64();
        let due = (time * self.rate.as_f64()).round() as u64 + 1;
        // A minute's silence is not written out.
        let copies = due.saturating_sub(self.written).min(1_000);
        for _ in 0..copies {
            if let Err(why) = self.add(picture) {
                self.end(why);
                return;
            }
        }
    }

    fn begin(&mut self, plan: Recording, size: (u32, u32)) {
        let pixels = |(width, height): (u32, u32)| u64::from(width) * u64::from(height);
        if let Some(largest) = plan.largest.filter(|l| pixels(size) > pixels(*l)) {
            let [(w, h), (width, height)] = [size, largest];
            self.error = Some(format!("the pictures have {w}x{h}, and {width}x{height} at most were agreed on"));
            return;
        }
        match Y4mWriter::new(plan.writer, size, plan.rate) {
            Ok(file) => (self.file, self.size, self.free) = (Some(file), size, plan.free),
            Err(e) => self.error = Some(e.to_string()),
        }
    }

    /// Adds a whole picture. Errors: why there is to be none.
    fn add(&mut self, picture: &Picture) -> Result<(), String> {
        let (width, height) = (u64::from(self.size.0), u64::from(self.size.1));
        let bytes = width * height + 2 * width.div_ceil(2) * height.div_ceil(2) + PICTURE_HEADER;
        if self.bytes + bytes > self.limit {
            return Err(format!("the limit of {} MB is reached (--record-limit)", self.limit / 1_000_000));
        }
        // The buffer holds bytes that are not written yet.
        let needed = LEAST_FREE + BUFFER as u64 + bytes;
        if let Some(free) = self.free.as_ref().and_then(|free| free()).filter(|free| *free < needed) {
            return Err(format!(
                "{} MB are free where it is written, and {} are left so",
                free >> 20,
                LEAST_FREE >> 20
            ));
        }
        let file = self.file.as_mut().ok_or("it has ended")?;
        file.write(picture).map_err(|e| e.to_string())?;
        (self.written, self.bytes) = (self.written + 1, self.bytes + bytes);
        Ok(())
    }

    /// Ends the file, whose pictures so far are whole.
    fn end(&mut self, why: String) {
        self.error.get_or_insert(why);
        if let Some(file) = self.file.take() {
            let _ = file.finish();
        }
    }

    pub(super) fn finish(mut self) -> (u64, Option<String>) {
        if let Some(Err(e)) = self.file.take().map(Y4mWriter::finish) {
            self.error.get_or_insert(e.to_string());
        }
        (self.written, self.error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);
    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("kept").extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn recording(kept: &Kept) -> Recording {
        Recording::new(Box::new(kept.clone()), "30".parse().expect("a rate"))
    }

    /// Records so many pictures of this size, 33.4 ms apart.
    fn record(plan: Recording, size: (u32, u32), count: i64) -> (u64, Option<String>) {
        let picture = Picture::new(size.0, size.1).expect("a picture");
        let mut recorder = Recorder::new(plan);
        for n in 0..count {
            recorder.write(Timestamp::from_nanos(33_400_000 * n), &picture);
        }
        recorder.finish()
    }

    #[test]
    fn a_recording_ends_with_a_whole_picture_at_its_limit() {
        let kept = Kept::default();
        let picture = 6 + 64 * 48 * 3 / 2;
        let (written, error) = record(recording(&kept).of_at_most(10 * picture + 1), (64, 48), 30);
        let bytes = kept.0.lock().expect("kept").clone();
        let header = bytes.iter().position(|b| *b == b'\n').expect("a header") + 1;
        assert_eq!((written, bytes.len()), (10, header + 10 * picture as usize));
        assert!(error.is_some_and(|e| e.contains("limit")));
    }

    #[test]
    fn a_recording_leaves_space_free() {
        let kept = Kept::default();
        let plan = Recording { free: Some(Box::new(|| Some(LEAST_FREE))), ..recording(&kept) };
        let (written, error) = record(plan, (64, 48), 3);
        assert_eq!(written, 0);
        assert!(error.is_some_and(|e| e.contains("256 MB are free")));
        let folder = tempfile::tempdir().expect("a folder");
        let file = RecordFile::create(&folder.path().join("x.y4m")).expect("made");
        let plan = Recording::to_file(file, "30".parse().expect("a rate")).expect("a file");
        assert!(plan.free.expect("asked")().is_some_and(|free| free > 0));
    }

    #[test]
    fn pictures_larger_than_agreed_are_not_recorded() {
        let kept = Kept::default();
        let (written, error) = record(recording(&kept).with_largest((64, 48)), (128, 96), 3);
        assert_eq!((written, kept.0.lock().expect("kept").len()), (0, 0));
        assert!(error.is_some_and(|e| e.contains("128x96") && e.contains("64x48")));
        // Held upright as well.
        assert_eq!(record(recording(&kept).with_largest((64, 48)), (48, 64), 3), (3, None));
    }

    #[test]
    fn no_file_is_written_through_a_link() {
        let folder = tempfile::tempdir().expect("a folder");
        let (link, victim) = (folder.path().join("x.y4m"), folder.path().join("victim"));
        std::fs::write(&victim, "mine").expect("written");
        std::os::unix::fs::symlink(&victim, &link).expect("linked");
        let refused = RecordFile::create(&link).expect_err("refused").to_string();
        assert!(refused.contains("this is a link"), "{refused}");
        assert_eq!(std::fs::read_to_string(&victim).expect("read"), "mine");
        RecordFile::create(&folder.path().join("y.y4m")).expect("made");
        RecordFile::create(Path::new("/dev/null")).expect("a device");
    }
}
