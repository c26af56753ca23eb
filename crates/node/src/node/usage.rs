//! Usage of tenants: rates of users and namespaces, connections of addresses, publications of each namespace.
//! In: publishes of this node, reports of other nodes, time → out: allowed or not, reports, counts for metrics.
//! Uses: `policy::limits`, the cluster. Never: sessions; `command/rates.rs` says which publishes count.
//! Changed here: what is reported to other nodes, and what is counted for a bill.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use fanwire_cluster::{AddressConnections, Cluster, UsageReport, UserPublications};
use fanwire_policy::channel::NamespaceId;
use fanwire_policy::options::{NamespaceLimits, Options, TenantRate};
use fanwire_policy::{AddressCounts, CurrentSettings, ExceededCounts, SharedRates, Tenant};
use hashbrown::HashMap;

use crate::clock::Clock;

/// The usage of this node, and what it knows of that of other nodes.
pub struct TenantUsage {
    settings: Arc<CurrentSettings>,
    rates: SharedRates,
    /// Publishes above `limits.user_publish` of a namespace.
    user_publishes: ExceededCounts,
    /// Publishes above `limits.publish` of a namespace.
    publishes: ExceededCounts,
    addresses: Arc<AddressCounts>,
    /// By number of the namespace.
    namespaces: Box<[NamespaceUsage]>,
}

/// Counts of one namespace since the start.
#[derive(Debug, Default)]
pub struct NamespaceUsage {
    /// Publications of clients, backends and the server that this node gave to the broker.
    pub publications: AtomicU64,
    /// Bytes of their payloads.
    pub publication_bytes: AtomicU64,
}

impl TenantUsage {
    pub(super) fn new(settings: Arc<CurrentSettings>, options: &Options) -> Self {
        let namespaces = 0..NamespaceId::count(&options.channel);
        let addresses = Arc::<AddressCounts>::default();
        addresses.configure(options.client.address_connections);
        Self {
            settings,
            rates: SharedRates::default(),
            user_publishes: ExceededCounts::default(),
            publishes: ExceededCounts::default(),
            addresses,
            namespaces: namespaces.map(|_| NamespaceUsage::default()).collect(),
        }
    }

    /// The connections by address of the client.
    pub fn addresses(&self) -> &Arc<AddressCounts> {
        &self.addresses
    }

    /// The limits of tenants by name, with how often each was exceeded.
    pub fn exceeded(&self) -> [(&'static str, &ExceededCounts); 3] {
        [
            ("user_publish", &self.user_publishes),
            ("publish", &self.publishes),
            ("address_connections", &self.addresses.exceeded),
        ]
    }

    /// The counts of each namespace, by name.
    pub fn by_namespace(&self) -> Vec<(String, &NamespaceUsage)> {
        self.settings.read().names().iter().cloned().zip(&self.namespaces).collect()
    }

    /// Counts a publish of a client, and returns whether the rates of its user and of the namespace allow it. `now` in nanoseconds.
    pub(crate) fn may_publish(
        &self,
        tenant: Tenant<'_>,
        limits: &NamespaceLimits,
        now: u64,
    ) -> bool {
        let all_users = Tenant { user: Tenant::ALL_USERS, ..tenant };
        let is_named = tenant.user != Tenant::ALL_USERS;
        let of_user = !is_named
            || self.is_within(tenant, limits.user_publish, now)
            || !self.user_publishes.count(limits.user_publish.dry_run);
        of_user
            && (self.is_within(all_users, limits.publish, now)
                || !self.publishes.count(limits.publish.dry_run))
    }

    fn is_within(&self, tenant: Tenant<'_>, limit: TenantRate, now: u64) -> bool {
        limit.limit == 0 || self.rates.take(tenant, limit.rate(), now)
    }

    /// Publications of all namespaces.
    pub(super) fn publications(&self) -> u64 {
        self.namespaces.iter().map(|usage| usage.publications.load(Relaxed)).sum()
    }

    /// Counts a publication for the bill of its namespace.
    pub(crate) fn count_publication(&self, namespace: NamespaceId, bytes: usize) {
        let usage = &self.namespaces[usize::from(namespace.0)];
        usage.publications.fetch_add(1, Relaxed);
        usage.publication_bytes.fetch_add(bytes as u64, Relaxed);
    }

    /// Reports to the other nodes once a second, what they need for the limits.
    pub(super) fn tick(&self, cluster: &Cluster, clock: &Clock, now: Instant) {
        let taken = self.rates.report(ROWS_MAX, clock.nanos(now));
        self.addresses.forget_silent(now);
        if !cluster.has_bus() {
            return;
        }
        let settings = self.settings.read();
        let names = settings.names();
        let publications = taken.into_iter().map(|taken| UserPublications {
            namespace: names[usize::from(taken.namespace.0)].clone(),
            user: taken.user,
            count: taken.tokens,
        });
        let addresses = self.addresses.report(ROWS_MAX).into_iter();
        let report = UsageReport {
            publications: publications.collect(),
            addresses: addresses
                .map(|(address, connections)| AddressConnections {
                    address: address.to_string(),
                    connections,
                })
                .collect(),
        };
        if report != UsageReport::default() {
            cluster.send_usage(report);
        }
    }

    /// Takes the report of another node.
    pub(super) fn learn(&self, from: String, report: UsageReport, clock: &Clock, now: Instant) {
        let settings = self.settings.read();
        let by_name =
            settings.namespaces().map(|(id, options)| (options.name.as_str(), (id, options)));
        let known: HashMap<_, _> = by_name.collect();
        for UserPublications { namespace, user, count } in report.publications {
            let Some((id, options)) = known.get(namespace.as_str()) else { continue };
            let is_of_all = user == Tenant::ALL_USERS;
            let NamespaceLimits { user_publish, publish } = options.limits;
            let limit = if is_of_all { publish } else { user_publish };
            if limit.limit > 0 {
                let tenant = Tenant { namespace: *id, user: &user };
                self.rates.charge(tenant, count, limit.rate(), clock.nanos(now));
            }
        }
        let counts = report.addresses.into_iter().filter_map(|row| {
            let address: IpAddr = row.address.parse().ok()?;
            Some((address, row.connections))
        });
        self.addresses.learn(from, counts, now);
    }
}

/// Users, and addresses, of one report.
const ROWS_MAX: usize = 4_096;
