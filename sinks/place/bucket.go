package place

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/sourcegraph/conc/pool"

	"github.com/leadetl/leadetl/internal/directio"
	"github.com/leadetl/leadetl/internal/longlock"
	"github.com/leadetl/leadetl/internal/objects"
)

// lockName is the object that locks the dataset. It is not a file of the dataset;
// readers of folders ignore names that begin with _.
const lockName = "_lock"

// bucket is a prefix of keys on S3. S3 has no rename, so a file is written on this
// machine and sent when it is complete.
type bucket struct {
	ctx   context.Context // never cancelled: requests finish, or the store gives up
	store *objects.Store
	at    objects.Location
	lock  *objects.Lock // nil for a reader
	work  *workFolder   // nil for a reader
	share bool          // other processes write too
	log   *slog.Logger

	mu      longlock.Lock
	own     map[string]objects.Info // the objects; nil while they are unknown
	foreign []string
}

var _ Place = (*bucket)(nil)

// openBucket locks a prefix: with a lock in the state folder against processes of this
// machine, and with a lock object against other machines.
func openBucket(ctx context.Context, uri string, o Options) (_ *bucket, err error) {
	at, err := objects.ParseFolder(uri)
	if err != nil {
		return nil, err
	}
	if o.Objects == nil {
		return nil, fmt.Errorf("%s: no object store is configured", at)
	}
	b := &bucket{mu: longlock.New(), ctx: context.WithoutCancel(ctx), store: o.Objects, at: at, log: o.Objects.Log(), share: o.Share}
	if _, foreign, err := b.Files(); err != nil || len(foreign) > 0 || o.Look {
		return b, err // write nothing where others have files
	}
	if b.work, err = openWorkFolder(o.State, at.String()); err != nil {
		return nil, err
	}
	take := b.store.Lock
	if b.share {
		take = b.store.Share
	}
	if b.lock, err = take(b.ctx, at.Below(lockName), cmp.Or(o.Holder, objects.Holder{Name: b.work.holder})); err != nil {
		return nil, errors.Join(err, b.work.close(errors.Is(err, fs.ErrNotExist)))
	}
	b.changed() // the previous holder of the lock may have written
	b.abortUploads()
	return b, nil
}

// abortUploads aborts the unfinished uploads of killed runs: those that the store
// lists, and those that are recorded here. If that is not allowed, a lifecycle rule of
// the bucket can do it. Of a shared dataset, listed uploads may be those of others.
func (b *bucket) abortUploads() {
	if b.share {
		return
	}
	err := b.store.AbortUploads(b.ctx, b.at, func(name string) bool {
		return isDatasetFile(strings.TrimSuffix(path.Dir(name), "."), path.Base(name))
	})
	if err := errors.Join(err, b.abortRecorded()); err != nil {
		b.log.Warn("unfinished uploads of earlier runs may be left in the bucket", "reason", err.Error())
	}
}

func (b *bucket) Close() error {
	if b.lock == nil {
		return nil
	}
	if b.store.SentInPieces() && b.lock.Renew(b.ctx) == nil { // else they may be those of who took over
		b.abortUploads()
	}
	err := b.lock.Release()
	if err != nil {
		b.log.Warn("the dataset's lock could not be removed; the next run with the same --state takes it over", "reason", err.Error())
	}
	return b.work.close(err == nil)
}

func (b *bucket) URI() string             { return b.at.String() }
func (b *bucket) Path(name string) string { return b.at.Below(name).String() }

// Refresh makes the next call list the objects again, which others may have
// written.
func (b *bucket) Refresh() { b.changed() }

// changed drops the listing.
func (b *bucket) changed() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.own = nil
}

// listing returns the objects under the prefix. It is asked for again only after a
// change or Refresh, because only this run writes there, unless it is shared.
func (b *bucket) listing() (own map[string]objects.Info, foreign []string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.own != nil {
		return b.own, b.foreign, nil
	}
	own = map[string]objects.Info{}
	files, folders, err := b.store.ListFolder(b.ctx, b.at)
	if err != nil {
		return nil, nil, err
	}
	foreign = sortOut(own, nil, "", files)
	below := pool.New().WithErrors().WithFirstError().WithMaxGoroutines(atOnce)
	var sorting sync.Mutex
	for _, name := range folders {
		folder := strings.TrimSuffix(name, "/")
		if !slices.Contains(HiddenFolders, folder) && !partitionFolder.MatchString(folder) {
			sorting.Lock()
			foreign = append(foreign, folder)
			sorting.Unlock()
			continue
		}
		below.Go(func() error {
			files, folders, err := b.store.ListFolder(b.ctx, b.at.Below(name))
			sorting.Lock()
			defer sorting.Unlock()
			foreign = sortOut(own, foreign, folder, files)
			for _, deeper := range folders {
				foreign = append(foreign, path.Join(folder, deeper))
			}
			return err
		})
	}
	if err := below.Wait(); err != nil {
		return nil, nil, err
	}
	slices.Sort(foreign)
	b.own, b.foreign = own, foreign
	return own, foreign, nil
}

// sortOut adds the files of the dataset in a folder to own, and the names of the others
// to foreign.
func sortOut(own map[string]objects.Info, foreign []string, folder string, files map[string]objects.Info) []string {
	for name, info := range files {
		switch full := path.Join(folder, name); {
		case isDatasetFile(folder, name):
			own[full] = info
		case full != lockName:
			foreign = append(foreign, full)
		}
	}
	return foreign
}

func (b *bucket) Files() (own, foreign []string, err error) {
	infos, foreign, err := b.listing()
	return slices.Sorted(maps.Keys(infos)), foreign, err
}

// Walk lists foreign folders, but not the files in them.
func (b *bucket) Walk(context.Context) ([]string, error) {
	own, foreign, err := b.Files()
	return slices.Concat(own, foreign), err
}

func (b *bucket) Read(name string) (data []byte, err error) {
	err = b.await(name, func() (bool, error) { return b.mustHave(name) }, func() error {
		data, _, err = b.store.ReadFile(b.ctx, b.at.Below(name))
		return err
	})
	return data, err
}

// mustHave reports whether a small file exists for sure: the manifest of a finished dataset does.
func (b *bucket) mustHave(name string) (bool, error) {
	if name != ManifestName {
		return false, nil
	}
	_, err := b.store.Stat(b.ctx, b.at.Below(SuccessName))
	if isMissing(err) {
		return false, nil
	}
	return err == nil, err
}

func (b *bucket) Write(name string, data []byte) error {
	mime := "application/json"
	switch {
	case name == SuccessName:
		mime = "text/plain; charset=utf-8"
	case strings.HasSuffix(name, ".html"):
		mime = "text/html; charset=utf-8"
	}
	_, err := b.put(name, objects.ContentOf(data, mime))
	return err
}

// put writes an object if the lock is still ours.
func (b *bucket) put(name string, c objects.Content) (objects.Info, error) {
	if err := b.lock.Renew(b.ctx); err != nil {
		return objects.Info{}, err
	}
	defer b.changed()
	c.Begun = func(upload string) error { return b.work.begun(name, upload) }
	info, err := b.store.Put(b.ctx, b.at.Below(name), c)
	if err == nil {
		err = b.work.written(name)
	}
	return info, b.late(name, err)
}

// atOnce bounds the requests of one kind that are in flight.
const atOnce = 16

func (b *bucket) Remove(names ...string) error {
	if len(names) == 0 {
		return nil
	}
	if err := b.lock.Renew(b.ctx); err != nil {
		return err
	}
	defer b.changed()
	p := pool.New().WithErrors().WithFirstError().WithMaxGoroutines(atOnce)
	for _, name := range names {
		p.Go(func() error { return b.store.Remove(b.ctx, b.at.Below(name)) })
	}
	return p.Wait()
}

func (b *bucket) Create(name string) (Unfinished, error) {
	spool := strings.ReplaceAll(name, "/", "-")
	file, err := b.work.in.Create(spool, 0o600)
	if err != nil {
		return nil, err
	}
	sum := sha256.New()
	return &upload{directio.NewSmall(file, sum), b, name, file, spool, sum}, nil
}

// Check uses the listing, so that one request checks a thousand parts. It asks for a file
// that is not listed, because listings may be late.
func (b *bucket) Check(f File) error {
	own, _, err := b.listing()
	if err != nil {
		return err
	}
	info, found := own[f.Name]
	if !found {
		info.Location = b.at.Below(f.Name)
	}
	if info.Size == f.Bytes && f.ETag != "" && info.ETag == f.ETag {
		return nil
	}
	object, err := b.open(f.Name, info) // the listed size may be another than that of the bytes
	if err != nil {
		return err
	}
	defer object.Close()
	if err := f.checkSize(object.Size); err != nil || f.ETag != "" && object.ETag == f.ETag {
		return err
	}
	stream := object.Stream()
	defer stream.Close()
	return f.checkSum(stream)
}

// Sum only checks, because an upload has its checksum before it is sent.
func (b *bucket) Sum(_ context.Context, files []*File) error {
	for _, f := range files {
		if f.SHA256 == "" {
			return fmt.Errorf("%s was recorded without a checksum: %w", f.Name, ErrCorrupt)
		}
	}
	return nil
}

func (b *bucket) Open(name string) (*OpenFile, error) {
	object, err := b.open(name, objects.Info{Location: b.at.Below(name)})
	if err != nil {
		return nil, err
	}
	return &OpenFile{object, object, object.Size}, nil
}

// open opens an object that must exist.
func (b *bucket) open(name string, info objects.Info) (object *objects.Object, err error) {
	err = b.await(name, func() (bool, error) { return true, nil }, func() error {
		object, err = b.store.Open(b.ctx, info)
		return err
	})
	return object, err
}

// await repeats a read of an object that must exist, while it is needed.
func (b *bucket) await(name string, needed func() (bool, error), read func() error) error {
	return b.late(name, b.store.Await(b.ctx, needed, read))
}

func (b *bucket) late(name string, err error) error {
	if errors.Is(err, objects.ErrLate) {
		err = &LateError{name, b.Path(name)}
	}
	return err
}
