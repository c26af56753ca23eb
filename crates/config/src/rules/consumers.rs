//! Consumers: the options that a queue needs.
//! In: a filled `Config` → out: a severity, the full key and a sentence for each mistake.
//! Uses the options as they are written. Never: connects; whether a build has a client of a queue.
//! Changed here: which options are required. Names of consumers are checked in `apply`.

use fanwire_consumers::{ConsumerKind, ConsumerOptions};

use super::{Config, Severity};
use crate::keys::CONSUMERS;

/// Severity, key and sentence.
type ConsumerRemark = (Severity, String, String);

pub(super) fn are_whole(config: &Config) -> Vec<ConsumerRemark> {
    let mut found = Vec::new();
    for (name, consumer) in &config.consumers {
        let mut wrong = |key: &str, what: &str| {
            let key = format!("{CONSUMERS}[{name}].{key}");
            let reason = format!("{key} {what}");
            found.push((Severity::Error, key, reason));
        };
        match consumer.kind {
            None => wrong("type", "is empty; name the queue, such as postgresql"),
            Some(kind) if consumer.enabled => options(kind, consumer, &mut wrong),
            Some(_) => {}
        }
    }
    found
}

/// Finds what an enabled consumer lacks.
fn options(kind: ConsumerKind, consumer: &ConsumerOptions, wrong: &mut impl FnMut(&str, &str)) {
    // A server that starts without it would look healthy while nothing is consumed.
    if !kind.is_supported() {
        let what = format!(
            "is {:?}, a queue that Fanwire does not support yet, so that its messages would wait; leave the consumer out, or \
             set enabled to false",
            kind.name()
        );
        return wrong("type", &what);
    }
    let postgresql = &consumer.postgresql;
    let redis = &consumer.redis_stream;
    let nats = &consumer.nats_jetstream;
    let kafka = &consumer.kafka;
    let required: &[(&str, bool)] = match kind {
        ConsumerKind::Postgresql => &[
            ("dsn", postgresql.dsn.is_empty()),
            ("outbox_table_name", postgresql.outbox_table_name.is_empty()),
        ],
        ConsumerKind::RedisStream => &[
            ("streams", redis.streams.is_empty()),
            ("consumer_group", redis.consumer_group.is_empty()),
        ],
        ConsumerKind::NatsJetStream => &[
            ("url", nats.url.is_empty()),
            ("stream_name", nats.stream_name.is_empty()),
            ("durable_consumer_name", nats.durable_consumer_name.is_empty()),
        ],
        _ => &[
            ("brokers", kafka.brokers.is_empty()),
            ("topics", kafka.topics.is_empty()),
            ("consumer_group", kafka.consumer_group.is_empty()),
        ],
    };
    for (key, _) in required.iter().filter(|(_, is_missing)| *is_missing) {
        wrong(&format!("{}.{key}", kind.name()), "is empty, but the consumer is enabled; set it");
    }
    match kind {
        ConsumerKind::RedisStream => redis_address(consumer, wrong),
        ConsumerKind::Kafka => {
            if kafka.sasl_mechanism == "aws-msk-iam" {
                let what = "is \"aws-msk-iam\", which Fanwire does not support yet; expected plain, scram-sha-256 or scram-sha-512";
                wrong("kafka.sasl_mechanism", what);
            }
            if kafka.partition_queue_max_size < -1 {
                wrong("kafka.partition_queue_max_size", "is no whole number from -1");
            }
        }
        ConsumerKind::Postgresql if !is_table(&postgresql.outbox_table_name) => {
            let what = "is not the name of a table: letters, digits, `_` and `$`, or names in double quotes, with dots between \
                        schema and table";
            wrong("postgresql.outbox_table_name", what);
        }
        _ => {}
    }
}

fn redis_address(consumer: &ConsumerOptions, wrong: &mut impl FnMut(&str, &str)) {
    match consumer.redis_stream.redis.options(|tls| tls.enabled) {
        Err(error) => wrong("redis_stream.address", &format!("cannot be used: {error}")),
        Ok(options) if options.addresses.len() + options.clusters.len() != 1 => {
            wrong("redis_stream.address", "names several Redis, expected exactly one");
        }
        Ok(_) => {}
    }
}

/// Whether a text is a name that cannot end a statement of SQL. An empty one has another finding.
fn is_table(name: &str) -> bool {
    let is_char = |c: char| c.is_alphanumeric() || "_$.".contains(c);
    name.split('"').step_by(2).all(|plain| plain.chars().all(is_char))
        && name.matches('"').count().is_multiple_of(2)
}

#[cfg(test)]
mod tests;
