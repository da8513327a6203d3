"""An OCI archive of one layer, made of programs.

    image.py OUT.tar REFERENCE Cmd|Entrypoint PROGRAM PART…

`FILE:DEST` copies a file into the image, `LINK->TARGET` makes a symbolic link. The program is what runs where a pod
names none: a pod's arguments take the place of a `Cmd`, and are given to an `Entrypoint`.
"""

import hashlib
import io
import json
import os
import sys
import tarfile


def folder(tar, name, mode=0o755):
    entry = tarfile.TarInfo(name)
    entry.type = tarfile.DIRTYPE
    entry.mode = mode
    tar.addfile(entry)


def layer(parts):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name in ("bin", "etc", "var", "proc", "sys", "dev"):
            folder(tar, name)
        folder(tar, "tmp", 0o1777)
        for part in parts:
            if "->" in part:
                name, target = part.split("->")
                entry = tarfile.TarInfo(name.lstrip("/"))
                entry.type = tarfile.SYMTYPE
                entry.linkname = target
                tar.addfile(entry)
            else:
                source, destination = part.split(":")
                tar.add(os.path.realpath(source), arcname=destination.lstrip("/"))
    return buffer.getvalue()


def digest(blob):
    return "sha256:" + hashlib.sha256(blob).hexdigest()


def descriptor(kind, blob, **more):
    return {"mediaType": "application/vnd.oci.image." + kind, "digest": digest(blob), "size": len(blob), **more}


def main(out, reference, role, program, *parts):
    files = layer(parts)
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine, os.uname().machine)
    config = json.dumps({
        "architecture": machine,
        "os": "linux",
        "config": {role: [program], "Env": ["PATH=/usr/local/bin:/usr/bin:/bin"]},
        "rootfs": {"type": "layers", "diff_ids": [digest(files)]},
    }).encode()
    manifest = json.dumps({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": descriptor("config.v1+json", config),
        "layers": [descriptor("layer.v1.tar", files)],
    }).encode()
    names = {"io.containerd.image.name": reference, "org.opencontainers.image.ref.name": reference}
    index = json.dumps({
        "schemaVersion": 2,
        "manifests": [descriptor("manifest.v1+json", manifest, annotations=names)],
    }).encode()
    with tarfile.open(out, "w") as tar:
        blobs = {"blobs/" + digest(blob).replace(":", "/"): blob for blob in (config, manifest, files)}
        for name, blob in {"oci-layout": b'{"imageLayoutVersion":"1.0.0"}', "index.json": index, **blobs}.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(blob)
            tar.addfile(entry, io.BytesIO(blob))


main(*sys.argv[1:])
