//! Bounds of what is read of one file.

/// Most bytes and rows that are read of one file. What is behind them is left out, and [`crate::Recording::stop`] says so.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Bytes after decompression. The usual 4 GiB are an hour of a capture, and no more where a small file expands without end.
    pub bytes: u64,
    /// Rows of all tables. An hour at 3 Mbit/s has some 4 million; the usual 7 million stay below 500 MB with what sorting takes.
    pub rows: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { bytes: 4 << 30, rows: 7_000_000 }
    }
}

#[cfg(test)]
mod tests {
    use super::Limits;
    use crate::{ReadError, Recording, read, read_within};
    use std::path::Path;

    /// The corpus of the fuzz target `recording`: a file of each format.
    fn files() -> Vec<(String, Vec<u8>)> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/recording");
        let mut files: Vec<_> = folder.read_dir().expect("a corpus").map(|f| f.expect("a file").path()).collect();
        files.sort();
        let name = |f: &Path| f.file_name().expect("a name").to_string_lossy().into_owned();
        files.iter().map(|f| (name(f), std::fs::read(f).expect("read"))).collect()
    }

    /// Rows of all tables, one of each table with more than one part counted as often as it has parts.
    fn rows(of: &Recording) -> u64 {
        let series = of.series.values().map(|s| s.points.len().max(s.texts.len())).sum::<usize>();
        let tables = [
            of.packets.len(),
            of.rtcp.len(),
            of.reported.len(),
            of.blocks.len(),
            of.estimates.len(),
            of.probes.len(),
            of.limited.len(),
            of.frames.len(),
            of.pairs.len(),
            of.streams.len(),
            of.events.len(),
            of.other.len(),
        ];
        (tables.into_iter().sum::<usize>() + series) as u64
    }

    #[test]
    fn no_format_keeps_more_rows_than_the_bound_and_each_says_so() {
        let mut full = 0;
        for (name, bytes) in files() {
            let whole = read(&name, bytes.as_slice()).expect("a recording");
            let all = rows(&whole);
            for most in [0, 1, 2, 3, 5, 10, 20, all.saturating_sub(1)] {
                let limits = Limits { rows: most, ..Limits::default() };
                let read = read_within(&name, bytes.as_slice(), limits).expect("a recording");
                assert!(rows(&read) <= most, "{name}: {} rows of at most {most}", rows(&read));
                if most < all {
                    let stop = read.stop.unwrap_or_else(|| panic!("{name}: {most} of {all} rows, and no stop"));
                    assert!(stop.why.contains("rows") || whole.stop.is_some(), "{name}: {stop:?}");
                    full += 1;
                }
            }
            let enough = Limits { rows: all * 4 + 100, ..Limits::default() };
            let read = read_within(&name, bytes.as_slice(), enough).expect("a recording");
            assert_eq!((rows(&read), read.stop), (all, whole.stop), "{name}");
        }
        assert!(full > 40, "{full}");
    }

    #[test]
    fn no_more_bytes_are_read_than_the_bound_and_a_file_that_expands_is_stopped() {
        // 4 MB of the same line, compressed to some 20 kB.
        let line = b"1747225741290,102,2070638893,10476,3950019588,false,1216,0,10476,1,1,false,false\n";
        let plain = line.repeat(50_000);
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        std::io::Write::write_all(&mut packed, &plain).expect("memory");
        let packed = packed.finish().expect("memory");
        assert!(packed.len() < 40_000, "{}", packed.len());
        for file in [&plain, &packed] {
            let limits = Limits { bytes: 100_000, ..Limits::default() };
            let read = read_within("log", file.as_slice(), limits).expect("a log");
            let most = 100_000 / line.len();
            assert!((most - 210..=most).contains(&read.packets.len()), "{} of {most}", read.packets.len());
            let stop = read.stop.expect("more bytes");
            assert!(stop.why.contains("more than 100000 bytes") && stop.offset <= 100_000, "{stop:?}");
        }
        let whole = read_within("log", packed.as_slice(), Limits { bytes: plain.len() as u64, ..Limits::default() });
        let whole = whole.expect("a log");
        assert_eq!((whole.packets.len(), whole.stop), (50_000, None));
    }

    #[test]
    fn every_format_ends_at_a_bound_of_bytes() {
        for (name, bytes) in files() {
            for most in [1, 64, 200, bytes.len() as u64 / 2].into_iter().filter(|n| *n < bytes.len() as u64) {
                let limits = Limits { bytes: most, ..Limits::default() };
                match read_within(&name, bytes.as_slice(), limits) {
                    Ok(read) => assert!(read.stop.is_some(), "{name}: {most} of {} bytes", bytes.len()),
                    Err(ReadError::Io(e)) => assert!(e.to_string().contains("more than"), "{name}: {e}"),
                    Err(e) => assert!(e.to_string().contains("more than"), "{name}, {most} bytes: {e}"),
                }
            }
        }
    }
}
