//! Recognises Apple's NSURLSession WebSocket, whose inflate is faulty, by its user agent.
//! A `User-Agent` value → whether permessage-deflate should be declined for this client.
//! Uses nothing; never decides (the operator may allow compression for it).
//! Changed here: which user agents count (faults: gorilla/websocket#731, uWebSockets#1347).

/// Whether the peer's WebSocket is Apple's NSURLSession: Safari, every browser on iOS, and apps.
///
/// On iOS all browsers are WebKit, whatever their name. On macOS it is WebKit without Chromium,
/// which also matches browsers on iPadOS that send the user agent of a Mac. WebKit elsewhere has another
/// network stack.
pub fn is_apple_nsurlsession(user_agent: &str) -> bool {
    let has = |part: &str| user_agent.contains(part);
    if has("CFNetwork/") || has("Darwin/") {
        return true; // NSURLSession in an app that does not set a user agent of its own
    }
    if !has("AppleWebKit/") {
        return false;
    }
    let ios = has("iPhone") || has("iPad") || has("iPod");
    // Edge, Opera, Brave and Electron also send "Chrome/"; Chrome on iOS sends "CriOS/".
    ios || (has("Macintosh") && !has("Chrome/") && !has("Chromium/"))
}

#[cfg(test)]
mod tests;
