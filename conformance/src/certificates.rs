//! Client certificates, drawn at random: who they make somebody, and what he may, on both servers.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose as Usage, IsCa,
    KeyPair,
};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};

use crate::client::{Endpoint as _, Https};
use crate::envtest;
use crate::rng::Rng;
use crate::servers::{self, Extra, Server};

/// How many certificates are shown.
const COUNT: usize = 200;
/// The attribute by which a certificate tells a uid.
const UID: [u64; 8] = [1, 3, 6, 1, 4, 1, 57683, 2];

type Issuer = CertifiedIssuer<'static, KeyPair>;

/// Who signs: the one whom both servers trust, one below him, and a stranger of the same name.
struct Signers {
    trusted: Issuer,
    below: Issuer,
    stranger: Issuer,
}

fn authority(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params
}

impl Signers {
    fn new() -> Result<Signers> {
        let trusted = CertifiedIssuer::self_signed(authority("authority"), KeyPair::generate()?)?;
        let below = CertifiedIssuer::signed_by(authority("below"), KeyPair::generate()?, &trusted)?;
        let stranger = CertifiedIssuer::self_signed(authority("authority"), KeyPair::generate()?)?;
        Ok(Signers { trusted, below, stranger })
    }
}

/// A certificate to show, and what is said with it.
struct Shown {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    token: &'static str,
    /// Our verifier refuses those that are authorities themselves, and those for any usage, which Go's takes.
    stricter: bool,
    told: String,
}

fn draw(rng: &mut Rng, signers: &Signers) -> Result<Shown> {
    let long = "a".repeat(300);
    let names =
        ["bob", "bob", "", "Bob", " bob", "böb", "system:admin", "system:serviceaccount:default:x", &long];
    let groups = ["team", "team", "Team", "", "system:masters", "system:authenticated", "system:nodes"];
    let name = rng.pick(&names);
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    if !name.is_empty() || rng.chance(50) {
        params.distinguished_name.push(DnType::CommonName, name);
    }
    // One value of each attribute is all that the library can write.
    let group = rng.chance(70).then(|| rng.pick(&groups));
    if let Some(group) = group {
        params.distinguished_name.push(DnType::OrganizationName, group);
    }
    if rng.chance(15) {
        params.distinguished_name.push(DnType::OrganizationalUnitName, "system:masters");
    }
    let uid = rng.chance(15).then(|| rng.pick(&["u-1", "", " "]));
    if let Some(uid) = uid {
        params.distinguished_name.push(DnType::CustomDnType(UID.to_vec()), uid);
    }
    let usage = rng.below(6);
    params.extended_key_usages = match usage {
        0 => vec![],
        1 => vec![Usage::ServerAuth],
        2 => vec![Usage::Any],
        3 => vec![Usage::ServerAuth, Usage::ClientAuth],
        _ => vec![Usage::ClientAuth],
    };
    let time = rng.below(8);
    let year = |year| rcgen::date_time_ymd(year, 1, 1);
    (params.not_before, params.not_after) = match time {
        0 => (year(2001), year(2002)),
        1 => (year(2901), year(2902)),
        2 => (year(2902), year(2001)),
        _ => (year(2001), year(2901)),
    };
    let is_authority = rng.chance(10);
    if is_authority {
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    }
    let key = KeyPair::generate()?;
    let signer = rng.below(9);
    let (certificate, more) = match signer {
        0 => (params.signed_by(&key, &signers.stranger)?, None),
        1 => (params.self_signed(&key)?, None),
        2 => (params.signed_by(&key, &signers.below)?, Some(&signers.below)),
        3 => (params.signed_by(&key, &signers.below)?, None),
        4 => (params.signed_by(&key, &signers.stranger)?, Some(&signers.stranger)),
        _ => (params.signed_by(&key, &signers.trusted)?, None),
    };
    let chain = std::iter::once(certificate.der().clone()).chain(more.map(|issuer| issuer.der().clone()));
    let token = if rng.chance(20) { "nonsense" } else { "" };
    Ok(Shown {
        chain: chain.collect(),
        key: PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes())?,
        token,
        stricter: is_authority || usage == 2,
        told: format!(
            "name {name:?}, group {group:?}, uid {uid:?}, usage {usage}, time {time}, signer {signer}, token {token:?}"
        ),
    })
}

/// What is asked with each.
fn questions() -> [(&'static str, &'static str, Value); 4] {
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    [
        ("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", review),
        ("GET", "/api/v1/namespaces/default/configmaps", Value::Null),
        ("GET", "/api/v1/namespaces/kube-system/secrets", Value::Null),
        ("GET", "/healthz", Value::Null),
    ]
}

async fn ask(https: &Https, method: &str, path: &str, body: &Value) -> Result<(u16, Value)> {
    let text = if body.is_null() { String::new() } else { body.to_string() };
    let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
    let request = request.body(Full::new(Bytes::from(text)))?;
    let answer = https.open().await?.send(request).await?;
    let code = answer.status().as_u16();
    let body = answer.into_body().collect().await?.to_bytes();
    Ok((code, serde_json::from_slice(&body).unwrap_or_default()))
}

/// What somebody learns: the codes, and who he is.
async fn learns(server: &Server, shown: &Shown) -> String {
    let https = server.https.showing(shown.chain.clone(), shown.key.clone_key(), shown.token);
    let mut out = String::new();
    for (method, path, body) in questions() {
        out += &match ask(&https, method, path, &body).await {
            Ok((201, answer)) => format!("{path}: 201 {}\n", answer["status"]["userInfo"]),
            Ok((code, answer)) => format!("{path}: {code} {}\n", answer["message"]),
            Err(_) => format!("{path}: no answer\n"),
        };
    }
    out
}

/// Shows the same certificates to both servers. What differs.
///
/// # Errors
/// A server does not come up.
pub async fn run(windlass: &Path, output: &Path, seed: u64) -> Result<bool> {
    let _ = fs::remove_dir_all(output);
    fs::create_dir_all(output)?;
    let signers = Signers::new()?;
    let file = output.join("authority.pem");
    fs::write(&file, signers.trusted.pem())?;
    let trusts = format!("--client-ca-file={}", file.display());
    let mut beside: Vec<String> =
        ["--advertise-address=127.0.0.1", "--disable-admission-plugins=ServiceAccount"]
            .map(str::to_owned)
            .into();
    beside.push(trusts.clone());
    let extra = Extra { beside_nodes: Some(beside), ..Extra::default() };
    let reference = servers::reference_with(&output.join("reference"), &extra).await?;
    let ours = ours(windlass, &output.join("ours"), &trusts).await?;
    let mut admin = CertificateParams::default();
    admin.distinguished_name.push(DnType::CommonName, "admin");
    admin.distinguished_name.push(DnType::OrganizationName, "system:masters");
    admin.extended_key_usages = vec![Usage::ClientAuth];
    let key = KeyPair::generate()?;
    let certificate = admin.signed_by(&key, &signers.trusted)?;
    for server in [&reference, &ours] {
        let key = PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes())?;
        grant(&server.https.showing(vec![certificate.der().clone()], key, "")).await?;
    }
    let mut rng = Rng::part(seed, "certificates", 0);
    let (mut different, mut answered, mut stricter) = (0, 0, 0);
    for _ in 0..COUNT {
        let shown = draw(&mut rng, &signers)?;
        let (a, b) = tokio::join!(learns(&reference, &shown), learns(&ours, &shown));
        answered += usize::from(a.contains(": 201 "));
        if shown.stricter && b.lines().all(|line| line.ends_with("401 \"Unauthorized\"")) {
            stricter += 1;
        } else if a != b {
            different += 1;
            println!("different: {}\n--- reference\n{a}--- ours\n{b}", shown.told);
        }
    }
    println!(
        "{COUNT} certificates, {answered} of somebody, {stricter} refused that are for any usage or authorities, \
         {different} different (seed {seed})"
    );
    Ok(different == 0)
}

/// What `team` and `bob` may.
async fn grant(admin: &Https) -> Result<()> {
    let group = "rbac.authorization.k8s.io";
    let binding = json!({
        "apiVersion": format!("{group}/v1"), "kind": "RoleBinding", "metadata": {"name": "readers"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "readers"},
        "subjects": [{"apiGroup": group, "kind": "Group", "name": "team"}, {"apiGroup": group, "kind": "User", "name": "bob"}],
    });
    let rules = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}]);
    let role = json!({"apiVersion": format!("{group}/v1"), "kind": "ClusterRole", "metadata": {"name": "readers"}, "rules": rules});
    for (path, body) in [
        (format!("/apis/{group}/v1/clusterroles"), role),
        (format!("/apis/{group}/v1/namespaces/default/rolebindings"), binding),
    ] {
        let (code, said) = ask(admin, "POST", &path, &body).await?;
        anyhow::ensure!(code == 201, "{path}: {code} {said}");
    }
    Ok(())
}

/// Our server in the place of kube-apiserver, as envtest starts it: with an authority that it is given.
async fn ours(windlass: &Path, folder: &Path, trusts: &str) -> Result<Server> {
    fs::create_dir_all(folder)?;
    let program = envtest::ours(windlass, folder)?.join("kube-apiserver");
    let folder = folder.canonicalize()?;
    let key = folder.join("sa.key");
    fs::write(&key, KeyPair::generate()?.serialize_pem())?;
    let mut command = Command::new(program);
    command
        .args([trusts, "--bind-address=127.0.0.1", "--authorization-mode=RBAC"])
        .arg("--service-account-issuer=https://kubernetes.default.svc")
        .arg(format!("--service-account-signing-key-file={}", key.display()))
        .arg(format!("--service-account-key-file={}", key.display()))
        .arg(format!("--cert-dir={}", folder.display()))
        .args(["--etcd-servers=http://127.0.0.1:1", "--disable-admission-plugins=ServiceAccount"]);
    servers::started(command, &folder).await.context("our server in the place of kube-apiserver")
}

impl Https {
    /// The same server, for somebody with a certificate, and perhaps a token.
    fn showing(
        &self,
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
        token: &str,
    ) -> Https {
        Https::with(self.address(), token, Some((chain, key)))
    }
}

/// A chain that the library itself would not show is shown all the same.
#[derive(Debug)]
pub(crate) struct Always(pub Arc<rustls::sign::CertifiedKey>);

impl rustls::client::ResolvesClientCert for Always {
    fn resolve(&self, _: &[&[u8]], _: &[rustls::SignatureScheme]) -> Option<Arc<rustls::sign::CertifiedKey>> {
        Some(self.0.clone())
    }

    fn has_certs(&self) -> bool {
        true
    }
}
