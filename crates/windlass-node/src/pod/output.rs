//! What containers write: to their log, and to those who listen.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use jiff::Timestamp;
use tokio::io::AsyncReadExt as _;
use tokio::sync::broadcast;
use windlass::Env;

use super::runtime::Output;
use crate::logs::{Lines, Stream};

/// A log has so many bytes before the next one is begun,
const SIZE_MAX: u64 = 10 << 20;
/// and so many old ones are kept.
const OLD_MAX: usize = 1;
/// So many pieces of output wait for somebody who listens slowly; then some are lost to them. A piece is 16 KiB at most,
/// so this is a megabyte.
pub(crate) const WAITING: usize = 64;
const PIECE: usize = 16 << 10;

/// The log of one run of a container.
#[derive(Debug)]
pub(crate) struct LogFile {
    path: PathBuf,
    file: File,
    size: u64,
}

impl LogFile {
    pub fn create(path: &Path) -> io::Result<LogFile> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let file = File::options().create(true).append(true).open(path)?;
        let size = file.metadata()?.len();
        Ok(LogFile { path: path.to_owned(), file, size })
    }

    fn write(&mut self, entries: &[u8], now: Timestamp) -> io::Result<()> {
        if self.size > 0 && self.size + entries.len() as u64 > SIZE_MAX {
            self.rotate(now)?;
        }
        self.file.write_all(entries)?;
        self.size += entries.len() as u64;
        Ok(())
    }

    /// The file gets another name, and a new one is begun under its own.
    fn rotate(&mut self, now: Timestamp) -> io::Result<()> {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let stamp = now.strftime("%Y%m%d-%H%M%S%.9f").to_string();
        fs::rename(&self.path, self.path.with_file_name(format!("{name}.{stamp}")))?;
        *self = LogFile::create(&self.path)?;
        let folder = self.path.parent().unwrap_or(Path::new("."));
        let mut old: Vec<PathBuf> = Vec::new();
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            if entry.file_name().to_string_lossy().starts_with(&format!("{name}.")) {
                old.push(entry.path());
            }
        }
        old.sort();
        let surplus = old.len().saturating_sub(OLD_MAX);
        old.iter().take(surplus).try_for_each(fs::remove_file)
    }
}

/// A piece of what a container wrote.
pub(crate) type Heard = (Stream, Bytes);

/// Carries what a container writes to its log and to whoever listens, until it writes no more.
pub(crate) async fn carry(
    env: Env,
    mut log: LogFile,
    stdout: Option<Output>,
    stderr: Option<Output>,
    listeners: broadcast::Sender<Heard>,
) {
    let (mut stdout, mut stderr) = (stdout, stderr);
    let mut lines = [Lines::new(Stream::Stdout), Lines::new(Stream::Stderr)];
    let mut buffers = [vec![0; PIECE], vec![0; PIECE]];
    let mut entries = Vec::new();
    while stdout.is_some() || stderr.is_some() {
        let [out_buffer, err_buffer] = &mut buffers;
        let (stream, read) = tokio::select! {
            biased;
            read = read(stdout.as_mut(), out_buffer), if stdout.is_some() => (Stream::Stdout, read),
            read = read(stderr.as_mut(), err_buffer), if stderr.is_some() => (Stream::Stderr, read),
        };
        let at = usize::from(stream == Stream::Stderr);
        let now = env.now();
        match read {
            Ok(length) if length > 0 => {
                let piece = &buffers[at][..length];
                lines[at].push(now, piece, &mut entries);
                if listeners.receiver_count() > 0 {
                    // Nobody may be left by now.
                    let _ = listeners.send((stream, Bytes::copy_from_slice(piece)));
                }
            }
            // The end of a terminal is an error.
            Ok(_) | Err(_) => {
                lines[at].finish(now, &mut entries);
                match stream {
                    Stream::Stdout => stdout = None,
                    Stream::Stderr => stderr = None,
                }
            }
        }
        if let Err(error) = log.write(&entries, now) {
            tracing::warn!(path = %log.path.display(), %error, "log cannot be written");
        }
        entries.clear();
    }
}

async fn read(from: Option<&mut Output>, buffer: &mut [u8]) -> io::Result<usize> {
    match from {
        Some(from) => from.read(buffer).await,
        None => std::future::pending().await,
    }
}

/// The end of a log, for a container that failed without a word: 80 lines, 2 KiB at most.
pub(crate) fn last_words(path: &Path) -> String {
    const LINES_MAX: usize = 80;
    const BYTES_MAX: usize = 2048;
    let text = fs::read(path).unwrap_or_default();
    let lines: Vec<&[u8]> = text.split_inclusive(|&byte| byte == b'\n').collect();
    let last = lines.iter().skip(lines.len().saturating_sub(LINES_MAX));
    let mut words = Vec::new();
    for entry in last.filter_map(|line| crate::logs::parse(line)) {
        words.extend_from_slice(entry.text);
        if entry.full {
            words.push(b'\n');
        }
    }
    let cut = words.len().saturating_sub(BYTES_MAX);
    String::from_utf8_lossy(&words[cut..]).into_owned()
}

/// What a container left to be said when it ended.
pub(crate) fn message(file: &Path, log: &Path, falls_back: bool) -> String {
    const BYTES_MAX: usize = 4096;
    let said = fs::read(file).unwrap_or_default();
    if said.is_empty() && falls_back {
        return last_words(log);
    }
    let cut = said.len().saturating_sub(BYTES_MAX);
    String::from_utf8_lossy(&said[cut..]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn output_goes_to_the_log_and_to_listeners() {
        let folder = std::env::temp_dir().join(format!("windlass-output-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        let path = folder.join("0.log");
        let env = Env::seeded(1, Timestamp::UNIX_EPOCH);
        let (sender, mut listener) = broadcast::channel(WAITING);
        let stdout: Output = Box::new(&b"one\ntwo"[..]);
        let stderr: Output = Box::new(&b"oops\n"[..]);
        carry(env, LogFile::create(&path).unwrap(), Some(stdout), Some(stderr), sender).await;
        let text = fs::read_to_string(&path).unwrap();
        let mut lines: Vec<_> = text.lines().map(|line| line.split_once(' ').unwrap().1).collect();
        lines.sort_unstable();
        assert_eq!(lines, ["stderr F oops", "stdout F one", "stdout P two"]);
        assert_eq!(listener.recv().await.unwrap().1, "one\ntwo");
        assert_eq!(message(&folder.join("none"), &path, true).len(), "one\noops\ntwo".len());
        assert_eq!(message(&folder.join("none"), &path, false), "");
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_log_that_is_full_is_put_aside() {
        let folder = std::env::temp_dir().join(format!("windlass-rotate-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        let path = folder.join("0.log");
        let mut log = LogFile::create(&path).unwrap();
        let half = vec![b'x'; usize::try_from(SIZE_MAX).unwrap() / 2 + 1];
        for second in 0..4 {
            log.write(&half, Timestamp::from_second(second).unwrap()).unwrap();
        }
        assert_eq!(fs::metadata(&path).unwrap().len(), half.len() as u64);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1 + OLD_MAX);
        fs::remove_dir_all(&folder).unwrap();
    }
}
