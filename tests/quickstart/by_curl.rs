//! `docs/quickstart-curl.md`, executed. Between its commands, what it only promises.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use serde_json::json;

use super::Beginning;
use super::blocks::{Block, blocks};
use super::image::{image, page};

#[tokio::test(flavor = "multi_thread")]
async fn the_quickstart_works_as_it_is_written() {
    let Beginning { engine, folder: _folder, dev, mut shell } = Beginning::new().await;
    assert_eq!(dev.ready["driver"], "docker");
    assert_eq!(engine.leftovers(), Vec::<String>::new(), "hello's own tests left nothing");
    for step in ["Step 1", "Step 2", "Step 3", "Step 4", "Step 4a", "Step 5", "Step 6", "Step 6a", "Step 6b"]
    {
        shell.step(step);
    }
    let good = shell.variables["ARTIFACT_ID"].clone();
    shell.until_running();
    let url = shell.answer["endpoints"][0]["url"].as_str().unwrap().to_owned();
    assert!(page(&url).unwrap().contains("first"), "the image that the version was staged with");

    // An image that cannot start, published as the page says.
    image(&shell.folder.join("hello-image"), "broken", false);
    shell.step("Step 6a");
    let watch = Watch::over(&url);
    let [upgrade, rollback, decommission, record] = <[Block; 4]>::try_from(blocks("Step 8")).ok().unwrap();
    let failed = shell.run(&upgrade.commands);
    assert_eq!(
        (&failed["status"], &failed["workflow"]["status"]),
        (&json!("running"), &json!("compensated"))
    );
    assert_eq!(failed["last_operation"]["status"], "failed", "{failed:#}");
    assert_eq!(watch.missed(), 0, "the old one never stopped answering");

    shell.variables.insert("ARTIFACT_ID".to_owned(), good);
    shell.does(&upgrade);
    assert!(page(&shell.url()).unwrap().contains("second"));
    shell.does(&rollback);
    assert!(page(&shell.url()).unwrap().contains("first"));

    let ended = shell.does(&decommission);
    let again = shell.does(&decommission);
    assert_eq!(again["workflow"]["id"], ended["workflow"]["id"], "twice is one teardown");
    shell.does(&record);
    shell.step("Step 9");
    let records = shell.answer["items"].as_array().expect("records").clone();
    for field in ["org_id", "project_id", "app_instance_id", "usage_source", "operating_mode"] {
        assert!(records.iter().all(|record| record[field].is_string()), "{field}: {:#}", shell.answer);
    }
    shell.step("Step 10");
    assert_eq!(engine.leftovers(), Vec::<String>::new(), "nothing of any instance is left");
    dev.stop();
    assert_eq!(engine.reserve(), Vec::<String>::new(), "nothing at all is");
}

/// Asks an address again and again, and counts when nobody answers.
struct Watch {
    ends: Arc<AtomicBool>,
    asking: JoinHandle<u32>,
}

impl Watch {
    fn over(url: &str) -> Watch {
        let ends = Arc::new(AtomicBool::new(false));
        let (url, over) = (url.to_owned(), Arc::clone(&ends));
        let asking = thread::spawn(move || {
            let mut missed = 0;
            while !over.load(Ordering::SeqCst) {
                missed += u32::from(page(&url).is_none());
            }
            missed
        });
        Watch { ends, asking }
    }

    fn missed(self) -> u32 {
        self.ends.store(true, Ordering::SeqCst);
        self.asking.join().unwrap()
    }
}
