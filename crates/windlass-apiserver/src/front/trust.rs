//! Whose certificates are good enough for connections that this server makes.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
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

/// Connections to whoever has a certificate of `authority`, showing `certificate` (certificate and key).
pub(super) fn client(
    certificate: Option<(&str, &str)>,
    authority: Option<&str>,
) -> Result<Arc<ClientConfig>, Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier: Arc<dyn ServerCertVerifier> = match authority {
        Some(authority) => {
            let mut roots = RootCertStore::empty();
            for certificate in CertificateDer::pem_slice_iter(authority.as_bytes()) {
                roots.add(certificate?)?;
            }
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone()).build()?
        }
        None => Arc::new(Anyone(provider.clone())),
    };
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
