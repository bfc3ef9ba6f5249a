package sinks

import (
	"context"
	"crypto/sha256"
	"io"
)

func sha256Streams(_ context.Context, readers []io.Reader) ([][32]byte, error) {
	sums := make([][32]byte, len(readers))
	for i, r := range readers {
		h := sha256.New()
		if _, err := io.Copy(h, r); err != nil {
			return nil, err
		}
		h.Sum(sums[i][:0])
	}
	return sums, nil
}
