//! Which plugins are on.

use std::collections::BTreeSet;

use thiserror::Error;

use super::PLUGINS;

/// What kube-apiserver has besides, and what is done at another place here or has nothing to do: to name them is no mistake.
const OTHERS: &[&str] = &[
    "AlwaysAdmit",
    "AlwaysDeny",
    "AlwaysPullImages",
    "ClusterTrustBundleAttest",
    "DenyServiceExternalIPs",
    "EventRateLimit",
    "ExtendedResourceToleration",
    "ImagePolicyWebhook",
    "JobValidation",
    "LimitPodHardAntiAffinityTopology",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionWebhook",
    "NamespaceAutoProvision",
    "NamespaceExists",
    "NodeRestriction",
    "PodGroupProtection",
    "PodGroupWorkloadExists",
    "PodNodeSelector",
    "PodTolerationRestriction",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionWebhook",
];

/// The plugins that are on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plugins(BTreeSet<&'static str>);

/// There is no plugin of that name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("admission-control plugin {0:?} is unknown")]
pub struct UnknownPlugin(pub String);

impl Default for Plugins {
    /// Those that kube-apiserver has on by default.
    fn default() -> Plugins {
        let on = PLUGINS.iter().filter(|plugin| plugin.by_default);
        Plugins(on.map(|plugin| plugin.name).collect())
    }
}

impl Plugins {
    /// Whether a plugin is on.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains(name)
    }

    /// The same with some more. kube-apiserver's others are known, and not there.
    pub fn with<'a>(mut self, names: impl IntoIterator<Item = &'a str>) -> Result<Plugins, UnknownPlugin> {
        for name in names {
            self.0.extend(known(name)?);
        }
        Ok(self)
    }

    /// The same without some.
    pub fn without<'a>(mut self, names: impl IntoIterator<Item = &'a str>) -> Result<Plugins, UnknownPlugin> {
        for name in names {
            if let Some(known) = known(name)? {
                self.0.remove(known);
            }
        }
        Ok(self)
    }
}

fn known(name: &str) -> Result<Option<&'static str>, UnknownPlugin> {
    let found = PLUGINS.iter().map(|plugin| plugin.name).find(|known| *known == name);
    match found {
        None if !OTHERS.contains(&name) => Err(UnknownPlugin(name.to_owned())),
        found => Ok(found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plugins_are_switched_by_name() {
        let plugins = Plugins::default().without(["ServiceAccount", "ImagePolicyWebhook"]).unwrap();
        assert!(!plugins.has("ServiceAccount") && plugins.has("LimitRanger"));
        assert!(plugins.with(["ServiceAccount"]).unwrap().has("ServiceAccount"));
        assert_eq!(Plugins::default().with(["Nonsense"]), Err(UnknownPlugin("Nonsense".into())));
    }
}
