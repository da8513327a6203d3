//! Files that change all at once: a folder with a link to the folder that holds them now.
//!
//! ```text
//! volume/
//!   ..2026_01_01_00_00_00.17   the files
//!   ..data -> ..2026_01_01_00_00_00.17   replaced in one step
//!   key -> ..data/key
//! ```

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::payload::Payload;

const DATA: &str = "..data";

/// Makes a folder hold these files and no others. Readers see all of the old ones or all of the new ones.
pub(crate) fn write(folder: &Path, payload: &Payload, now: Timestamp, number: u64) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let old = fs::read_link(folder.join(DATA)).ok();
    let stamp = now.strftime("..%Y_%m_%d_%H_%M_%S");
    let name = format!("{stamp}.{number}");
    let new = folder.join(&name);
    fs::create_dir(&new)?;
    for (path, file) in payload {
        let path = new.join(path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(&path, &file.data)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(file.mode))?;
    }
    fs::set_permissions(&new, fs::Permissions::from_mode(0o755))?;

    let next = folder.join("..data_tmp");
    remove_link(&next)?;
    symlink(&name, &next)?;
    fs::rename(&next, folder.join(DATA))?;

    let tops: BTreeSet<&str> = payload.keys().filter_map(|path| path.split('/').next()).collect();
    for top in &tops {
        let link = folder.join(top);
        if fs::symlink_metadata(&link).is_err() {
            symlink(PathBuf::from(DATA).join(top), &link)?;
        }
    }
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if !name.starts_with("..") && !tops.contains(&*name) {
            remove_link(&entry.path())?;
        }
    }
    match old {
        Some(old) => fs::remove_dir_all(folder.join(old)),
        None => Ok(()),
    }
}

fn remove_link(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::payload::File;
    use super::*;

    #[test]
    fn a_folder_holds_what_it_was_given_last() {
        let folder = std::env::temp_dir().join(format!("windlass-atomic-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        let payload = |files: &[(&str, &str)]| -> Payload {
            let file = |text: &str| File { data: text.as_bytes().to_vec(), mode: 0o640 };
            files.iter().map(|(path, text)| ((*path).to_owned(), file(text))).collect()
        };
        let now: Timestamp = "2026-01-02T03:04:05Z".parse().unwrap();
        write(&folder, &payload(&[("a", "1"), ("deep/b", "2")]), now, 1).unwrap();
        assert_eq!(fs::read_to_string(folder.join("a")).unwrap(), "1");
        assert_eq!(fs::read_to_string(folder.join("deep/b")).unwrap(), "2");
        assert_eq!(fs::metadata(folder.join("a")).unwrap().permissions().mode() & 0o777, 0o640);
        let held = fs::read_link(folder.join("..data")).unwrap();
        assert_eq!(held, Path::new("..2026_01_02_03_04_05.1"));
        write(&folder, &payload(&[("a", "3"), ("c", "4")]), now, 2).unwrap();
        assert_eq!(fs::read_to_string(folder.join("a")).unwrap(), "3");
        let mut names: Vec<_> = fs::read_dir(&folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(names, ["..2026_01_02_03_04_05.2", "..data", "a", "c"]);
        fs::remove_dir_all(&folder).unwrap();
    }
}
