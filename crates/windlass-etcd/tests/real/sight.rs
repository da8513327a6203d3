//! A member that takes another for gone, though they talk to each other: what etcd-io/etcd#14523 tells of. It refuses changes for
//! good, and others do them. Who is careful asks more than one member.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use windlass_etcd::Error;
use windlass_etcd::testing::{Cluster, Release, eventually};

use crate::{NOBODY, with_all};

/// A way to a member on which streams pass whatever happens to single messages, as on the way to a pod whose address is another
/// one by now.
#[derive(Clone, Debug)]
struct Way {
    address: SocketAddr,
    messages: Arc<Mutex<Messages>>,
}

#[derive(Debug)]
enum Messages {
    Pass,
    Stick(Vec<TcpStream>),
    Lost,
}

impl Way {
    async fn to(member: SocketAddr) -> std::io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let way = Self { address: listener.local_addr()?, messages: Arc::new(Mutex::new(Messages::Pass)) };
        let there = way.clone();
        tokio::spawn(async move {
            while let Ok((from, _)) = listener.accept().await {
                tokio::spawn(there.clone().pass(from, member));
            }
        });
        Ok(way)
    }

    async fn pass(self, mut from: TcpStream, member: SocketAddr) -> std::io::Result<()> {
        let mut begin = *b"GET /raft/stream";
        from.read_exact(&mut begin).await?;
        if &begin != b"GET /raft/stream" {
            match &mut *self.messages() {
                Messages::Pass => {}
                Messages::Stick(stuck) if begin.starts_with(b"POST ") => {
                    stuck.push(from);
                    return Ok(());
                }
                // What is asked in between would leave a connection on which later messages pass.
                Messages::Stick(_) | Messages::Lost => return Ok(()),
            }
        }
        let mut to = TcpStream::connect(member).await?;
        to.write_all(&begin).await?;
        copy_bidirectional(&mut from, &mut to).await.map(drop)
    }

    fn messages(&self) -> MutexGuard<'_, Messages> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many messages are stuck.
    fn stuck(&self) -> usize {
        match &*self.messages() {
            Messages::Stick(stuck) => stuck.len(),
            _ => 0,
        }
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

#[tokio::test]
async fn a_member_that_takes_another_for_gone_refuses_what_the_other_does() {
    with_all(async |release| blind(release).await).await;
}

async fn blind(release: &Release) {
    let mut cluster = Cluster::of(release, 2).await.unwrap();
    let (one, other) = (cluster[0].client().unwrap(), cluster[1].client().unwrap());
    let way = Way::to(cluster[1].peer_url().trim_start_matches("http://").parse().unwrap()).await.unwrap();
    let id = other.status().await.unwrap().header.member_id;
    eventually("the way leads to the member", async || one.member_update(id, &[&way.url()]).await)
        .await
        .unwrap();

    // The member ends. What the other one tells it meanwhile is lost only when it is back and they talk again.
    *way.messages() = Messages::Stick(Vec::new());
    cluster[1].kill().unwrap();
    let said = cluster[0].log().len();
    eventually("a message is stuck", async || if way.stuck() > 0 { Ok(()) } else { Err("none is") })
        .await
        .unwrap();
    cluster[1].start().unwrap();
    let established = "established TCP streaming connection with remote peer";
    eventually("two streams there and two back", async || {
        match cluster[0].log()[said..].matches(established).count() {
            4.. => Ok(()),
            streams => Err(format!("{streams} streams")),
        }
    })
    .await
    .unwrap();
    let said = cluster[0].log().len();
    *way.messages() = Messages::Lost;
    eventually("it is taken for gone", async || match &cluster[0].log()[said..] {
        said if said.contains("peer became inactive") && said.contains("on pipeline") => Ok(()),
        said => Err(said.to_owned()),
    })
    .await
    .unwrap();

    // They talk to each other: there is a quorum of two.
    eventually("they write", async || one.put("a", "1").await).await.unwrap();
    let added = eventually("the other adds a member", async || other.member_add(&[NOBODY], true).await);
    let added = added.await.unwrap();
    other.member_remove(added.member.id).await.unwrap();
    // Both had to be connected for five seconds, and they met at the same time.
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(one.member_add(&[NOBODY], true).await, Err(Error::UnhealthyCluster));
    assert_eq!(one.get("a").await.unwrap().unwrap().value, b"1");
}
