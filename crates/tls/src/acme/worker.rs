//! Makes the orders that are due, one after the other, and stores what comes of them.
//! In: the schedule, the cache, the system's clock → out: certificates for the handshakes, files, log lines.
//! Uses `account` and `order`. Never: decides when an order is due.
//! Changed here: what happens around an order. Times are in `schedule`, remedies in `order`.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use instant_acme::Account;
use tokio::{task::spawn_blocking, time::sleep};

use super::{
    account,
    cache::Cache,
    certificate::Certificate,
    certificates::Certificates,
    challenge::Challenge,
    client::AuthorityClient,
    order::{self, OrderError},
    schedule::{DueOrder, OrderFailure, OrderSchedule},
};

/// One task; its end is that of renewals.
pub(super) struct Worker {
    pub(super) directory_url: String,
    pub(super) email: String,
    pub(super) client: AuthorityClient,
    pub(super) cache: Cache,
    pub(super) schedule: OrderSchedule,
    pub(super) certificates: Arc<Certificates>,
    pub(super) challenge: Arc<Challenge>,
    /// Opened by the first order.
    pub(super) account: Option<Account>,
}

impl Worker {
    /// Takes the certificates of the cache. A file that cannot be used is replaced by an order.
    pub(super) fn load(&mut self, names: &[Arc<str>]) {
        for name in names {
            match self.cached(name) {
                Ok(Some(certificate)) => {
                    let valid = remaining(certificate.validity.not_after, SystemTime::now());
                    tracing::info!(%name, valid = period(valid), "certificate of an earlier run");
                    self.schedule.handle_cached(name, certificate.validity, rand::random());
                    self.certificates.set(name, certificate);
                }
                Ok(None) => {}
                Err(error) => {
                    tracing::warn!(%name, error, "cannot use the certificate in http_server.tls_autocert.cache_dir, ordering another one");
                }
            }
        }
    }

    fn cached(&self, name: &str) -> Result<Option<Certificate>, String> {
        let pem = self.cache.certificate(name).map_err(|error| error.to_string())?;
        let read =
            |pem: String| Certificate::from_pem(name, &pem).map_err(|error| error.to_string());
        pem.map(read).transpose()
    }

    /// Orders and renews without end.
    pub(super) async fn run(mut self) {
        loop {
            let now = SystemTime::now();
            match self.schedule.poll_order(now) {
                Some(due) => self.attempt(&due).await,
                // Timers stand still while a machine sleeps, and its clock can be set.
                None => sleep(self.schedule.time_to_wait(now).min(CLOCK_CHECK)).await,
            }
        }
    }

    async fn attempt(&mut self, due: &DueOrder) {
        let DueOrder { name, challenge } = due;
        tracing::info!(%name, %challenge, authority = self.directory_url, "ordering a certificate");
        self.client.take_retry_after();
        let issued = self.order(due).await;
        let now = SystemTime::now();
        self.certificates.count_order(name, issued.is_ok());
        match issued {
            Ok(certificate) => {
                let Certificate { validity, .. } = certificate;
                let renew_at = self.schedule.handle_issued(name, validity, now, rand::random());
                self.certificates.set(name, certificate);
                let (valid, renewal) =
                    (remaining(validity.not_after, now), remaining(renew_at, now));
                tracing::info!(%name, valid = period(valid), renewal = period(renewal), "certificate issued");
            }
            Err(error) => self.fail(name, &error, now),
        }
    }

    /// Orders a certificate and stores it. An authority that lost our account gets another one.
    async fn order(&mut self, due: &DueOrder) -> Result<Certificate, OrderError> {
        let mut issued = self.issue(due).await;
        if let Err(error) = &issued
            && error.is_unknown_account()
        {
            tracing::warn!(%error, "the certificate authority does not know the account, making another one");
            self.account = None;
            let cache = self.cache.clone();
            let _ = spawn_blocking(move || cache.remove_account()).await;
            issued = self.issue(due).await;
        }
        let pem = issued?;
        let certificate =
            Certificate::from_pem(&due.name, &pem).map_err(OrderError::Certificate)?;
        let cache = self.cache.clone();
        let name = due.name.clone();
        let stored = spawn_blocking(move || cache.store_certificate(&name, &pem)).await;
        if let Ok(Err(error)) = stored {
            let name = &due.name;
            tracing::warn!(%name, %error, "cannot store the certificate in http_server.tls_autocert.cache_dir: the next start orders another one");
        }
        Ok(certificate)
    }

    async fn issue(&mut self, due: &DueOrder) -> Result<String, OrderError> {
        let account = match &self.account {
            Some(account) => account.clone(),
            None => {
                account::open(&self.cache, &self.client, &self.directory_url, &self.email).await?
            }
        };
        order::issue(self.account.insert(account), due, &self.challenge).await
    }

    fn fail(&mut self, name: &str, error: &OrderError, now: SystemTime) {
        if self.cache.is_kept() {
            // The next order reads it, and the URLs of the directory, which may have changed.
            self.account = None;
        }
        let retry_after = self.client.take_retry_after();
        let failure = OrderFailure { kind: error.kind(), retry_after };
        let wait = period(self.schedule.handle_failure(name, failure, now, rand::random()));
        let remedy = error.remedy();
        match self.certificates.not_after(name).map(|end| remaining(end, now)) {
            Some(valid) if !valid.is_zero() => {
                tracing::warn!(name, %error, remedy, next_attempt = wait, valid = period(valid), "cannot renew the certificate, the present one is still valid");
            }
            Some(_) => {
                tracing::error!(name, %error, remedy, next_attempt = wait, "cannot renew the certificate, the present one has expired: clients refuse it");
            }
            None => {
                tracing::error!(name, %error, remedy, next_attempt = wait, "cannot get a certificate: TLS handshakes for this name fail");
            }
        }
    }
}

fn remaining(end: SystemTime, now: SystemTime) -> Duration {
    end.duration_since(now).unwrap_or_default()
}

/// A time for people: `89 days`, `5 hours`, `40 seconds`.
fn period(time: Duration) -> String {
    let seconds = time.as_secs();
    let units = [(86_400, "days"), (3600, "hours"), (60, "minutes")];
    let unit = units.into_iter().find(|(length, _)| seconds >= 2 * length);
    let (length, unit) = unit.unwrap_or((1, "seconds"));
    format!("{} {unit}", seconds / length)
}

/// The longest sleep.
const CLOCK_CHECK: Duration = Duration::from_secs(3600);

#[cfg(test)]
mod tests;
