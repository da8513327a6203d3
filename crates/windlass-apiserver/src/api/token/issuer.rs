//! Who signs tokens.

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// A key on the curve P-256. It is behind a trait since a signature takes randomness, which the server's core does not
/// have.
pub trait Signer: Send + Sync {
    /// The signature of a message, as two numbers of 32 bytes.
    fn sign(&self, message: &[u8]) -> Vec<u8>;

    /// Whether this is a signature of that message by this key.
    fn verify(&self, message: &[u8], signature: &[u8]) -> bool;

    /// The public key: 4, x, y.
    fn point(&self) -> [u8; 65];
}

/// Who signs the tokens of service accounts, and whom they are for.
#[derive(Clone)]
pub struct Issuer {
    signer: Arc<dyn Signer>,
    /// The `iss` of its tokens.
    pub url: String,
    /// Whom tokens are for where nobody says it: this API server.
    pub audiences: Vec<String>,
    key_id: String,
}

/// The `iss` of tokens that live in Secrets.
pub(super) const LEGACY: &str = "kubernetes/serviceaccount";

/// What precedes a point of P-256 in a SubjectPublicKeyInfo.
const P256: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86,
    0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];

impl Issuer {
    /// Signs by this key, under the name that clusters have inside of themselves.
    pub fn new(signer: Arc<dyn Signer>) -> Issuer {
        let url = "https://kubernetes.default.svc".to_owned();
        let info: Vec<u8> = P256.into_iter().chain(signer.point()).collect();
        let key_id = URL_SAFE_NO_PAD.encode(Sha256::digest(info));
        Issuer { signer, audiences: vec![url.clone()], url, key_id }
    }

    /// The public key as `/openid/v1/jwks` tells it.
    pub fn jwk(&self) -> Value {
        let point = self.signer.point();
        json!({
            "use": "sig", "kty": "EC", "kid": self.key_id, "crv": "P-256", "alg": "ES256",
            "x": URL_SAFE_NO_PAD.encode(&point[1..33]), "y": URL_SAFE_NO_PAD.encode(&point[33..]),
        })
    }

    /// A signed token that says this. Whoever makes tokens that live in Secrets, as kube-controller-manager does, signs them
    /// by the key of the server.
    pub fn sign(&self, claims: &Value) -> String {
        let header = json!({"alg": "ES256", "kid": self.key_id});
        let encode = |part: &Value| URL_SAFE_NO_PAD.encode(part.to_string());
        let message = format!("{}.{}", encode(&header), encode(claims));
        let signature = URL_SAFE_NO_PAD.encode(self.signer.sign(message.as_bytes()));
        format!("{message}.{signature}")
    }

    /// What a token says. `Ok(None)` where it is not one of this issuer.
    ///
    /// # Errors
    /// When it is, and its signature is not.
    pub(super) fn verify(&self, token: &str) -> Result<Option<Value>, String> {
        let Some((message, signature)) = token.rsplit_once('.') else { return Ok(None) };
        let decode = |part: &str| {
            let bytes = URL_SAFE_NO_PAD.decode(part).ok()?;
            serde_json::from_slice::<Value>(&bytes).ok()
        };
        let Some((header, claims)) = message.split_once('.') else { return Ok(None) };
        let (Some(header), Some(claims)) = (decode(header), decode(claims)) else { return Ok(None) };
        if claims["iss"].as_str().is_none_or(|issuer| issuer != self.url && issuer != LEGACY) {
            return Ok(None);
        }
        if header["kid"].as_str().is_some_and(|id| !id.is_empty() && id != self.key_id) {
            return Err("invalid signature, no keys found".to_owned());
        }
        let signature = URL_SAFE_NO_PAD.decode(signature).unwrap_or_default();
        let is_signed =
            header["alg"].as_str() == Some("ES256") && self.signer.verify(message.as_bytes(), &signature);
        match is_signed {
            true => Ok(Some(claims)),
            false => Err("go-jose/go-jose: error in cryptographic primitive".to_owned()),
        }
    }
}

impl fmt::Debug for Issuer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Issuer").field("url", &self.url).field("key_id", &self.key_id).finish_non_exhaustive()
    }
}
