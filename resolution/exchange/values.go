// Package exchange is what all clients that ask over HTTP share: how a request is sent at most once,
// what went wrong where no answer came, and how the values of an answer
// are read.
package exchange

import (
	"cmp"
	"encoding/base64"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/leadetl/leadetl/internal/jsontree"
)

// Number is v as a number, also one written as a string.
func Number(v jsontree.Value) (float64, bool) { return number(jsontree.Text(v)) }

func number(s string) (float64, bool) {
	if s == "" { // most often
		return 0, false
	}
	n, err := strconv.ParseFloat(s, 64)
	return n, err == nil && !math.IsNaN(n) && !math.IsInf(n, 0)
}

// Whole is v as a count: a whole number from 0, exact as a float.
func Whole(v jsontree.Value) (n int64, is bool) {
	f, is := Number(v)
	if !is || f < 0 || f != math.Trunc(f) || f > 1<<53 {
		return 0, false
	}
	return int64(f), true
}

// Year is a year written as a number, a string or a float; "" for anything else.
func Year(s string) string {
	n, ok := number(s)
	if !ok || n != math.Trunc(n) || n < 1 || n > 9999 {
		return ""
	}
	return strconv.Itoa(int(n))
}

// Moment is a time as services write them: RFC 3339, a date, or seconds or
// milliseconds since 1970; nil when it is none.
func Moment(v jsontree.Value) *time.Time {
	s := jsontree.Text(v)
	if s == "" {
		return nil
	}
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly, "2006-01-02T15:04:05", time.DateTime} {
		if at, err := time.Parse(layout, s); err == nil {
			at = at.UTC()
			return &at
		}
	}
	if n, ok := Number(v); ok && n > 0 {
		if n < 1e11 {
			n *= 1000
		}
		if n < 1e14 {
			at := time.UnixMilli(int64(n)).UTC()
			return &at
		}
	}
	return nil
}

// Digest reads a hash of a type, which is told by the length if kind is empty. It is
// none if it does not have the form of its type: an address that was not hashed, a
// word such as pending, a hash under the name of another. Nor is one of nobody.
func Digest(hash, kind string) (value, ofType string, ok bool) {
	isHash := isHex(hash)
	if isHash {
		hash = strings.ToLower(hash)
	}
	kind = cmp.Or(kind, typeOfLength[len(hash)])
	if length, known := lengthOfType[kind]; known {
		ok = isHash && len(hash) == length
	} else {
		ok = kind != "" && (isHash && len(hash) >= 32 && len(hash)%2 == 0 || isBase64(hash))
	}
	return hash, kind, ok && !ofNobody[hash] && strings.Trim(hash, hash[:1]) != ""
}

// typeOfLength are the types of hashes by their length in hex.
var (
	typeOfLength = map[int]string{32: "md5", 40: "sha1", 64: "sha256"}
	lengthOfType = map[string]int{"md5": 32, "sha1": 40, "sha256": 64}
)

// ofNobody are the hashes of an empty text.
var ofNobody = map[string]bool{
	"d41d8cd98f00b204e9800998ecf8427e":                                 true,
	"da39a3ee5e6b4b0d3255bfef95601890afd80709":                         true,
	"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855": true,
}

// HashType is a hash's type in our spelling (MD5, SHA-256); an unknown one is
// kept.
func HashType(s string) string {
	switch s {
	case "md5", "sha1", "sha256":
		return s
	}
	switch folded := dashes.Replace(strings.ToLower(s)); folded {
	case "md5", "sha1", "sha256":
		return folded
	}
	return s
}

var dashes = strings.NewReplacer("-", "", "_", "", " ", "")

// isBase64 reports whether s is a hash of a usual size in base64.
func isBase64(s string) bool {
	s = strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(s, "="))
	sum, err := base64.RawStdEncoding.Strict().DecodeString(s)
	return err == nil && (len(sum) == 16 || len(sum) == 20 || len(sum) == 32 || len(sum) == 64)
}

func isHex(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool {
		return !(r >= '0' && r <= '9' || r >= 'a' && r <= 'f' || r >= 'A' && r <= 'F')
	})
}

// WithoutScheme returns an address as the interface shows it.
func WithoutScheme(s string) string {
	for _, scheme := range []string{"https://", "http://"} {
		if len(s) > len(scheme) && strings.EqualFold(s[:len(scheme)], scheme) {
			return s[len(scheme):]
		}
	}
	return s
}

// IsWord reports whether s can be shown: a code or an id, not a sentence or data
// of the request.
func IsWord(s string, most int) bool {
	return len(s) <= most && !strings.ContainsFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' || r == '.')
	})
}

// RequestID is a service's name for a request, for its operator; "" if it has none that can be shown.
func RequestID(h http.Header) string {
	for _, name := range []string{"X-Request-Id", "Request-Id", "X-Correlation-Id"} {
		if id := h.Get(name); id != "" && IsWord(id, 128) {
			return id
		}
	}
	return ""
}
