//! Ports that no other test on this machine has.

use std::io;
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::sync::atomic::{AtomicU16, Ordering};

/// Below what the kernel gives to outgoing connections (32768 and up): a member that is restarted finds its port free.
const FIRST: u16 = 20_000;
const COUNT: u16 = 12_000;

/// A TCP port of 127.0.0.1, ours as long as this value lives.
///
/// A TCP socket that held it would be in etcd's way; the UDP port of the same number is in nobody's, and only one process
/// can have it.
#[derive(Debug)]
pub struct Port {
    number: u16,
    _held: UdpSocket,
}

impl Port {
    pub fn take() -> io::Result<Self> {
        static NEXT: AtomicU16 = AtomicU16::new(0);
        // Processes that run at once begin at different places.
        let begin = u32::from(u16::try_from(std::process::id() % 997).unwrap_or(0)) * 12;
        for _ in 0..COUNT {
            let offset = (begin + u32::from(NEXT.fetch_add(1, Ordering::Relaxed))) % u32::from(COUNT);
            let number = FIRST + u16::try_from(offset).unwrap_or(0);
            let Ok(held) = UdpSocket::bind((Ipv4Addr::LOCALHOST, number)) else { continue };
            if TcpListener::bind((Ipv4Addr::LOCALHOST, number)).is_ok() {
                return Ok(Self { number, _held: held });
            }
        }
        Err(io::Error::other("all ports of 127.0.0.1 for tests are taken"))
    }

    pub fn url(&self, scheme: &str) -> String {
        format!("{scheme}://127.0.0.1:{}", self.number)
    }
}
