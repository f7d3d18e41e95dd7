//! A real server with one bucket for one story: `SeaweedFS`, which shares no code with us.

use std::fs::File;
use std::net::{Ipv4Addr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use clients::blobs::{S3, S3Settings};
use domain::Secret;
use uuid::Uuid;

use super::cluster::Folder;

pub const ID: &str = "platform";
pub const SECRET: &str = "hunter2";

/// It ends with the story.
pub struct Bucket {
    child: Child,
    _folder: Folder,
    endpoint: String,
}

impl Bucket {
    pub async fn start() -> Bucket {
        Bucket::start_with(&[]).await
    }

    /// One that has no room for a byte more.
    pub async fn full() -> Bucket {
        let bucket = Bucket::start_with(&["-volume.max=1", "-master.volumeSizeLimitMB=1"]).await;
        let s3 = bucket.connect(SECRET);
        for _ in 0..100 {
            let signed = s3.sign(Uuid::now_v7(), None, Duration::from_secs(60)).await.unwrap();
            let mut filler = reqwest::Client::new().put(&signed.url).body(vec![0; 2 << 20]);
            for (name, value) in &signed.headers {
                filler = filler.header(name, value);
            }
            if !filler.send().await.unwrap().status().is_success() {
                return bucket;
            }
        }
        panic!("it takes whatever comes");
    }

    async fn start_with(more: &[&str]) -> Bucket {
        let (folder, port) = (Folder::new(), free_ports());
        let log = File::create(folder.0.join("log")).unwrap();
        let child = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/target/oracles/bin/weed"))
            .args(["mini", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-webdav=false", "-admin.ui=false"])
            .args(["-master.telemetry=false", "-s3.port.iceberg=0", "-s3.port.lance=0"])
            .arg(format!("-dir={}", folder.0.display()))
            .args([format!("-master.port={port}"), format!("-volume.port={}", port + 1)])
            .args([format!("-filer.port={}", port + 2), format!("-s3.port={}", port + 3)])
            .arg(format!("-admin.port={}", port + 4))
            .args(more)
            .env("AWS_ACCESS_KEY_ID", ID)
            .env("AWS_SECRET_ACCESS_KEY", SECRET)
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .expect("./dev test installs it");
        let server = Bucket { child, _folder: folder, endpoint: format!("http://127.0.0.1:{}", port + 3) };
        server.make_bucket().await;
        server
    }

    /// As an operator would, once the server answers.
    async fn make_bucket(&self) {
        for _ in 0..600 {
            let made = Command::new("curl")
                .args(["--silent", "--fail", "--request", "PUT", "--aws-sigv4", "aws:amz:us-east-1:s3"])
                .args(["--user", &format!("{ID}:{SECRET}"), &format!("{}/blobs", self.endpoint)])
                .status();
            if made.expect("curl runs").success() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("no bucket");
    }

    pub fn connect(&self, secret: &str) -> S3 {
        connect_to(&self.endpoint, secret)
    }

    /// Puts something there behind the platform's back.
    pub fn leave(&self, key: &str) {
        assert!(self.ask(&["--upload-file", "/etc/hostname"], key), "the bucket takes {key}");
    }

    pub fn has(&self, key: &str) -> bool {
        self.ask(&["--output", "/dev/null"], key)
    }

    fn ask(&self, how: &[&str], key: &str) -> bool {
        let said = Command::new("curl")
            .args(["--silent", "--fail", "--aws-sigv4", "aws:amz:us-east-1:s3"])
            .args(["--user", &format!("{ID}:{SECRET}")])
            .args(how)
            .arg(format!("{}/blobs/{key}", self.endpoint))
            .status();
        said.expect("curl runs").success()
    }
}

/// The platform's way to a bucket there.
pub fn connect_to(endpoint: &str, secret: &str) -> S3 {
    S3::connect(&S3Settings {
        endpoint: endpoint.to_owned(),
        region: "us-east-1".to_owned(),
        bucket: "blobs".to_owned(),
        access_key_id: ID.to_owned(),
        secret_access_key: Secret::new(secret.to_owned()),
    })
    .unwrap()
}

impl Drop for Bucket {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Five in a row, and those that lie ten thousand above them: below the ports that connections are given. Stories of other
/// processes look elsewhere first.
fn free_ports() -> u16 {
    let first = 12_000 + u16::try_from(std::process::id() % 1_000).unwrap_or_default() * 8;
    let free = |port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok();
    let row = |first: &u16| (0..5).all(|at| free(first + at) && free(first + at + 10_000));
    (first..22_000).step_by(8).find(row).expect("free ports")
}
