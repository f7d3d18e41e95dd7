//! Puts two things into the binary: the pages of docs/errors and of its reasons, for `gpuaas explain`, and the built console, `console/dist`,
//! one line per file, with its compressed twin where there is one. That folder is part of the repository and empty until
//! `./dev` has built the console.

#![expect(clippy::disallowed_methods, reason = "cargo speaks to a build script by the environment")]

use std::error::Error;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

fn main() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR")?);
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    println!("cargo::rerun-if-changed=build.rs");
    error_pages(&root.join("docs/errors"), &out)?;
    console_files(&root.join("console/dist"), &out)
}

fn error_pages(folder: &Path, out: &Path) -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={}", folder.display());
    let code = pages("PAGES", folder)? + &pages("REASONS", &folder.join("reasons"))?;
    fs::write(out.join("error_pages.rs"), code)?;
    Ok(())
}

fn pages(list: &str, folder: &Path) -> Result<String, Box<dyn Error>> {
    let mut pages = Vec::new();
    for entry in fs::read_dir(folder)? {
        pages.push(entry?.path());
    }
    pages.retain(|page| page.is_file());
    pages.sort();
    let mut code = format!("const {list}: &[(&str, &str)] = &[\n");
    for path in pages {
        let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
        writeln!(code, "    ({name:?}, include_str!({path:?})),")?;
    }
    code.push_str("];\n");
    Ok(code)
}

fn console_files(dist: &Path, out: &Path) -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={}", dist.display());
    let mut files = Vec::new();
    collect(dist, &mut files)?;
    files.sort();

    let mut code = "&[\n".to_owned();
    for file in files.iter().filter(|file| media_type(file).is_some()) {
        let path = file.strip_prefix(dist)?.to_str().ok_or("a name that is not text")?;
        let twin = PathBuf::from(format!("{}.gz", file.display()));
        let gzip =
            if files.contains(&twin) { format!("Some(include_bytes!({twin:?}))") } else { "None".to_owned() };
        let media_type = media_type(file).unwrap_or_default();
        writeln!(
            code,
            "    api::File {{ path: {path:?}, media_type: {media_type:?}, bytes: include_bytes!({file:?}), gzip: {gzip} }},"
        )?;
    }
    code += "]\n";
    fs::write(out.join("console_files.rs"), code)?;
    Ok(())
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

/// Files of other kinds are not part of the console.
fn media_type(file: &Path) -> Option<&'static str> {
    Some(match file.extension()?.to_str()? {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "woff2" => "font/woff2",
        _ => return None,
    })
}
