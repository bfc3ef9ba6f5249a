// Package bucket is the store below a prefix of a bucket. S3 has no rename, so a large file is written on
// this machine and sent when it is complete.
package bucket

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/sourcegraph/conc/pool"

	"github.com/leadetl/leadetl/internal/disk"
	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/internal/store"
)

// LockName ends the name of the object that locks a folder.
const LockName = "_lock"

// Bucket is a store.Store. Requests finish, or the store of objects gives up, also when their context
// ends.
type Bucket struct {
	objects *objects.Store
	at      objects.Location
	options Options

	mu     sync.Mutex
	leased *leased // the lease of the store itself, if it is held here
}

var _ store.Store = (*Bucket)(nil)

// Options say how a bucket is used. The zero value is enough for small files.
type Options struct {
	// State is the folder of a state. It has unfinished files, and records of their uploads and of who
	// holds which store. Only who holds the lease of the store begins files.
	State disk.Folder
	// Scratch is a folder of the file system for the unfinished files of who has no State. They have no names
	// there, and their uploads are not recorded.
	Scratch string
	// Ours tells names of files of this store from those that others send. Nil is all.
	Ours func(name string) bool
}

// Open is the store at a URI, s3://bucket/prefix/. It asks for nothing yet.
func Open(s *objects.Store, uri string, o Options) (*Bucket, error) {
	at, err := objects.ParseFolder(uri)
	if err != nil {
		return nil, err
	}
	if s == nil {
		return nil, fmt.Errorf("%s: no object store is configured", at)
	}
	if o.Ours == nil {
		o.Ours = func(string) bool { return true }
	}
	return &Bucket{objects: s, at: at, options: o}, nil
}

// String is that of store.Store.
func (b *Bucket) String() string { return b.at.String() }

// Path is that of store.Store.
func (b *Bucket) Path(name string) string { return b.at.Below(name).String() }

// Above is the store of the prefix that has this one; nil for the bucket itself.
func (b *Bucket) Above() (store.Store, error) {
	if b.at.Key == "" {
		return nil, nil
	}
	in := path.Dir(strings.TrimSuffix(b.at.Key, "/"))
	return Open(b.objects, objects.Location{Bucket: b.at.Bucket, Key: strings.TrimPrefix(in, ".")}.String(), Options{})
}

// change renews the lease of the store, if it is held here, before what changes a file.
func (b *Bucket) change(ctx context.Context, do func(ctx context.Context) error) error {
	ctx = context.WithoutCancel(ctx)
	b.mu.Lock()
	held := b.leased
	b.mu.Unlock()
	if held != nil {
		if err := held.Renew(ctx); err != nil {
			return err
		}
	}
	return do(ctx)
}

// Create is that of store.Store.
func (b *Bucket) Create(ctx context.Context, name string, data []byte) error {
	return b.change(ctx, func(ctx context.Context) error {
		return b.objects.Create(ctx, b.at.Below(name), objects.ContentOf(data, mime(name)))
	})
}

// Put is that of store.Store.
func (b *Bucket) Put(ctx context.Context, name string, data []byte) error {
	_, err := b.put(ctx, name, objects.ContentOf(data, mime(name)))
	return err
}

func (b *Bucket) put(ctx context.Context, name string, c objects.Content) (info objects.Info, err error) {
	err = b.change(ctx, func(ctx context.Context) error {
		work := b.work()
		if work != nil {
			c.Begun = func(upload string) error { return work.begun(name, upload) }
		}
		if info, err = b.objects.Put(ctx, b.at.Below(name), c); err == nil && work != nil {
			err = work.written(name)
		}
		return err
	})
	return info, err
}

// mime is the type of a file, as its name says.
func mime(name string) string {
	switch path.Ext(name) {
	case ".json":
		return "application/json"
	case ".html":
		return "text/html; charset=utf-8"
	case ".parquet":
		return "application/vnd.apache.parquet"
	}
	if path.Base(name) == "_SUCCESS" {
		return "text/plain; charset=utf-8"
	}
	return "application/octet-stream"
}

// Read is that of store.Store.
func (b *Bucket) Read(ctx context.Context, name string) ([]byte, error) {
	data, _, err := b.objects.ReadFile(ctx, b.at.Below(name))
	return data, err
}

// Open is that of store.Store.
func (b *Bucket) Open(ctx context.Context, name string) (*store.Object, error) {
	return b.open(ctx, name, objects.Info{Location: b.at.Below(name)})
}

func (b *Bucket) open(ctx context.Context, name string, info objects.Info) (*store.Object, error) {
	o, err := b.objects.Open(ctx, info)
	if err != nil {
		return nil, err
	}
	return &store.Object{ReaderAt: o, Closer: o, Info: infoOf(name, o.Info), Stream: o.Stream, Ranges: o.Ranges()}, nil
}

func infoOf(name string, info objects.Info) store.Info {
	return store.Info{Name: name, Size: info.Size, ModTime: info.ModTime, ETag: info.ETag}
}

// Check is that of store.Store.
func (b *Bucket) Check(ctx context.Context, f store.File, listed store.Info) error {
	if f.ETag != "" && f.Same(listed) {
		return nil
	}
	info := objects.Info{Location: b.at.Below(f.Name), Size: listed.Size, ModTime: listed.ModTime, ETag: listed.ETag}
	o, err := b.open(ctx, f.Name, info) // the listed size may be another than that of the bytes
	if err != nil {
		return err
	}
	return errors.Join(f.CheckObject(o), o.Close())
}

// List is that of store.Store.
func (b *Bucket) List(ctx context.Context, prefix string) iter.Seq2[store.Info, error] {
	return func(yield func(store.Info, error) bool) {
		for info, err := range b.objects.List(ctx, b.at.Below(prefix)) {
			if !yield(infoOf(strings.TrimPrefix(info.Key, b.at.Key), info), err) || err != nil {
				return
			}
		}
	}
}

// Entries is that of store.Store.
func (b *Bucket) Entries(ctx context.Context, folder string) (infos []store.Info, err error) {
	if folder != "" {
		folder = strings.TrimSuffix(folder, "/") + "/"
	}
	files, folders, err := b.objects.ListFolder(ctx, b.at.Below(folder))
	for _, name := range folders {
		infos = append(infos, store.Info{Name: folder + name})
	}
	for name, info := range files {
		infos = append(infos, infoOf(folder+name, info))
	}
	slices.SortFunc(infos, func(a, b store.Info) int { return strings.Compare(a.Name, b.Name) })
	return infos, err
}

// atOnce bounds the requests of one kind that are in flight.
const atOnce = 16

// Remove is that of store.Store.
func (b *Bucket) Remove(ctx context.Context, names ...string) error {
	if len(names) == 0 {
		return nil
	}
	return b.change(ctx, func(ctx context.Context) error {
		p := pool.New().WithErrors().WithFirstError().WithMaxGoroutines(atOnce)
		for _, name := range names {
			p.Go(func() error { return b.objects.Remove(ctx, b.at.Below(name)) })
		}
		return p.Wait()
	})
}

// Await is that of store.Store.
func (b *Bucket) Await(ctx context.Context, name string, needed func() (bool, error), read func() error) error {
	return b.objects.Await(ctx, needed, read)
}

// Begin is that of store.Store.
func (b *Bucket) Begin(ctx context.Context, name string) (store.Unfinished, error) {
	work := b.work()
	switch {
	case work != nil:
		return work.start(ctx, b, name)
	case b.options.State == nil:
		return b.startNameless(ctx, name)
	}
	return nil, fmt.Errorf("begin %s: its lease is not held", b.Path(name))
}

func (b *Bucket) work() *workFolder {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.leased == nil {
		return nil
	}
	return b.leased.work
}
