package keyed

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"

	"github.com/sourcegraph/conc/pool"

	"github.com/leadetl/leadetl/internal/atomicfile"
)

// A file that is kept elsewhere is read page by page, each when it is first needed. The pages are in a local
// file without a name, which is as long as the other and takes the space of the pages that were read.

// Remote is a file that is kept elsewhere.
type Remote struct {
	io.ReaderAt // reads exactly what it is asked for: each read is a request
	io.Closer
	Path string // for messages
	Size int64
}

const (
	// wholeBytes is how long a file is at most that is read whole when it is opened, and lastBytes what is read of another
	// one at first.
	wholeBytes, lastBytes = 1 << 20, 1 << 16
	// mostPages is how many pages one request reads at most. It also reads up to fewPages between two that are
	// needed.
	mostPages, fewPages = 128, 24
	// requestsAtOnce bounds the requests that are in flight for a file.
	requestsAtOnce = 8
)

// remote has the pages of a file that is kept elsewhere.
type remote struct {
	Remote
	local *os.File
	page  func(i int64) (from, to int64)

	mu    sync.Mutex
	came  *sync.Cond
	pages []pageState // of the body
	next  int64       // the page behind the last one that was needed
	ahead int64       // how many pages to read together if that one is needed now
}

type pageState uint8

const (
	elsewhere pageState = iota
	coming
	here
)

// OpenRemote opens a file of records that is kept elsewhere, with its pages in a temporary file of the folder
// scratch. Its methods return the errors of from, too.
func OpenRemote(from Remote, scratch string, fields int) (*File, error) {
	c, err := openRemote(from, scratch)
	if err != nil {
		return nil, errors.Join(err, from.Close())
	}
	return openFile(c, fields)
}

func openRemote(from Remote, scratch string) (f *Columns, err error) {
	r := &remote{Remote: from, ahead: 1}
	r.came = sync.NewCond(&r.mu)
	if r.local, err = atomicfile.Nameless(scratch); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.local.Close())
		}
	}()
	if err := r.local.Truncate(from.Size); err != nil {
		return nil, err
	}
	f = &Columns{path: from.Path, remote: r, scattered: true}
	if f.data, err = mapFile(r.local); err != nil {
		return nil, err
	}
	f.mapped = true
	if err = f.readContents(); err != nil {
		return nil, errors.Join(err, unmap(f.data))
	}
	return f, nil
}

// readContents reads what is behind the body, and the body of a short file.
func (f *Columns) readContents() error {
	r, size := f.remote, f.remote.Size
	from := size - min(size, lastBytes)
	if size <= wholeBytes {
		from = 0
	}
	if err := r.copy(from, size); err != nil {
		return err
	}
	if size >= trailerBytes {
		body := int64(binary.NativeEndian.Uint64(f.data[size-trailerBytes:]))
		if body >= 0 && body < from {
			if err := r.copy(body, from); err != nil {
				return err
			}
		}
	}
	if err := f.contents(); err != nil {
		return fmt.Errorf("open %s: %w: %w", f.path, ErrDamaged, err)
	}
	r.page, r.pages = f.page, make([]pageState, len(f.sums))
	if from == 0 {
		for page := range r.pages {
			r.pages[page] = here
		}
	}
	return nil
}

// copy reads bytes into the local file.
func (r *remote) copy(from, to int64) error {
	text := make([]byte, to-from)
	if n, err := r.ReadAt(text, from); n < len(text) {
		return err
	}
	_, err := r.local.WriteAt(text, from)
	return err
}

// unread is the panic of a page that cannot be read.
type unread struct{ error }

// need reads a page, and those that are likely needed next. It panics if the page cannot be read.
func (r *remote) need(page int64) {
	if r.isHere(page) {
		return
	}
	if err := r.bring(page, r.endFrom(page)); err != nil {
		panic(unread{err})
	}
}

// endFrom returns up to which page to read from one on: more and more while they are needed in order.
func (r *remote) endFrom(page int64) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ahead = min(2*r.ahead, mostPages); page != r.next {
		r.ahead = 1
	}
	r.next = min(page+r.ahead, int64(len(r.pages)))
	return r.next
}

// bring makes the pages from one on readable, up to another one or to the first that is here.
func (r *remote) bring(page, end int64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.pages[page] == coming {
		r.came.Wait()
	}
	if r.pages[page] == here {
		return nil
	}
	to := page
	for ; to < end && r.pages[to] == elsewhere; to++ {
		r.pages[to] = coming
	}
	r.mu.Unlock()
	from, _ := r.page(page)
	_, last := r.page(to - 1)
	err := r.copy(from, last)
	r.mu.Lock()
	state := here
	if err != nil {
		state = elsewhere
	}
	for ; page < to; page++ {
		r.pages[page] = state
	}
	r.came.Broadcast()
	return err
}

// expect reads pages that are needed next, some requests at a time. Who needs a page that cannot be read asks
// again.
func (r *remote) expect(pages []int64) {
	slices.Sort(pages)
	reading := pool.New().WithMaxGoroutines(requestsAtOnce)
	for len(pages) > 0 {
		n := 1
		for n < len(pages) && pages[n] <= pages[n-1]+fewPages && pages[n] < pages[0]+mostPages {
			n++
		}
		first, end := pages[0], pages[n-1]+1
		pages = pages[n:]
		reading.Go(func() { r.bringAll(first, end) })
	}
	reading.Wait()
}

// bringAll makes all pages of a range readable.
func (r *remote) bringAll(page, end int64) {
	for ; page < end; page++ {
		if !r.isHere(page) && r.bring(page, end) != nil {
			return
		}
	}
}

func (r *remote) isHere(page int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pages[page] == here
}

func (r *remote) close() error { return errors.Join(r.local.Close(), r.Close()) }
