use std::time::Duration;

fn main() {
    let db = std::env::var("RELAY_DB").unwrap_or_else(|_| "relay.db".into());
    let endpoint = std::env::var("RELAY_ENDPOINT").expect("RELAY_ENDPOINT");
    let args: Vec<String> = std::env::args().collect();
    match args.get(1).map(String::as_str) {
        Some("init-db") => relay::create(&db, include_str!("schema.sql")),
        Some("submit") => {
            let count: u32 = args[2].parse().expect("a number");
            relay::submit(&db, count);
        }
        Some("work") => loop {
            relay::work(&db, &endpoint);
            std::thread::sleep(Duration::from_millis(250));
        },
        Some("purge") => relay::purge(&db),
        _ => std::process::exit(64),
    }
}
