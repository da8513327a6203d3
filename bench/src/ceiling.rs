//! What the client can do at most: the same load against a server that does nothing but TLS.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::Ipv4Addr;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use windlass_apiserver::front::credentials::Credentials;

use crate::Settings;
use crate::client::Connector;
use crate::load::{Load, Until};
use crate::objects::Requests;
use crate::process::{Process, cpu_seconds};

/// Runs the load against [`child`] and says how far it gets.
pub fn note(settings: &Settings) -> Result<String> {
    let mut command = Command::new(std::env::current_exe()?);
    let mut child = command.arg("ceiling").stdout(Stdio::piped()).spawn()?;
    let mut line = String::new();
    BufReader::new(child.stdout.take().context("piped")?).read_line(&mut line)?;
    let process = Process::new(child);
    let connector = Connector::new(line.trim().parse()?)?;
    let requests = Requests { host: "ceiling".to_owned(), token: "none".to_owned() };
    let before = cpu_seconds(process.id())?;
    let load = Load {
        connector: &connector,
        connections: settings.connections,
        until: Until::Passed(settings.time),
        expect: 200,
        request: |_, out: &mut Vec<u8>| {
            requests.get("/api/v1/namespaces/bench/configmaps/bench-0000001", "application/json", out);
        },
    };
    let outcome = load.run()?;
    let spent = (cpu_seconds(process.id())? - before) / outcome.count as f64;
    Ok(format!(
        "the client's ceiling, against a server that only speaks TLS: {:.0} requests/s, at {:.1} µs of that server's \
         processor time each; a rate near it is the client's, and the processor time per request is the better figure",
        outcome.rate(),
        spent * 1e6
    ))
}

/// The server: prints its address, and answers every head with the same 600 bytes.
pub fn child() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let credentials = Credentials::generate(Ipv4Addr::LOCALHOST.into())?;
        let acceptor = TlsAcceptor::from(credentials.serving().tls.clone());
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        println!("{}", listener.local_addr()?);
        std::io::stdout().flush()?;
        loop {
            let (stream, _) = listener.accept().await?;
            // A connection that ends has ended; the load is over then.
            tokio::spawn(answer(stream, acceptor.clone()));
        }
    })
}

async fn answer(stream: TcpStream, acceptor: TlsAcceptor) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut stream = acceptor.accept(stream).await?;
    let body = "x".repeat(600);
    let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    let mut buffer = [0; 4096];
    let mut end = 0;
    loop {
        match stream.read(&mut buffer[end..]).await? {
            0 => return Ok(()),
            read => end += read,
        }
        if buffer[..end].ends_with(b"\r\n\r\n") {
            stream.write_all(answer.as_bytes()).await?;
            stream.flush().await?;
            end = 0;
        }
    }
}
