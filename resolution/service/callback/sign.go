package callback

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"
	"time"
)

// The headers of a signed callback. Source: Standard Webhooks 1.0.0, webhook
// headers.
const (
	HeaderID        = "Webhook-Id"
	HeaderTimestamp = "Webhook-Timestamp" // unix seconds of the attempt
	HeaderSignature = "Webhook-Signature"
)

const signatureVersion = "v1,"

// Sign returns the signature header of a body sent at a moment: one signature
// for each secret, in their order, with spaces between. The signature holds
// for the second of at, as the timestamp header says it.
func Sign(id string, at time.Time, body []byte, secrets []Secret) string {
	signatures := make([]string, 0, len(secrets))
	for _, s := range secrets {
		if s.key != "" {
			signatures = append(signatures, s.sign(id, timestamp(at), body))
		}
	}
	return strings.Join(signatures, " ")
}

func timestamp(at time.Time) string { return strconv.FormatInt(at.Unix(), 10) }

// sign returns "v1," and the base64 of HMAC-SHA256 over id.timestamp.body.
func (s Secret) sign(id, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(s.key))
	mac.Write([]byte(id + "." + timestamp + "."))
	mac.Write(body)
	return signatureVersion + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}
