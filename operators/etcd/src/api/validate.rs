//! What the schema cannot say. Checked at the top of each pass, by the functions that admission will call later.

use std::fmt;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use super::{CompactionMode, EtcdClusterSpec, Medium};

/// Something that a spec asks for and cannot have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid {
    /// Where: `spec.options.quota`.
    pub field: &'static str,
    /// Why, as a sentence.
    pub message: String,
}

/// Everything that is wrong with a spec. Empty where it can be carried out.
pub fn spec(spec: &EtcdClusterSpec) -> Vec<Invalid> {
    let mut found = Vec::new();
    let mut refuse = |field, message: String| found.push(Invalid { field, message });
    if !(1..=7).contains(&spec.size) || spec.size % 2 == 0 {
        refuse("spec.size", format!("{} is not 1, 3, 5 or 7", spec.size));
    }
    let (storage, quota) = (bytes(&spec.storage.size), bytes(&spec.options.quota));
    match (storage, quota) {
        (None, _) => refuse("spec.storage.size", format!("{} is no size", spec.storage.size.0)),
        (_, None) => refuse("spec.options.quota", format!("{} is no size", spec.options.quota.0)),
        (Some(storage), Some(quota)) if quota > storage && spec.storage.medium == Medium::Disk => refuse(
            "spec.options.quota",
            format!(
                "a database of {} does not fit into a volume of {}: etcd would fill the disk before it refuses writes",
                spec.options.quota.0, spec.storage.size.0
            ),
        ),
        _ => {}
    }
    let has_unit = spec.options.auto_compaction_retention.ends_with(['s', 'm', 'h']);
    if spec.options.auto_compaction_mode == CompactionMode::Revision && has_unit {
        let retention = &spec.options.auto_compaction_retention;
        refuse("spec.options.autoCompactionRetention", format!("{retention} is no number of revisions"));
    }
    found
}

/// A quantity in bytes; `None` for what is none.
pub fn bytes(quantity: &Quantity) -> Option<u64> {
    let text = quantity.0.as_str();
    let digits = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor: f64 = match unit {
        "" => 1.0,
        "k" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        "T" => 1e12,
        "Ki" => 1024.0,
        "Mi" => 1024.0 * 1024.0,
        "Gi" => 1024.0 * 1024.0 * 1024.0,
        "Ti" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    let value = number.parse::<f64>().ok()? * factor;
    (value.is_finite() && value >= 0.0).then_some(value as u64)
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(change: impl FnOnce(&mut EtcdClusterSpec)) -> Vec<String> {
        let mut asked = EtcdClusterSpec::default();
        change(&mut asked);
        spec(&asked).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_defaults_can_be_carried_out() {
        assert_eq!(found(|_| {}), Vec::<String>::new());
    }

    #[test]
    fn what_the_schema_cannot_say_is_refused() {
        assert_eq!(found(|spec| spec.size = 4), ["spec.size: 4 is not 1, 3, 5 or 7"]);
        let small = found(|spec| spec.storage.size = Quantity("1Gi".into()));
        assert!(small[0].starts_with("spec.options.quota: a database of 2Gi does not fit"), "{small:?}");
        let mode = found(|spec| spec.options.auto_compaction_mode = CompactionMode::Revision);
        assert_eq!(mode, ["spec.options.autoCompactionRetention: 1h is no number of revisions"]);
        let lots = found(|spec| spec.storage.size = Quantity("lots".into()));
        assert_eq!(lots, ["spec.storage.size: lots is no size"]);
    }

    #[test]
    fn quantities_are_read_as_kubernetes_reads_them() {
        let read = |text: &str| bytes(&Quantity(text.into()));
        assert_eq!(read("1.5Gi"), Some(1_610_612_736));
        assert_eq!((read("2k"), read("7")), (Some(2000), Some(7)));
        assert_eq!((read("-1"), read("1Xi"), read("")), (None, None, None));
    }
}
