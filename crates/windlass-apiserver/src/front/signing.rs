//! The key that signs the tokens of service accounts.

use rcgen::KeyPair;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _, UnparsedPublicKey,
};

use crate::api::Signer;

/// A key on the curve P-256.
pub(super) struct SigningKey {
    pair: EcdsaKeyPair,
    random: SystemRandom,
}

impl SigningKey {
    /// The key in PKCS #8; `None` where it is on another curve.
    pub fn new(key: &KeyPair) -> Option<SigningKey> {
        let random = SystemRandom::new();
        let der = key.serialize_der();
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &der, &random).ok()?;
        Some(SigningKey { pair, random })
    }
}

impl Signer for SigningKey {
    fn sign(&self, message: &[u8]) -> Vec<u8> {
        let signature = self.pair.sign(&self.random, message);
        signature.expect("the machine has random numbers").as_ref().to_vec()
    }

    fn verify(&self, message: &[u8], signature: &[u8]) -> bool {
        let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, self.pair.public_key());
        key.verify(message, signature).is_ok()
    }

    fn point(&self) -> [u8; 65] {
        self.pair.public_key().as_ref().try_into().expect("a point of P-256 is 65 bytes")
    }
}
