//! TLS that reads in large pieces. The client runs on the same cores as the servers: what it saves, both have.
//!
//! rustls's own buffers are made for servers with many quiet connections. They read 4 KiB at a time and grow anew for
//! every record, which made the client the slower side of a long list.

use std::sync::Arc;

use anyhow::{Result, bail, ensure};
use rustls::ClientConfig;
use rustls::client::UnbufferedClientConnection;
use rustls::pki_types::ServerName;
use rustls::unbuffered::{ConnectionState, UnbufferedStatus};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// How much is read from the network at a time: several records.
const WIRE: usize = 128 << 10;

/// What a record, or a message of the handshake, adds at most to what is sent.
const ENVELOPE: usize = 4 << 10;

/// An encrypted connection.
pub struct Tls {
    stream: TcpStream,
    session: UnbufferedClientConnection,
    wire: Vec<u8>,
    /// What has been received and not yet decrypted lies between these.
    start: usize,
    end: usize,
    outgoing: Vec<u8>,
}

/// What the session wants next.
enum Next {
    /// Another step.
    Step,
    /// What is to be sent is ready.
    Send,
    /// There was something to read.
    Read,
    /// More from the network.
    Receive,
    /// The other side is done.
    Closed,
}

impl Tls {
    /// Shakes hands.
    pub async fn connect(config: Arc<ClientConfig>, stream: TcpStream) -> Result<Tls> {
        let session = UnbufferedClientConnection::new(config, ServerName::try_from("localhost")?)?;
        let mut tls = Tls { stream, session, wire: vec![0; WIRE], start: 0, end: 0, outgoing: Vec::new() };
        // A session that is ready to send has shaken hands.
        tls.write(b"").await?;
        Ok(tls)
    }

    /// Sends, in one record or more.
    pub async fn write(&mut self, data: &[u8]) -> Result<()> {
        let mut early = Vec::new();
        let mut sent = false;
        while !sent {
            match self.step(&mut early, Some((data, &mut sent)))? {
                Next::Step | Next::Read => {}
                Next::Send => self.flush().await?,
                Next::Receive => self.receive().await?,
                Next::Closed => bail!("the server closed the connection"),
            }
        }
        ensure!(early.is_empty(), "the server answered before it was asked");
        self.flush().await
    }

    /// Appends what comes next; nothing comes after the end.
    pub async fn read(&mut self, out: &mut Vec<u8>) -> Result<()> {
        loop {
            match self.step(out, None)? {
                Next::Read | Next::Closed => return Ok(()),
                Next::Step => {}
                Next::Send => self.flush().await?,
                Next::Receive => self.receive().await?,
            }
        }
    }

    fn step(&mut self, out: &mut Vec<u8>, send: Option<(&[u8], &mut bool)>) -> Result<Next> {
        let UnbufferedStatus { mut discard, state } =
            self.session.process_tls_records(&mut self.wire[self.start..self.end]);
        let room = self.outgoing.len();
        let next = match state? {
            ConnectionState::ReadTraffic(mut traffic) => {
                while let Some(record) = traffic.next_record() {
                    let record = record?;
                    discard += record.discard;
                    out.extend_from_slice(record.payload);
                }
                Next::Read
            }
            ConnectionState::EncodeTlsData(mut message) => {
                self.outgoing.resize(room + ENVELOPE, 0);
                let written = message.encode(&mut self.outgoing[room..])?;
                self.outgoing.truncate(room + written);
                Next::Step
            }
            ConnectionState::TransmitTlsData(messages) => {
                messages.done();
                Next::Send
            }
            ConnectionState::WriteTraffic(mut traffic) => match send {
                Some((data, sent)) => {
                    self.outgoing.resize(room + data.len() + ENVELOPE, 0);
                    let written = traffic.encrypt(data, &mut self.outgoing[room..])?;
                    self.outgoing.truncate(room + written);
                    *sent = true;
                    Next::Send
                }
                None => Next::Receive,
            },
            ConnectionState::BlockedHandshake => Next::Receive,
            ConnectionState::PeerClosed | ConnectionState::Closed => Next::Closed,
            state => bail!("nobody asked for {state:?}"),
        };
        self.start += discard;
        Ok(next)
    }

    async fn flush(&mut self) -> Result<()> {
        self.stream.write_all(&self.outgoing).await?;
        self.outgoing.clear();
        Ok(())
    }

    async fn receive(&mut self) -> Result<()> {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.end == self.wire.len() {
            self.wire.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        let received = self.stream.read(&mut self.wire[self.end..]).await?;
        ensure!(received > 0, "the server closed the connection");
        self.end += received;
        Ok(())
    }
}
