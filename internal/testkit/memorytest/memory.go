// Package memorytest is a store in memory, for tests.
package memorytest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/leadetl/leadetl/internal/filelock"
	"github.com/leadetl/leadetl/internal/lease"
	"github.com/leadetl/leadetl/internal/store"
)

// Memory is a store.Store.
type Memory struct {
	mu      sync.Mutex
	files   map[string]file
	leases  map[string]*held
	changed time.Time
}

type file struct {
	data []byte
	at   time.Time // of no other change
}

var _ store.Store = (*Memory)(nil)

// New makes an empty store.
func New() *Memory { return &Memory{files: map[string]file{}, leases: map[string]*held{}} }

// String is that of store.Store.
func (m *Memory) String() string { return "memory:" }

// Path is that of store.Store.
func (m *Memory) Path(name string) string { return m.String() + name }

// Create is that of store.Store.
func (m *Memory) Create(_ context.Context, name string, data []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if f, is := m.files[name]; is && !bytes.Equal(f.data, data) {
		return m.failed(name, fs.ErrExist)
	} else if !is {
		m.put(name, data)
	}
	return nil
}

// Put is that of store.Store.
func (m *Memory) Put(_ context.Context, name string, data []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.put(name, data)
	return nil
}

func (m *Memory) put(name string, data []byte) time.Time {
	now := time.Now().UTC().Round(0)
	if !now.After(m.changed) {
		now = m.changed.Add(1)
	}
	m.changed = now
	m.files[name] = file{bytes.Clone(data), now}
	return now
}

func (m *Memory) failed(name string, err error) error {
	return &fs.PathError{Op: "use", Path: m.Path(name), Err: err}
}

// Read is that of store.Store.
func (m *Memory) Read(_ context.Context, name string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f, is := m.files[name]
	if !is {
		return nil, m.failed(name, fs.ErrNotExist)
	}
	return bytes.Clone(f.data), nil
}

// Open is that of store.Store.
func (m *Memory) Open(_ context.Context, name string) (*store.Object, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f, is := m.files[name]
	if !is {
		return nil, m.failed(name, fs.ErrNotExist)
	}
	return &store.Object{ReaderAt: bytes.NewReader(f.data), Closer: io.NopCloser(nil), Info: f.info(name)}, nil
}

func (f file) info(name string) store.Info {
	return store.Info{Name: name, Size: int64(len(f.data)), ModTime: f.at}
}

// Check is that of store.Store.
func (m *Memory) Check(ctx context.Context, f store.File, _ store.Info) error {
	o, err := m.Open(ctx, f.Name)
	if err != nil {
		return err
	}
	return f.CheckObject(o)
}

// List is that of store.Store.
func (m *Memory) List(_ context.Context, prefix string) iter.Seq2[store.Info, error] {
	m.mu.Lock()
	files := maps.Clone(m.files)
	m.mu.Unlock()
	return func(yield func(store.Info, error) bool) {
		for _, name := range slices.Sorted(maps.Keys(files)) {
			if strings.HasPrefix(name, prefix) && !yield(files[name].info(name), nil) {
				return
			}
		}
	}
}

// Entries is that of store.Store.
func (m *Memory) Entries(ctx context.Context, folder string) (infos []store.Info, err error) {
	if folder != "" {
		folder = strings.TrimSuffix(folder, "/") + "/"
	}
	for info := range m.List(ctx, folder) {
		if name, _, below := strings.Cut(info.Name[len(folder):], "/"); below {
			info = store.Info{Name: folder + name + "/"}
		}
		if n := len(infos); n == 0 || infos[n-1].Name != info.Name {
			infos = append(infos, info)
		}
	}
	return infos, nil
}

// Remove is that of store.Store.
func (m *Memory) Remove(_ context.Context, names ...string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range names {
		delete(m.files, name)
	}
	return nil
}

// held is a lease.
type held struct {
	lease.All // of nothing
	in        *Memory
	folder    string
}

// Lease is that of store.Store.
func (m *Memory) Lease(_ context.Context, folder string, _ store.Holder) (lease.Lease, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.leases[folder] != nil {
		return nil, fmt.Errorf("%s: %w", m.Path(folder), filelock.ErrLocked)
	}
	m.leases[folder] = &held{in: m, folder: folder}
	return m.leases[folder], nil
}

// Release is that of lease.Lease.
func (h *held) Release() error {
	h.in.mu.Lock()
	defer h.in.mu.Unlock()
	delete(h.in.leases, h.folder)
	return nil
}

// Await is that of store.Store.
func (m *Memory) Await(_ context.Context, _ string, _ func() (bool, error), read func() error) error {
	return read()
}

// unfinished is an unfinished file.
type unfinished struct {
	bytes.Buffer
	in   *Memory
	name string
}

// Begin is that of store.Store.
func (m *Memory) Begin(_ context.Context, name string) (store.Unfinished, error) {
	return &unfinished{in: m, name: name}, nil
}

// Flush is that of store.Unfinished.
func (u *unfinished) Flush() error { return nil }

// Commit is that of store.Unfinished.
func (u *unfinished) Commit() (store.File, error) {
	u.in.mu.Lock()
	defer u.in.mu.Unlock()
	at := u.in.put(u.name, u.Bytes())
	return store.File{Name: u.name, Bytes: int64(u.Len()), SHA256: fmt.Sprintf("%x", sha256.Sum256(u.Bytes())), ModifiedAt: at}, nil
}

// Abort is that of store.Unfinished.
func (u *unfinished) Abort() error { return nil }
