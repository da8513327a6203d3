//! What a check knows of the server it is on.

use std::path::PathBuf;

use anyhow::Result;
use jiff::Timestamp;

use super::calls::Call;

/// A server with several users, that remembers who asked it for what.
pub trait Server: Send + Sync {
    /// `ours` or `real`.
    fn name(&self) -> &'static str;

    /// A kubeconfig of the administrator.
    fn admin(&self) -> PathBuf;

    /// A kubeconfig of another user. [`RESTRICTED`] may not do everything, and a ServiceAccount may do what its roles
    /// say where there [are roles](Server::has_authorization); all others have all rights.
    ///
    /// # Errors
    /// When there is no such user and none can be made.
    fn user(&self, name: &str) -> Result<PathBuf>;

    /// What it was asked since then, by the machine's clock, oldest first.
    ///
    /// # Errors
    /// When the calls cannot be read, or are too many to be remembered.
    fn calls(&self, since: Timestamp) -> Result<Vec<Call>>;

    /// Says whether [`RESTRICTED`] may list and watch ConfigMaps. At first it may not.
    ///
    /// # Errors
    /// When the server does not take it.
    fn let_restricted_watch(&self, allowed: bool) -> Result<()>;

    /// Whether rights come from roles: a user who was given none has none.
    fn has_authorization(&self) -> bool;
}

/// The user that may do everything with FooBars, and with ConfigMaps everything but list and watch them.
pub const RESTRICTED: &str = "restricted";
