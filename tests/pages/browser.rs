//! A real browser without a window or a network, spoken to over pipes: opens pages, points, presses keys, and keeps what
//! it complained of.

use serde_json::{Value, json};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Longer than this no answer takes.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) struct Browser {
    child: Child,
    to: File,
    from: Receiver<Value>,
    last: u64,
    session: String,
    heard: VecDeque<Value>,
    _profile: TempDir,
}

/// How a page is looked at.
#[derive(Clone, Copy)]
pub(super) struct Looked {
    pub width: u32,
    pub is_dark: bool,
}

pub(super) const DESK: Looked = Looked { width: 1280, is_dark: false };

/// The browser of this machine.
pub(super) fn program() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome"];
    std::env::split_paths(&path)
        .find_map(|folder| names.iter().map(|name| folder.join(name)).find(|path| path.is_file()))
}

const TWO_FRAMES: &str =
    "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))";

/// Whether there is no answer because the page is just being left.
fn is_left(error: &Value) -> bool {
    error["message"].as_str().is_some_and(|text| text.contains("navigated"))
}

impl Browser {
    pub(super) fn start() -> Browser {
        let program = program().expect("a browser, as the tests that need one are ignored without");
        let profile = tempfile::tempdir().expect("a folder");
        let pipe = |name: &str| {
            let path = profile.path().join(name);
            let made = Command::new("mkfifo").arg(&path).status().expect("mkfifo starts");
            assert!(made.success(), "no pipe: {}", path.display());
            path
        };
        let (to, from) = (pipe("to"), pipe("from"));
        let child = Command::new("bash")
            .args(["-c", "exec 3<\"$1\" 4>\"$2\"; shift 2; exec \"$@\"", "bash"])
            .args([&to, &from, &program])
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
            .args(["--disable-background-networking", "--disable-dev-shm-usage"])
            // No name is known: nothing can be asked for elsewhere.
            .args(["--host-resolver-rules=MAP * ~NOTFOUND", "--remote-debugging-pipe"])
            .arg(format!("--user-data-dir={}", profile.path().join("profile").display()))
            .arg("about:blank")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("bash starts");
        // Open for both, so that neither waits for a browser that did not start.
        let to = File::options().read(true).write(true).open(to).expect("opened");
        let (say, heard) = channel();
        thread::spawn(move || {
            let Ok(mut from) = File::open(from) else { return };
            let (mut bytes, mut part) = (Vec::new(), vec![0; 1 << 16]);
            while let Ok(count @ 1..) = from.read(&mut part) {
                bytes.extend_from_slice(&part[..count]);
                while let Some(end) = bytes.iter().position(|byte| *byte == 0) {
                    let message: Vec<u8> = bytes.drain(..=end).collect();
                    let Ok(message) = serde_json::from_slice(&message[..end]) else { return };
                    if say.send(message).is_err() {
                        return;
                    }
                }
            }
        });
        let mut browser = Browser {
            child,
            to,
            from: heard,
            last: 0,
            session: String::new(),
            heard: VecDeque::new(),
            _profile: profile,
        };
        let target = browser.ask("Target.createTarget", json!({"url": "about:blank"}));
        let attached =
            browser.ask("Target.attachToTarget", json!({"targetId": target["targetId"], "flatten": true}));
        browser.session = attached["sessionId"].as_str().expect("a session").to_owned();
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.ask(&format!("{domain}.enable"), json!({}));
        }
        browser
    }

    /// The answer; what happens meanwhile is kept.
    pub(super) fn ask(&mut self, method: &str, params: Value) -> Value {
        self.try_ask(method, params).unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    /// The answer, or the browser's error.
    fn try_ask(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        self.last += 1;
        let mut message = json!({"id": self.last, "method": method, "params": params});
        if !self.session.is_empty() {
            message["sessionId"] = json!(self.session);
        }
        let mut bytes = serde_json::to_vec(&message).expect("json");
        bytes.push(0);
        self.to.write_all(&bytes).expect("the browser listens");
        loop {
            let heard = self.from.recv_timeout(PATIENCE);
            let heard = heard.unwrap_or_else(|why| panic!("no answer to {method}: {why}"));
            if heard["id"] == json!(self.last) {
                return if heard["error"].is_null() {
                    Ok(heard["result"].clone())
                } else {
                    Err(heard["error"].clone())
                };
            }
            self.heard.push_back(heard);
        }
    }

    /// Opens a page and waits until all of it is there; how long that took.
    pub(super) fn open(&mut self, page: &Path, looked: Looked) -> Duration {
        self.ask(
            "Emulation.setDeviceMetricsOverride",
            json!({"width": looked.width, "height": 900, "deviceScaleFactor": 1, "mobile": looked.width < 600}),
        );
        let scheme = if looked.is_dark { "dark" } else { "light" };
        self.ask(
            "Emulation.setEmulatedMedia",
            json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]}),
        );
        self.heard.clear();
        let began = Instant::now();
        let page = page.canonicalize().expect("a page");
        self.ask("Page.navigate", json!({"url": format!("file://{}", page.display())}));
        self.wait("document.documentElement?.dataset.ready === 'true'");
        // Drawn, and not only ready to be.
        self.eval(TWO_FRAMES);
        began.elapsed()
    }

    pub(super) fn eval(&mut self, script: &str) -> Value {
        self.try_eval(script).unwrap_or_else(|error| panic!("{script}: {error}"))
    }

    fn try_eval(&mut self, script: &str) -> Result<Value, Value> {
        let asked = json!({"expression": script, "awaitPromise": true, "returnByValue": true});
        let answer = self.try_ask("Runtime.evaluate", asked)?;
        assert!(answer["exceptionDetails"].is_null(), "{script}: {}", answer["exceptionDetails"]);
        Ok(answer["result"]["value"].clone())
    }

    pub(super) fn text(&mut self, script: &str) -> String {
        self.eval(script).as_str().unwrap_or_else(|| panic!("no text: {script}")).to_owned()
    }

    #[track_caller]
    pub(super) fn wait(&mut self, condition: &str) {
        let began = Instant::now();
        loop {
            match self.try_eval(condition) {
                Ok(Value::Bool(true)) => return,
                // The next page is asked.
                Err(error) if !is_left(&error) => panic!("{condition}: {error}"),
                _ => {}
            }
            assert!(began.elapsed() < PATIENCE, "never so: {condition}");
            thread::sleep(Duration::from_millis(10));
        }
    }

    pub(super) fn point(&mut self, x: f64, y: f64) {
        self.ask("Input.dispatchMouseEvent", json!({"type": "mouseMoved", "x": x, "y": y}));
        self.next_frame();
    }

    /// Turned towards the reader, at this place.
    pub(super) fn wheel(&mut self, x: f64, y: f64) {
        let turn = json!({"type": "mouseWheel", "x": x, "y": y, "deltaX": 0, "deltaY": -120});
        self.ask("Input.dispatchMouseEvent", turn);
        self.next_frame();
    }

    /// In the middle of the first element of this kind, which is brought to where it can be seen.
    pub(super) fn click(&mut self, selector: &str) {
        let place = self.eval(&format!(
            "(() => {{ const it = document.querySelector({selector:?}); it.scrollIntoView({{block: 'center'}}); \
             const box = it.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]; }})()"
        ));
        for kind in ["mousePressed", "mouseReleased"] {
            let click =
                json!({"type": kind, "x": place[0], "y": place[1], "button": "left", "clickCount": 1});
            self.ask("Input.dispatchMouseEvent", click);
        }
        self.next_frame();
    }

    /// `Tab`, `ArrowRight`, or a letter.
    pub(super) fn press(&mut self, key: &str) {
        let mut down = json!({"type": "keyDown", "key": key});
        if key.chars().count() == 1 {
            down["text"] = json!(key);
        } else {
            down["code"] = json!(key);
        }
        if key == "Tab" {
            down["windowsVirtualKeyCode"] = json!(9);
        }
        self.ask("Input.dispatchKeyEvent", down);
        self.ask("Input.dispatchKeyEvent", json!({"type": "keyUp", "key": key}));
        self.next_frame();
    }

    /// Types into what is chosen by this, in place of what stood there.
    pub(super) fn write(&mut self, selector: &str, text: &str) {
        self.eval(&format!("document.querySelector({selector:?}).select(), true"));
        self.eval(&format!("document.querySelector({selector:?}).focus(), true"));
        self.ask("Input.insertText", json!({"text": text}));
        self.next_frame();
    }

    /// A click may have left the page, which then draws none.
    fn next_frame(&mut self) {
        if let Err(error) = self.try_eval(TWO_FRAMES) {
            assert!(is_left(&error), "{TWO_FRAMES}: {error}");
        }
    }

    /// All that a page does wrong since it was opened: errors, what its policy refused, requests to elsewhere.
    pub(super) fn complaints(&mut self) -> Vec<String> {
        self.eval("true");
        let reported = self.heard.iter().filter_map(|event| {
            let params = &event["params"];
            match event["method"].as_str()? {
                "Log.entryAdded" => Some(params["entry"]["text"].to_string()),
                "Runtime.exceptionThrown" => Some(params["exceptionDetails"].to_string()),
                "Runtime.consoleAPICalled" => Some(params["args"].to_string()),
                "Network.requestWillBeSent" => {
                    let url = params["request"]["url"].as_str().unwrap_or_default();
                    (!url.starts_with("file:")).then(|| format!("asked for: {url}"))
                }
                _ => None,
            }
        });
        reported.collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
