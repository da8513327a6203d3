//! The store from the outside: archives in, images out.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::archive::hex;
use super::{BadArchive, Images, Root, Unchanged};

fn tar(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (path, bytes) in files {
        let mut header = tar::Header::new_gnu();
        header.set_mode(0o644);
        header.set_uid(0);
        header.set_gid(0);
        header.set_size(bytes.len() as u64);
        builder.append_data(&mut header, path, *bytes).unwrap();
    }
    builder.into_inner().unwrap()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn config() -> Vec<u8> {
    let config = json!({
        "Entrypoint": ["/bin/app"], "Cmd": ["--serve"], "Env": ["A=b"], "WorkingDir": "/work", "User": "1000",
        "StopSignal": "SIGQUIT",
    });
    json!({ "architecture": "amd64", "os": "linux", "config": config }).to_string().into_bytes()
}

/// What `docker save` writes.
fn saved(tag: &str, file: &str) -> Vec<u8> {
    let layer = tar(&[("bin/app", file.as_bytes())]);
    let manifest = json!([{ "Config": "c.json", "RepoTags": [tag], "Layers": ["1/layer.tar"] }]);
    tar(&[("1/layer.tar", &layer), ("c.json", &config()), ("manifest.json", manifest.to_string().as_bytes())])
}

/// What an OCI archive is, with one image for this machine and one for another.
fn oci(damage: bool) -> Vec<u8> {
    let digest = |bytes: &[u8]| hex(&Sha256::digest(bytes));
    let descriptor = |media: &str, bytes: &[u8]| json!({ "mediaType": media, "digest": format!("sha256:{}", digest(bytes)), "size": bytes.len() });
    let mut layer = gzip(&tar(&[("bin/app", b"oci")]));
    let here = if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" };
    let manifest = json!({
        "config": descriptor("application/vnd.oci.image.config.v1+json", &config()),
        "layers": [descriptor("application/vnd.oci.image.layer.v1.tar+gzip", &layer)],
    });
    let manifest = manifest.to_string().into_bytes();
    let of = |platform: &str, mut descriptor: Value| {
        descriptor["platform"] = json!({ "architecture": platform, "os": "linux" });
        descriptor
    };
    let manifest_type = "application/vnd.oci.image.manifest.v1+json";
    let machines = json!({ "manifests": [
        of("s390x", descriptor(manifest_type, b"elsewhere")),
        of(here, descriptor(manifest_type, &manifest)),
    ] });
    let machines = machines.to_string().into_bytes();
    let mut top = descriptor("application/vnd.oci.image.index.v1+json", &machines);
    top["annotations"] = json!({ "io.containerd.image.name": "example.com/team/app:v1" });
    let index = json!({ "schemaVersion": 2, "manifests": [top] });
    let blob = |bytes: &[u8]| format!("blobs/sha256/{}", digest(bytes));
    let name = blob(&layer);
    if damage {
        // The name stays, and so does the archive in it: only what follows its end is another.
        layer.extend_from_slice(b"more");
    }
    tar(&[
        ("oci-layout", b"{\"imageLayoutVersion\":\"1.0.0\"}"),
        ("index.json", index.to_string().as_bytes()),
        (&blob(&machines), &machines),
        (&blob(&manifest), &manifest),
        (&blob(&config()), &config()),
        (&name, &layer),
    ])
}

struct World {
    folder: tempfile::TempDir,
    images: Images,
}

impl World {
    fn new() -> World {
        let folder = tempfile::tempdir().unwrap();
        let images = Images::open(folder.path().join("images"));
        World { folder, images }
    }

    fn file(&self, bytes: &[u8]) -> PathBuf {
        let path = self.folder.path().join("archive.tar");
        fs::write(&path, bytes).unwrap();
        path
    }

    /// What the program of an image consists of.
    fn app(&self, name: &str) -> String {
        let Root::Folder(root) = self.images.resolve(name).unwrap().root else {
            panic!("{name} has no root")
        };
        fs::read_to_string(root.join("bin/app")).unwrap()
    }

    fn folders(&self) -> usize {
        fs::read_dir(self.images.folder()).map(Iterator::count).unwrap_or_default()
    }
}

#[test]
fn a_saved_image_is_loaded_and_runs_by_its_configuration() {
    let world = World::new();
    for archive in [saved("app:1", "one"), gzip(&saved("app:1", "one"))] {
        world.images.load(&world.file(&archive), None).unwrap();
        let image = world.images.resolve("app:1").unwrap();
        assert_eq!((image.entrypoint, image.cmd), (vec!["/bin/app".to_owned()], vec!["--serve".to_owned()]));
        let said = (image.cwd.as_str(), image.user.as_str(), image.stop_signal.as_str());
        assert_eq!(said, ("/work", "1000", "SIGQUIT"));
        assert_eq!(image.env, [("A".to_owned(), "b".to_owned())]);
        assert_eq!(image.id, format!("sha256:{}", hex(&Sha256::digest(config()))));
        assert_eq!(world.app("docker.io/library/app:1"), "one");
        assert_eq!(world.folders(), 1);
    }
    assert!(world.images.resolve("app:2").is_err());
}

#[test]
fn an_oci_archive_gives_the_image_for_this_machine() {
    let world = World::new();
    let manifest = world.images.load(&world.file(&oci(false)), None).unwrap();
    assert_eq!(world.app("example.com/team/app:v1"), "oci");
    let by_digest = manifest.names.iter().find(|name| name.contains('@')).unwrap();
    assert_eq!(world.app(by_digest), "oci");
    world.images.remove("example.com/team/app:v1").unwrap();
    assert_eq!(world.folders(), 0);
}

#[test]
fn what_is_damaged_or_no_image_leaves_nothing_behind() {
    let world = World::new();
    let load = |bytes: &[u8]| world.images.load(&world.file(bytes), None).unwrap_err();
    assert!(matches!(load(&oci(true)), Unchanged::Archive(BadArchive::Damaged(..))));
    assert!(matches!(load(&tar(&[("hello", b"world")])), Unchanged::Archive(BadArchive::NoImage)));
    assert!(matches!(load(b"no archive at all, but long enough to be read as one"), Unchanged::Archive(_)));
    assert!(matches!(load(&saved("", "x")), Unchanged::Nameless));
    assert_eq!(world.folders(), 0);
    world.images.load(&world.file(&saved("", "x")), Some("named")).unwrap();
    assert_eq!(world.app("named:latest"), "x");
}

#[test]
fn a_name_goes_to_whoever_had_it_last_and_a_tag_counts_more_than_any_tag() {
    let world = World::new();
    let setup = world.images.folder().join("nginx");
    fs::create_dir_all(&setup).unwrap();
    fs::write(setup.join("image.json"), r#"{ "names": ["docker.io/library/nginx:*"], "cmd": ["nginx"] }"#)
        .unwrap();
    world.images.load(&world.file(&saved("nginx:1.27", "theirs")), None).unwrap();
    assert_eq!(world.app("nginx:1.27"), "theirs");
    assert_eq!(world.images.resolve("nginx:1.7.9").unwrap().cmd, ["nginx"]);
    assert!(matches!(world.images.remove("nginx:1.7.9"), Err(Unchanged::Absent(_))));

    let program = std::env::current_exe().unwrap();
    world.images.add("nginx:1.27", std::slice::from_ref(&program)).unwrap();
    let image = world.images.resolve("nginx:1.27").unwrap();
    assert_eq!(image.root, Root::Host);
    assert_eq!(image.binds[0].source, fs::canonicalize(&program).unwrap());
    assert_eq!(image.entrypoint, [image.binds[0].target.clone()]);
    assert_eq!(world.folders(), 2, "the loaded image had no other name");
    world.images.remove("nginx:1.27").unwrap();
    assert_eq!(world.images.resolve("nginx:1.27").unwrap().cmd, ["nginx"]);
    let missing = world.images.add("x", &[Path::new("/no/such/program").to_owned()]);
    assert!(matches!(missing, Err(Unchanged::Program { .. })));
}
