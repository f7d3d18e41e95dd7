//! `gpuaas agent doctor` says what a machine lacks before a workload finds out.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Output;

use crate::support::cluster::Folder;
use crate::support::docker::Engine;
use crate::support::process::gpuaas;

/// What it says on a machine whose NVIDIA tool knows of one GPU.
fn says(folder: &Folder, engine: &Engine) -> Output {
    let tool = folder.0.join("nvidia-smi");
    fs::write(&tool, "#!/bin/sh\necho '0, NVIDIA H100 80GB HBM3, 81559, GPU-1'\n").unwrap();
    fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", folder.0.display(), std::env::var("PATH").unwrap_or_default());
    let home = folder.0.join("agent").display().to_string();
    let asked = ["agent", "doctor", "--data-dir", &home, "--docker-host", &engine.host()];
    gpuaas(&asked).env("PATH", path).output().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_doctor_asks_the_engine_whether_it_can_hand_out_gpus() {
    let folder = Folder::new();
    let engine = Engine::start().await;
    let without = String::from_utf8(says(&folder, &engine).stdout).unwrap();
    assert!(without.contains("answers and runs containers by runc"), "{without}");
    assert!(without.contains("1 GPUs, but the engine has no runtime `nvidia`"), "{without}");
    drop(engine);
    let engine = Engine::start_with(&["--add-runtime", "nvidia=/usr/bin/nvidia-container-runtime"]).await;
    let with = String::from_utf8(says(&folder, &engine).stdout).unwrap();
    assert!(with.contains("1 GPUs that the engine hands to containers"), "{with}");
}
