//! What this machine has: cores, memory, and GPUs where NVIDIA's tool answers.

use std::process::Stdio;

use node_protocol::{Gpu, Inventory};
use tokio::process::Command;

const QUERY: [&str; 2] = ["--query-gpu=index,name,memory.total,uuid", "--format=csv,noheader,nounits"];

/// `simulated` GPUs are added where there are none, for machines that have none to try with. They pass for NVIDIA's wherever an
/// instance is placed, and say what they are.
pub async fn detect(simulated: u32) -> Inventory {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let memory = tokio::fs::read_to_string("/proc/meminfo").await.unwrap_or_default();
    let mut gpus = gpus().await;
    if gpus.is_empty() {
        let one = |index| Gpu {
            index,
            sku: "simulated".into(),
            accelerator: "nvidia".into(),
            memory_gib: 80,
            uuid: None,
            simulated: true,
        };
        gpus = (0..simulated).map(one).collect();
    }
    Inventory {
        cpu_cores: u32::try_from(cores).unwrap_or(u32::MAX),
        memory_gib: memory_gib(&memory).max(1),
        gpus,
        machine: Some(machine()),
    }
}

/// What programs for this machine are made for.
pub(crate) fn machine() -> String {
    format!("{}-{}", std::env::consts::OS, std::env::consts::ARCH)
}

async fn gpus() -> Vec<Gpu> {
    let asked =
        Command::new("nvidia-smi").args(QUERY).stdin(Stdio::null()).stderr(Stdio::null()).output().await;
    match asked {
        Ok(said) if said.status.success() => read_gpus(&String::from_utf8_lossy(&said.stdout)),
        _ => Vec::new(),
    }
}

fn read_gpus(table: &str) -> Vec<Gpu> {
    let row = |line: &str| {
        let mut cells = line.split(',').map(str::trim);
        let (index, name, mib) = (cells.next()?, cells.next()?, cells.next()?);
        Some(Gpu {
            index: index.parse().ok()?,
            sku: name.replace(' ', "-"),
            accelerator: "nvidia".to_owned(),
            memory_gib: mib.parse::<u32>().ok()? / 1024,
            uuid: cells.next().filter(|uuid| uuid.starts_with("GPU-")).map(str::to_owned),
            simulated: false,
        })
    };
    table.lines().filter_map(row).collect()
}

fn memory_gib(meminfo: &str) -> u32 {
    let line = meminfo.lines().find(|line| line.starts_with("MemTotal:")).unwrap_or_default();
    let kib: u64 = line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).unwrap_or_default();
    u32::try_from(kib / (1 << 20)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_tools_print_is_read() {
        assert_eq!(memory_gib("MemTotal:       16303428 kB\nMemFree: 1 kB"), 15);
        let gpus =
            read_gpus("0, NVIDIA H100 80GB HBM3, 81559, GPU-5a\n1, NVIDIA H100 80GB HBM3, 81559, [N/A]\n");
        assert_eq!(gpus.iter().map(Gpu::device).collect::<Vec<_>>(), ["GPU-5a", "1"]);
        assert_eq!(
            (gpus[1].index, gpus[1].sku.as_str(), gpus[1].memory_gib),
            (1, "NVIDIA-H100-80GB-HBM3", 79)
        );
        assert!(read_gpus("NVIDIA-SMI has failed").is_empty());
    }

    #[tokio::test]
    async fn simulated_gpus_pass_for_real_ones_in_placement_and_say_that_they_are_not() {
        let gpus = detect(2).await.gpus;
        // A machine with GPUs of its own gets no others.
        if gpus.iter().any(|gpu| gpu.simulated) {
            assert_eq!(gpus.len(), 2);
            assert!(gpus.iter().all(|gpu| gpu.accelerator == "nvidia" && gpu.sku == "simulated"), "{gpus:?}");
        }
    }
}
