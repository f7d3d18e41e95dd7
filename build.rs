//! Puts the pages of docs/errors into the binary, for `gpuaas explain`.

#![expect(
    clippy::disallowed_methods,
    reason = "cargo tells a build script by the environment where things are"
)]

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let root = env::var("CARGO_MANIFEST_DIR").map_err(io::Error::other)?;
    let out = env::var("OUT_DIR").map_err(io::Error::other)?;
    let folder = Path::new(&root).join("docs/errors");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut pages: Vec<_> = fs::read_dir(&folder)?.collect::<Result<_, _>>()?;
    pages.sort_by_key(fs::DirEntry::file_name);
    let mut code = String::from("const PAGES: &[(&str, &str)] = &[\n");
    for page in pages {
        let path = page.path();
        let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
        // Writing to a String cannot fail.
        let _ = writeln!(code, "    ({name:?}, include_str!({path:?})),");
    }
    code.push_str("];\n");
    fs::write(Path::new(&out).join("error_pages.rs"), code)
}
