//! The outbox: a table of PostgreSQL whose rows an application inserts in its own transactions.
//! In: options → out: a lane per partition, which deletes the rows that are done.
//! Uses tokio-postgres. Never: makes or changes a table.
//! Changed here: the SQL. `dsn` reads addresses, `pool` has connections and TLS.

mod dsn;
mod pool;
#[cfg(test)]
mod tests;

use std::fmt::Write as _;
use std::future::{pending, poll_fn};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::options::OutboxOptions;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::sleep;
use tokio_postgres::{AsyncMessage, SimpleQueryMessage};

use self::pool::{PgPool, PgServer, PooledClient, describe};
use crate::OpenError;
use crate::message::{MESSAGE_BYTES_MAX, QueueMessage};
use crate::runner::{Lane, MessageBatch, QueueError};
use crate::state::ConsumerState;

/// A partition of the table.
pub(crate) struct OutboxLane {
    pool: Arc<PgPool>,
    /// Begins a transaction, locks the partition and reads rows, up to the rows that are left out.
    select: String,
    /// Deletes rows, up to their ids.
    delete: String,
    /// Rows that were executed and are not deleted yet: row level security, a trigger or a foreign key may keep them.
    kept: Vec<String>,
    kept_tried_at: Option<Instant>,
    /// The condition of the rows that this lane has.
    of_partition: String,
    state: Arc<ConsumerState>,
    /// Payloads are texts of base64.
    has_binary_payload: bool,
    poll_interval: Duration,
    /// A notification names this partition.
    notified: Arc<Notify>,
    /// Rows may be there: the last transaction was full, or this is the first.
    is_full: bool,
    limit: usize,
    /// The transaction of the last batch, and the ids of its rows.
    transaction: Option<(PooledClient, Vec<String>)>,
    /// Receives notifications for all lanes.
    _listener: Option<Arc<Listener>>,
}

/// Verifies that the table can be read and rows of it deleted.
///
/// # Errors
/// The key whose value is wrong, in words for an operator.
pub(crate) async fn open(
    options: &OutboxOptions,
    state: &Arc<ConsumerState>,
) -> Result<Vec<OutboxLane>, OpenError> {
    let server = PgServer::new(&options.dsn, &options.tls, "dsn")?;
    let pool = Arc::new(PgPool::new(server));
    let table = &options.outbox_table_name;
    let client = pool.client().await.map_err(|error| OpenError::new("dsn", error.why))?;
    // There is no function `encode` of a text or of JSON.
    let is_binary = async |column: &str| {
        client.run(&format!("SELECT encode({column}, 'base64') FROM {table} LIMIT 0")).await.is_ok()
    };
    if is_binary("method").await {
        let reason = "the column method has the type bytea, expected text";
        return Err(OpenError::new("outbox_table_name", reason));
    }
    let has_binary_payload = is_binary("payload").await;
    // Statements of a server that only reads can be explained, not executed.
    let columns = format!(
        "BEGIN; SELECT id, method, payload, partition FROM {table} LIMIT 0; DELETE FROM {table} WHERE false; ROLLBACK"
    );
    client.run(&columns).await.map_err(|error| {
        let reason = format!(
            "{}; expected a table with the columns id, method, payload and partition, which the user may read and delete from",
            error.why
        );
        OpenError::new("outbox_table_name", reason)
    })?;
    // Only the time of an insert tells how late a row is.
    let has_age = client.run(&format!("SELECT created_at FROM {table} LIMIT 0")).await.is_ok();
    let notified: Vec<Arc<Notify>> = (0..options.num_partitions).map(|_| Arc::default()).collect();
    let listener = listen(options, &notified, state).await?;
    let lane = |(partition, notified): (usize, Arc<Notify>)| OutboxLane {
        pool: Arc::clone(&pool),
        select: select(options, &state.name, partition, &columns_of(has_binary_payload, has_age)),
        delete: format!("DELETE FROM {table} WHERE id = ANY("),
        kept: Vec::new(),
        kept_tried_at: None,
        of_partition: format!("SELECT 1 FROM {table} WHERE partition = {partition} AND id = ANY("),
        state: Arc::clone(state),
        has_binary_payload,
        poll_interval: options.partition_poll_interval,
        notified,
        is_full: true,
        limit: options.partition_select_limit as usize,
        transaction: None,
        _listener: listener.clone(),
    };
    Ok(notified.into_iter().enumerate().map(lane).collect())
}

/// The columns of a row: id, method, payload, age.
fn columns_of(has_binary_payload: bool, has_age: bool) -> String {
    let measured = if has_binary_payload { "t.payload" } else { "t.payload::text" };
    let payload = if has_binary_payload {
        // PostgreSQL divides base64 into lines.
        "translate(encode(t.payload, 'base64'), E'\\n', '')"
    } else {
        "t.payload::text"
    };
    let age = if has_age { "EXTRACT(EPOCH FROM now() - t.created_at)" } else { "0" };
    format!(
        "t.id::text, t.method::text, CASE WHEN octet_length({measured}) <= {MESSAGE_BYTES_MAX} THEN {payload} END, {age}"
    )
}

/// The statements before the rows of a batch, up to the rows that are left out. The name of the lock is that of Centrifugo, so
/// that both can work on one table.
fn select(options: &OutboxOptions, name: &str, partition: usize, columns: &str) -> String {
    let lock =
        if options.use_try_lock { "pg_try_advisory_xact_lock" } else { "pg_advisory_xact_lock" };
    let table = &options.outbox_table_name;
    // Without `t.` the order would be that of the first column of the result, a text.
    // A node that vanished in the middle of a transaction must not keep its partition for hours.
    format!(
        "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL idle_in_transaction_session_timeout = '5min'; \
         SELECT {lock}(hashtext('centrifugo_partition_lock_{name}{partition}')); \
         SELECT {columns} FROM {table} AS t WHERE t.partition = {partition}"
    )
}

impl Lane for OutboxLane {
    async fn receive(&mut self) -> Result<MessageBatch, QueueError> {
        if !self.is_full {
            tokio::select! {
                () = self.notified.notified() => {}
                () = sleep(self.poll_interval) => {}
            }
        }
        // Whatever fails below, the next try is after the runner's pause.
        self.is_full = true;
        let client = self.pool.client().await?;
        self.delete_kept(&client).await?;
        let except = match &*self.kept {
            [] => String::new(),
            kept => format!(" AND t.id <> ALL({})", array(kept)),
        };
        let select = format!("{}{except} ORDER BY t.id LIMIT {}", self.select, self.limit);
        let mut batch = MessageBatch::default();
        let mut ids = Vec::new();
        let mut is_locked = true;
        for answer in client.run(&select).await? {
            let SimpleQueryMessage::Row(row) = answer else { continue };
            if row.columns().len() == 1 {
                is_locked = row.get(0) != Some("f");
                continue;
            }
            let text = |index| row.get(index).unwrap_or_default().to_owned();
            if ids.is_empty() {
                batch.lag =
                    Duration::try_from_secs_f64(text(3).parse().unwrap_or(0.0)).unwrap_or_default();
            }
            ids.push(text(0));
            let payload = row.get(2).map(|payload| {
                if self.has_binary_payload {
                    STANDARD.decode(payload).unwrap_or_default().into()
                } else {
                    Bytes::copy_from_slice(payload.as_bytes())
                }
            });
            let id = text(0);
            let method = text(1);
            batch.messages.push(QueueMessage { id, method, payload, headers: Vec::new() });
        }
        if ids.is_empty() || !is_locked {
            client.run("COMMIT").await?;
            client.give_back();
            self.is_full = false;
            return Ok(MessageBatch::default());
        }
        self.is_full = ids.len() >= self.limit;
        self.transaction = Some((client, ids));
        Ok(batch)
    }

    async fn settle(&mut self, done: usize) -> Result<(), QueueError> {
        let Some((client, ids)) = self.transaction.take() else { return Ok(()) };
        self.is_full |= done < ids.len();
        let done = &ids[..done];
        let sql = match done {
            [] => "COMMIT".to_owned(),
            _ => format!("{}{}); COMMIT", self.delete, array(done)),
        };
        let is_deleted = match client.run(&sql).await {
            Ok(answers) => {
                client.give_back();
                count(&answers) == done.len()
            }
            Err(_) => false,
        };
        if !is_deleted {
            // They are executed, whatever the database says.
            self.kept.extend_from_slice(done);
            self.kept_tried_at = None;
        }
        Ok(())
    }
}

impl OutboxLane {
    /// Tries to delete executed rows that are left, when there are new ones and every minute. One may keep the others, so that
    /// each is tried by itself.
    async fn delete_kept(&mut self, client: &PooledClient) -> Result<(), QueueError> {
        let is_recent = |at: Instant| at.elapsed() < TRY_AGAIN_AFTER;
        if self.kept.is_empty() || self.kept_tried_at.is_some_and(is_recent) {
            return Ok(());
        }
        let mut left = Vec::new();
        let mut why = "DELETE leaves it in the table".to_owned();
        for id in &self.kept {
            let ids = array(std::slice::from_ref(id));
            let sql = format!("{}{ids}); {}{ids})", self.delete, self.of_partition);
            match client.run(&sql).await {
                Ok(answers) if answers.iter().any(is_row) => left.push(id.clone()),
                Ok(_) => {}
                Err(error) if client.is_closed() => return Err(error),
                Err(error) => {
                    left.push(id.clone());
                    why = error.why;
                }
            }
        }
        self.kept = left;
        self.kept_tried_at = Some(Instant::now());
        let count = self.kept.len();
        let Some(last) = self.kept.last() else { return Ok(()) };
        self.state
            .failed("deleting executed rows failed", &format!("{count} rows, id {last}: {why}"));
        if count > KEPT_MAX {
            self.kept_tried_at = None;
            let why = format!("{count} executed rows cannot be deleted; their partition waits");
            return Err(QueueError::new(why));
        }
        Ok(())
    }
}

fn is_row(answer: &SimpleQueryMessage) -> bool {
    matches!(answer, SimpleQueryMessage::Row(_))
}

/// The number of rows of the first statement.
fn count(answers: &[SimpleQueryMessage]) -> usize {
    let count = answers.iter().find_map(|answer| match answer {
        SimpleQueryMessage::CommandComplete(count) => usize::try_from(*count).ok(),
        _ => None,
    });
    count.unwrap_or_default()
}

/// A literal of an array, whose elements PostgreSQL converts to the type of the column.
fn array(ids: &[String]) -> String {
    let mut text = "'{".to_owned();
    for (index, id) in ids.iter().enumerate() {
        let comma = if index == 0 { "" } else { "," };
        let id = id.replace('\\', "\\\\").replace('"', "\\\"").replace('\'', "''");
        let _ = write!(text, "{comma}\"{id}\"");
    }
    text + "}'"
}

/// A task that ends with its value.
struct Listener(JoinHandle<()>);

impl Drop for Listener {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Starts to receive notifications, if they have a channel.
async fn listen(
    options: &OutboxOptions,
    notified: &[Arc<Notify>],
    state: &Arc<ConsumerState>,
) -> Result<Option<Arc<Listener>>, OpenError> {
    let channel = &options.partition_notification_channel;
    if channel.is_empty() {
        return Ok(None);
    }
    let (dsn, key) = if options.partition_notification_dsn.is_empty() {
        (&options.dsn, "dsn")
    } else {
        (&options.partition_notification_dsn, "partition_notification_dsn")
    };
    let server = PgServer::new(dsn, &options.tls, key)?;
    let connected = server.connect().await.map(drop);
    connected.map_err(|error| OpenError::new(key, describe(&error)))?;
    let sql = format!("LISTEN \"{}\"", channel.replace('"', "\"\""));
    let notified = notified.to_vec();
    let state = Arc::clone(state);
    let task = tokio::spawn(async move {
        loop {
            if let Err(error) = notifications(&server, &sql, &notified).await {
                // Polling goes on.
                state.failed("LISTEN failed", &describe(&error));
            }
            sleep(RECONNECT_AFTER).await;
        }
    });
    Ok(Some(Arc::new(Listener(task))))
}

/// Passes notifications to the lanes until the connection ends.
async fn notifications(
    server: &PgServer,
    sql: &str,
    notified: &[Arc<Notify>],
) -> Result<(), tokio_postgres::Error> {
    let (client, mut connection) = server.connect().await?;
    let listen = async {
        client.batch_execute(sql).await?;
        // What was sent while there was no connection is lost.
        notified.iter().for_each(|partition| partition.notify_one());
        pending().await
    };
    let messages = async {
        while let Some(message) = poll_fn(|context| connection.poll_message(context)).await {
            let AsyncMessage::Notification(notification) = message? else { continue };
            let partition: Option<usize> = notification.payload().trim().parse().ok();
            partition
                .and_then(|index| notified.get(index))
                .into_iter()
                .for_each(|it| it.notify_one());
        }
        Ok(())
    };
    tokio::select! {
        ended = listen => ended,
        ended = messages => ended,
    }
}

const RECONNECT_AFTER: Duration = Duration::from_secs(1);
const TRY_AGAIN_AFTER: Duration = Duration::from_secs(60);
/// Executed rows of a partition that could not be deleted. With more of them nothing is executed.
const KEPT_MAX: usize = 1000;
