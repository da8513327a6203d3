//! Names of what belongs to a cluster. They follow from the cluster alone.

use kube::ResourceExt as _;

use super::EtcdCluster;

/// How clients reach a member.
pub const CLIENT_PORT: i32 = 2379;
/// How members reach each other.
pub const PEER_PORT: i32 = 2380;
/// Where probes and metrics are, without TLS.
pub const METRICS_PORT: i32 = 2381;

/// Letters of a member's suffix: 36 to the power of five names.
const SPACE: u64 = 36 * 36 * 36 * 36 * 36;
/// Has no factor in common with [`SPACE`], so that multiplying by it visits every suffix once.
const STRIDE: u64 = 38_420_791;

/// The name of the member of a serial. Two serials of one cluster never share a name, as long as there are fewer than 60
/// million; and the UID keeps the names of a cluster apart from those of its namesake that was deleted.
pub fn member(cluster: &str, uid: &str, serial: u64) -> String {
    let start = fnv(uid) % SPACE;
    let mut rest = (start + (serial % SPACE) * STRIDE) % SPACE;
    let mut suffix = [b'0'; 5];
    for letter in suffix.iter_mut().rev() {
        *letter = b"0123456789abcdefghijklmnopqrstuvwxyz"[(rest % 36) as usize];
        rest /= 36;
    }
    format!("{cluster}-{}", String::from_utf8_lossy(&suffix))
}

/// The volume of a member.
pub fn volume(member: &str) -> String {
    format!("data-{member}")
}

/// The Service by which clients find the voters.
pub fn client_service(cluster: &str) -> String {
    format!("{cluster}-client")
}

/// The headless Service by which members find each other.
pub fn peer_service(cluster: &str) -> String {
    format!("{cluster}-peers")
}

/// Where a member is reached by the others. The domain of the cluster is left to the resolver's search list.
pub fn peer_url(cluster: &str, namespace: &str, member: &str) -> String {
    format!("http://{member}.{}.{namespace}.svc:{PEER_PORT}", peer_service(cluster))
}

/// The member that a peer URL of this cluster is of; `None` for a URL that we did not make.
pub fn member_of_url<'a>(cluster: &str, namespace: &str, url: &'a str) -> Option<&'a str> {
    let host = url.strip_prefix("http://")?;
    let member = host.strip_suffix(&format!(".{}.{namespace}.svc:{PEER_PORT}", peer_service(cluster)))?;
    (!member.contains('.')).then_some(member)
}

/// What etcd calls the cluster.
pub fn token(cluster: &EtcdCluster) -> String {
    let namespace = cluster.namespace().unwrap_or_default();
    format!("{namespace}-{}-{}-1", cluster.name_any(), cluster.uid().unwrap_or_default())
}

/// An ID as etcd prints it.
pub fn id(id: u64) -> String {
    format!("{id:x}")
}

/// FNV-1a, 64 bits: stable for ever, which the hashes of the standard library are not.
fn fnv(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_two_serials_share_a_name() {
        let names: BTreeSet<String> = (1..=20_000).map(|serial| member("db", "some-uid", serial)).collect();
        assert_eq!(names.len(), 20_000);
        assert!(names.iter().all(|name| name.len() == "db-".len() + 5));
        // Coprime: neither two nor three divide the stride, and 36 has no other factor.
        const { assert!(!STRIDE.is_multiple_of(2) && !STRIDE.is_multiple_of(3)) };
        assert_ne!(member("db", "some-uid", 1), member("db", "another-uid", 1));
    }

    #[test]
    fn a_url_says_whose_it_is() {
        let url = peer_url("db", "team-a", "db-00abc");
        assert_eq!(url, "http://db-00abc.db-peers.team-a.svc:2380");
        assert_eq!(member_of_url("db", "team-a", &url), Some("db-00abc"));
        assert_eq!(member_of_url("db", "team-b", &url), None);
        assert_eq!(member_of_url("db", "team-a", "http://10.0.0.1:2380"), None);
    }
}
