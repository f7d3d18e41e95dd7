//! Packs one static program into an image layout: `pack-image PROGRAM FOLDER [PORT…]`. `./dev pack` calls it.

use std::error::Error;
use std::path::Path;
use std::{env, fs};

use clients::oci_layout::{FileEntry, Image, pack};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [program, folder, ports @ ..] = arguments.as_slice() else {
        return Err("usage: pack-image PROGRAM FOLDER [PORT…]".into());
    };
    let name =
        Path::new(program).file_name().and_then(|name| name.to_str()).ok_or("a program without a name")?;
    let architecture = match env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    let image = Image {
        files: vec![FileEntry { path: format!("bin/{name}"), executable: true, bytes: fs::read(program)? }],
        architecture: architecture.to_owned(),
        entrypoint: vec![format!("/bin/{name}")],
        ports: ports.iter().map(|port| port.parse()).collect::<Result<_, _>>()?,
        user: "65532:65532".to_owned(),
        ..Image::default()
    };
    let packed = pack(&image, Path::new(folder))?;
    #[expect(clippy::print_stdout, reason = "the digest is this program's answer")]
    {
        println!("{}", packed.digest);
    }
    Ok(())
}
