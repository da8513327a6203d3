//! The server's own certificate authority, and what it signs.

use std::fs;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, CertificateSigningRequestParams, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose, SanType,
};
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, RootCertStore, ServerConfig, SignatureScheme};
use thiserror::Error;

use super::identity::Identity;
use super::random::Random;
use super::signing::SigningKey;
use crate::api::{self, Ids as _, User};

/// What an API server and its administrator know each other by.
pub struct Credentials {
    /// The certificate of the authority, in PEM.
    pub authority: String,
    /// The administrator's certificate, in PEM: a member of `system:masters`.
    pub admin_certificate: String,
    /// The administrator's private key, in PEM.
    pub admin_key: String,
    /// The administrator's bearer token.
    pub admin_token: String,
    issuer: Issuer<'static, KeyPair>,
    serving: Serving,
    tokens: api::Issuer,
}

/// How a server is known to its clients, and how it knows them.
#[derive(Clone)]
pub struct Serving {
    /// How to speak TLS as it.
    pub tls: Arc<ServerConfig>,
    /// Whom it knows.
    pub identity: Identity,
}

impl Serving {
    /// By files that somebody else made, in PEM: a certificate with its key, and the authorities of clients.
    ///
    /// # Errors
    /// They are of no use.
    pub fn given(certificate: &str, key: &str, clients: &str) -> Result<Serving, Error> {
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes())?;
        Serving::new(certificates(certificate)?, key, &certificates(clients)?, None)
    }

    /// The same, for clients of other authorities, in PEM.
    ///
    /// # Errors
    /// They are of no use.
    pub fn trusting(&self, clients: &str) -> Result<Serving, Error> {
        // Whom TLS lets in is not who is trusted: see `Presented`.
        let verifier = Presented::new(&certificates(clients)?)?;
        Ok(Serving { tls: self.tls.clone(), identity: Identity::new(verifier.trusted.clone(), None) })
    }

    fn new(
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
        clients: &[CertificateDer<'_>],
        admin_token: Option<&str>,
    ) -> Result<Serving, Error> {
        let verifier = Presented::new(clients)?;
        let tls = tls(verifier.clone(), chain, key)?;
        let tokens = admin_token.map(|token| (token.to_owned(), User::admin()));
        Ok(Serving { tls, identity: Identity::new(verifier.trusted.clone(), tokens) })
    }
}

/// Why there are no credentials.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// A certificate could not be made.
    #[error("a certificate could not be made")]
    Certificate(#[from] rcgen::Error),
    /// The certificates do not make a TLS configuration.
    #[error("the certificates are of no use for TLS")]
    Tls(#[from] rustls::Error),
    /// The clients' authority is of no use.
    #[error("the certificate authority is of no use for TLS")]
    Verifier(#[from] rustls::server::VerifierBuilderError),
    /// A certificate or a key could not be read.
    #[error("a certificate or key is not in PEM")]
    Pem(#[from] rustls::pki_types::pem::Error),
    /// The key of service account tokens is not one of P-256.
    #[error("the key for service account tokens is not one of the curve P-256")]
    SigningKey,
    /// A file of an earlier run could not be read, or a new one not be written.
    #[error("{} could not be {what}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What was tried.
        what: &'static str,
        /// Why it failed.
        source: io::Error,
    },
}

/// The names under which clients reach an API server on this machine or in its cluster.
const NAMES: [&str; 5] = [
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
];

/// The addresses under which pods reach it: that of the `kubernetes` Service, and what that leads to in an embedded cluster.
const POD_SIDE: [[u8; 4]; 2] = [[10, 0, 0, 1], [10, 243, 0, 1]];

impl Credentials {
    /// New ones, for a server at this address.
    pub fn generate(address: IpAddr) -> Result<Credentials, Error> {
        Credentials::of_authority(KeyPair::generate()?, &KeyPair::generate()?, new_token(), address)
    }

    /// Those of an earlier run in this folder, so that its kubeconfig still works; new ones if there are none.
    pub fn keep(folder: &Path, address: IpAddr) -> Result<Credentials, Error> {
        let failed = |path: &Path, what| {
            let path = path.to_owned();
            move |source| Error::File { path, what, source }
        };
        fs::create_dir_all(folder).map_err(failed(folder, "made"))?;
        let signing = keep_signing_key(&folder.join("service-account.pem"))?;
        let path = folder.join("credentials.pem");
        match fs::read_to_string(&path) {
            Ok(text) => {
                let damaged = || failed(&path, "understood")(io::Error::from(io::ErrorKind::InvalidData));
                let (token, key) = text.split_once('\n').ok_or_else(damaged)?;
                let token = token.strip_prefix("token ").ok_or_else(damaged)?;
                let key = KeyPair::from_pem(key).map_err(|_| damaged())?;
                Credentials::of_authority(key, &signing, token.to_owned(), address)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let (key, token) = (KeyPair::generate()?, new_token());
                let text = format!("token {token}\n{}", key.serialize_pem());
                super::kubeconfig::write_private(&path, text.as_bytes()).map_err(failed(&path, "written"))?;
                Credentials::of_authority(key, &signing, token, address)
            }
            Err(error) => Err(failed(&path, "read")(error)),
        }
    }

    /// The authority is its key and its name: clients that trusted it in an earlier run trust it in this one.
    fn of_authority(
        key: KeyPair,
        signing: &KeyPair,
        admin_token: String,
        address: IpAddr,
    ) -> Result<Credentials, Error> {
        let tokens = signer(signing)?;
        let mut params = CertificateParams::default();
        params.distinguished_name = name("windlass", &[]);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages =
            vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let authority = params.self_signed(&key)?;
        let issuer = Issuer::new(params, key);

        let mut server = leaf(name("kube-apiserver", &[]), ExtendedKeyUsagePurpose::ServerAuth);
        for name in NAMES {
            server.subject_alt_names.push(SanType::DnsName(name.try_into()?));
        }
        let loopback = [IpAddr::from([127, 0, 0, 1]), IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1u16])];
        let pod_side = POD_SIDE.map(IpAddr::from);
        for address in loopback.into_iter().chain(pod_side).chain([address]) {
            if !address.is_unspecified() {
                server.subject_alt_names.push(SanType::IpAddress(address));
            }
        }
        let server_key = KeyPair::generate()?;
        let server = server.signed_by(&server_key, &issuer)?;

        let server_key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(server_key.serialize_der()));
        let clients = [authority.der().clone()];
        let serving = Serving::new(vec![server.der().clone()], server_key, &clients, Some(&admin_token))?;
        let (admin_certificate, admin_key) = sign(&issuer, "kubernetes-admin", &["system:masters"])?;
        let authority = authority.pem();
        Ok(Credentials { authority, admin_certificate, admin_key, admin_token, issuer, serving, tokens })
    }

    /// A client certificate and its key, in PEM, for another user.
    pub fn client(&self, user: &str, groups: &[&str]) -> Result<(String, String), Error> {
        sign(&self.issuer, user, groups)
    }

    /// The certificate that a request (in PEM) asks for, in PEM: for a client of this server, from five minutes ago on, for so
    /// long.
    ///
    /// # Errors
    /// When it is no such request, or is not signed by the key that it is about.
    pub fn certify(
        &self,
        request: &str,
        now: Timestamp,
        lifetime: Duration,
        usages: &[String],
    ) -> Result<String, Error> {
        const BACKDATED: Duration = Duration::from_secs(5 * 60);
        const SHORT: Duration = Duration::from_secs(8 * 3600);
        let mut request = CertificateSigningRequestParams::from_pem(request)?;
        let since = rcgen::date_time_ymd(1970, 1, 1)
            + Duration::from_secs(now.as_second().try_into().unwrap_or_default());
        let mut params = leaf(request.params.distinguished_name, ExtendedKeyUsagePurpose::ClientAuth);
        params.subject_alt_names = request.params.subject_alt_names;
        let has = |usage: &str| usages.iter().any(|given| given == usage);
        params.key_usages =
            KEY_USAGES.into_iter().filter(|(name, _)| has(name)).map(|(_, usage)| usage).collect();
        params.extended_key_usages =
            PURPOSES.into_iter().filter(|(name, _)| has(name)).map(|(_, purpose)| purpose).collect();
        let end = if lifetime < SHORT { lifetime } else { lifetime - BACKDATED };
        (params.not_before, params.not_after) = (since - BACKDATED, since + end);
        request.params = params;
        Ok(request.signed_by(&self.issuer)?.pem())
    }

    /// How this server is known, and knows its clients.
    pub fn serving(&self) -> &Serving {
        &self.serving
    }

    /// Who signs the tokens of service accounts: for [`Config::tokens`](crate::api::Config::tokens).
    pub fn tokens(&self) -> api::Issuer {
        self.tokens.clone()
    }
}

/// What the certificates are for that anybody may ask for.
const KEY_USAGES: [(&str, KeyUsagePurpose); 2] = [
    ("digital signature", KeyUsagePurpose::DigitalSignature),
    ("key encipherment", KeyUsagePurpose::KeyEncipherment),
];
const PURPOSES: [(&str, ExtendedKeyUsagePurpose); 2] = [
    ("client auth", ExtendedKeyUsagePurpose::ClientAuth),
    ("server auth", ExtendedKeyUsagePurpose::ServerAuth),
];

/// Who signs by the key of a server that was started elsewhere, such as the file that a kube-apiserver was given as
/// `--service-account-signing-key-file`: PKCS #8 in PEM, on the curve P-256.
///
/// # Errors
/// When it is no such key.
pub fn issuer(pem: &str) -> Result<api::Issuer, Error> {
    signer(&KeyPair::from_pem(pem)?)
}

fn signer(key: &KeyPair) -> Result<api::Issuer, Error> {
    Ok(api::Issuer::new(Arc::new(SigningKey::new(key).ok_or(Error::SigningKey)?)))
}

/// The key of an earlier run, so that the tokens of its pods still count; a new one if there is none.
fn keep_signing_key(path: &Path) -> Result<KeyPair, Error> {
    let failed = |what| move |source| Error::File { path: path.to_owned(), what, source };
    match fs::read_to_string(path) {
        Ok(text) => KeyPair::from_pem(&text)
            .map_err(|_| failed("understood")(io::Error::from(io::ErrorKind::InvalidData))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let key = KeyPair::generate()?;
            super::kubeconfig::write_private(path, key.serialize_pem().as_bytes())
                .map_err(failed("written"))?;
            Ok(key)
        }
        Err(error) => Err(failed("read")(error)),
    }
}

fn sign(issuer: &Issuer<'_, KeyPair>, user: &str, groups: &[&str]) -> Result<(String, String), Error> {
    let key = KeyPair::generate()?;
    let certificate =
        leaf(name(user, groups), ExtendedKeyUsagePurpose::ClientAuth).signed_by(&key, issuer)?;
    Ok((certificate.pem(), key.serialize_pem()))
}

fn leaf(name: DistinguishedName, usage: ExtendedKeyUsagePurpose) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = name;
    params.use_authority_key_identifier_extension = true;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![usage];
    params
}

fn name(common: &str, organizations: &[&str]) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    for organization in organizations {
        name.push(DnType::OrganizationName, *organization);
    }
    name.push(DnType::CommonName, common);
    name
}

/// 256 bits that nobody has seen.
fn new_token() -> String {
    let mut random = Random::from_os();
    (0..4).map(|_| format!("{:016x}", random.next())).collect()
}

fn tls(
    verifier: Arc<Presented>,
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<Arc<ServerConfig>, rustls::Error> {
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()?
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn certificates(pem: &str) -> Result<Vec<CertificateDer<'static>>, rustls::pki_types::pem::Error> {
    CertificateDer::pem_slice_iter(pem.as_bytes()).collect()
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// Takes any certificate whose key the client has, and leaves it to [`Identity`] whether it is trusted: as with
/// kube-apiserver, a wrong certificate is answered with a 401 and not with a broken handshake.
#[derive(Debug)]
struct Presented {
    trusted: Arc<dyn ClientCertVerifier>,
}

impl Presented {
    fn new(authorities: &[CertificateDer<'_>]) -> Result<Arc<Presented>, Error> {
        let mut roots = RootCertStore::empty();
        for authority in authorities {
            roots.add(authority.clone().into_owned())?;
        }
        let trusted = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider()).build()?;
        Ok(Arc::new(Presented { trusted }))
    }
}

impl ClientCertVerifier for Presented {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[rustls::DistinguishedName] {
        self.trusted.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.trusted.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.trusted.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.trusted.supported_verify_schemes()
    }
}
