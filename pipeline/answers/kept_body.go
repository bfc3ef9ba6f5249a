package answers

import (
	"bytes"
	"context"
	"io"

	"github.com/klauspost/compress/gzip"
)

// KeptBody is the body of a 2xx that could not be read as an answer, with gzip. It is
// kept with its open call, because it may have been paid, and a later
// version may read it. It goes when the call ends or is forgotten.
type KeptBody []byte

const (
	// maxKeptBody bounds a kept body, compressed; a larger one is not kept.
	maxKeptBody = 64 << 10
	// maxKeptPlain bounds the same, as it was received: a client accepts no more.
	maxKeptPlain = 32 << 20
)

// keepBody returns a body as it is kept, nil if it is empty or too large.
func keepBody(body []byte) KeptBody {
	if len(body) == 0 || len(body) > maxKeptPlain {
		return nil
	}
	var kept bytes.Buffer
	w := gzip.NewWriter(&kept)
	if _, err := w.Write(body); err != nil || w.Close() != nil || kept.Len() > maxKeptBody {
		return nil
	}
	return kept.Bytes()
}

// Plain returns the body as it was received.
func (k KeptBody) Plain() ([]byte, error) {
	if len(k) == 0 {
		return nil, nil
	}
	r, err := gzip.NewReader(bytes.NewReader(k))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(r, maxKeptPlain))
}

// readBodies reads the kept bodies of the database.
func readBodies(ctx context.Context, from querier) (map[Hash]KeptBody, error) {
	bodies := map[Hash]KeptBody{}
	_, err := collect(ctx, from, func(row interface{ Scan(...any) error }) (h Hash, err error) {
		var hash, body []byte
		err = row.Scan(&hash, &body)
		copy(h[:], hash)
		bodies[h] = body
		return h, err
	}, "SELECT hash, body FROM bodies")
	return bodies, err
}

// addBodies sets the kept bodies of open calls. The caller has moved the log into the
// database.
func (s *Store) addBodies(ctx context.Context, calls []OpenCall) error {
	bodies, err := readBodies(ctx, s.reads)
	for i, c := range calls {
		calls[i].Body = bodies[c.Hash]
	}
	return err
}
