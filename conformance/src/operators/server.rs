//! What a check knows of the server it is on.

use std::path::PathBuf;

use anyhow::Result;
use jiff::Timestamp;

use super::calls::Call;
use super::kubectl::Kubectl;

/// A server with several users, that remembers who asked it for what.
pub trait Server: Send + Sync {
    /// `ours` or `real`.
    fn name(&self) -> &'static str;

    /// A kubeconfig of the administrator.
    fn admin(&self) -> PathBuf;

    /// A kubeconfig of another user. [`RESTRICTED`] and ServiceAccounts may do what their roles say; all others have all
    /// rights.
    ///
    /// # Errors
    /// When there is no such user and none can be made.
    fn user(&self, name: &str) -> Result<PathBuf>;

    /// What it was asked since then, by the machine's clock, oldest first.
    ///
    /// # Errors
    /// When the calls cannot be read, or are too many to be remembered.
    fn calls(&self, since: Timestamp) -> Result<Vec<Call>>;

    /// kubectl, for the administrator.
    fn kubectl(&self) -> &Kubectl;

    /// Says whether [`RESTRICTED`] may list and watch ConfigMaps. At first it may not.
    ///
    /// # Errors
    /// When the server does not take it.
    fn let_restricted_watch(&self, allowed: bool) -> Result<()> {
        let binding = "restricted-watch";
        let user = format!("--user={RESTRICTED}");
        let done = match allowed {
            true => self.kubectl().run(&[
                "create",
                "clusterrolebinding",
                binding,
                "--clusterrole",
                binding,
                &user,
            ]),
            false => self.kubectl().run(&["delete", "clusterrolebinding", binding, "--ignore-not-found"]),
        };
        done.map(drop)
    }
}

/// The user that may do everything with FooBars, and with ConfigMaps everything but list and watch them.
pub const RESTRICTED: &str = "restricted";

/// What [`RESTRICTED`] may do at first.
const RIGHTS: &str = r#"
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: restricted}
rules:
- {apiGroups: [test.example.com], resources: ["*"], verbs: ["*"]}
- {apiGroups: [apiextensions.k8s.io], resources: [customresourcedefinitions], verbs: ["*"]}
- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: ["*"]}
- {apiGroups: ["", events.k8s.io], resources: [events], verbs: ["*"]}
- {apiGroups: [""], resources: [configmaps], verbs: [get, create, update, patch, delete]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: restricted-watch}
rules:
- {apiGroups: [""], resources: [configmaps], verbs: [list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: restricted}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: restricted}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: restricted}]
"#;

/// Gives [`RESTRICTED`] its rights.
///
/// # Errors
/// When the server does not take them.
pub(super) fn grant(kubectl: &Kubectl) -> Result<()> {
    kubectl.apply(RIGHTS)
}
