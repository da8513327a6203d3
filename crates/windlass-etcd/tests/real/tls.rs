//! TLS, and a way to the member that is the caller's own.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use windlass_etcd::testing::{Cluster, Release, eventually};
use windlass_etcd::{Client, Dial, Error, Options};

#[tokio::test]
async fn over_tls_with_a_certificate_on_both_sides() {
    let release = Release::required("3.6");
    let folder = tempfile::tempdir().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let leaf = |names: &[&str]| {
        let key = KeyPair::generate().unwrap();
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        (CertificateParams::new(names).unwrap().signed_by(&key, &ca).unwrap(), key)
    };
    let (server, server_key) = leaf(&["127.0.0.1"]);
    let (client, client_key) = leaf(&[]);
    let file = |name: &str, text: String| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let mut cluster = Cluster::new(&release)
        .unwrap()
        .with(format!("--cert-file={}", file("server.crt", server.pem())))
        .with(format!("--key-file={}", file("server.key", server_key.serialize_pem())))
        .with(format!("--trusted-ca-file={}", file("ca.crt", ca.pem())))
        .with("--client-cert-auth");
    cluster.start_seed().unwrap();

    let mut roots = RootCertStore::empty();
    roots.add(ca.der().clone()).unwrap();
    let roots = Arc::new(roots);
    let config = || {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder =
            ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        builder.with_root_certificates(Arc::clone(&roots))
    };
    let known = config()
        .with_client_auth_cert(
            vec![client.der().clone()],
            client_key.serialized_der().to_vec().try_into().unwrap(),
        )
        .unwrap();
    let address = cluster[0].client_url();
    let etcd = Client::with(&address, Options::default().dial(Dial::tls(known))).unwrap();
    eventually("it answers over TLS", async || etcd.put("a", "1").await).await.unwrap();

    let stranger =
        Client::with(&address, Options::default().dial(Dial::tls(config().with_no_client_auth()))).unwrap();
    let refused = stranger.status().await;
    assert!(matches!(refused, Err(Error::Unreachable { .. })), "{refused:?}");
}

#[tokio::test]
async fn by_a_way_of_ones_own() {
    let cluster = Cluster::of(&Release::required("3.6"), 1).await.unwrap();
    let real = cluster[0].client_url().trim_start_matches("http://").to_owned();
    let dialled = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&dialled);
    let dial = Dial::new(move |address| {
        assert_eq!(address.host(), Some("m1.sample.svc"));
        count.fetch_add(1, Ordering::SeqCst);
        TcpStream::connect(real.clone())
    });
    let client = Client::with("http://m1.sample.svc:2379", Options::default().dial(dial)).unwrap();
    for _ in 0..3 {
        client.status().await.unwrap();
    }
    assert_eq!(dialled.load(Ordering::SeqCst), 1, "one connection serves all calls");
}
