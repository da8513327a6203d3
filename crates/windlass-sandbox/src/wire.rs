//! What the caller's process and the stages say to each other: JSON behind a length, with open files.
//!
//! The socket is a stream, so that a container's environment may be of any size. The kernel hands
//! files over with some byte of the message they were sent with; each message says how many are its
//! own, and they are taken in the order in which they came.

use std::collections::VecDeque;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::Failure;
use crate::spec::{About, Exec, Exit, Size, Socket, Spec, Tool};

/// What the caller asks of the sandbox's process.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Request {
    /// Names the request; a container or program that it starts keeps this name.
    pub(crate) serial: u64,
    pub(crate) call: Call,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Call {
    AddNet { name: String, hostname: String },
    RemoveNet { name: String },
    NetScript { net: String, tool: Tool, text: String },
    Socket { net: String, socket: Socket },
    Run { id: String, spec: Box<Spec>, terminal: Option<Size> },
    Exec { container: String, exec: Box<Exec>, terminal: Option<Size> },
    Signal { process: Named, signal: i32 },
    MountTmpfs { path: PathBuf, bytes: u64 },
    Unmount { path: PathBuf },
}

/// A container by its id, or whatever a request started.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Named {
    Container(String),
    Serial(u64),
}

/// What the sandbox's process says to the caller.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Word {
    /// It stands, and this is what the machine allows.
    Ready(About),
    /// It does not stand.
    Refused(Failure),
    /// What came of a request.
    Reply { serial: u64, result: Result<Answer, Failure> },
    /// What a request started has ended.
    Exited { serial: u64, exit: Exit },
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Answer {
    Done,
    /// A program runs; its terminal comes with the message when it has one.
    Started {
        pid: i32,
    },
}

/// What a container's first stage says before it becomes the container's program. Silence until the
/// end of the stream means that it did.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Birth {
    Terminal,
    Failed(Failure),
}

const HEADER: usize = 5;
/// No message comes near it: it catches a peer that is not ours.
const MESSAGE_MAX: usize = 256 << 20;
const FDS_MAX: usize = 8;

/// A message on its way out, with the files that go with it.
#[derive(Debug)]
pub(crate) struct Outgoing {
    bytes: Vec<u8>,
    sent: usize,
    fds: Vec<OwnedFd>,
}

impl Outgoing {
    pub(crate) fn new(message: &impl Serialize, fds: Vec<OwnedFd>) -> Result<Outgoing, serde_json::Error> {
        assert!(fds.len() <= FDS_MAX, "a message carries at most {FDS_MAX} files");
        let mut bytes = vec![0; HEADER];
        serde_json::to_writer(&mut bytes, message)?;
        let length = (bytes.len() - HEADER) as u32;
        bytes[..4].copy_from_slice(&length.to_le_bytes());
        bytes[4] = fds.len() as u8;
        Ok(Outgoing { bytes, sent: 0, fds })
    }

    /// Writes as much as the socket takes; true when all of it is written.
    pub(crate) fn send(&mut self, socket: impl AsFd) -> io::Result<bool> {
        while self.sent < self.bytes.len() {
            let fds: Vec<BorrowedFd<'_>> = self.fds.iter().map(AsFd::as_fd).collect();
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_MAX))];
            let mut control = SendAncillaryBuffer::new(&mut space);
            if !fds.is_empty() {
                control.push(SendAncillaryMessage::ScmRights(&fds));
            }
            let rest = [IoSlice::new(&self.bytes[self.sent..])];
            match rustix::net::sendmsg(&socket, &rest, &mut control, SendFlags::NOSIGNAL) {
                Ok(sent) => {
                    self.sent += sent;
                    self.fds.clear();
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => return Ok(false),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(true)
    }
}

/// Sends one message on a socket that waits.
pub(crate) fn send(socket: impl AsFd, message: &impl Serialize, fds: Vec<OwnedFd>) -> io::Result<()> {
    Outgoing::new(message, fds)?.send(socket).map(|_| ())
}

/// What has come in and is not a whole message yet.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    bytes: VecDeque<u8>,
    fds: VecDeque<OwnedFd>,
}

impl Inbox {
    /// Reads once. None when the socket has nothing now, zero at its end.
    pub(crate) fn receive(&mut self, socket: impl AsFd) -> io::Result<Option<usize>> {
        let mut buffer = [0_u8; 16 << 10];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_MAX))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut into = [IoSliceMut::new(&mut buffer)];
        let read = loop {
            match rustix::net::recvmsg(&socket, &mut into, &mut control, RecvFlags::CMSG_CLOEXEC) {
                Ok(message) => break message.bytes,
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => return Ok(None),
                // A peer that is killed with unread messages resets the socket; it is gone all the same.
                Err(rustix::io::Errno::CONNRESET) => return Ok(Some(0)),
                Err(error) => return Err(error.into()),
            }
        };
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(fds) = message {
                self.fds.extend(fds);
            }
        }
        self.bytes.extend(&buffer[..read]);
        Ok(Some(read))
    }

    /// The next whole message.
    pub(crate) fn next<M: DeserializeOwned>(&mut self) -> io::Result<Option<(M, Vec<OwnedFd>)>> {
        if self.bytes.len() < HEADER {
            return Ok(None);
        }
        let header: Vec<u8> = self.bytes.iter().copied().take(HEADER).collect();
        let length = u32::from_le_bytes([header[0], header[1], header[2], header[3]]) as usize;
        let fds = usize::from(header[4]);
        if length > MESSAGE_MAX {
            return Err(io::Error::other("a message is longer than any that is sent"));
        }
        if self.bytes.len() < HEADER + length {
            return Ok(None);
        }
        if self.fds.len() < fds {
            return Err(io::Error::other("a message came without its files"));
        }
        self.bytes.drain(..HEADER);
        let body: Vec<u8> = self.bytes.drain(..length).collect();
        // What a large message took is given back: the process that reads is there for days.
        if self.bytes.is_empty() {
            self.bytes = VecDeque::new();
        }
        Ok(Some((serde_json::from_slice(&body)?, self.fds.drain(..fds).collect())))
    }

    /// Waits for the next whole message; none at the end of the stream.
    pub(crate) fn wait<M: DeserializeOwned>(
        &mut self,
        socket: impl AsFd,
    ) -> io::Result<Option<(M, Vec<OwnedFd>)>> {
        loop {
            if let Some(message) = self.next()? {
                return Ok(Some(message));
            }
            if self.receive(&socket)? == Some(0) {
                return Ok(None);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn messages_of_any_size_keep_their_order_and_their_files() {
        let (left, right) = UnixStream::pair().expect("a pair of sockets");
        let sender = std::thread::spawn(move || {
            for turn in 0..50_usize {
                let (read, write) = std::io::pipe().expect("a pipe");
                rustix::io::write(&write, turn.to_string().as_bytes()).expect("room in a pipe");
                let text = "x".repeat(turn * 7919);
                let fds = if turn % 3 == 0 { vec![OwnedFd::from(read)] } else { Vec::new() };
                send(&left, &text, fds).expect("the reader is there");
            }
        });
        let mut inbox = Inbox::default();
        for turn in 0..50_usize {
            let (text, fds): (String, _) = inbox.wait(&right).expect("a message").expect("not the end");
            assert_eq!(text.len(), turn * 7919);
            let said: Vec<String> = fds
                .into_iter()
                .map(|fd| {
                    let mut said = String::new();
                    File::from(fd).read_to_string(&mut said).expect("a pipe can be read");
                    said
                })
                .collect();
            let expected = if turn % 3 == 0 { vec![turn.to_string()] } else { Vec::new() };
            assert_eq!(said, expected);
        }
        sender.join().expect("the sender ends");
        assert!(inbox.wait::<String>(&right).expect("the end is no error").is_none());
    }

    #[test]
    fn a_length_that_is_none_of_ours_is_refused() {
        let (left, right) = UnixStream::pair().expect("a pair of sockets");
        rustix::io::write(&left, &[255; 64]).expect("room in a socket");
        assert!(Inbox::default().wait::<String>(&right).is_err());
    }
}
