//! The outbox behind PgBouncer in transaction mode, with notifications from the database itself.
//! In: rows → out: publications; nothing lost when PgBouncer is restarted.
//! Uses a PostgreSQL and a PgBouncer per test. Never: sleeps.
//! What does not depend on PgBouncer is tested in `postgres`.

use crate::harness::{api, start, stats, until};
use crate::postgres::{check_all, consumer, insert, outbox, rows};
use crate::server::QueueServer;

#[tokio::test(flavor = "multi_thread")]
async fn statements_go_through_pgbouncer_and_notifications_past_it() {
    let (server, client) = outbox().await;
    let mut pgbouncer = QueueServer::pgbouncer(&server);
    let (api, mut options) = (api(), consumer(&server, 2));
    options.postgresql.partition_notification_dsn = options.postgresql.dsn.clone();
    options.postgresql.dsn = pgbouncer.dsn().into();
    let consumers = start(&options, &api).await;
    insert(&client, 0, 100, 2).await;
    until("an empty table", async || rows(&client).await == 0).await;
    check_all(&api, 100, 2).await;
    assert_eq!(stats(&consumers).errors, 0);
    pgbouncer.crash();
    insert(&client, 100, 200, 2).await;
    until("the loss is noticed", async || stats(&consumers).failure.is_some()).await;
    pgbouncer.restart();
    until("an empty table", async || rows(&client).await == 0).await;
    check_all(&api, 200, 2).await;
    assert_eq!(stats(&consumers).failure, None);
}
