//! One line of a log.

use bytes::{BufMut as _, BytesMut};
use jiff::Timestamp;

/// Which output of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

impl Stream {
    /// The word for it in a log.
    pub fn as_str(self) -> &'static str {
        match self {
            Stream::Stdout => "stdout",
            Stream::Stderr => "stderr",
        }
    }
}

/// The longest piece of text in one entry. A program that never ends its line is written in such pieces.
const TEXT_MAX: usize = 16 << 10;

/// Cuts the output of one stream into entries of a log.
#[derive(Debug)]
pub struct Lines {
    stream: Stream,
    /// The beginning of a line whose end has not come yet: less than [`TEXT_MAX`].
    begun: BytesMut,
}

impl Lines {
    /// The entries of this stream.
    pub fn new(stream: Stream) -> Lines {
        Lines { stream, begun: BytesMut::new() }
    }

    /// Takes what the program has written, and adds the entries that are complete to `out`.
    pub fn push(&mut self, now: Timestamp, mut output: &[u8], out: &mut Vec<u8>) {
        while !output.is_empty() {
            let room = TEXT_MAX - self.begun.len();
            let end = output.iter().take(room).position(|byte| *byte == b'\n');
            let taken = end.unwrap_or(room.min(output.len()));
            self.begun.put_slice(&output[..taken]);
            output = &output[taken + usize::from(end.is_some())..];
            match end {
                Some(_) => self.entry(now, true, out),
                None if self.begun.len() == TEXT_MAX => self.entry(now, false, out),
                None => {}
            }
        }
    }

    /// The stream has ended: adds the line that was begun, if any.
    pub fn finish(&mut self, now: Timestamp, out: &mut Vec<u8>) {
        if !self.begun.is_empty() {
            self.entry(now, false, out);
        }
    }

    fn entry(&mut self, now: Timestamp, full: bool, out: &mut Vec<u8>) {
        let tag = if full { 'F' } else { 'P' };
        out.extend_from_slice(format!("{now:.9} {} {tag} ", self.stream.as_str()).as_bytes());
        out.extend_from_slice(&self.begun);
        out.push(b'\n');
        self.begun.clear();
    }
}

/// One entry of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// When it was written.
    pub time: Timestamp,
    /// Its time as the log has it.
    pub time_text: &'a str,
    /// Which output it is of.
    pub stream: Stream,
    /// Whether its line ends here.
    pub full: bool,
    /// The text.
    pub text: &'a [u8],
}

/// Reads one line of a log, with or without its newline; `None` when it is no entry.
pub fn parse(line: &[u8]) -> Option<Entry<'_>> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let mut parts = line.splitn(4, |byte| *byte == b' ');
    let time_text = str::from_utf8(parts.next()?).ok()?;
    let time = time_text.parse().ok()?;
    let stream = match parts.next()? {
        b"stdout" => Stream::Stdout,
        b"stderr" => Stream::Stderr,
        _ => return None,
    };
    let full = match parts.next()? {
        b"F" => true,
        b"P" => false,
        _ => return None,
    };
    Some(Entry { time, time_text, stream, full, text: parts.next()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: &str = "2026-01-02T03:04:05.000000006Z";

    fn written(pieces: &[&[u8]]) -> Vec<u8> {
        let now = NOW.parse().unwrap();
        let (mut lines, mut out) = (Lines::new(Stream::Stderr), Vec::new());
        for piece in pieces {
            lines.push(now, piece, &mut out);
        }
        lines.finish(now, &mut out);
        out
    }

    #[test]
    fn lines_are_whole_however_they_arrive() {
        let expected = format!("{NOW} stderr F one\n{NOW} stderr F \n{NOW} stderr F two words\n");
        assert_eq!(written(&[b"one\n\ntwo words\n"]), expected.as_bytes());
        assert_eq!(written(&[b"o", b"ne", b"\n\ntwo ", b"words", b"\n"]), expected.as_bytes());
    }

    #[test]
    fn what_has_no_end_is_written_in_pieces() {
        let long = vec![b'x'; TEXT_MAX + 3];
        let log = written(&[&long]);
        let entries: Vec<_> =
            log.split_inclusive(|byte| *byte == b'\n').map(|line| parse(line).unwrap()).collect();
        assert_eq!(entries.iter().map(|entry| entry.text.len()).collect::<Vec<_>>(), [TEXT_MAX, 3]);
        assert!(entries.iter().all(|entry| !entry.full && entry.stream == Stream::Stderr));
    }

    #[test]
    fn an_entry_is_read_back_and_anything_else_is_not() {
        let line = format!("{NOW} stdout F a b  c\n");
        let entry = parse(line.as_bytes()).unwrap();
        assert_eq!((entry.text, entry.full, entry.time_text), (&b"a b  c"[..], true, NOW));
        for wrong in ["", "x", "2026-01-02T03:04:05Z stdin F x", "2026-01-02T03:04:05Z stdout X x"] {
            assert_eq!(parse(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
