//! Manifests in.

use serde_json::Value;
use windlass_apiserver::front::ApplyError;

use crate::TestCluster;

impl TestCluster {
    /// Applies the documents of a YAML text in order, as `kubectl apply --server-side --force-conflicts` would, and
    /// gives back the objects. One with a `generateName` instead of a name is created, a `List` stands for its items, and
    /// what names no namespace goes to `default`.
    ///
    /// # Errors
    /// At the first document that cannot be applied.
    pub async fn apply_yaml(&self, text: &str) -> Result<Vec<Value>, ApplyError> {
        self.server().apply_yaml(text, "windlass-testing").await
    }
}
