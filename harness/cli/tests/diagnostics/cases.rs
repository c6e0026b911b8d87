//! The cases: files in an empty folder, and what a shell does there.

/// What a user does, and the code that the program answers with.
pub(crate) struct Case {
    /// The code that is met. A case may show others beside it.
    pub(crate) code: &'static str,
    /// Files by name.
    pub(crate) files: &'static [(&'static str, &'static [u8])],
    /// Commands of a shell.
    pub(crate) script: &'static str,
}

/// A case with these files.
const fn case(
    code: &'static str,
    files: &'static [(&'static str, &'static [u8])],
    script: &'static str,
) -> Case {
    Case { code, files, script }
}

/// A case with a configuration that is read and goes no further.
macro_rules! config {
    ($code:literal, $text:expr) => {
        case($code, &[("killpoint.toml", $text.as_bytes())], "killpoint run --scenario no-such-scenario")
    };
}

/// A case with a command line alone.
macro_rules! words {
    ($code:literal, $script:literal) => {
        case($code, &[], $script)
    };
}

/// A worker that sends two messages.
const WORKER: &[u8] = br#"
import http.client, json, os, sys
for number in (1, 2):
    connection = http.client.HTTPConnection(os.environ["PROVIDER_URL"].split("//")[1], timeout=10)
    body = json.dumps({"to": "ann@example.com", "body": "hello", "ref": "a%d" % number})
    connection.request("POST", "/v1/messages", body, {"Idempotency-Key": "k%d" % number})
    connection.getresponse().read()
"#;

/// A run of `worker.py`, whose configuration goes on with this.
macro_rules! run_of {
    ($code:literal, $more:literal) => {
        case(
            $code,
            &[
                ("worker.py", WORKER),
                (
                    "killpoint.toml",
                    concat!(
                        "[worker]\ncommand = [\"python3\", \"worker.py\"]\n",
                        "env = { PROVIDER_URL = \"{provider.rest}\", STATE_DIR = \"{state}\" }\n",
                        $more
                    )
                    .as_bytes(),
                ),
            ],
            WARNINGS,
        )
    };
}

/// The warnings of a run as its record has them.
const WARNINGS: &str = r#"killpoint run --run-dir run > /dev/null 2>&1; python3 -c 'import json; print(*json.load(open("run/run.json"))["warnings"], sep="\n")'"#;

/// Every case, by code.
pub(crate) const CASES: &[Case] = &[
    // A configuration or a scenario.
    config!("syntax", "[worker\ncommand = [\"true\"]\n"),
    config!("syntax", "[worker]\ncommand = [\"true]\n"),
    config!("syntax", "[worker]\ncommand = python3 worker.py\n"),
    case("syntax", &[], "python3 -c \"print('a = ' + '[' * 10000 + ']' * 10000)\" > killpoint.toml; killpoint run"),
    case("syntax", &[], "python3 -c \"print('[' + 'a.' * 10000 + 'a]')\" > killpoint.toml; killpoint run"),
    config!("unknown-key", "[worker]\r\n\tcomand = [\"true\"]\r\n\r\n[sweeep]\r\n"),
    config!("unknown-key", "\u{feff}workr = 1\r\n[worker]\r\ncommand = [\"true\"]\r\n"),
    config!("missing-key", ""),
    config!("missing-key", "[worker]\ncwd = \".\"\n[ledger]\n"),
    case("missing-key", &[("empty.toml", b"")], "killpoint demo --scenario empty.toml"),
    config!("wrong-type", "actions = [1]\nprovider = \"rest\"\n[worker]\ncommand = \"python3 'worker.py' run\"\nrestarts-max = \"3\"\nenv = [\"A=1\"]\n"),
    config!("wrong-type", "[worker]\ncommand = [\"true\"]\n[settle]\ndeadline = 30\n[checks]\nattempts-max = 1.5\n[provider]\nidempotency = { dedupe = \"yes\" }\n"),
    case(
        "wrong-type",
        &[],
        "python3 -c \"print('[worker]\\ncommand = [\\\"' + 'x' * 300000 + '\\\", 5]')\" > killpoint.toml; killpoint run",
    ),
    config!("unknown-word", "promise = \"exactly-one\"\n[worker]\ncommand = [\"true\"]\nlifecycle = \"run-forever\"\n[provider]\ndialect = \"rset\"\n[ledger]\npath = \"{state}/l.db\"\nquery = \"select 1\"\nstates = { done = \"confirmd\" }\n"),
    config!("unknown-word", "[worker]\ncommand = [\"true\"]\n[sweep]\nplans = [\"drop-after-acept\"]\n[boundaries]\nitem-claimd = \"mark:x\"\n"),
    case(
        "unknown-word",
        &[("mine.toml", b"name = \"mine\"\nsummary = \"s\"\nkind = \"K99\"\nneeds = [\"ledgr\"]\n[[fault]]\nat = \"provider:committed#1\"\ndo = \"kil\"\n")],
        "killpoint demo --scenario mine.toml",
    ),
    config!("empty-value", "[worker]\ncommand = []\n[state]\nenqueue = [\"\"]\n"),
    config!("bad-text", "[worker]\ncommand = [\"a\\u0000b\"]\n[metrics]\nurl = \"https://metrics.example.com\"\n"),
    config!("bad-duration", "[worker]\ncommand = [\"true\"]\n[settle]\ndeadline = \"1.5s\"\nquiet = \"soon\"\n"),
    config!("out-of-range", "actions = -1\n[worker]\ncommand = [\"true\"]\nrestarts-max = 99999999999999999999\nrestart-delay = \"100h\"\n"),
    config!("bad-pointer", "[worker]\ncommand = [\"true\"]\n[provider]\nrecipient = \"message.to\"\n"),
    config!("bad-boundary", "[worker]\ncommand = [\"true\"]\n[sweep]\nboundaries = [\"provider:comitted#1\", \"provider:committed#0\", \"ledger:confirmed\", \"prvider:committed\", \"\"]\n"),
    config!("bad-plan", "[worker]\ncommand = [\"true\"]\n[[provider.rule]]\nplan = { commit = \"later\", reply = \"status(200)\", visible = \"nwo\" }\n"),
    config!("bad-environment", "[worker]\ncommand = [\"true\"]\n[worker.env]\n1A = \"x\"\nKILLPOINT_X = \"x\"\n"),
    config!("unknown-template", "[worker]\ncommand = [\"true\", \"{stat}\", \"{provider.smtp}\", \"{home}\"]\n[ledger]\npath = \"{copy}/l.db\"\npreset = \"jobs\"\n"),
    config!("unknown-template", "[worker]\ncommand = [\"true\", \"{state/l.db\"]\n"),
    config!("duplicate", "[worker]\ncommand = [\"true\"]\ncommand = [\"true\"]\n"),
    config!("duplicate", "[worker]\ncommand = [\"true\"]\n[[action]]\nid = \"a\"\nto = [\"x\", \"x\"]\nbody = \"b\"\n[[action]]\nid = \"a\"\nto = \"y\"\nbody = \"b\"\n"),
    config!("conflict", "actions = 1\n[worker]\ncommand = [\"true\"]\n[ledger]\npath = \"{state}/l.db\"\npreset = \"jobs\"\nquery = \"select 1\"\n[[action]]\nid = \"a\"\nto = \"x\"\nbody = \"b\"\n"),
    config!("never-settles", "[worker]\ncommand = [\"true\"]\nlifecycle = \"runs-forever\"\n[settle]\nby = \"exit\"\n"),
    case("nothing-injected", &[("mine.toml", b"name = \"mine\"\nsummary = \"s\"\n")], "killpoint demo --scenario mine.toml"),
    config!("unused-key", "[worker]\ncommand = [\"true\"]\n[settle]\nquiet = \"1s\"\n"),
    config!("ledger-outside-state", "[worker]\ncommand = [\"true\"]\n[ledger]\npath = \"ledger.db\"\npreset = \"jobs\"\n"),
    config!("state-outside", "[worker]\ncommand = [\"worker\", \"--db=/var/app.db\"]\nenv = { CACHE = \"sqlite:///tmp/cache.sqlite\" }\n"),
    config!("no-actions", "[worker]\ncommand = [\"true\"]\n[state]\nenqueue = [\"enqueue\", \"{actions}\"]\n"),
    // What the fault-free trial shows.
    run_of!(
        "boundary-not-reached",
        "[sweep]\nplans = []\nboundaries = [\"provider:committed#7\", \"mark:claimed\"]\n"
    ),
    run_of!("hits-left-out", "[sweep]\nplans = []\nhits-per-series = 1\n"),
    // A run, or a stored one.
    words!("unknown-boundary", "killpoint demo --boundary provider:comitted#1"),
    words!("unknown-boundary", "killpoint demo --boundary provider:committed#0"),
    words!("unknown-scenario", "killpoint demo --scenario late-acept"),
    words!("unknown-scenario", "killpoint demo --scenario mine.toml"),
    words!("bad-depth", "killpoint demo --time 60s"),
    words!("bad-depth", "killpoint demo --depth 2 --scenario late-accept"),
    words!("bad-depth", "killpoint demo --depth 2 --shard 1/2"),
    words!("bad-baseline", "killpoint demo --baseline known.toml --update-baseline --shard 1/2"),
    case(
        "bad-parameter",
        &[("mine.toml", b"name = \"mine\"\nsummary = \"s\"\n[[fault]]\nat = \"provider:committed#1\"\ndo = \"stop\"\nwith = { fro = \"2s\" }\n")],
        "killpoint demo --scenario mine.toml --run-dir run > /dev/null 2> err; code=$?; grep -A3 '^error' err; exit $code",
    ),
    words!(
        "too-many-regressions",
        "mkdir -p killpoint/regressions; seq -f killpoint/regressions/%g.toml 1001 | xargs touch; printf '[worker]\\ncommand = [\"true\"]\\n' > killpoint.toml; killpoint run 2> err; code=$?; grep -A9 '^error' err; exit $code"
    ),
    case(
        "setup-failed",
        &[("killpoint.toml", b"[worker]\ncommand = [\"./no-such-worker\"]\n")],
        "killpoint run --run-dir run > /dev/null 2> err; code=$?; grep -A3 '^error' err; exit $code",
    ),
    case("unusable-file", &[("run/precious", b"")], "killpoint demo --run-dir run"),
    case("unusable-file", &[("file", b"")], "killpoint demo --run-dir file/run"),
    words!(
        "shards-apart",
        "for n in 2 3; do killpoint demo --boundary provider:committed#1 --shard 1/$n --run-dir $n > /dev/null 2>&1; done; killpoint merge 2 3"
    ),
    words!("bad-run", "killpoint check nowhere"),
    case("bad-run", &[("run.json", b"{}")], "killpoint report ."),
    case("bad-run", &[("run.json", b"{\"format\": \"killpoint-run\", \"version\": [99, 0]}")], "killpoint report ."),
    case("bad-run", &[("run.json", b"{\"format\": \"killpoint-run\", \"version\": [1, 0], \"trials\": {}}")], "killpoint report ."),
    case("bad-run", &[("run.json", b"{\"format\": \"killpoint-run\", \"vers")], "killpoint check ."),
    words!("unreadable-file", "killpoint run"),
    case("unreadable-file", &[("killpoint.toml", b"")], "killpoint run --config kilpoint.toml"),
    words!("unreadable-file", "mkdir config; killpoint run --config config"),
    words!("unreadable-file", "touch file; killpoint run --config file/killpoint.toml"),
    case("not-utf-8", &[("killpoint.toml", b"[worker]\r\ncommand = [\"caf\xe9\"]\r\n")], "killpoint run"),
    case("not-utf-8", &[("mine.toml", b"\xff\xfen\x00a\x00")], "killpoint demo --scenario mine.toml"),
    words!("file-too-large", "python3 -c \"print('a = 1\\n' * 2000000)\" > killpoint.toml; killpoint run"),
    words!("file-too-large", "killpoint run --config /dev/zero"),
    // The command line.
    words!("usage", "killpoint demmo"),
    words!("usage", "killpoint run --scenaro late-accept"),
    words!("usage", "killpoint run --jobs 0"),
    words!("usage", "killpoint run --jobs many"),
    words!("usage", "killpoint run --depth 3"),
    words!("usage", "killpoint run --shard 3/2"),
    words!("usage", "killpoint run --time 60"),
    words!("usage", "killpoint run --strategy swep"),
    words!("usage", "killpoint report"),
    words!("usage", "killpoint explore --demo --config killpoint.toml"),
    words!("usage", "killpoint completions bsh"),
    words!("unknown-name", "killpoint explain no-lost-actoin"),
    words!("unknown-name", "killpoint explain 'what is this'"),
    words!("unknown-kind", "killpoint list fault"),
    words!("unknown-bug", "killpoint demo --bug blind-resnd"),
    words!("unknown-profile", "killpoint demo --profile restart-save"),
    words!("unknown-format", "killpoint demo --report jsn=report.json"),
    words!("bad-report", "killpoint demo --report report.json"),
    words!(
        "real-surroundings",
        "export STRIPE_API_KEY=sk_live_0123456789abcdefghijklmn; killpoint run --run-dir run -- ./no-such-worker 2> err; code=$?; grep -A3 '^warning' err; exit $code"
    ),
    case("file-exists", &[("killpoint.toml", b"")], "killpoint init --yes"),
    words!("nobody-to-ask", "killpoint init < /dev/null"),
    words!("no-project", "killpoint init nowhere --yes"),
    words!("no-worker", "killpoint init --yes > /dev/null"),
    words!("bad-token", "killpoint replay kp1:AAAA"),
    words!("bad-token", "killpoint replay kp9:AAAA"),
    words!("bad-token", "killpoint replay mine.toml"),
    words!("no-baseline", "killpoint demo --baseline known.toml"),
    words!("two-workers", "killpoint run --config killpoint.toml -- true"),
    words!("two-strategies", "killpoint demo --scenario late-accept --boundary provider:committed"),
    words!("two-strategies", "killpoint demo --profile restart-safe --strategy sweep"),
    words!("no-folder", "mkdir gone; cd gone; rmdir ../gone; killpoint run -- true"),
    words!("mark-failed", "KILLPOINT_SOCKET=nowhere killpoint mark item-claimed"),
    words!("mark-failed", "KILLPOINT_SOCKET=nowhere killpoint mark 'item claimed'"),
    case("provider-failed", &[("script.json", b"{}")], "killpoint provider --script script.json"),
    case("provider-failed", &[("script.json", b"[{\"id\": \"a\", \"plan\": \"x\"}]")], "killpoint provider --script script.json"),
    words!("provider-failed", "killpoint provider --script script.json"),
    words!(
        "report-unwritten",
        "killpoint demo --boundary provider:committed#1 --run-dir run > /dev/null 2>&1; killpoint report run --report json=nowhere/report.json > /dev/null"
    ),
    words!("file-unwritten", "touch file; killpoint man --out file/man1"),
    words!("output-unwritten", "killpoint list > /dev/full"),
];
