//! A container engine of a story's own: a real dockerd with its folders in a temporary place, and an image made from
//! nothing but a static busybox. Where none can be started the story says so and tells nothing.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use agent::{Docker, Stage};
use uuid::Uuid;

/// The port that the image serves on.
pub const PORT: u16 = 8080;

pub struct Engine {
    /// Engines share the machine's ports and networks, so their stories are told one after the other.
    _turn: fs::File,
    process: Child,
    folder: PathBuf,
    pub stage: Stage,
}

impl Engine {
    /// `None`, and the reason on stderr, where no engine can be started.
    pub async fn start() -> Option<Engine> {
        match Engine::try_start().await {
            Ok(engine) => Some(engine),
            Err(why) => {
                eprintln!("NOT TOLD, because no container engine can be started here: {why}");
                None
            }
        }
    }

    pub fn host(&self) -> String {
        format!("unix://{}/docker.sock", self.folder.display())
    }

    /// What the engine has of ours, by Docker's own client: containers and networks, by name.
    pub fn leftovers(&self) -> Vec<String> {
        let containers =
            self.docker(&["ps", "-a", "--filter", "label=gpuaas.instance", "--format", "{{.Names}}"]);
        let networks =
            self.docker(&["network", "ls", "--filter", "label=gpuaas.instance", "--format", "{{.Name}}"]);
        let names = format!("{}\n{}", containers.unwrap_or_default(), networks.unwrap_or_default());
        names.lines().filter(|name| !name.is_empty()).map(str::to_owned).collect()
    }

    /// Docker's own client; its output, or what it complained of.
    pub fn docker(&self, arguments: &[&str]) -> Result<String, String> {
        let host = self.host();
        let said = Command::new("docker")
            .args(["--config", &self.folder.join("client").display().to_string(), "-H", &host])
            .args(arguments)
            .output();
        let said = said.map_err(|error| error.to_string())?;
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).trim().to_owned();
        if said.status.success() { Ok(text(said.stdout)) } else { Err(text(said.stderr)) }
    }

    /// For Docker's own client; the folder of this engine keeps what it learns.
    pub fn log_in(&self, registry: &str, username: &str, password: &str) -> Result<String, String> {
        self.docker(&["login", registry, "--username", username, "--password", password])
    }

    async fn try_start() -> Result<Engine, String> {
        let turn = fs::File::create(std::env::temp_dir().join("gpuaas-engine-turn"));
        let turn = turn.map_err(|error| error.to_string())?;
        let turn = tokio::task::spawn_blocking(move || turn.lock().map(|()| turn)).await;
        let turn = turn.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
        // Short, because the path of a socket must be.
        let folder = std::env::temp_dir().join(format!("gd-{}", &Uuid::new_v4().simple().to_string()[..8]));
        fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        let log = fs::File::create(folder.join("log")).map_err(|error| error.to_string())?;
        let at = |name: &str| folder.join(name).display().to_string();
        let process = Command::new("dockerd")
            .args(["--data-root", &at("data"), "--exec-root", &at("exec"), "--pidfile", &at("pid")])
            .args(["-H", &format!("unix://{}", at("docker.sock"))])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .map_err(|error| format!("dockerd: {error}"))?;
        let mut engine =
            Engine { _turn: turn, process, folder, stage: Stage { digest: String::new(), port: PORT } };
        engine.answers().await?;
        engine.stage.digest = engine.image("welcome")?;
        Ok(engine)
    }

    async fn answers(&mut self) -> Result<(), String> {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            if let Ok(driver) = Docker::connect(&self.host()).await
                && driver.version().await.is_ok()
            {
                return Ok(());
            }
            let ended = self.process.try_wait().map_err(|error| error.to_string())?;
            if ended.is_some() || Instant::now() > deadline {
                let log = fs::read_to_string(self.folder.join("log")).unwrap_or_default();
                return Err(log.lines().last().unwrap_or("it did not answer within a minute").to_owned());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// An image that says on both streams that it is up, and serves these words on [`PORT`]: its id.
    pub fn image(&self, words: &str) -> Result<String, String> {
        let root = self.folder.join(format!("image-{words}"));
        let made = || -> std::io::Result<()> {
            fs::create_dir_all(root.join("bin"))?;
            fs::create_dir_all(root.join("www"))?;
            fs::copy("/bin/busybox", root.join("bin/busybox"))?;
            fs::write(root.join("www/index.html"), words)
        };
        made().map_err(|error| format!("busybox-static: {error}"))?;
        let tar = self.folder.join(format!("{words}.tar")).display().to_string();
        let packed = Command::new("tar").args(["-C", &root.display().to_string(), "-cf", &tar, "."]).status();
        packed.map_err(|error| error.to_string())?;
        let serve = format!("exec /bin/busybox httpd -f -v -p {PORT} -h /www");
        let command = format!(r#"CMD ["/bin/busybox","sh","-c","echo ready; echo up >&2; {serve}"]"#);
        self.docker(&["import", "--change", &command, &tar])
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let ids = self.docker(&["ps", "-aq"]).unwrap_or_default();
        for id in ids.lines() {
            let _ = self.docker(&["rm", "-f", id]);
        }
        let _ = Command::new("kill").arg(self.process.id().to_string()).status();
        let _ = self.process.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}
