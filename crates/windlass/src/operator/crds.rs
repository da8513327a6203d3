//! The operator's own kinds, applied at its start.

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, Patch, PatchParams};
use kube::{Client, ResourceExt as _};
use thiserror::Error;

use crate::env::Env;

/// Why the operator's kinds are not there.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum InstallError {
    /// The server refused a definition.
    #[error("cannot apply the definition {name}")]
    Apply {
        /// Which one.
        name: String,
        /// What the server said.
        #[source]
        source: kube::Error,
    },
    /// A definition was taken, and its kind is not served.
    #[error("the definition {name} is not served after {waited:?}: {state}")]
    NotServed {
        /// Which one.
        name: String,
        /// For how long.
        waited: Duration,
        /// What the server says of it.
        state: String,
    },
}

/// How long a definition may take to be served. It takes a second.
const SERVED_WITHIN: Duration = Duration::from_secs(60);
const ASK_EVERY: Duration = Duration::from_millis(100);

/// Applies definitions and waits until their kinds are served.
///
/// # Errors
/// When the server refuses one, or does not serve it in time.
pub(super) async fn install(
    client: &Client,
    env: &Env,
    manager: &str,
    crds: &[CustomResourceDefinition],
) -> Result<(), InstallError> {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    // The definition belongs to the operator: whoever applied it before hands it over.
    let params = PatchParams::apply(manager).force();
    for crd in crds {
        let name = crd.name_any();
        let applied = api.patch(&name, &params, &Patch::Apply(crd)).await;
        applied.map_err(|source| InstallError::Apply { name: name.clone(), source })?;
        tracing::info!(name, "applied the definition");
    }
    for crd in crds {
        served(client, &api, env, crd).await?;
    }
    Ok(())
}

/// Waits until a kind can be listed. Its condition `Established` comes before the server has a handler for it.
async fn served(
    client: &Client,
    api: &Api<CustomResourceDefinition>,
    env: &Env,
    crd: &CustomResourceDefinition,
) -> Result<(), InstallError> {
    let name = crd.name_any();
    let started = env.moment();
    loop {
        let state = match api.get(&name).await {
            Ok(found) if is_established(&found) => match listed(client, crd).await {
                Ok(()) => return Ok(()),
                Err(error) => error.to_string(),
            },
            Ok(_) => "it is not established".to_owned(),
            Err(error) => error.to_string(),
        };
        let waited = env.moment() - started;
        if waited >= SERVED_WITHIN {
            return Err(InstallError::NotServed { name, waited, state });
        }
        env.sleep(ASK_EVERY).await;
    }
}

async fn listed(client: &Client, crd: &CustomResourceDefinition) -> Result<(), kube::Error> {
    let (group, plural) = (&crd.spec.group, &crd.spec.names.plural);
    for version in crd.spec.versions.iter().filter(|version| version.served) {
        let path = format!("/apis/{group}/{}/{plural}?limit=1", version.name);
        let request = http::Request::get(path).body(Vec::new()).map_err(kube::Error::HttpError)?;
        client.request_text(request).await?;
    }
    Ok(())
}

fn is_established(crd: &CustomResourceDefinition) -> bool {
    let conditions = crd.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.is_some_and(|all| all.iter().any(|c| c.type_ == "Established" && c.status == "True"))
}
