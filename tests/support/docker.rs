//! A container engine of a story's own: a real dockerd with its folders in a temporary place, and an image made from
//! nothing but a static busybox. A story that needs one and cannot have it has failed: what was not told was not proven.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use agent::{Docker, Stage};
use uuid::Uuid;

/// The port that the image serves on.
pub const PORT: u16 = 8080;

/// Where it writes which process its containerd is.
const HELPER: &str = "exec/containerd/containerd.pid";

pub struct Engine {
    /// Engines share the machine's ports and networks, so their stories are told one after the other.
    _turn: fs::File,
    process: Child,
    folder: PathBuf,
    /// More of its options.
    options: Vec<String>,
    pub stage: Stage,
}

impl Engine {
    pub async fn start() -> Engine {
        Engine::start_with(&[]).await
    }

    pub async fn start_with(options: &[&str]) -> Engine {
        let started = Engine::try_start(options).await;
        started.unwrap_or_else(|why| {
            panic!(
                "no container engine can be started here, which needs root, dockerd and busybox-static: {why}"
            )
        })
    }

    pub fn host(&self) -> String {
        format!("unix://{}/docker.sock", self.folder.display())
    }

    /// What the engine has of instances, by Docker's own client: containers, networks and volumes, by name. What it does not say
    /// is not taken for nothing.
    pub fn leftovers(&self) -> Vec<String> {
        let containers = self.labelled(&["ps", "-a"], "gpuaas.instance", "{{.Names}}");
        let networks = self.labelled(&["network", "ls"], "gpuaas.instance", "{{.Name}}");
        let volumes = self.labelled(&["volume", "ls"], "gpuaas.instance", "{{.Name}}");
        let (_, taken) = self.spares();
        [containers, networks, taken, volumes].concat()
    }

    /// The networks that were made ahead and that no container is on, by name.
    pub fn reserve(&self) -> Vec<String> {
        self.spares().0
    }

    /// Those in reserve, and those that containers name, whether they run or not.
    fn spares(&self) -> (Vec<String>, Vec<String>) {
        let mut all = self.labelled(&["network", "ls"], "gpuaas.spare", "{{.Name}}");
        all.sort();
        let containers = self.docker(&["ps", "-aq"]).expect("docker says what is left");
        let look = ["inspect", "--format", "{{.HostConfig.NetworkMode}}"];
        let look: Vec<&str> = look.into_iter().chain(containers.lines()).collect();
        let named = if containers.is_empty() { Ok(String::new()) } else { self.docker(&look) };
        let named = named.expect("docker says who is where");
        all.into_iter().partition(|network| !named.lines().any(|name| name == network))
    }

    fn labelled(&self, list: &[&str], label: &str, format: &str) -> Vec<String> {
        let filter = format!("label={label}");
        let names = self.docker(&[list, &["--filter", &filter, "--format", format]].concat());
        let names = names.expect("docker says what is left");
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

    async fn try_start(options: &[&str]) -> Result<Engine, String> {
        let options: Vec<String> = options.iter().map(ToString::to_string).collect();
        let turn = fs::File::create(std::env::temp_dir().join("gpuaas-engine-turn"));
        let turn = turn.map_err(|error| error.to_string())?;
        let turn = tokio::task::spawn_blocking(move || turn.lock().map(|()| turn)).await;
        let turn = turn.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
        // Short, because the path of a socket must be.
        let folder = std::env::temp_dir().join(format!("gd-{}", &Uuid::new_v4().simple().to_string()[..8]));
        fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        let log = fs::File::create(folder.join("log")).map_err(|error| error.to_string())?;
        let process = spawn(&folder, &options, log)?;
        let mut engine = Engine {
            _turn: turn,
            process,
            folder,
            options,
            stage: Stage { digest: String::new(), port: PORT },
        };
        engine.answers().await?;
        engine.stage.digest = engine.image("welcome")?;
        Ok(engine)
    }

    /// As a crash would, with the helper that it started: what it ran is left to itself.
    pub fn kill(&mut self) {
        let helper = fs::read_to_string(self.folder.join(HELPER)).expect("it has a containerd of its own");
        self.process.kill().and_then(|()| self.process.wait().map(drop)).expect("it is killed");
        // It may have gone with its parent.
        let _ = Command::new("kill").args(["-KILL", helper.trim()]).stderr(Stdio::null()).status();
    }

    /// On the same data, at the same place.
    pub async fn start_again(&mut self) {
        // It waits for whoever these files name, and that may be somebody else by now, or the dead.
        for file in ["pid", HELPER] {
            let _ = fs::remove_file(self.folder.join(file));
        }
        let log = fs::File::options().append(true).open(self.folder.join("log")).expect("a log");
        self.process = spawn(&self.folder, &self.options, log).expect("dockerd");
        self.answers().await.expect("it answers again");
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
        let serve = format!("exec /bin/busybox httpd -f -v -p {PORT} -h /www");
        let command = format!(r#"CMD ["/bin/busybox","sh","-c","echo ready; echo up >&2; {serve}"]"#);
        self.import(words, &[("www/index.html", words)], &command)
    }

    /// The same, but it takes so long to serve that its node must be asked whether it does.
    pub fn slow_image(&self, words: &str) -> Result<String, String> {
        let serve = format!("exec /bin/busybox httpd -f -p {PORT} -h /www");
        let command = format!(r#"CMD ["/bin/busybox","sh","-c","/bin/busybox sleep 1; {serve}"]"#);
        self.import(words, &[("www/index.html", words)], &command)
    }

    /// An image that serves on [`PORT`], and once it is broken ends as soon as it is started.
    pub fn fragile(&self) -> Result<String, String> {
        let serve = format!("exec /bin/busybox httpd -f -p {PORT} -h /www");
        let command = format!(r#"CMD ["/bin/busybox","sh","-c","test -e /www/broken && exit 1; {serve}"]"#);
        self.import("fragile", &[("www/index.html", "fragile")], &command)
    }

    /// A stand-in for a model server: it takes the server's options without looking at them, says that it is healthy, and
    /// lists one model, once it could write to its cache.
    pub fn model_server(&self, model: &str) -> Result<String, String> {
        let listed = format!(r#"{{"object":"list","data":[{{"id":"{model}","object":"model"}}]}}"#);
        let serve = format!("exec /bin/busybox httpd -f -p {PORT} -h /www");
        let script =
            format!("echo called with $*; echo {model} >>${{HF_HOME:-/tmp}}/models || exit 1; {serve}");
        let entry = format!(r#"ENTRYPOINT ["/bin/busybox","sh","-c","{script}","server"]"#);
        self.import(model, &[("www/v1/models", &listed), ("www/health", "")], &entry)
    }

    /// An image of a static busybox and these files.
    fn import(&self, name: &str, files: &[(&str, &str)], change: &str) -> Result<String, String> {
        let root = self.folder.join(format!("image-{name}"));
        let made = || -> std::io::Result<()> {
            fs::create_dir_all(root.join("bin"))?;
            fs::copy("/bin/busybox", root.join("bin/busybox"))?;
            for (path, text) in files {
                let path = root.join(path);
                fs::create_dir_all(path.parent().unwrap_or(&root))?;
                fs::write(path, text)?;
            }
            Ok(())
        };
        made().map_err(|error| format!("busybox-static: {error}"))?;
        let tar = self.folder.join(format!("{name}.tar")).display().to_string();
        let packed = Command::new("tar").args(["-C", &root.display().to_string(), "-cf", &tar, "."]).status();
        packed.map_err(|error| error.to_string())?;
        self.docker(&["import", "--change", change, &tar])
    }
}

fn spawn(folder: &Path, options: &[String], log: fs::File) -> Result<Child, String> {
    let at = |name: &str| folder.join(name).display().to_string();
    Command::new("dockerd")
        .args(["--data-root", &at("data"), "--exec-root", &at("exec"), "--pidfile", &at("pid")])
        .args(["-H", &format!("unix://{}", at("docker.sock"))])
        .args(options)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .map_err(|error| format!("dockerd: {error}"))
}

impl Drop for Engine {
    fn drop(&mut self) {
        let ids = self.docker(&["ps", "-aq"]).unwrap_or_default();
        for id in ids.lines() {
            let _ = self.docker(&["rm", "-f", id]);
        }
        // Bridges are the machine's, and would outlive the engine.
        let _ = self.docker(&["network", "prune", "--force"]);
        let _ = Command::new("kill").arg(self.process.id().to_string()).status();
        let _ = self.process.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}
