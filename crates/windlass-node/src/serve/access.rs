//! Who may talk to the endpoint, and by which certificate it is known.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use http::{HeaderMap, header};
use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, KeyPair, SanType};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{VerifierBuilderError, WebPkiClientVerifier};
use rustls::{RootCertStore, ServerConfig};
use sha2::{Digest as _, Sha256};
use thiserror::Error;

/// The endpoint's own certificate and key, in PEM.
#[derive(Clone)]
pub struct Certificate {
    /// The certificate, and those that lead from it to its authority.
    pub chain: String,
    /// Its private key.
    pub key: String,
}

impl Certificate {
    /// One that signs for itself, as kubelet's does when it is given none.
    pub fn self_signed(name: &str, addresses: &[IpAddr]) -> Result<Certificate, Error> {
        let mut params = CertificateParams::new(vec![name.to_owned(), "localhost".to_owned()])?;
        params.subject_alt_names.extend(addresses.iter().copied().map(SanType::IpAddress));
        params.distinguished_name.push(DnType::CommonName, format!("{name}@windlass"));
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let key = KeyPair::generate()?;
        let certificate = params.self_signed(&key)?;
        Ok(Certificate { chain: certificate.pem(), key: key.serialize_pem() })
    }
}

/// Who may ask. With neither, nobody may.
#[derive(Clone, Default)]
pub struct Access {
    /// Bearer tokens.
    pub tokens: Vec<String>,
    /// The authority of client certificates, in PEM: whoever has a certificate of it may ask for everything, so it
    /// should sign for nobody but the API server.
    pub client_authority: Option<String>,
}

/// Why the endpoint cannot be opened.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// A certificate could not be made.
    #[error("a certificate for the node's endpoint could not be made")]
    Make(#[from] rcgen::Error),
    /// A certificate or a key could not be read.
    #[error("a certificate or key of the node's endpoint is not in PEM")]
    Pem(#[from] rustls::pki_types::pem::Error),
    /// The certificates do not make a TLS configuration.
    #[error("the certificates of the node's endpoint are of no use for TLS")]
    Tls(#[from] rustls::Error),
    /// The authority of clients is of no use.
    #[error("the authority of the clients of the node's endpoint is of no use for TLS")]
    Authority(#[from] VerifierBuilderError),
}

/// The digests of the tokens that are good: how long a look-up takes says nothing about a token.
#[derive(Clone, Default)]
pub(super) struct Tokens(Arc<BTreeSet<[u8; 32]>>);

impl Tokens {
    pub fn new(access: &Access) -> Tokens {
        Tokens(Arc::new(access.tokens.iter().map(|token| Sha256::digest(token).into()).collect()))
    }

    /// Whether a request carries one of them.
    pub fn admit(&self, headers: &HeaderMap) -> bool {
        let value = headers.get(header::AUTHORIZATION).map(http::HeaderValue::as_bytes).unwrap_or_default();
        let Some((scheme, token)) = value.split_at_checked(7) else { return false };
        let digest: [u8; 32] = Sha256::digest(token.trim_ascii()).into();
        scheme.eq_ignore_ascii_case(b"bearer ") && self.0.contains(&digest)
    }
}

/// How the endpoint speaks TLS. Whoever presents a certificate must present one of the authority.
pub(super) fn tls(certificate: &Certificate, access: &Access) -> Result<Arc<ServerConfig>, Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let chain =
        CertificateDer::pem_slice_iter(certificate.chain.as_bytes()).collect::<Result<Vec<_>, _>>()?;
    let key = PrivateKeyDer::from_pem_slice(certificate.key.as_bytes())?;
    let builder =
        ServerConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions()?;
    let builder = match &access.client_authority {
        Some(authority) => {
            let mut roots = RootCertStore::empty();
            for certificate in CertificateDer::pem_slice_iter(authority.as_bytes()) {
                roots.add(certificate?)?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            builder.with_client_cert_verifier(verifier.allow_unauthenticated().build()?)
        }
        None => builder.with_no_client_auth(),
    };
    let mut config = builder.with_single_cert(chain, key)?;
    // Connections change their protocol, which HTTP/2 does not offer.
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
