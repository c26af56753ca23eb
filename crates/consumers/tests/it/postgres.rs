//! The outbox of PostgreSQL: nothing lost, order per partition, what happens at the start and at the end.
//! In: rows → out: publications, and rows that are left.
//! Uses a PostgreSQL per test. Never: sleeps.
//! A promise about outboxes is a test here.

use std::sync::Arc;
use std::time::Duration;

use fanwire_api::{Api, ApiOptions};
use fanwire_consumers::{ConsumerKind, ConsumerOptions};
use fanwire_node::{Node, NodeParts};
use fanwire_redis::{Address, Redis, RedisOptions};
use serde_json::json;
use tokio_postgres::{Client, NoTls};

use crate::harness::{
    Change, api, many, node_options, options, publications, start, stats, try_start, until,
    until_processed,
};
use crate::server::{CA, QueueServer};

pub(crate) async fn connect(server: &QueueServer) -> Client {
    let (client, connection) =
        tokio_postgres::connect(&server.dsn(), NoTls).await.expect("it is ready");
    tokio::spawn(connection);
    client
}

/// The SQL of the table and the trigger in docs/consumers.md.
pub(crate) fn table() -> &'static str {
    let page = include_str!("../../../../docs/consumers.md");
    let (_, block) = page.split_once("```sql outbox.sql\n").expect("a block of SQL");
    block.split_once("```").expect("it ends").0
}

/// A server with the table and the trigger of the documentation.
pub(crate) async fn outbox() -> (QueueServer, Client) {
    let server = QueueServer::postgres();
    let client = connect(&server).await;
    client.batch_execute(table()).await.expect("the table is made");
    (server, client)
}

pub(crate) fn consumer(server: &QueueServer, partitions: u32) -> ConsumerOptions {
    let mut options = options(ConsumerKind::Postgresql);
    options.postgresql.dsn = server.dsn().into();
    options.postgresql.outbox_table_name = "centrifugo_outbox".to_owned();
    options.postgresql.num_partitions = partitions;
    options.postgresql.partition_notification_channel = "centrifugo_partition_change".to_owned();
    options
}

/// Inserts rows `from` to `to - 1`, one partition after the other; each partition has a channel.
pub(crate) async fn insert(client: &Client, from: usize, to: usize, partitions: u32) {
    let sql = format!(
        "INSERT INTO centrifugo_outbox (method, payload, partition) \
         SELECT 'publish', jsonb_build_object('channel', 'c' || n % {partitions}, 'data', n, 'idempotency_key', n::text), \
         n % {partitions} FROM generate_series({from}, {to} - 1) AS n ORDER BY n"
    );
    client.batch_execute(&sql).await.expect("rows are inserted");
}

/// Compares the publications of each partition with its rows.
pub(crate) async fn check_all(api: &Api, count: usize, partitions: usize) {
    for partition in 0..partitions {
        let expected: Vec<_> = (partition..count).step_by(partitions).map(|n| json!(n)).collect();
        let found = publications(api, &format!("c{partition}")).await;
        assert_eq!(found.len(), expected.len());
        assert!(found == expected, "the order of partition {partition}");
    }
}

pub(crate) async fn rows(client: &Client) -> i64 {
    let counted = client.query_one("SELECT count(*) FROM centrifugo_outbox", &[]).await;
    counted.expect("rows are counted").get(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_or_repeated_when_consumers_are_killed_and_the_server_crashes() {
    let (mut server, mut client) = outbox().await;
    let (api, count) = (api(), many());
    insert(&client, 0, count, 2).await;
    let options = consumer(&server, 2);
    for part in [count / 4, count / 3] {
        let consumers = start(&options, &api).await;
        until_processed(&consumers, part as u64).await;
        drop(consumers); // in the middle of a transaction
        server.crash();
        server.restart();
        client = connect(&server).await;
    }
    let consumers = start(&options, &api).await;
    until("an empty table", async || rows(&client).await == 0).await;
    check_all(&api, count, 2).await;
    // The running consumer lives through a crash, too.
    server.crash();
    until("the loss is noticed", async || stats(&consumers).failure.is_some()).await;
    server.restart();
    client = connect(&server).await;
    insert(&client, count, count + 10, 2).await;
    until("an empty table", async || rows(&client).await == 0).await;
    check_all(&api, count + 10, 2).await;
    assert_eq!(stats(&consumers).failure, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_nodes_share_the_partitions_and_keep_their_order() {
    for use_try_lock in [false, true] {
        let (server, client) = outbox().await;
        let (api, count) = (api(), 4000);
        let mut options = consumer(&server, 4);
        options.postgresql.use_try_lock = use_try_lock;
        options.postgresql.partition_poll_interval = Duration::from_millis(1);
        let one = try_start(&options, &api, "node_1").await.expect("it starts");
        let other = try_start(&options, &api, "node_2").await.expect("it starts");
        for from in (0..count).step_by(100) {
            insert(&client, from, from + 100, 4).await;
        }
        let processed = || [stats(&one).processed, stats(&other).processed];
        until("all rows", async || processed().iter().sum::<u64>() >= count as u64).await;
        check_all(&api, count, 4).await;
        let [of_one, of_other] = processed();
        assert_eq!(of_one + of_other, count as u64, "nothing is delivered twice");
        assert!(of_one > 0 && of_other > 0, "{of_one} and {of_other}");
        assert_eq!(stats(&one).errors + stats(&other).errors, 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_cannot_be_executed_do_not_block_those_behind() {
    let (server, client) = outbox().await;
    let api = api();
    let sql = r#"INSERT INTO centrifugo_outbox (method, payload) VALUES
        ('publish', '{"data": 1}'),
        ('publish', '{"channel": "unknown:a", "data": 1}'),
        ('publish', '5'),
        ('history', '{"channel": "c0"}'),
        ('', '{"method": "publish", "payload": {"channel": "c0", "data": "ä"}}'),
        ('', '{"method": "publish", "payload": "{\"channel\": \"c0\", \"data\": 2}"}'),
        ('broadcast', '{"channels": ["c0", "c1"], "data": 3}');
        INSERT INTO centrifugo_outbox (method, payload) VALUES
        ('publish', jsonb_build_object('channel', 'c0', 'data', repeat('x', 17000000)));
        INSERT INTO centrifugo_outbox (method, payload, partition) VALUES ('publish', '{}', 1)"#;
    client.batch_execute(sql).await.expect("rows are inserted");
    let consumers = start(&consumer(&server, 1), &api).await;
    until_processed(&consumers, 8).await;
    assert_eq!(publications(&api, "c0").await, [json!("ä"), json!(2), json!(3)]);
    assert_eq!(publications(&api, "c1").await, [json!(3)]);
    let skipped = stats(&consumers).skipped.map(|(cause, count)| (cause.name(), count));
    let expected = [
        ("payload", 1),
        ("malformed", 1),
        ("method", 1),
        ("channels", 0),
        ("header", 0),
        ("refused", 2),
    ];
    assert_eq!(skipped, expected);
    // Rows of partitions that are not read stay.
    assert_eq!(rows(&client).await, 1);
}

/// Inserts rows without idempotency keys, which would hide repetitions.
async fn insert_plain(client: &Client, from: usize, to: usize) {
    let sql = format!(
        "INSERT INTO centrifugo_outbox (method, payload) \
         SELECT 'publish', jsonb_build_object('channel', 'c0', 'data', n) FROM generate_series({from}, {to} - 1) AS n ORDER BY n"
    );
    client.batch_execute(&sql).await.expect("rows are inserted");
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_cannot_be_deleted_are_executed_once_and_keep_no_others() {
    let first_rows = "payload->>'data' IN ('0', '1', '2', '3')";
    let by_trigger = format!(
        "CREATE FUNCTION keep() RETURNS TRIGGER AS $$ BEGIN RETURN NULL; END; $$ LANGUAGE plpgsql; \
         CREATE TRIGGER keep BEFORE DELETE ON centrifugo_outbox FOR EACH ROW WHEN (OLD.{first_rows}) EXECUTE FUNCTION keep()"
    );
    let by_foreign_key = format!(
        "CREATE TABLE audit (id bigint REFERENCES centrifugo_outbox); \
         INSERT INTO audit SELECT id FROM centrifugo_outbox WHERE {first_rows}"
    );
    let by_policy = format!(
        "ALTER TABLE centrifugo_outbox ENABLE ROW LEVEL SECURITY; CREATE POLICY a ON centrifugo_outbox FOR SELECT USING (true); \
         CREATE POLICY b ON centrifugo_outbox FOR DELETE USING (NOT {first_rows})"
    );
    for keep in [by_trigger, by_foreign_key, by_policy] {
        let (server, client) = outbox().await;
        let grant = "CREATE ROLE worker LOGIN; GRANT SELECT, DELETE ON centrifugo_outbox TO worker";
        client.batch_execute(grant).await.expect("a role");
        insert_plain(&client, 0, 10).await;
        client.batch_execute(&keep).await.expect("some rows are kept");
        let (api, mut options) = (api(), consumer(&server, 1));
        options.postgresql.dsn = server.dsn().replace("app@", "worker@").into();
        // Fewer than the rows that are kept.
        options.postgresql.partition_select_limit = 3;
        let consumers = start(&options, &api).await;
        until_processed(&consumers, 10).await;
        for from in (10..50).step_by(10) {
            insert_plain(&client, from, from + 10).await;
            until_processed(&consumers, from as u64 + 10).await;
        }
        check_all(&api, 50, 1).await;
        until("the others are deleted", async || rows(&client).await == 4).await;
        assert!(stats(&consumers).errors > 0);
        assert_eq!((stats(&consumers).processed, stats(&consumers).failure), (50, None));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_right_that_is_taken_away_repeats_nothing() {
    let (server, client) = outbox().await;
    let grant = "CREATE ROLE worker LOGIN; GRANT SELECT, DELETE ON centrifugo_outbox TO worker";
    client.batch_execute(grant).await.expect("a role");
    let (api, mut options) = (api(), consumer(&server, 1));
    options.postgresql.dsn = server.dsn().replace("app@", "worker@").into();
    let consumers = start(&options, &api).await;
    let revoke = "REVOKE DELETE ON centrifugo_outbox FROM worker";
    client.batch_execute(revoke).await.expect("a right less");
    for from in (0..50).step_by(10) {
        insert_plain(&client, from, from + 10).await;
        until_processed(&consumers, from as u64 + 10).await;
    }
    check_all(&api, 50, 1).await;
    assert_eq!((rows(&client).await, stats(&consumers).processed), (50, 50));
}

#[tokio::test(flavor = "multi_thread")]
async fn payloads_of_bytes_are_published() {
    let (server, client) = outbox().await;
    let sql = r#"ALTER TABLE centrifugo_outbox ALTER payload TYPE bytea USING convert_to(payload::text, 'UTF8');
        INSERT INTO centrifugo_outbox (method, payload) VALUES
        ('publish', convert_to('{"channel": "c0", "data": "' || repeat('ä', 500) || '"}', 'UTF8')),
        ('', convert_to('{"method": "publish", "payload": {"channel": "c0", "data": 2}}', 'UTF8')),
        ('publish', '\xff00'), ('publish', ''),
        ('publish', convert_to('{"channel": "c0", "data": 3}', 'UTF8'))"#;
    client.batch_execute(sql).await.expect("rows are inserted");
    let api = api();
    let consumers = start(&consumer(&server, 1), &api).await;
    until_processed(&consumers, 5).await;
    assert_eq!(publications(&api, "c0").await, [json!("ä".repeat(500)), json!(2), json!(3)]);
    let skipped = stats(&consumers).skipped.map(|(cause, count)| (cause.name(), count));
    assert!(skipped.contains(&("malformed", 2)), "{skipped:?}");
    drop(consumers);
    let sql =
        "ALTER TABLE centrifugo_outbox ALTER method TYPE bytea USING convert_to(method, 'UTF8')";
    client.batch_execute(sql).await.expect("a column of another type");
    let error = try_start(&consumer(&server, 1), &api, "a").await.expect_err("it is wrong");
    assert!(error.to_string().contains("the column method has the type bytea"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_wait_in_their_order_while_the_engine_is_down() {
    let (server, client) = outbox().await;
    let mut engine = QueueServer::redis();
    let address = Address { port: engine.port, ..Address::default() };
    let redis = RedisOptions { addresses: vec![address], ..RedisOptions::default() };
    let redis = Arc::new(Redis::start(&redis, &tokio::runtime::Handle::current()));
    let broker = redis.clone();
    let parts = NodeParts {
        presence: Some(redis),
        ..NodeParts::with_broker(move |deliver| {
            broker.deliver_to(deliver);
            broker
        })
    };
    let now = std::time::Instant::now();
    let node = Node::with_parts(node_options(), now, 1_700_000_000_000, parts);
    let api = Arc::new(Api::new(node.expect("valid options"), ApiOptions::default()));
    let consumers = start(&consumer(&server, 2), &api).await;
    insert(&client, 0, 1000, 2).await;
    until_processed(&consumers, 100).await;
    engine.crash();
    insert(&client, 1000, 2000, 2).await;
    until("commands fail", async || stats(&consumers).errors >= 6).await;
    assert!(rows(&client).await >= 1000);
    engine.restart();
    until("an empty table", async || rows(&client).await == 0).await;
    check_all(&api, 2000, 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_notification_wakes_a_partition_and_its_connection_comes_back() {
    let (server, client) = outbox().await;
    let api = api();
    let mut options = consumer(&server, 3);
    options.postgresql.partition_poll_interval = Duration::from_secs(24 * 3600);
    options.postgresql.partition_notification_dsn = server.dsn().into();
    let consumers = start(&options, &api).await;
    for round in 0..3 {
        let is_listening = "SELECT 1 FROM pg_stat_activity WHERE query LIKE 'LISTEN%'";
        until("LISTEN", async || {
            client.query(is_listening, &[]).await.is_ok_and(|rows| rows.len() == 1)
        })
        .await;
        insert(&client, round * 3, round * 3 + 3, 3).await;
        until_processed(&consumers, round as u64 * 3 + 3).await;
        let end =
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'";
        client.query(end, &[]).await.expect("the listener ends");
    }
    check_all(&api, 9, 3).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shutdown_in_the_middle_of_a_batch_leaves_the_rest_in_the_table() {
    let (server, client) = outbox().await;
    let (api, count) = (api(), 5000);
    insert(&client, 0, count, 1).await;
    let mut options = consumer(&server, 1);
    options.postgresql.partition_select_limit = 5000;
    let consumers = start(&options, &api).await;
    let published = async || publications(&api, "c0").await.len();
    until("the first publications", async || published().await > 0).await;
    consumers.stop(Duration::from_secs(10)).await;
    let (published, left) = (published().await, rows(&client).await as usize);
    assert_eq!(published + left, count);
    assert_eq!(stats(&consumers).processed as usize, published);
    let _rest = start(&options, &api).await;
    until("an empty table", async || rows(&client).await == 0).await;
    check_all(&api, count, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_that_cannot_succeed_names_consumer_and_key() {
    let (server, client) = outbox().await;
    let sql = "CREATE TABLE other (id int); CREATE ROLE reader LOGIN; GRANT SELECT ON centrifugo_outbox TO reader; \
        CREATE ROLE standby LOGIN; ALTER ROLE standby SET default_transaction_read_only = on; \
        GRANT SELECT, DELETE ON centrifugo_outbox TO standby";
    client.batch_execute(sql).await.expect("more tables");
    let cases: [(&str, Change<'_>, &str); 6] = [
        ("dsn", &|it| it.postgresql.dsn = "postgres://app@127.0.0.1:1/x".into(), "refused"),
        (
            "dsn",
            &|it| it.postgresql.dsn = server.dsn().replace("app@", "stranger@").into(),
            "role \"stranger\" does not exist",
        ),
        (
            "outbox_table_name",
            &|it| it.postgresql.outbox_table_name = "missing".into(),
            "relation \"missing\" does not exist",
        ),
        (
            "outbox_table_name",
            &|it| it.postgresql.outbox_table_name = "other".into(),
            "column \"method\" does not exist",
        ),
        (
            "outbox_table_name",
            &|it| it.postgresql.dsn = server.dsn().replace("app@", "reader@").into(),
            "permission denied",
        ),
        (
            "outbox_table_name",
            &|it| it.postgresql.dsn = server.dsn().replace("app@", "standby@").into(),
            "read-only transaction",
        ),
    ];
    for (key, change, why) in cases {
        let mut options = consumer(&server, 1);
        change(&mut options);
        let error = try_start(&options, &api(), "a").await.expect_err("it is wrong").to_string();
        let begin = format!("consumers[the_queue].postgresql.{key}: ");
        assert!(error.starts_with(&begin) && error.contains(why), "{error}");
    }
}

/// `FANWIRE_LAG=1000 cargo test -p fanwire-consumers --release -- lag --nocapture` prints how late 10 s of so many rows per second
/// are, and the CPU of the consumer for each.
#[tokio::test(flavor = "multi_thread")]
async fn the_lag_of_rows_with_notifications_is_short() {
    let rate: usize =
        std::env::var("FANWIRE_LAG").ok().and_then(|it| it.parse().ok()).unwrap_or(200);
    let (server, client) = outbox().await;
    let api = api();
    // Threads of its own, whose CPU is read below.
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(1).thread_name(THREAD).enable_all().build();
    let runtime = runtime.expect("a runtime");
    let (options, its_api) = (consumer(&server, 1), api.clone());
    let starting = runtime.spawn(async move { start(&options, &its_api).await });
    let consumers = starting.await.expect("it starts");
    let (seconds, mut ticks) = (
        if rate > 200 { 10 } else { 1 },
        tokio::time::interval(Duration::from_secs(1) / rate as u32),
    );
    let insert = client
        .prepare("INSERT INTO centrifugo_outbox (method, payload) SELECT 'publish', jsonb_build_object('channel', 'c0', 'data', extract(epoch FROM clock_timestamp()))")
        .await
        .expect("a statement");
    let (observer, mut lags, mut seen) = (connect(&server).await, Vec::new(), 0);
    let observed = async {
        while seen < rate * seconds {
            let now: f64 = observer
                .query_one("SELECT extract(epoch FROM clock_timestamp())::float8", &[])
                .await
                .expect("a time")
                .get(0);
            let all = publications_from(&api, seen as u64).await;
            lags.extend(all.iter().map(|sent| now - sent));
            seen += all.len();
        }
    };
    let inserted = async {
        for _ in 0..rate * seconds {
            ticks.tick().await;
            client.execute(&insert, &[]).await.expect("a row");
        }
    };
    tokio::join!(inserted, observed);
    lags.sort_by(f64::total_cmp);
    let at = |share: f64| lags[((lags.len() - 1) as f64 * share) as usize] * 1000.0;
    println!(
        "{} rows at {rate}/s: p50 {:.1} ms, p99 {:.1} ms, max {:.1} ms; CPU {:.0} µs each",
        lags.len(),
        at(0.5),
        at(0.99),
        at(1.0),
        cpu_us(THREAD) / lags.len() as f64
    );
    assert!(stats(&consumers).errors == 0 && lags.len() >= rate * seconds);
    runtime.shutdown_background();
}

/// CPU time of the threads of a name in µs (schedstat of Linux).
fn cpu_us(thread: &str) -> f64 {
    let threads = std::fs::read_dir("/proc/self/task").expect("a list of threads").flatten();
    let times = threads.map(|it| it.path()).filter_map(|path| {
        let name = std::fs::read_to_string(path.join("comm")).ok()?;
        let times = std::fs::read_to_string(path.join("schedstat")).ok()?;
        let first = times.split(' ').next()?.parse::<f64>().ok()?;
        (name.trim_end() == thread).then_some(first / 1e3)
    });
    times.sum()
}

const THREAD: &str = "its_consumer";

/// The data of publications behind an offset.
async fn publications_from(api: &Api, offset: u64) -> Vec<f64> {
    let request =
        json!({"channel": "c0", "limit": -1, "since": {"offset": offset, "epoch": ""}}).to_string();
    let command = fanwire_api::Method::History.decode(&request).expect("a request");
    let Ok(outcome) = api.run(command).await else { return Vec::new() };
    let result = serde_json::to_value(outcome).expect("JSON");
    let all = result["history"]["publications"].as_array().expect("a list");
    all.iter().filter_map(|one| one["data"].as_f64()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_use_tls_and_check_the_certificate_as_the_dsn_says() {
    let server = QueueServer::postgres_with_tls();
    let client = connect(&server).await;
    client.batch_execute(table()).await.expect("the table is made");
    let api = api();
    let mut options = consumer(&server, 1);
    let dsn = format!("postgres://app@localhost:{}/postgres", server.port);
    options.postgresql.dsn = format!("{dsn}?sslmode=verify-full&sslrootcert={CA}").into();
    let consumers = start(&options, &api).await;
    insert(&client, 0, 10, 1).await;
    until("an empty table", async || rows(&client).await == 0).await;
    check_all(&api, 10, 1).await;
    let encrypted = "SELECT count(*) FROM pg_stat_ssl WHERE ssl";
    let counted = client.query_one(encrypted, &[]).await.expect("a count");
    assert!(counted.get::<_, i64>(0) > 0, "no connection of the consumer is encrypted");
    drop(consumers);
    // An unknown authority, and then the name of another server.
    options.postgresql.dsn = format!("{dsn}?sslmode=verify-full").into();
    for cause in ["UnknownIssuer", "db.example.com"] {
        let error = try_start(&options, &api, "node_1").await.expect_err("it is refused");
        assert!(error.to_string().contains(cause), "{error}");
        options.postgresql.tls.enabled = true;
        options.postgresql.tls.server_ca_pem = CA.to_owned();
        options.postgresql.tls.server_name = "db.example.com".to_owned();
    }
}
