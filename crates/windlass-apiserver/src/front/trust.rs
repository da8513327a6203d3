//! Whose certificates are good enough for connections that this server makes.

use std::sync::{Arc, LazyLock};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use thiserror::Error;

/// Why connections cannot be made so.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// A certificate or a key could not be read.
    #[error("a certificate or key for connections to nodes is not in PEM")]
    Pem(#[from] rustls::pki_types::pem::Error),
    /// They do not make a TLS configuration.
    #[error("the certificates for connections to nodes are of no use for TLS")]
    Tls(#[from] rustls::Error),
    /// The authority is of no use.
    #[error("the authority of nodes is of no use for TLS")]
    Authority(#[from] rustls::client::VerifierBuilderError),
}

/// Connections to anyone, as kube-apiserver makes them where it is given no authority.
pub(super) fn anyone() -> Arc<ClientConfig> {
    client(None, None).expect("a configuration without certificates has none that could be wrong")
}

/// Connections to whoever has a certificate that this machine trusts, if it trusts any. The certificates are read when they
/// are first wanted, and once: where `SSL_CERT_FILE` or `SSL_CERT_DIR` say, as Go does, or where the system keeps them.
pub(super) fn system() -> Option<Arc<ClientConfig>> {
    static SYSTEM: LazyLock<Option<Arc<ClientConfig>>> = LazyLock::new(|| {
        let found = rustls_native_certs::load_native_certs();
        for error in &found.errors {
            tracing::warn!(%error, "certificates of this machine could not be read");
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(found.certs.iter().cloned());
        let verifier = listed(found.certs, roots, &provider).ok()?;
        configured(provider, verifier, None).ok()
    });
    SYSTEM.clone()
}

/// Connections to whoever has a certificate of `authority`, showing `certificate` (certificate and key).
pub(super) fn client(
    certificate: Option<(&str, &str)>,
    authority: Option<&str>,
) -> Result<Arc<ClientConfig>, Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier: Arc<dyn ServerCertVerifier> = match authority {
        Some(authority) => {
            let listed =
                CertificateDer::pem_slice_iter(authority.as_bytes()).collect::<Result<Vec<_>, _>>()?;
            let mut roots = RootCertStore::empty();
            for certificate in &listed {
                roots.add(certificate.clone())?;
            }
            self::listed(listed, roots, &provider)?
        }
        None => Arc::new(Anyone(provider.clone())),
    };
    configured(provider, verifier, certificate)
}

fn listed(
    listed: Vec<CertificateDer<'static>>,
    roots: RootCertStore,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, Error> {
    let builder = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone());
    Ok(Arc::new(Listed { listed, issued: builder.build()? }))
}

fn configured(
    provider: Arc<CryptoProvider>,
    verifier: Arc<dyn ServerCertVerifier>,
    certificate: Option<(&str, &str)>,
) -> Result<Arc<ClientConfig>, Error> {
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    let mut config = match certificate {
        Some((chain, key)) => {
            let chain = CertificateDer::pem_slice_iter(chain.as_bytes()).collect::<Result<Vec<_>, _>>()?;
            builder.with_client_auth_cert(chain, PrivateKeyDer::from_pem_slice(key.as_bytes())?)?
        }
        None => builder.with_no_client_auth(),
    };
    // Connections may change their protocol, which HTTP/2 does not offer.
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// Takes certificates that an authority issued, and those that are authorities themselves: `openssl req -x509` makes a
/// certificate that is its own authority, and Go takes it for a server's. Whether such a one has expired is not looked at.
#[derive(Debug)]
struct Listed {
    listed: Vec<CertificateDer<'static>>,
    issued: Arc<WebPkiServerVerifier>,
}

impl ServerCertVerifier for Listed {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        stapled: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if !self.listed.contains(certificate) {
            return self.issued.verify_server_cert(certificate, chain, name, stapled, now);
        }
        verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.issued.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.issued.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.issued.supported_verify_schemes()
    }
}

/// Takes any certificate whose key the other side has.
#[derive(Debug)]
struct Anyone(Arc<CryptoProvider>);

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
