//! Authentication.

/// `AuthStatusRequest`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct AuthStatusRequest {}

/// `AuthStatusResponse`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct AuthStatus {
    #[prost(bool, tag = "2")]
    pub enabled: bool,
}
