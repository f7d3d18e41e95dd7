//! As much of POSIX tar as a layer needs: folders and files of root, without times, sorted by name.

use std::collections::{BTreeMap, BTreeSet};

use super::FileEntry;

const BLOCK: usize = 512;

pub(super) fn archive(files: &[FileEntry]) -> Vec<u8> {
    let sorted: BTreeMap<&str, &FileEntry> =
        files.iter().map(|file| (file.path.trim_start_matches('/'), file)).collect();
    let mut archive = Vec::new();
    for folder in folders(sorted.keys().copied()) {
        archive.extend(header(&format!("{folder}/"), 0o755, 0, b'5'));
    }
    for (path, file) in sorted {
        let mode = if file.executable { 0o755 } else { 0o644 };
        archive.extend(header(path, mode, file.bytes.len(), b'0'));
        archive.extend(&file.bytes);
        archive.resize(archive.len().next_multiple_of(BLOCK), 0);
    }
    archive.resize(archive.len() + 2 * BLOCK, 0);
    archive
}

/// Every folder above a file, outer ones first.
fn folders<'a>(paths: impl Iterator<Item = &'a str>) -> BTreeSet<&'a str> {
    let mut folders = BTreeSet::new();
    for path in paths {
        folders.extend(path.match_indices('/').map(|(end, _)| &path[..end]));
    }
    folders
}

/// A ustar header. Names of more than 100 bytes are split at a slash, as the format has it.
fn header(path: &str, mode: u32, size: usize, kind: u8) -> [u8; BLOCK] {
    let (prefix, name) = split(path);
    let mut header = [0; BLOCK];
    put(&mut header, 0, name.as_bytes());
    put(&mut header, 100, format!("{mode:07o}\0").as_bytes());
    put(&mut header, 108, b"0000000\0"); // root
    put(&mut header, 116, b"0000000\0");
    put(&mut header, 124, format!("{size:011o}\0").as_bytes());
    put(&mut header, 136, b"00000000000\0"); // 1970
    put(&mut header, 148, b"        "); // the checksum counts as spaces while it is made
    put(&mut header, 156, &[kind]);
    put(&mut header, 257, b"ustar\x0000");
    put(&mut header, 345, prefix.as_bytes());
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    put(&mut header, 148, format!("{sum:06o}\0 ").as_bytes());
    header
}

fn split(path: &str) -> (&str, &str) {
    if path.len() <= 100 {
        return ("", path);
    }
    let mut slashes = path.match_indices('/').map(|(place, _)| place);
    let fits = |place: &usize| *place <= 155 && path.len() - place - 1 <= 100 && place + 1 < path.len();
    slashes.rfind(fits).map_or(("", path), |place| (&path[..place], &path[place + 1..]))
}

/// What does not fit is cut; the names of images are short.
fn put(header: &mut [u8; BLOCK], place: usize, bytes: &[u8]) {
    for (slot, byte) in header[place..].iter_mut().zip(bytes) {
        *slot = *byte;
    }
}
