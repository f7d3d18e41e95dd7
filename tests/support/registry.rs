//! A real registry for one story: Debian's `docker-registry`, which asks the platform of the story who may do what.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use api::Depot;
use axum::Router;
use axum::http::{Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use clients::clock::{Clock, SystemClock};
use clients::registry::{Authority, Registry, TokenServer};
use clients::seal::Sealer;
use clients::wrapping::{Wrapper, Wrapping};
use domain::{Digest, Secret};
use serde_json::json;

use super::cluster::Folder;
use super::image::{MANIFEST, digest};

pub const SERVICE: &str = "registry.test";
pub const EVENTS_SECRET: &str = "what-the-registry-shows";
pub const ISSUER: &str = "gpuaas-test";

/// It ends with the story.
pub struct TestRegistry {
    child: Child,
    folder: Folder,
    pub host: String,
    key: Secret<String>,
}

impl TestRegistry {
    /// `platform` is where it finds the platform.
    pub fn start(platform: SocketAddr) -> TestRegistry {
        let folder = Folder::new();
        let key = Authority::generate_key().expect("a key");
        fs::write(folder.0.join("ca.pem"), authority(&key).certificate().expect("a certificate")).unwrap();
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr());
        let host = free.expect("a free port").to_string();
        let config = config(&folder, &host, platform);
        fs::write(folder.0.join("config.yml"), config).unwrap();
        let child = spawn(&folder);
        let registry = TestRegistry { child, folder, host, key };
        registry.until_it_answers();
        registry
    }

    /// By which a process of the platform is believed here.
    pub fn key(&self) -> &str {
        self.key.expose()
    }

    /// The platform's way to it. Each has a leaf certificate of its own, as each process of a platform has.
    pub fn client(&self) -> Registry {
        self.client_to(&format!("http://{}", self.host))
    }

    /// Of a process that has this clock.
    pub fn client_by(&self, clock: Arc<dyn Clock>) -> Registry {
        let authority = Authority::from_pem(self.key.expose(), Arc::clone(&clock)).expect("an authority");
        let tokens = TokenServer::new(authority, ISSUER, SERVICE, clock);
        Registry::new(&format!("http://{}", self.host), &self.host, tokens, None).expect("a client")
    }

    /// To another registry, with what this one believes.
    pub fn client_to(&self, url: &str) -> Registry {
        let tokens = TokenServer::new(authority(&self.key), ISSUER, SERVICE, Arc::new(SystemClock));
        let secret = Some(Secret::new(EVENTS_SECRET.to_owned()));
        Registry::new(url, &self.host, tokens, secret).expect("a client")
    }

    pub fn stop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// On the same data, at the same place.
    pub fn start_again(&mut self) {
        self.child = spawn(&self.folder);
        self.until_it_answers();
    }

    /// As its operator does before garbage is collected: it goes on serving, and takes and deletes nothing.
    pub fn freeze(&mut self) {
        self.restart_with(
            "delete: {enabled: true}",
            "delete: {enabled: true}\n  maintenance: {readonly: {enabled: true}}",
        );
    }

    pub fn thaw(&mut self) {
        self.restart_with("\n  maintenance: {readonly: {enabled: true}}", "");
    }

    /// Puts all it will ever keep on a disk of so many bytes. What it has already is out of reach until there is room again.
    pub fn squeeze(&self, bytes: usize) {
        let data = self.folder.0.join("data");
        fs::create_dir_all(&data).unwrap();
        let size = format!("size={bytes}");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(&data).status();
        assert!(mounted.is_ok_and(|status| status.success()), "a small disk needs root");
    }

    pub fn make_room(&self) {
        let gone = Command::new("umount").arg("--lazy").arg(self.folder.0.join("data")).status();
        assert!(gone.is_ok_and(|status| status.success()));
    }

    /// Deletes what no manifest names from the registry's disk.
    pub fn collect_garbage(&self) {
        let mut command = Command::new("docker-registry");
        let said = command.arg("garbage-collect").arg(self.folder.0.join("config.yml")).output().unwrap();
        assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    }

    fn restart_with(&mut self, old: &str, new: &str) {
        let path = self.folder.0.join("config.yml");
        let config = fs::read_to_string(&path).unwrap();
        assert!(config.contains(old), "{config}");
        fs::write(&path, config.replace(old, new)).unwrap();
        self.stop();
        self.start_again();
    }

    /// Where a blob or manifest lies on disk, for those who want to damage it.
    pub fn blob_file(&self, digest: &Digest) -> std::path::PathBuf {
        let hex = digest.hex();
        self.folder.0.join("data/docker/registry/v2/blobs/sha256").join(&hex[..2]).join(hex).join("data")
    }

    fn until_it_answers(&self) {
        for _ in 0..500 {
            if std::net::TcpStream::connect(&self.host).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("no registry: {}", fs::read_to_string(self.folder.0.join("log")).unwrap_or_default());
    }
}

impl Drop for TestRegistry {
    fn drop(&mut self) {
        self.stop();
        // Where a story that failed left it squeezed.
        let mut unmount = Command::new("umount");
        let _ = unmount.arg("--lazy").arg(self.folder.0.join("data")).stderr(Stdio::null()).status();
    }
}

/// Manifests that the shelf of every platform in this process has.
static SHELF: Mutex<BTreeMap<String, Vec<u8>>> = Mutex::new(BTreeMap::new());

/// Puts an image on the shelf; other words, another image.
pub fn shelve(words: &str) -> Digest {
    let manifest = manifest_of(words);
    let digest = digest(&manifest);
    SHELF.lock().unwrap().insert(digest.to_string(), manifest);
    digest
}

/// What the image of these words is called, on the shelf or not.
pub fn shelved_as(words: &str) -> Digest {
    digest(&manifest_of(words))
}

fn manifest_of(words: &str) -> Vec<u8> {
    let config = json!({ "mediaType": "application/vnd.oci.image.config.v1+json", "digest": digest(words.as_bytes()), "size": 1 });
    let manifest = json!({ "schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": [] });
    manifest.to_string().into_bytes()
}

/// Which manifests the shelf lists as being about which.
static REFERRERS: Mutex<BTreeMap<String, Vec<Digest>>> = Mutex::new(BTreeMap::new());

/// Puts a manifest on the shelf that is about another, as a registry with a list of referrers notices.
pub fn refer(about: &Digest, manifest: &[u8]) -> Digest {
    let held = digest(manifest);
    shelve_as(&held, manifest);
    REFERRERS.lock().unwrap().entry(about.to_string()).or_default().push(held.clone());
    held
}

/// For platforms whose stories are about something else: a registry of which manifests can be read and deleted.
pub fn shelf() -> Depot {
    depot(Router::new().fallback(from_shelf))
}

/// A registry that believes nobody.
pub fn refusing() -> Depot {
    depot(Router::new().fallback(async || StatusCode::UNAUTHORIZED))
}

fn depot(router: Router) -> Depot {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    listener.set_nonblocking(true).expect("a socket");
    let host = listener.local_addr().expect("an address").to_string();
    let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
    tokio::spawn(async move { axum::serve(listener, router).await });
    let key = Authority::generate_key().expect("a key");
    let tokens = TokenServer::new(authority(&key), ISSUER, SERVICE, Arc::new(SystemClock));
    let registry = Registry::new(&format!("http://{host}"), &host, tokens, None).expect("a client");
    Depot { registry, blobs: None, wrapping: wrapping() }
}

/// Puts bytes under a digest, whether or not it is theirs.
pub fn shelve_as(digest: &Digest, bytes: &[u8]) {
    SHELF.lock().unwrap().insert(digest.to_string(), bytes.to_vec());
}

pub fn shelved(digest: &Digest) -> Vec<u8> {
    SHELF.lock().unwrap().get(digest.as_str()).cloned().unwrap_or_default()
}

/// Whether an image is on the shelf.
pub fn is_shelved(digest: &Digest) -> bool {
    SHELF.lock().unwrap().contains_key(digest.as_str())
}

/// Whether the shelf of this process answers nobody.
static AWAY: AtomicBool = AtomicBool::new(false);

pub fn shelf_is_away(away: bool) {
    AWAY.store(away, Ordering::Relaxed);
}

async fn from_shelf(method: Method, uri: Uri) -> Response {
    if AWAY.load(Ordering::Relaxed) {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    let reference = uri.path().rsplit('/').next().unwrap_or_default();
    if uri.path().contains("/referrers/") {
        let listed = REFERRERS.lock().unwrap().get(reference).cloned().unwrap_or_default();
        let listed: Vec<_> =
            listed.iter().map(|one| json!({ "mediaType": MANIFEST, "digest": one, "size": 1 })).collect();
        return axum::Json(json!({ "schemaVersion": 2, "manifests": listed })).into_response();
    }
    let mut shelf = SHELF.lock().unwrap();
    if method == Method::DELETE {
        return shelf
            .remove(reference)
            .map_or(StatusCode::NOT_FOUND, |_| StatusCode::ACCEPTED)
            .into_response();
    }
    match shelf.get(reference) {
        Some(manifest) => ([("content-type", MANIFEST)], manifest.clone()).into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

pub fn wrapping() -> Wrapping {
    let sealer = Sealer::from_lines(Sealer::generate_line("test").expose()).expect("a sealer");
    Wrapping::Embedded(Wrapper::new(sealer))
}

fn authority(key: &Secret<String>) -> Authority {
    Authority::from_pem(key.expose(), Arc::new(SystemClock)).expect("an authority")
}

fn spawn(folder: &Folder) -> Child {
    let log = File::options().create(true).append(true).open(folder.0.join("log")).expect("a log");
    let mut command = Command::new("docker-registry");
    command.arg("serve").arg(folder.0.join("config.yml")).stdin(Stdio::null());
    command.stdout(log.try_clone().expect("a log")).stderr(log).spawn().expect("docker-registry is installed")
}

fn config(folder: &Folder, host: &str, platform: SocketAddr) -> String {
    let folder = folder.0.display();
    format!(
        r#"version: 0.1
storage:
  filesystem: {{rootdirectory: "{folder}/data"}}
  delete: {{enabled: true}}
http: {{addr: "{host}", secret: "shared"}}
auth:
  token: {{realm: "http://{platform}/registry/token", service: "{SERVICE}", issuer: "{ISSUER}", rootcertbundle: "{folder}/ca.pem"}}
notifications:
  endpoints:
    - name: platform
      url: "http://{platform}/internal/v1/registry/events"
      headers: {{Authorization: ["Bearer {EVENTS_SECRET}"]}}
      timeout: 1s
      threshold: 3
      backoff: 200ms
"#
    )
}
