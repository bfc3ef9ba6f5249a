package credential

import (
	"crypto/rand"
	"hash/crc32"
	"strings"

	"github.com/leadetl/leadetl/internal/secret"
)

// An API key is a prefix, which people and scanners for leaked secrets recognize,
// 32 random base62 digits (190 bits), and 6 base62 digits of the CRC32 (IEEE) of
// everything before them. The checksum protects nothing: it detects a mistyped or
// truncated key without a look at the store.
const (
	livePrefix   = "lrk_live_"
	testPrefix   = "lrk_test_"
	systemPrefix = "lrk_sys_"

	randomLength   = 32
	checksumLength = 6
	hintLength     = 4
	keyLength      = len(livePrefix) + randomLength + checksumLength
)

// base62 is the alphabet of keys, in the order of the digits' values.
const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// NewKey makes an API key: lrk_live_… or, for a test organization, lrk_test_….
func NewKey(test bool) secret.Text {
	if test {
		return newKey(testPrefix)
	}
	return newKey(livePrefix)
}

// NewSystemKey makes a key for the internal operations, lrk_sys_…, in the same
// form. It is not an API key: WellFormed is false for it. Compare system keys with
// secret.Text.Equal, which takes constant time.
func NewSystemKey() secret.Text { return newKey(systemPrefix) }

func newKey(prefix string) secret.Text {
	key := append(make([]byte, 0, keyLength), prefix...)
	var random [2 * randomLength]byte
	for limit := len(prefix) + randomLength; len(key) < limit; {
		rand.Read(random[:])
		for _, b := range random {
			// 248 is the greatest multiple of 62 in a byte: higher values would
			// make the first eight digits more likely.
			if b < 248 && len(key) < limit {
				key = append(key, base62[b%62])
			}
		}
	}
	check := checksum(string(key))
	return secret.New(string(append(key, check[:]...)))
}

// checksum is the CRC32 (IEEE) of s as base62 digits, greatest first, with
// leading zeros.
func checksum(s string) (digits [checksumLength]byte) {
	sum := crc32.ChecksumIEEE([]byte(s))
	for i := len(digits) - 1; i >= 0; i-- {
		digits[i] = base62[sum%62]
		sum /= 62
	}
	return digits
}

// WellFormed reports whether key has an API key's prefix, length, alphabet and
// checksum. Any change of one character makes it false.
func WellFormed(key string) bool {
	if len(key) != keyLength || !strings.HasPrefix(key, livePrefix) && !strings.HasPrefix(key, testPrefix) {
		return false
	}
	for _, digit := range []byte(key[len(livePrefix):]) {
		if !isBase62(digit) {
			return false
		}
	}
	body, check := key[:keyLength-checksumLength], checksum(key[:keyLength-checksumLength])
	return key[len(body):] == string(check[:])
}

func isBase62(b byte) bool {
	return '0' <= b && b <= '9' || 'A' <= b && b <= 'Z' || 'a' <= b && b <= 'z'
}

// Hint returns the part of a key that may be shown, so that its owner recognizes
// it: its last 4 characters. It is "" for a key that is not WellFormed.
func Hint(key string) string {
	if !WellFormed(key) {
		return ""
	}
	return key[keyLength-hintLength:]
}
