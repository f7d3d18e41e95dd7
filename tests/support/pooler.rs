//! A transaction pooler between a process and its database.

use std::process::{Child, Command, Stdio};
use std::time::Duration;
use std::{fs, net};

use super::cluster::Folder;
use super::database::TestDatabase;

/// Debian's pgbouncer before the test server; it ends with the test.
pub struct Pooler {
    process: Child,
    _folder: Folder,
    pub port: u16,
}

impl Pooler {
    pub fn before(database: &TestDatabase) -> Pooler {
        let folder = Folder::new();
        let port =
            net::TcpListener::bind(("127.0.0.1", 0)).and_then(|free| free.local_addr()).unwrap().port();
        let (server, path) = (&database.options, folder.0.join("pgbouncer.ini"));
        let settings = format!(
            "[databases]\n* = host={} port={} user={}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n\
             unix_socket_dir =\nauth_type = any\npool_mode = transaction\nserver_reset_query_always = 1\n\
             default_pool_size = 8\nmax_client_conn = 200\nignore_startup_parameters = extra_float_digits\n",
            server.get_host(),
            server.get_port(),
            server.get_username()
        );
        fs::write(&path, settings).unwrap();
        // It refuses to run as root.
        let mut command = Command::new("setpriv");
        command.args([
            "--reuid",
            "postgres",
            "--regid",
            "postgres",
            "--clear-groups",
            "/usr/sbin/pgbouncer",
            "--quiet",
        ]);
        let process =
            command.arg(&path).stderr(Stdio::null()).stdout(Stdio::null()).spawn().expect("pgbouncer runs");
        while net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            std::thread::sleep(Duration::from_millis(10));
        }
        Pooler { process, _folder: folder, port }
    }

    /// How a process that is told so reaches the database through it.
    pub fn url(&self, database: &TestDatabase) -> String {
        format!("postgres://{}@127.0.0.1:{}/{}", database.options.get_username(), self.port, database.name)
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
