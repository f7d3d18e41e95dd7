//! A file on its way to the platform.

use super::Stage;
use crate::artifacts::yard::Yard;
use crate::cli::Shell;

#[tokio::test(flavor = "multi_thread")]
async fn publishing() {
    let yard = Yard::new().await;
    let shell = Shell::at(yard.address, yard.http.acting("publisher").token());
    let files = ["first", "other", "third"].map(|words| {
        let file = shell.path(words);
        std::fs::write(&file, words).unwrap();
        file.display().to_string()
    });
    let words = |file| ["publish", "hello", "1.0.0", "--blob", file, "--name", "weights"];
    let [one, two, three] = &files;
    let stage = Stage::of(&shell);
    stage.well("publish", [&words(one), &words(two), &words(three)]).await;
    stage.badly("publish", [&["publish", "unheard-of", "1.0.0", "--blob", one]; 3]).await;
    yard.end().await;
}
