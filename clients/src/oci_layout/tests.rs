//! An image that is packed here is one for everybody: its digest does not depend on chance, and others' programs read its layers.

use std::process::Command;

use super::*;

fn image() -> Image {
    let file = |path: &str, executable, bytes: &[u8]| FileEntry {
        path: path.to_owned(),
        executable,
        bytes: bytes.to_vec(),
    };
    Image {
        files: vec![
            file("usr/bin/hello", true, b"#!program"),
            file("etc/motd", false, &[b'x'; 600]),
            file(&format!("usr/{}/{}", "d".repeat(90), "f".repeat(60)), false, b"long"),
        ],
        architecture: "amd64".to_owned(),
        entrypoint: vec!["/usr/bin/hello".to_owned()],
        ports: vec![8080],
        user: "65532:65532".to_owned(),
        ..Image::default()
    }
}

fn scratch(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("gpuaas-layout-{name}-{}", uuid::Uuid::now_v7()));
    fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn the_same_image_has_the_same_digest_whatever_the_order_of_its_files() {
    let (one, two) = (scratch("one"), scratch("two"));
    let mut turned = image();
    turned.files.reverse();
    let digest = pack(&image(), &one).unwrap().digest;
    assert_eq!(digest, pack(&turned, &two).unwrap().digest);
    assert_eq!(digest, pack(&image(), &one).unwrap().digest, "packing again replaces");
    turned.files[0].bytes.push(b'!');
    assert_ne!(digest, pack(&turned, &two).unwrap().digest);
    for folder in [one, two] {
        fs::remove_dir_all(folder).unwrap();
    }
}

#[test]
fn a_layout_is_read_back_and_its_blobs_are_hashed() {
    let folder = scratch("read");
    let packed = pack(&image(), &folder).unwrap();
    let layout = Layout::open(&folder).unwrap();
    assert_eq!(layout.image().unwrap(), &packed);
    layout.verify(&packed).unwrap();
    let needed = layout.needed_by(&packed).unwrap();
    let kinds: Vec<&str> = needed.iter().map(|blob| blob.media_type.as_str()).collect();
    assert_eq!(kinds, [LAYER, CONFIG]);

    let layer = layout.blob_path(&needed[0].digest).unwrap();
    fs::write(&layer, b"something else").unwrap();
    assert!(matches!(layout.verify(&packed), Err(LayoutFault::Damaged { .. })));
    fs::remove_file(&layer).unwrap();
    assert!(matches!(layout.verify(&packed), Err(LayoutFault::Io { .. })));
    assert!(matches!(layout.blob_path("sha256:../../etc/passwd"), Err(LayoutFault::NotADigest(_))));
    fs::remove_dir_all(&folder).unwrap();
    assert!(matches!(Layout::open(&folder), Err(LayoutFault::NotALayout(_))));
}

/// The system's own tar must read what ours writes.
#[test]
fn a_layer_is_an_archive_that_others_read() {
    let folder = scratch("tar");
    let archive = folder.join("layer.tar");
    fs::write(&archive, tar::archive(&image().files)).unwrap();
    let listed = Command::new("tar")
        .args(["--list", "--verbose", "--numeric-owner", "--file"])
        .arg(&archive)
        .output()
        .unwrap();
    assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
    let listed = String::from_utf8(listed.stdout).unwrap();
    let modes: Vec<&str> = listed.lines().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(
        modes,
        ["drwxr-xr-x", "drwxr-xr-x", "drwxr-xr-x", "drwxr-xr-x", "-rw-r--r--", "-rwxr-xr-x", "-rw-r--r--"]
    );
    assert!(listed.lines().all(|line| line.contains(" 0/0 ") && line.contains("1970-01-01")), "{listed}");
    let unpacked = Command::new("tar")
        .arg("--extract")
        .arg("--file")
        .arg(&archive)
        .current_dir(&folder)
        .status()
        .unwrap();
    assert!(unpacked.success());
    for file in image().files {
        assert_eq!(fs::read(folder.join(&file.path)).unwrap(), file.bytes, "{}", file.path);
    }
    fs::remove_dir_all(&folder).unwrap();
}
