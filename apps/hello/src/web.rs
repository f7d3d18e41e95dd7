//! The page and the health check, over as much HTTP/1.1 as they need: one request per connection.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(10);
const MOST_AT_ONCE: usize = 64;
const LONGEST_HEAD: u64 = 16 * 1024;

pub(crate) struct Site {
    greeting: String,
    instance: Option<String>,
    began: Instant,
    /// Requests for the page; health checks are the platform's own and not counted.
    answered: AtomicU64,
    open: AtomicUsize,
}

impl Site {
    pub(crate) fn new(greeting: String, instance: Option<String>) -> Site {
        Site {
            greeting,
            instance,
            began: Instant::now(),
            answered: AtomicU64::new(0),
            open: AtomicUsize::new(0),
        }
    }

    pub(crate) fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }

    fn answer(&self, method: &str, path: &str) -> (u16, &'static str, String) {
        let path = path.split('?').next().unwrap_or(path);
        match (method, path) {
            ("GET" | "HEAD", "/") => {
                self.answered.fetch_add(1, Ordering::Relaxed);
                (200, "text/html; charset=utf-8", self.page())
            }
            ("GET" | "HEAD", "/healthz") => (200, "text/plain; charset=utf-8", "ok\n".to_owned()),
            ("GET" | "HEAD", _) => (404, "text/plain; charset=utf-8", "There is nothing here.\n".to_owned()),
            _ => (405, "text/plain; charset=utf-8", "This page is only read.\n".to_owned()),
        }
    }

    fn page(&self) -> String {
        let greeting = escaped(&self.greeting);
        let instance = self.instance.as_deref().map_or("outside of the platform".to_owned(), escaped);
        let (seconds, answered) = (self.began.elapsed().as_secs(), self.answered());
        format!(
            "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>{greeting}</title>\n\
             <h1>{greeting}</h1>\n\
             <p>Instance {instance}, up for {seconds} s, {answered} requests answered.</p>\n</html>\n"
        )
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

pub(crate) fn serve(listener: &TcpListener, site: &Arc<Site>) {
    for stream in listener.incoming() {
        // A connection that broke before it began is nobody's loss; too many of them wait in the kernel.
        let Ok(stream) = stream else { continue };
        if site.open.load(Ordering::Relaxed) >= MOST_AT_ONCE {
            let _ = respond(stream, 503, "text/plain", "Too many visitors.\n", true);
            continue;
        }
        let site = site.clone();
        site.open.fetch_add(1, Ordering::Relaxed);
        thread::spawn(move || {
            let _ = visit(stream, &site);
            site.open.fetch_sub(1, Ordering::Relaxed);
        });
    }
}

fn visit(stream: TcpStream, site: &Site) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut head = BufReader::new(stream.try_clone()?.take(LONGEST_HEAD));
    let mut first = String::new();
    head.read_line(&mut first)?;
    // The rest of the head is read so that the answer is not lost to a reset.
    let mut line = String::new();
    while head.read_line(&mut line)? > 2 {
        line.clear();
    }
    let mut words = first.split_whitespace();
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (status, kind, body) = site.answer(method, path);
    respond(stream, status, kind, &body, method != "HEAD")
}

fn respond(mut stream: TcpStream, status: u16, kind: &str, body: &str, with_body: bool) -> io::Result<()> {
    let reason = match status {
        200 => "OK",
        404 => "Not Found",
        405 => "Method Not Allowed",
        _ => "Service Unavailable",
    };
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status} {reason}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{}",
        if with_body { body } else { "" }
    )?;
    stream.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(request: &str) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let site = Arc::new(Site::new("<Hi> & \"bye\"".to_owned(), Some("abc".to_owned())));
        thread::spawn(move || serve(&listener, &site));
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn the_page_greets_and_escapes() {
        let answer = ask("GET /?x=1 HTTP/1.1\r\nhost: x\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        assert!(answer.contains("<h1>&lt;Hi&gt; &amp; &quot;bye&quot;</h1>"), "{answer}");
        assert!(answer.contains("Instance abc") && answer.contains("1 requests answered"), "{answer}");
    }

    #[test]
    fn health_is_plain_and_everything_else_is_refused() {
        assert!(ask("GET /healthz HTTP/1.1\r\n\r\n").ends_with("\r\n\r\nok\n"));
        assert!(ask("HEAD /healthz HTTP/1.1\r\n\r\n").ends_with("\r\n\r\n"));
        assert!(ask("GET /etc/passwd HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404"));
        assert!(ask("POST / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405"));
    }
}
