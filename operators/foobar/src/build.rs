//! The objects that a FooBar stands for. Pure.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt as _;
use kube::api::ObjectMeta;

use crate::api::FooBar;

/// The ConfigMap that holds the target.
pub fn config_map(foobar: &FooBar) -> ConfigMap {
    let mut data = BTreeMap::from([("target".to_owned(), foobar.spec.target.clone())]);
    data.extend(foobar.spec.type_.clone().map(|type_| ("type".to_owned(), type_)));
    let metadata = ObjectMeta {
        name: Some(format!("{}-foobar", foobar.name_any())),
        namespace: foobar.namespace(),
        ..ObjectMeta::default()
    };
    ConfigMap { metadata, data: Some(data), ..ConfigMap::default() }
}
