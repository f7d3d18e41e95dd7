//! The migrations are embedded by a macro, which on its own does not notice a new file.

fn main() {
    println!("cargo:rerun-if-changed=../migrations");
}
