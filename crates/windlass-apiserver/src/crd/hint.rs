//! Help for definitions of a version that is gone.

/// The warning for a definition of `apiextensions.k8s.io/v1beta1`, which Kubernetes stopped serving in 1.22: how to
/// turn it into one of `v1`.
pub fn v1beta1_hint() -> String {
    "apiextensions.k8s.io/v1beta1 CustomResourceDefinition is not served since Kubernetes v1.22; to convert it to \
     apiextensions.k8s.io/v1: replace spec.version by spec.versions[] with name, served: true and storage: true; move \
     spec.validation to spec.versions[].schema, spec.subresources to spec.versions[].subresources and \
     spec.additionalPrinterColumns to spec.versions[].additionalPrinterColumns (JSONPath becomes jsonPath); give every \
     version a structural openAPIV3Schema with a type for each field; drop spec.preserveUnknownFields: true in favour \
     of x-kubernetes-preserve-unknown-fields in the schema; spec.names.plural and spec.names.singular must be \
     lowercase and metadata.name must be <spec.names.plural>.<spec.group>"
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hint_names_every_step_and_is_one_line() {
        let hint = v1beta1_hint();
        for part in
            ["spec.version ", "spec.versions[].schema", "lowercase", "<spec.names.plural>.<spec.group>"]
        {
            assert!(hint.contains(part), "{part}");
        }
        assert!(!hint.contains('\n') && hint.is_ascii());
    }
}
