//! Which plugins are on.

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

/// The plugins that are on: a bit for each of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plugins(u32);

/// There is no plugin of that name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("admission-control plugin {0:?} is unknown")]
pub struct UnknownPlugin(pub String);

impl Default for Plugins {
    /// Those that kube-apiserver has on by default.
    fn default() -> Plugins {
        let on = PLUGINS.iter().enumerate().filter(|(_, plugin)| plugin.by_default);
        Plugins(on.fold(0, |bits, (at, _)| bits | 1 << at))
    }
}

impl Plugins {
    /// Whether a plugin is on.
    pub fn has(self, name: &str) -> bool {
        PLUGINS.iter().position(|plugin| plugin.name == name).is_some_and(|at| self.has_at(at))
    }

    /// Whether the plugin at a place of the list is on.
    pub(super) fn has_at(self, at: usize) -> bool {
        self.0 & (1 << at) != 0
    }

    /// The same with some more. kube-apiserver's others are known, and not there.
    pub fn with<'a>(mut self, names: impl IntoIterator<Item = &'a str>) -> Result<Plugins, UnknownPlugin> {
        for name in names {
            self.0 |= bit(name)?;
        }
        Ok(self)
    }

    /// The same without some.
    pub fn without<'a>(mut self, names: impl IntoIterator<Item = &'a str>) -> Result<Plugins, UnknownPlugin> {
        for name in names {
            self.0 &= !bit(name)?;
        }
        Ok(self)
    }
}

/// The bit of a plugin; none for those that are not there.
fn bit(name: &str) -> Result<u32, UnknownPlugin> {
    match PLUGINS.iter().position(|plugin| plugin.name == name) {
        Some(at) => Ok(1 << at),
        None if OTHERS.contains(&name) => Ok(0),
        None => Err(UnknownPlugin(name.to_owned())),
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
