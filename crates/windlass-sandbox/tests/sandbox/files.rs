//! What a container sees of files, and what of its writes is seen outside.

use std::fs;
use std::path::PathBuf;

use windlass_sandbox::{Mount, Root, Spec};

use crate::world::{Test, World, block_on};

pub const TESTS: &[Test] = &[
    ("writes_stay_in_the_container", || block_on(writes_stay_in_the_container())),
    ("mounts_are_where_they_were_asked_for", || block_on(mounts_are_where_they_were_asked_for())),
    ("the_hosts_root_can_be_mounted_with_all_in_it", || block_on(the_hosts_root_can_be_mounted())),
    ("an_image_is_a_root_of_its_own", || block_on(an_image_is_a_root_of_its_own())),
    ("an_image_is_read_where_nothing_can_lie_over_it", || block_on(an_image_is_read_only())),
    ("a_package_lies_over_the_host", || block_on(a_package_lies_over_the_host())),
    ("memory_is_shared_by_those_who_mount_it", || block_on(memory_is_shared())),
];

async fn writes_stay_in_the_container() {
    let world = World::new("writes").await;
    let mark = format!("windlass-mark-{}", std::process::id());
    let users = fs::read_to_string("/etc/passwd").expect("a file of the host");
    let script = format!(
        "for d in / /usr /etc /opt /tmp /run /var/tmp /var/lib /root /home /dev/shm; do echo x > $d/{mark} || exit 1; done; \
         (echo changed > /etc/passwd) 2>/dev/null; ls /etc/group"
    );
    for scratch in [true, false] {
        let mut spec = world.spec("w", &["sh", "-c", &script]);
        if !scratch {
            spec.scratch = None;
        }
        let (exit, said) = world.run("w", spec).await.expect("it runs");
        assert_eq!((exit.code, said.as_str()), (0, "/etc/group"));
        for folder in [
            "/", "/usr", "/etc", "/opt", "/tmp", "/run", "/var/tmp", "/var/lib", "/root", "/home", "/dev/shm",
        ] {
            assert!(
                !fs::exists(format!("{folder}/{mark}")).unwrap_or(false),
                "{folder} of the host was written to"
            );
        }
        assert_eq!(fs::read_to_string("/etc/passwd").expect("a file of the host"), users);
    }
    let read_only = Spec {
        read_only_root: true,
        ..world.spec(
            "ro",
            &[
                "sh",
                "-c",
                "for d in / /usr /etc /tmp; do touch $d/x 2>/dev/null && exit 1; done; touch /dev/shm/x",
            ],
        )
    };
    assert_eq!(world.run("ro", read_only).await.expect("it runs").0.code, 0);
    // Nor can it change the machine through the kernel's own files.
    let (_, said) = world.script("k", "echo 1 > /proc/sys/kernel/printk && echo wrote; echo 1 > /proc/sysrq-trigger && echo wrote; mknod /tmp/n b 254 0 && echo made").await;
    assert!(!said.contains("wrote") && !said.contains("made"), "{said}");
    world.end().await;
}

async fn mounts_are_where_they_were_asked_for() {
    let world = World::new("mounts").await;
    let source = world.folder.path().join("volume");
    fs::create_dir_all(source.join("sub")).expect("a folder");
    fs::write(source.join("file"), "content").expect("a file");
    fs::write(source.join("hosts"), "10.1.2.3 name").expect("a file");
    let script = "cat /data/file /etc/hosts /usr/share/made/deep/file /var/run/secrets/file; echo; \
                  echo new > /data/new; (echo no > /usr/share/made/deep/new) 2>/dev/null && echo wrote; cat /data/inner/file; ls /usr/share/doc > /dev/null && echo merged";
    let spec = Spec {
        mounts: vec![
            // Deliberately before the folder that it lies in.
            Mount::read_only(&source, "/data/inner"),
            Mount::new(&source, "/data"),
            Mount::read_only(source.join("hosts"), "/etc/hosts"),
            Mount::read_only(&source, "/usr/share/made/deep"),
            Mount::read_only(&source, "/var/run/secrets"),
        ],
        ..world.spec("m", &["sh", "-c", script])
    };
    let (exit, said) = world.run("m", spec).await.expect("it runs");
    assert_eq!((exit.code, said.as_str()), (0, "content10.1.2.3 namecontentcontent\ncontentmerged"));
    assert_eq!(fs::read_to_string(source.join("new")).expect("a file"), "new\n");
    world.end().await;
}

async fn the_hosts_root_can_be_mounted() {
    let world = World::new("host").await;
    let script = "test -e /host/etc/passwd && test -d /host/proc/1 && test -c /host/dev/null && echo there; \
                  for d in /host/tmp /host/dev/shm; do (echo x > $d/windlass-mark) 2>/dev/null && echo wrote $d; done; true";
    let spec =
        Spec { mounts: vec![Mount::read_only("/", "/host")], ..world.spec("h", &["sh", "-c", script]) };
    let (exit, said) = world.run("h", spec).await.expect("it runs");
    assert_eq!((exit.code, said.as_str()), (0, "there"));
    world.end().await;
}

/// Makes an image of a shell and the libraries that it says it needs.
fn make_image(world: &World) -> PathBuf {
    let image = world.folder.path().join("image");
    let needed = std::process::Command::new("ldd").arg("/bin/sh").output().expect("ldd").stdout;
    let needed = String::from_utf8(needed).expect("text");
    let libraries = needed.split_whitespace().filter(|word| word.starts_with('/'));
    for file in libraries.chain(["/bin/sh"]) {
        let copy = image.join(file.trim_start_matches('/'));
        fs::create_dir_all(copy.parent().expect("a parent")).expect("a folder");
        fs::copy(file, copy).expect("a copy");
    }
    fs::create_dir_all(image.join("etc")).expect("a folder");
    fs::write(image.join("etc/mark"), "image").expect("a file");
    image
}

async fn an_image_is_a_root_of_its_own() {
    let world = World::new("image").await;
    let image = make_image(&world);
    let script = "read x < /etc/mark; echo $x; echo changed > /etc/mark; echo x > /new; read x < /etc/mark; echo $x; \
                  for f in /usr/bin/env /home /data/file /proc/self; do test -e $f && echo $f; done; exit 6";
    fs::write(world.folder.path().join("file"), "").expect("a file");
    let spec = Spec {
        root: Root::Folder(image.clone()),
        mounts: vec![Mount::new(world.folder.path().join("file"), "/data/file")],
        ..world.spec("i", &["/bin/sh", "-c", script])
    };
    let (exit, said) = world.run("i", spec).await.expect("it runs");
    assert_eq!((exit.code, said.as_str()), (6, "image\nchanged\n/data/file\n/proc/self"));
    assert_eq!(fs::read_to_string(image.join("etc/mark")).expect("a file"), "image");
    assert!(
        !fs::exists(image.join("new")).unwrap_or(true) && !fs::exists(image.join("data")).unwrap_or(true)
    );
    world.end().await;
}

async fn an_image_is_read_only() {
    let world = World::new("bare").await;
    let image = make_image(&world);
    // Options of a mount are at most a page, so the kernel refuses an overlay of a path of nearly that.
    let image_text = image.display().to_string();
    let long = PathBuf::from(format!("{image_text}{}", "/.".repeat((4080 - image_text.len()) / 2)));
    let script = "read x < /etc/mark; echo $x; (echo x > /etc/mark) 2>/dev/null || echo refused; \
                  echo x > /new; for f in /new /etc/app/file /proc/self; do test -e $f && echo $f; done";
    fs::write(world.folder.path().join("file"), "").expect("a file");
    let spec = Spec {
        root: Root::Folder(long),
        mounts: vec![Mount::new(world.folder.path().join("file"), "/etc/app/file")],
        ..world.spec("i", &["/bin/sh", "-c", script])
    };
    let (exit, said) = world.run("i", spec).await.expect("it runs");
    assert_eq!((exit.code, said.as_str()), (0, "image\nrefused\n/new\n/etc/app/file\n/proc/self"));
    assert!(!fs::exists(image.join("new")).unwrap_or(true));
    world.end().await;
}

async fn a_package_lies_over_the_host() {
    let world = World::new("package").await;
    let package = world.folder.path().join("package");
    for folder in ["usr/sbin", "etc/app", "var/lib/app"] {
        fs::create_dir_all(package.join(folder)).expect("a folder");
    }
    fs::write(package.join("usr/sbin/app"), "#!/bin/sh\ncat /etc/app/conf; echo > /var/lib/app/x; ls /var/lib/app /usr/sbin/app /var/log > /dev/null && echo ok").expect("a program");
    fs::set_permissions(package.join("usr/sbin/app"), std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .expect("a mode");
    fs::write(package.join("etc/app/conf"), "conf").expect("a file");
    let spec = Spec { layers: vec![package.clone()], ..world.spec("p", &["app"]) };
    let (exit, said) = world.run("p", spec).await.expect("it runs");
    assert_eq!((exit.code, said.as_str()), (0, "confok"));
    assert!(!fs::exists(package.join("var/lib/app/x")).unwrap_or(true), "a package is only read");
    world.end().await;
}

async fn memory_is_shared() {
    let world = World::new("memory").await;
    let volume = world.folder.path().join("volume");
    fs::create_dir_all(&volume).expect("a folder");
    world.sandbox.mount_tmpfs(&volume, Some(1 << 20)).await.expect("memory");
    let with = |id: &str, script: &str| Spec {
        mounts: vec![Mount::new(&volume, "/m")],
        ..world.spec(id, &["sh", "-c", script])
    };
    let write = with(
        "w",
        "echo shared > /m/x; head -c 2000000 /dev/zero > /m/big 2>/dev/null && echo unbounded; rm /m/big",
    );
    assert_eq!(world.run("w", write).await.expect("it runs").1, "");
    assert_eq!(world.run("r", with("r", "cat /m/x")).await.expect("it runs").1, "shared");
    assert_eq!(fs::read_dir(&volume).expect("the folder").count(), 0, "the host does not see it");
    world.sandbox.unmount(&volume).await.expect("an end");
    assert_eq!(world.run("g", with("g", "ls /m")).await.expect("it runs").1, "");
    world.end().await;
}
