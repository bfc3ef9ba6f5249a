package main

import (
	"context"
	"io"
	"sync"
)

// stdinBlock is how much of standard input is read at once.
const stdinBlock = 256 << 10

// stoppable is r with a Read that returns when ctx ends. A Read that waits for
// somebody to type, or for a pipe to say more, would otherwise outlast the
// first Ctrl-C. What waits for r then stays behind in a goroutine: use it for
// what lasts as long as the process. Nothing is read of r before the first
// Read.
func stoppable(ctx context.Context, r io.Reader) io.Reader {
	return readFunc(sync.OnceValue(func() io.Reader {
		out, in := io.Pipe()
		context.AfterFunc(ctx, func() { in.CloseWithError(ctx.Err()) })
		go func() {
			_, err := io.CopyBuffer(in, struct{ io.Reader }{r}, make([]byte, stdinBlock))
			in.CloseWithError(err)
		}()
		return out
	}))
}

// readFunc reads from what it returns.
type readFunc func() io.Reader

func (f readFunc) Read(p []byte) (int, error) { return f().Read(p) }
