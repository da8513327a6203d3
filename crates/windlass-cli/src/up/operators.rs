//! Operators that run as pods of the cluster: the programs beside this one.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;
use windlass_node::image::Images;

use super::apply::{self, Document};
use super::failure::Failure;

/// Where operators run.
const NAMESPACE: &str = "windlass-system";

/// What an operator's program is called after its name.
const SUFFIX: &str = "-operator";

/// An operator that is to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operator {
    /// Its name: `foobar`.
    pub name: String,
    /// Its program.
    pub program: PathBuf,
}

impl Operator {
    /// The image that its pod names.
    pub fn image(&self) -> String {
        format!("windlass.local/{}{SUFFIX}:{}", self.name, env!("CARGO_PKG_VERSION"))
    }

    /// Lets the image store know its program.
    pub fn add_image(&self, images: &Images) -> Result<(), Failure> {
        let added = images.add(&self.image(), std::slice::from_ref(&self.program));
        added.map(|_| ()).map_err(|error| Failure::Operator {
            name: self.name.clone(),
            message: format!("its image cannot be added: {error}"),
        })
    }

    /// What installs it, as its program prints it.
    pub fn documents(&self) -> Result<Vec<Document>, Failure> {
        let failed = |message: String| Failure::Operator { name: self.name.clone(), message };
        let arguments = ["manifests", "--namespace", NAMESPACE, "--image", &self.image()];
        let output = Command::new(&self.program).args(arguments).output();
        let output =
            output.map_err(|error| failed(format!("{} cannot be run: {error}", self.program.display())))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(failed(format!("its program prints no manifests: {}", said.trim())));
        }
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
        let mut documents =
            vec![Document { source: format!("operator {}", self.name), number: 1, object: namespace }];
        documents.extend(apply::parse(
            &format!("operator {}", self.name),
            &String::from_utf8_lossy(&output.stdout),
        )?);
        Ok(documents)
    }
}

/// The operators that are wanted: `none`, `all` that lie in a folder, or these.
pub fn choose(wanted: &[String], folder: &Path) -> Result<Vec<Operator>, Failure> {
    let names: Vec<String> = match wanted {
        [] => Vec::new(),
        [one] if one == "none" => Vec::new(),
        [one] if one == "all" => there(folder),
        names => names.to_vec(),
    };
    let find = |name: &String| {
        let program = folder.join(format!("{name}{SUFFIX}"));
        if program.is_file() {
            return Ok(Operator { name: name.clone(), program });
        }
        let others = there(folder);
        let others = if others.is_empty() { "none".to_owned() } else { others.join(", ") };
        Err(Failure::Arguments(format!(
            "there is no operator {name}: {} is missing; there are: {others} (`cargo build -p {name}{SUFFIX}` builds one)",
            program.display()
        )))
    };
    names.iter().map(find).collect()
}

/// The names of the operators whose programs lie in a folder.
fn there(folder: &Path) -> Vec<String> {
    use std::os::unix::fs::PermissionsExt as _;
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let runs = |path: &Path| {
        path.metadata().is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
    };
    let name = |path: PathBuf| path.file_name()?.to_str()?.strip_suffix(SUFFIX).map(str::to_owned);
    let mut names: Vec<_> =
        entries.flatten().map(|entry| entry.path()).filter(|path| runs(path)).filter_map(name).collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_are_the_programs_of_a_folder() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = std::env::temp_dir().join(format!("windlass-operators-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        for (name, mode) in
            [("b-operator", 0o755), ("a-operator", 0o755), ("c-operator", 0o644), ("a-operator.d", 0o755)]
        {
            std::fs::write(folder.join(name), "").unwrap();
            std::fs::set_permissions(folder.join(name), std::fs::Permissions::from_mode(mode)).unwrap();
        }
        let names = |wanted: &[&str]| {
            let wanted: Vec<_> = wanted.iter().map(|name| (*name).to_owned()).collect();
            choose(&wanted, &folder).map(|all| all.into_iter().map(|one| one.name).collect::<Vec<_>>())
        };
        assert_eq!(names(&["all"]).unwrap(), ["a", "b"]);
        assert_eq!(names(&["b"]).unwrap(), ["b"]);
        assert_eq!(names(&["none"]).unwrap(), [""; 0]);
        let error = names(&["a", "x"]).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains("there are: a, b"), "{error}");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
