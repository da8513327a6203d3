//! Warnings for the volumes of a pod.

use serde_json::Value;

use crate::field::Path;
use crate::kinds::tree::{at, get, list, text, text_at};
use crate::kinds::warn;

/// Sources of volumes that are no longer served: the field, its name in paths, and since when.
const GONE: [(&str, &str, &str); 7] = [
    ("photonPersistentDisk", "photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    ("gitRepo", "gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"),
    ("scaleIO", "scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("flocker", "flocker", "deprecated in v1.22, non-functional in v1.25+"),
    ("storageos", "storageOS", "deprecated in v1.22, non-functional in v1.25+"),
    ("quobyte", "quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
];
const GONE_LATER: [&str; 2] = ["cephfs", "rbd"];

/// What is to be said of the sources.
pub(super) fn sources(spec: &Value, path: &Path<'_>, out: &mut Vec<String>) {
    let volumes = path.child("volumes");
    for (index, volume) in list(spec, "volumes").iter().enumerate() {
        let path = volumes.index(index);
        for (field, name, why) in GONE {
            if get(volume, field).is_some() {
                out.push(format!("{}: {why}", path.child(name)));
            }
        }
        if let Some(template) = at(volume, &["ephemeral", "volumeClaimTemplate"]) {
            let (ephemeral, name) = (path.child("ephemeral"), "volumeClaimTemplate");
            warn::claim_spec(&template["spec"], &ephemeral.child(name).child("spec"), out);
        }
        for field in GONE_LATER {
            if get(volume, field).is_some() {
                out.push(format!("{}: deprecated in v1.28, non-functional in v1.31+", path.child(field)));
            }
        }
    }
}

/// A path in a volume, and where it comes from.
#[derive(Clone, PartialEq)]
struct Mapped {
    path: String,
    source: String,
}

impl Mapped {
    fn new(path: &str, source: &str) -> Mapped {
        Mapped { path: path.trim_end_matches('/').to_owned(), source: source.to_owned() }
    }

    fn shown(&self) -> String {
        match self.source.as_str() {
            "" => format!("{:?}", self.path),
            source => format!("{:?} ({source})", self.path),
        }
    }

    fn overlaps(&self, other: &Mapped) -> bool {
        let below = |a: &str, b: &str| format!("{a}/").starts_with(&format!("{b}/"));
        let named = !self.path.is_empty() && !other.path.is_empty();
        named && (below(&self.path, &other.path) || below(&other.path, &self.path))
    }
}

/// Files of one volume that get in each other's way.
pub(super) fn overlaps(spec: &Value, out: &mut Vec<String>) {
    for volume in list(spec, "volumes") {
        let name = text(volume, "name");
        for (field, described) in [
            ("configMap", format!("ConfigMap {:?}", text_at(volume, &["configMap", "name"]))),
            ("secret", format!("Secret {:?}", text_at(volume, &["secret", "secretName"]))),
            ("downwardAPI", "DownwardAPI".to_owned()),
        ] {
            clashes(name, &described, &[], &items(&volume[field], ""), out);
        }
        let mut mapped = Vec::new();
        for source in list(&volume["projected"], "sources") {
            if source.as_object().is_some_and(|source| source.is_empty()) {
                out.push(format!("volume {name:?} (Projected) has no sources provided"));
            }
            let own = projected(source);
            clashes(name, "Projected", &mapped, &own, out);
            mapped.extend(own);
        }
    }
}

/// Warns of files that get in the way of those before them.
fn clashes(volume: &str, described: &str, before: &[Mapped], files: &[Mapped], out: &mut Vec<String>) {
    for (index, one) in files.iter().enumerate() {
        for other in before.iter().chain(&files[..index]).filter(|other| one.overlaps(other)) {
            out.push(format!(
                "volume {volume:?} ({described}): overlapping paths: {} with {}",
                one.shown(),
                other.shown()
            ));
        }
    }
}

fn items(source: &Value, described: &str) -> Vec<Mapped> {
    list(source, "items").iter().map(|item| Mapped::new(text(item, "path"), described)).collect()
}

fn projected(source: &Value) -> Vec<Mapped> {
    let one = |field: &str, path: &str, described: &str| {
        let path = text_at(source, &[field, path]);
        (!path.is_empty()).then(|| Mapped::new(path, described)).into_iter().collect::<Vec<_>>()
    };
    let named = |kind: &str, field: &str| format!("{kind} {:?}", text_at(source, &[field, "name"]));
    let has = |field: &str| get(source, field).is_some();
    match () {
        () if !list(&source["configMap"], "items").is_empty() => {
            items(&source["configMap"], &named("ConfigMap", "configMap"))
        }
        () if !list(&source["secret"], "items").is_empty() => {
            items(&source["secret"], &named("Secret", "secret"))
        }
        () if !list(&source["downwardAPI"], "items").is_empty() => {
            items(&source["downwardAPI"], "DownwardAPI")
        }
        () if has("serviceAccountToken") => one("serviceAccountToken", "path", "ServiceAccountToken"),
        () if has("clusterTrustBundle") => {
            let bundle = &source["clusterTrustBundle"];
            let name = get(bundle, "name").or_else(|| get(bundle, "signerName")).and_then(Value::as_str);
            let described = format!("ClusterTrustBundle {:?}", name.unwrap_or_default());
            one("clusterTrustBundle", "path", &described)
        }
        () => [
            ("certificateChainPath", "PodCertificate chain"),
            ("keyPath", "PodCertificate key"),
            ("credentialBundlePath", "PodCertificate credential bundle"),
        ]
        .into_iter()
        .flat_map(|(path, described)| one("podCertificate", path, described))
        .collect(),
    }
}
