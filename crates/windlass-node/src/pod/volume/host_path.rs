//! Files and folders of the node that a pod asks for by their path.

use std::fs::{self, Metadata};
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::Path;

/// Checks that there is what the pod says there is, or makes it where the pod says so.
pub(super) fn check(path: &Path, kind: &str) -> Result<(), String> {
    let there = fs::metadata(path).ok();
    let refuse = |what: &str| Err(format!("hostPath type check failed: {} is not {what}", path.display()));
    let failed = |error: std::io::Error| format!("cannot make {}: {error}", path.display());
    let is = |test: fn(&Metadata) -> bool| there.as_ref().is_some_and(test);
    match kind {
        "DirectoryOrCreate" if there.is_none() => {
            fs::create_dir_all(path).map_err(failed)?;
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).map_err(failed)
        }
        "FileOrCreate" if there.is_none() => fs::write(path, "").map_err(failed),
        "Directory" | "DirectoryOrCreate" if !is(Metadata::is_dir) => refuse("a directory"),
        "File" | "FileOrCreate" if !is(Metadata::is_file) => refuse("a file"),
        "Socket" if !is(|there| there.file_type().is_socket()) => refuse("a socket file"),
        "CharDevice" if !is(|there| there.file_type().is_char_device()) => refuse("a character device"),
        "BlockDevice" if !is(|there| there.file_type().is_block_device()) => refuse("a block device"),
        // A runtime makes a folder of what is not there.
        "" if there.is_none() => fs::create_dir_all(path).map_err(failed),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_pod_says_is_checked_or_made() {
        let root = std::env::temp_dir().join(format!("windlass-host-path-{}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        let folder = root.join("folder");
        assert!(check(&folder, "Directory").unwrap_err().ends_with("folder is not a directory"));
        check(&folder, "DirectoryOrCreate").unwrap();
        check(&folder, "Directory").unwrap();
        assert!(check(&folder, "File").unwrap_err().ends_with("folder is not a file"));
        check(&root.join("file"), "FileOrCreate").unwrap();
        check(&root.join("file"), "File").unwrap();
        assert!(check(&root.join("file"), "Socket").unwrap_err().ends_with("file is not a socket file"));
        check(Path::new("/dev/null"), "CharDevice").unwrap();
        check(&root.join("new"), "").unwrap();
        assert!(root.join("new").is_dir());
        fs::remove_dir_all(&root).unwrap();
    }
}
