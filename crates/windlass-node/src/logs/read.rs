//! Reading a log: where to begin, what to leave out, and when it is over.

use std::io;
use std::io::SeekFrom;
use std::path::Path;

use jiff::{SignedDuration, Timestamp};
use tokio::fs::File;
use tokio::io::{AsyncReadExt as _, AsyncSeekExt as _};

use super::line::parse;

/// What of a log somebody wants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// The last so many lines only.
    pub tail: Option<u64>,
    /// What was written in the last so many seconds only.
    pub since_seconds: Option<i64>,
    /// What was written from this time on only.
    pub since_time: Option<Timestamp>,
    /// The time before each line.
    pub timestamps: bool,
    /// No more bytes than this.
    pub limit: Option<u64>,
}

impl Selection {
    fn since(&self, now: Timestamp) -> Option<Timestamp> {
        let seconds =
            self.since_seconds.map(|seconds| now.saturating_sub(SignedDuration::from_secs(seconds)));
        seconds.map(|time| time.unwrap_or(Timestamp::MIN)).or(self.since_time)
    }
}

/// A log being read. It can be read on when the file has grown.
#[derive(Debug)]
pub struct Reader {
    file: File,
    since: Option<Timestamp>,
    timestamps: bool,
    /// How much may still be told.
    left: Option<u64>,
    /// What was read and is not a whole entry yet.
    begun: Vec<u8>,
    /// Whether what comes next begins a line.
    line_begins: bool,
}

/// How much is read at a time.
const BLOCK: usize = 64 << 10;

impl Reader {
    /// Opens a log where what is wanted of it begins.
    pub async fn open(path: &Path, selection: &Selection, now: Timestamp) -> io::Result<Reader> {
        let mut file = File::open(path).await?;
        if let Some(lines) = selection.tail {
            let start = tail_start(&mut file, lines).await?;
            file.seek(SeekFrom::Start(start)).await?;
        }
        Ok(Reader {
            file,
            since: selection.since(now),
            timestamps: selection.timestamps,
            left: selection.limit,
            begun: Vec::new(),
            line_begins: true,
        })
    }

    /// What comes next, which may be nothing of what was read; `None` at the end of the file as it is now.
    pub async fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        if self.is_over() {
            return Ok(None);
        }
        let mut block = vec![0; BLOCK];
        let read = self.file.read(&mut block).await?;
        if read == 0 {
            return Ok(None);
        }
        self.begun.extend_from_slice(&block[..read]);
        let whole = self.begun.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let rest = self.begun.split_off(whole);
        let entries = std::mem::replace(&mut self.begun, rest);
        let mut out = Vec::new();
        for line in entries.split_inclusive(|byte| *byte == b'\n') {
            self.tell(line, &mut out);
        }
        Ok(Some(out))
    }

    /// Whether as much was told as was wanted.
    pub fn is_over(&self) -> bool {
        self.left == Some(0)
    }

    fn tell(&mut self, line: &[u8], out: &mut Vec<u8>) {
        // What is no entry was written by nobody we know: it is left out.
        let Some(entry) = parse(line) else { return };
        if self.since.is_some_and(|since| entry.time < since) {
            return;
        }
        let before = out.len();
        if self.timestamps && self.line_begins {
            out.extend_from_slice(entry.time_text.as_bytes());
            out.push(b' ');
        }
        out.extend_from_slice(entry.text);
        if entry.full {
            out.push(b'\n');
        }
        self.line_begins = entry.full;
        if let Some(left) = &mut self.left {
            let told = (out.len() - before).min(usize::try_from(*left).unwrap_or(usize::MAX));
            out.truncate(before + told);
            *left -= told as u64;
        }
    }
}

/// Where the last so many lines of a file begin, read from its end.
async fn tail_start(file: &mut File, lines: u64) -> io::Result<u64> {
    let mut end = file.seek(SeekFrom::End(0)).await?;
    if lines == 0 {
        return Ok(end);
    }
    let mut block = vec![0; BLOCK];
    let mut seen = 0;
    while end > 0 {
        let start = end.saturating_sub(BLOCK as u64);
        let part = &mut block[..(end - start) as usize];
        file.seek(SeekFrom::Start(start)).await?;
        file.read_exact(part).await?;
        for at in (0..part.len()).rev().filter(|at| part[*at] == b'\n') {
            seen += 1;
            // The newline before the first of the lines: one more than there are lines.
            if seen > lines {
                return Ok(start + at as u64 + 1);
            }
        }
        end = start;
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::super::line::{Lines, Stream};
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    /// A log with one line a second.
    fn log(lines: usize) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let mut entries = Lines::new(Stream::Stdout);
        for number in 0..lines {
            let mut out = Vec::new();
            entries.push(at(number as i64), format!("line {number}\n").as_bytes(), &mut out);
            file.write_all(&out).unwrap();
        }
        file
    }

    async fn read(path: &Path, selection: Selection, now: i64) -> String {
        let mut reader = Reader::open(path, &selection, at(now)).await.unwrap();
        let mut all = Vec::new();
        while let Some(some) = reader.next().await.unwrap() {
            all.extend(some);
        }
        String::from_utf8(all).unwrap()
    }

    #[tokio::test]
    async fn all_of_it_or_its_end() {
        let log = log(5000);
        let all = read(log.path(), Selection::default(), 0).await;
        assert_eq!(all.lines().count(), 5000);
        for lines in [0, 1, 3, 4000, 9000] {
            let tail = read(log.path(), Selection { tail: Some(lines), ..Selection::default() }, 0).await;
            assert_eq!(tail.lines().count(), 5000.min(lines as usize));
            assert!(all.ends_with(&tail));
        }
    }

    #[tokio::test]
    async fn since_limits_and_timestamps() {
        let log = log(10);
        let since = |seconds| Selection { since_seconds: Some(seconds), ..Selection::default() };
        assert_eq!(read(log.path(), since(2), 10).await, "line 8\nline 9\n");
        let limited = Selection { limit: Some(9), ..Selection::default() };
        assert_eq!(read(log.path(), limited, 0).await, "line 0\nli");
        let stamped = Selection { tail: Some(1), timestamps: true, ..Selection::default() };
        assert_eq!(read(log.path(), stamped, 0).await, format!("{:.9} line 9\n", at(9)));
    }

    #[tokio::test]
    async fn pieces_of_a_line_are_one_line() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let (mut lines, mut out) = (Lines::new(Stream::Stdout), Vec::new());
        lines.push(at(0), &vec![b'x'; 20_000], &mut out);
        lines.push(at(1), b"y\nnext\n", &mut out);
        file.write_all(&out).unwrap();
        let stamped = Selection { timestamps: true, ..Selection::default() };
        let text = read(file.path(), stamped, 0).await;
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[0].len(), "2026-01-02T03:04:05.000000006Z ".len() + 20_001);
        assert!(lines[1].ends_with(" next"));
    }

    #[tokio::test]
    async fn what_is_added_is_read_on() {
        let mut file = log(1);
        let mut reader = Reader::open(file.path(), &Selection::default(), at(0)).await.unwrap();
        assert_eq!(reader.next().await.unwrap().unwrap(), b"line 0\n");
        assert_eq!(reader.next().await.unwrap(), None);
        file.write_all(b"2026-01-02T03:04:05Z stdout F mo").unwrap();
        assert_eq!(reader.next().await.unwrap().unwrap(), b"");
        file.write_all(b"re\n").unwrap();
        assert_eq!(reader.next().await.unwrap().unwrap(), b"more\n");
    }
}
