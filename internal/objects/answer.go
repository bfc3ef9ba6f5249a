package objects

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// span is a range of bytes, [from, to), of an object that has total bytes; -1 if
// the answer does not say how many.
type span struct{ from, to, total int64 }

func (s span) String() string {
	text := fmt.Sprintf("bytes %d-%d", s.from, s.to-1)
	if s.from == s.to {
		text = "no bytes"
	}
	if s.total >= 0 {
		text += fmt.Sprintf(" of %d", s.total)
	}
	return text
}

func (s span) isWhole() bool { return s.from == 0 && s.to == s.total }

// maxWhole bounds the objects that are read from a store that sends all of an
// object, whatever range is asked for: it sends them once for each chunk.
const maxWhole = 256 << 20

// wrongAnswerError means that the store sent something else than was asked for.
type wrongAnswerError struct {
	problem string
	kind    error // nil, or what callers ask for
}

func (e *wrongAnswerError) Error() string { return e.problem }
func (e *wrongAnswerError) Unwrap() error { return e.kind }

func wrongAnswer(format string, args ...any) error {
	return &wrongAnswerError{problem: fmt.Sprintf(format, args...)}
}

// ErrChecksum means that an object has another checksum than it was written with.
var ErrChecksum = errors.New("another checksum than it was written with")

// answer is the answer to a request for a range, or for the whole object.
type answer struct {
	*s3.GetObjectOutput
	span
}

// ask requests bytes of an object, [from, to), and checks that the answer has them:
// exactly these, up to the end of the object, or the whole object. With to 0, it
// requests the whole object. The caller closes the answer's Body.
func (o *Object) ask(ctx context.Context, c *s3.Client, region func(*s3.Options), from, to int64) (answer, error) {
	in := &s3.GetObjectInput{Bucket: &o.Bucket, Key: &o.Key}
	if o.answered {
		in.IfMatch = optional(o.ETag)
	}
	asked := "the whole object"
	if to > 0 {
		in.Range = aws.String(fmt.Sprintf("bytes=%d-%d", from, to-1))
		asked = span{from, to, -1}.String()
	}
	out, err := c.GetObject(ctx, in, region)
	if err != nil {
		return answer{}, err
	}
	a := answer{GetObjectOutput: out}
	if a.span, err = spanOf(out); err == nil {
		err = o.check(a, from, to)
	}
	if err == nil {
		return a, nil
	}
	out.Body.Close()
	var wrong *wrongAnswerError
	if errors.As(err, &wrong) {
		err = wrongAnswer("the store sent %s; asked for were %s", wrong.problem, asked)
	}
	return a, err
}

// check compares an answer with what was asked for. The first answer about an
// object says its version and size; the others must agree. The version of an object
// without ETag, such as a file that was copied into the folder of a store, is its
// time.
func (o *Object) check(a answer, from, to int64) error {
	switch etag := aws.ToString(a.ETag); {
	case etag == "" && (o.ETag != "" || a.LastModified == nil):
		return errNoETag
	case !o.answered:
		if a.total < 0 {
			return wrongAnswer("%s and did not say how many bytes the object has", a.span)
		}
	case etag != o.ETag, etag == "" && !a.LastModified.Equal(o.ModTime): // the store ignores the condition, or there is none
		return ErrChanged
	case a.total >= 0 && a.total != o.Size:
		return wrongAnswer("%s, but an earlier answer said that it has %d bytes", a.span, o.Size)
	}
	length := a.ContentLength
	switch {
	case length != nil && *length != a.to-a.from:
		return wrongAnswer("%d bytes as %s", *length, a.span)
	case a.from == from && a.to == min(to, max(a.total, o.Size)):
		return nil
	case a.isWhole() && length != nil && a.total > maxWhole && to > 0:
		return wrongAnswer("all %d bytes of the object (it ignores ranges, which is too slow for an object of this size)", a.total)
	case a.isWhole() && length != nil:
		return nil
	}
	return wrongAnswer("%s", a.span)
}

// spanOf returns which bytes an answer has. Content-Range says it, whatever the
// status is: some stores send a part with status 200. Without one, 200 means the
// whole object. Source: RFC 9110, 14.2, 14.4 and 15.3.7.
func spanOf(out *s3.GetObjectOutput) (span, error) {
	response, ok := awsmiddleware.GetRawResponse(out.ResultMetadata).(*smithyhttp.Response)
	if !ok {
		return span{}, wrongAnswer("an answer without a status")
	}
	ranges := response.Header.Values("Content-Range")
	switch {
	case len(ranges) == 1:
		s, ok := parseContentRange(ranges[0])
		if !ok {
			return s, wrongAnswer("an invalid Content-Range, %.60q", ranges[0])
		}
		return s, nil
	case len(ranges) > 1:
		return span{}, wrongAnswer("several Content-Ranges, %.60q", strings.Join(ranges, ", "))
	case response.StatusCode != http.StatusOK:
		what := fmt.Sprintf("a part without saying which (HTTP %d)", response.StatusCode)
		if kind := response.Header.Get("Content-Type"); strings.HasPrefix(kind, "multipart/") {
			what = "several parts (multipart/byteranges)"
		}
		return span{}, wrongAnswer("%s", what)
	case out.ContentLength == nil:
		return span{}, wrongAnswer("all of the object and did not say how many bytes it has (no Content-Length)")
	}
	return span{0, *out.ContentLength, *out.ContentLength}, nil
}

// parseContentRange reads "bytes 0-99/1000", where * may stand for the 1000.
func parseContentRange(text string) (s span, ok bool) {
	unit, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	bounds, total, found := strings.Cut(strings.TrimSpace(rest), "/")
	first, last, dash := strings.Cut(bounds, "-")
	if !strings.EqualFold(unit, "bytes") || !found || !dash {
		return s, false
	}
	number := func(text string) int64 {
		n, err := strconv.ParseUint(text, 10, 62)
		if err != nil {
			ok = false
		}
		return int64(n)
	}
	ok = true
	s = span{from: number(first), to: number(last) + 1, total: -1}
	if total != "*" {
		s.total = number(total)
	}
	return s, ok && s.from < s.to && (s.total < 0 || s.to <= s.total)
}

// read reads the bytes of an answer from an offset of the object on into p, and
// returns how many of them are certain.
func (a answer) read(p []byte, off int64) (n int, err error) {
	if skip := off - a.from; skip > 0 {
		if _, err := io.CopyN(io.Discard, a.Body, skip); err != nil {
			return 0, err
		}
	}
	if a.ContentLength != nil { // net/http holds the body to it
		return io.ReadFull(a.Body, p)
	}
	// The body has the length that its Content-Range says, unless something on the
	// way, such as compression, made other bytes of it.
	one := make([]byte, 1)
	for n < len(p) && err == nil {
		var m int
		m, err = a.Body.Read(p[n:])
		n += m
	}
	switch {
	case n < len(p) && err == io.EOF:
		return 0, wrongAnswer("the store sent %d bytes as %s", n, a.span)
	case n < len(p):
		return 0, err
	}
	if m, _ := io.ReadFull(a.Body, one); m > 0 {
		return 0, wrongAnswer("the store sent more bytes than the %d of %s", n, a.span)
	}
	return n, nil
}
