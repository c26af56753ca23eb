// Tokens of both sides: made for clients, and read again for the library.
// In: claims as JSON -> out: a token with HS256; or a token -> its claims, or why it is none.
// May use the standard library only; knows no other algorithm.
// What a server does about claims stands in rules_test.go.

package oracle

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strings"
)

type claims struct {
	Sub      string                     `json:"sub"`
	Exp      int64                      `json:"exp"`
	Nbf      int64                      `json:"nbf"`
	Info     json.RawMessage            `json:"info"`
	Channel  string                     `json:"channel"`
	Channels []string                   `json:"channels"`
	Subs     map[string]json.RawMessage `json:"subs"`
}

func sign(text string) string {
	signature := hmac.New(sha256.New, []byte(tokenSecret))
	signature.Write([]byte(text))
	return base64.RawURLEncoding.EncodeToString(signature.Sum(nil))
}

func makeToken(claims string) string {
	encode := base64.RawURLEncoding.EncodeToString
	text := encode([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." + encode([]byte(claims))
	return text + "." + sign(text)
}

// readToken is false when nobody signed it here.
func readToken(token string) (claims claims, valid bool) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 || sign(parts[0]+"."+parts[1]) != parts[2] {
		return claims, false
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	return claims, err == nil && json.Unmarshal(payload, &claims) == nil
}
