//! Recognises Apple's NSURLSession WebSocket, whose inflate is faulty, by its user agent.
//! A `User-Agent` value → whether to keep permessage-deflate away from this client.
//! Uses nothing; never decides (the operator may allow compression for it all the same).
//! Change here: which user agents count (faults: gorilla/websocket#731, uWebSockets#1347).

/// Whether the peer's WebSocket is Apple's NSURLSession: Safari, every browser on iOS, and apps.
///
/// On iOS all browsers are WebKit, whatever their name. On macOS it is WebKit without Chromium,
/// which also catches browsers on iPadOS that pretend to be a Mac. WebKit elsewhere has another
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
    // Edge, Opera, Brave and Electron say "Chrome/" as well; Chrome on iOS says "CriOS/".
    ios || (has("Macintosh") && !has("Chrome/") && !has("Chromium/"))
}

#[cfg(test)]
mod tests;
