package exchange

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
)

// maxEncodings bounds how often a body may be encoded.
const maxEncodings = 3

var gzipMagic = []byte{0x1f, 0x8b}

// errTooLarge says that a body exceeds its bound.
type errTooLarge int64

func (e errTooLarge) Error() string {
	return fmt.Sprintf("the answer is larger than %d bytes", int64(e))
}

// Unpack undoes the encodings of a body, each with the same bound, although none was
// asked for. Some services name an encoding that the body does not have, or do not name
// the one that it has. With an error, plain is the body as far as it could be decoded.
func Unpack(h http.Header, body []byte, most int64) (plain []byte, err error) {
	if int64(len(body)) > most {
		return body[:most], errTooLarge(most)
	}
	var named []string
	for word := range strings.SplitSeq(strings.Join(h.Values("Content-Encoding"), ","), ",") {
		if word = strings.ToLower(strings.TrimSpace(word)); word != "" && word != "identity" {
			named = append(named, word)
		}
	}
	slices.Reverse(named) // the last one was applied last
	for range maxEncodings {
		var next string
		switch {
		case len(body) == 0:
			return body, nil
		case bytes.HasPrefix(body, gzipMagic):
			next = "gzip"
		case len(named) > 0:
			next = named[0]
		default:
			return body, nil
		}
		if len(named) > 0 {
			named = named[1:]
		}
		decoded, err := decodeOnce(next, body, most)
		if err != nil {
			return body, err
		}
		body = decoded
	}
	return body, nil
}

// decodeOnce undoes one encoding. Deflate is zlib by RFC 9110, 8.4.1.2, but some
// services send it without the frame of zlib.
func decodeOnce(encoding string, body []byte, most int64) ([]byte, error) {
	var decoder io.Reader
	var err error
	switch encoding {
	case "gzip", "x-gzip":
		decoder, err = gzip.NewReader(bytes.NewReader(body))
	case "deflate":
		if decoder, err = zlib.NewReader(bytes.NewReader(body)); errors.Is(err, zlib.ErrHeader) {
			decoder, err = flate.NewReader(bytes.NewReader(body)), nil
		}
	default:
		if !IsWord(encoding, 32) {
			encoding = "an unknown way"
		}
		return nil, fmt.Errorf("the answer is encoded with %s, which was not asked for", encoding)
	}
	var decoded bytes.Buffer
	if err == nil {
		_, err = decoded.ReadFrom(io.LimitReader(decoder, most+1))
	}
	switch {
	case int64(decoded.Len()) > most:
		return nil, errTooLarge(most)
	case err != nil:
		return nil, fmt.Errorf("the %s of the answer is damaged or cut off", encoding)
	}
	return decoded.Bytes(), nil
}
