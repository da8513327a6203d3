//! Tokens of service accounts: who signs them, what they say, and whom they make of their bearer.
//!
//! ```text
//! serviceaccounts/<name>/token ─► request ─► claims ─► Issuer (a key, behind a trait: the core draws no random number)
//! Authorization: Bearer …, TokenReview ─► review: signature, audience, time, and whether all it names is still there
//!                                        └► legacy: the same of tokens that live in Secrets
//! ```

mod claims;
mod issuer;
mod legacy;
mod request;
mod review;

pub use issuer::{Issuer, Signer};
pub use legacy::Used;
pub(super) use request::ADMITTED_LIFETIME;
pub use review::{Bearer, Checked, NAMED};
