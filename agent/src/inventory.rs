//! What this machine has: cores, memory, and GPUs where NVIDIA's tool answers, which asks the driver by NVML; and how busy those
//! are.

use std::process::Stdio;
use std::time::Duration;

use node_protocol::{Gpu, GpuUse, Inventory};
use tokio::io::AsyncReadExt;
use tokio::process::{Child, Command};
use tokio::sync::Mutex;
use tokio::time::timeout;

const DETAILS: &str = "--query-gpu=index,name,memory.total,uuid,driver_version";
const USE: &str = "--query-gpu=index,utilization.gpu,memory.used";
const PLAIN: &str = "--format=csv,noheader,nounits";
const MIB: u64 = 1 << 20;
/// The first answer after a boot can take seconds.
const ANSWERS_WITHIN: Duration = Duration::from_secs(10);
/// The tool as it was started last. One that hangs in the driver cannot even be killed, and another would only hang beside it.
static LAST: Mutex<Option<Child>> = Mutex::const_new(None);

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
            driver_version: None,
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
    read_gpus(&asked(DETAILS).await)
}

/// How busy this machine's GPUs are; none where it has none.
pub(crate) async fn gpu_use() -> Vec<GpuUse> {
    read_use(&asked(USE).await)
}

/// What NVIDIA's tool prints; nothing where there is none, or it has failed.
async fn asked(query: &str) -> String {
    let mut tool = Command::new("nvidia-smi");
    tool.args([query, PLAIN]);
    said(tool, ANSWERS_WITHIN, &LAST).await
}

/// A driver that hangs takes its tool along; nobody waits for that, and no other is started until it is gone.
async fn said(mut tool: Command, patience: Duration, last: &Mutex<Option<Child>>) -> String {
    let mut last = last.lock().await;
    if last.as_mut().is_some_and(still_lives) {
        return String::new();
    }
    tool.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
    let Ok(started) = tool.spawn() else { return String::new() };
    let started = last.insert(started);
    match timeout(patience, output(started)).await {
        Ok(Ok(said)) => said,
        Ok(Err(_)) => String::new(),
        Err(_) => {
            still_lives(started);
            String::new()
        }
    }
}

/// Whoever asks this has no use for it any more: if it does, it is killed.
fn still_lives(tool: &mut Child) -> bool {
    let lives = matches!(tool.try_wait(), Ok(None));
    if lives && let Err(error) = tool.start_kill() {
        tracing::warn!(%error, "NVIDIA's tool hangs and cannot be ended");
    }
    lives
}

/// What it prints until it ends; nothing where it fails.
async fn output(tool: &mut Child) -> std::io::Result<String> {
    let mut said = Vec::new();
    if let Some(out) = tool.stdout.as_mut() {
        out.read_to_end(&mut said).await?;
    }
    let well = tool.wait().await?.success();
    Ok(if well { String::from_utf8_lossy(&said).into_owned() } else { String::new() })
}

/// Of a GPU that is shared out in parts the tool knows no figure; it counts as idle.
fn read_use(table: &str) -> Vec<GpuUse> {
    let row = |line: &str| {
        let mut cells = line.split(',').map(str::trim);
        let index = cells.next()?.parse().ok()?;
        let mut number = || cells.next().and_then(|cell| cell.parse::<u64>().ok()).unwrap_or_default();
        let busy_percent = u8::try_from(number().min(100)).unwrap_or(100);
        Some(GpuUse { index, busy_percent, memory_used_bytes: number() * MIB })
    };
    table.lines().filter_map(row).collect()
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
            driver_version: cells.next().filter(|cell| !cell.starts_with('[')).map(str::to_owned),
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
        let gpus = read_gpus(
            "0, NVIDIA H100 80GB HBM3, 81559, GPU-5a, 550.54.15\n1, NVIDIA H100 80GB HBM3, 81559, [N/A]\n",
        );
        assert_eq!(gpus.iter().map(Gpu::device).collect::<Vec<_>>(), ["GPU-5a", "1"]);
        assert_eq!(
            (gpus[1].index, gpus[1].sku.as_str(), gpus[1].memory_gib),
            (1, "NVIDIA-H100-80GB-HBM3", 79)
        );
        assert_eq!(gpus[0].driver_version.as_deref(), Some("550.54.15"));
        assert!(read_gpus("NVIDIA-SMI has failed").is_empty());
        let busy = read_use("0, 87, 40960\n1, [N/A], [N/A]\n");
        let seen: Vec<_> =
            busy.iter().map(|gpu| (gpu.index, gpu.busy_percent, gpu.memory_used_bytes)).collect();
        assert_eq!(seen, [(0, 87, 40 << 30), (1, 0, 0)]);
    }

    fn tool(script: &str) -> Command {
        let mut tool = Command::new("sh");
        tool.args(["-c", script]);
        tool
    }

    #[tokio::test]
    async fn a_tool_that_hangs_is_not_waited_for() {
        let last = Mutex::default();
        assert_eq!(said(tool("echo 0, 87, 40960"), ANSWERS_WITHIN, &last).await, "0, 87, 40960\n");
        assert_eq!(said(tool("echo 0, 87, 40960; exit 1"), ANSWERS_WITHIN, &last).await, "");
        let begun = std::time::Instant::now();
        assert_eq!(said(tool("exec sleep 5"), Duration::from_millis(50), &last).await, "");
        assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
    }

    #[tokio::test]
    async fn no_other_is_started_while_the_last_one_lives() {
        let last = Mutex::new(Some(tool("exec sleep 60").spawn().unwrap()));
        assert_eq!(said(tool("echo well"), ANSWERS_WITHIN, &last).await, "", "it lives, and is killed");
        for _ in 0..500 {
            if said(tool("echo well"), ANSWERS_WITHIN, &last).await == "well\n" {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("it is dead, and taken for alive");
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
