//! Whether a login is needed.

use crate::client::Leader;
use crate::proto::auth::{AuthStatus, AuthStatusRequest};
use crate::{Client, Error};

impl Client {
    /// Whether authentication is on. etcd tells that only to those who log in, so the refusal is the answer.
    ///
    /// # Errors
    /// The member does not answer.
    pub async fn auth_status(&self) -> Result<bool, Error> {
        let answer = self.unary("/etcdserverpb.Auth/AuthStatus", AuthStatusRequest {}, Leader::Any).await;
        match answer {
            Ok(AuthStatus { enabled }) => Ok(enabled),
            Err(Error::Denied { .. }) => Ok(true),
            Err(error) => Err(error),
        }
    }
}
