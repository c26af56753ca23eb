//! Pages of long results: the limit of a request.
//! In: the field `limit`. Out: how many entries a page has.
//! Pure; a cursor is read by the method that returned it.
//! The order of entries is that of the method.

use crate::ApiError;

/// Entries of a page; 0 means `max`.
///
/// # Errors
/// 107 for a limit above `max`.
pub(super) fn page_limit(limit: u32, max: usize) -> Result<usize, ApiError> {
    match limit as usize {
        0 => Ok(max),
        limit if limit <= max => Ok(limit),
        _ => Err(ApiError::BAD_REQUEST.because("limit is above 10,000")),
    }
}
