package callback

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The headers of a signed callback. Source: Standard Webhooks 1.0.0, webhook
// headers.
const (
	HeaderID        = "Webhook-Id"
	HeaderTimestamp = "Webhook-Timestamp" // Unix seconds of the attempt
	HeaderSignature = "Webhook-Signature"
)

const signatureVersion = "v1,"

// Sign returns the signature header of a body that is sent at a time: one signature
// for each secret, in their order, with spaces between. They cover the second of at,
// as in the timestamp header.
func Sign(id string, at time.Time, body []byte, secrets []Secret) string {
	signatures := make([]string, 0, len(secrets))
	for _, s := range secrets {
		if !s.Empty() {
			signatures = append(signatures, s.sign(id, timestamp(at), body))
		}
	}
	return strings.Join(signatures, " ")
}

func timestamp(at time.Time) string { return strconv.FormatInt(at.Unix(), 10) }

// sign returns "v1," and the base64 of HMAC-SHA256 over id.timestamp.body.
func (s Secret) sign(id, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(s.Text.Reveal()))
	mac.Write([]byte(id + "." + timestamp + "."))
	mac.Write(body)
	return signatureVersion + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// Tolerance is how far the clocks of sender and receiver may differ, and how long a
// recorded callback can be replayed.
const Tolerance = 5 * time.Minute

// What Verify refuses.
var (
	ErrUnsigned  = errors.New("the callback is not signed")
	ErrSignature = errors.New("the callback's signature is not valid")
	ErrStale     = errors.New("the callback was signed more than 5 minutes from now")
)

// spellings are the prefixes of the three headers: that of the standard, and an
// older one, which many senders still use.
var spellings = []string{"Webhook-", "Svix-"}

// Verify checks that one of the secrets signed the raw body of a callback, within
// Tolerance of now. It returns the webhook id, which is the same when a callback is
// sent again.
//
// The error is ErrUnsigned without any of the headers, ErrSignature without a valid
// signature, and ErrStale for a valid one of another time. The time it takes does
// not depend on how much of a signature is right.
func Verify(h http.Header, body []byte, secrets []Secret, now time.Time) (id string, err error) {
	id, stamp, signatures, err := signedHeaders(h)
	if err != nil {
		return "", err
	}
	at, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil || strconv.FormatInt(at, 10) != stamp {
		return "", ErrSignature // senders use one spelling of a time
	}
	good := false
	for _, s := range secrets {
		if s.Empty() {
			continue
		}
		want := []byte(s.sign(id, stamp, body))
		for signature := range strings.FieldsSeq(signatures) {
			good = hmac.Equal([]byte(signature), want) || good
		}
	}
	switch apart := now.Sub(time.Unix(at, 0)).Abs(); {
	case !good:
		return "", ErrSignature
	case apart > Tolerance:
		return "", ErrStale
	}
	return id, nil
}

// signedHeaders returns the three headers. They must have the same prefix and occur
// once. An id with a full stop is refused: it could be read as another id and time.
func signedHeaders(h http.Header) (id, stamp, signatures string, err error) {
	for _, prefix := range spellings {
		ids, stamps, all := h[prefix+"Id"], h[prefix+"Timestamp"], h[prefix+"Signature"]
		if len(ids)+len(stamps)+len(all) == 0 {
			continue
		}
		if len(ids) != 1 || len(stamps) != 1 || len(all) != 1 || ids[0] == "" || strings.Contains(ids[0], ".") {
			return "", "", "", ErrSignature
		}
		return ids[0], stamps[0], all[0], nil
	}
	return "", "", "", ErrUnsigned
}
