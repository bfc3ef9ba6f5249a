// Package storetest has the facts that all stores agree on.
package storetest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leadetl/leadetl/internal/filelock"
	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/internal/store"
)

// Facts are what a store does that is empty before and after. again opens it once more, as another process
// does.
var Facts = []struct {
	Name string
	Test func(t *testing.T, s store.Store, again func() store.Store)
}{
	{"what is put is read", fact(puts)},
	{"a file is created once", fact(creates)},
	{"one of many creates a file", fact(races)},
	{"a list has what is there", fact(lists)},
	{"a file appears when it is committed", fact(begins)},
	{"an open file keeps its bytes", fact(opens)},
	{"a changed file differs from its record", fact(checks)},
	{"what must exist is read", fact(awaits)},
	{"one process has the lease", fact(leases)},
	{"a log is that of the last who began", fact(logs)},
}

func fact(test func(c check)) func(*testing.T, store.Store, func() store.Store) {
	return func(t *testing.T, s store.Store, again func() store.Store) {
		test(check{t, s, again})
		check{t, s, again}.has()
	}
}

// check is one test of a store.
type check struct {
	*testing.T
	s     store.Store
	again func() store.Store
}

// did compares an error with the one that is wanted.
func (c check) did(what string, err, want error) {
	c.Helper()
	if !errors.Is(err, want) {
		c.Fatalf("%s: %v, want %v", what, err, want)
	}
}

// reads compares the content of a file.
func (c check) reads(name, want string) {
	c.Helper()
	got, err := c.again().Read(c.Context(), name)
	if err != nil || string(got) != want {
		c.Fatalf("%s has %q, want %q; %v", name, shortened(got), shortened([]byte(want)), err)
	}
}

func shortened(text []byte) []byte { return text[:min(len(text), 100)] }

// has compares the names of all files.
func (c check) has(want ...string) {
	c.Helper()
	var got []string
	for info, err := range c.again().List(c.Context(), "") {
		if err != nil && !store.IsMissing(err) {
			c.Fatal(err)
		}
		if err == nil {
			got = append(got, info.Name)
		}
	}
	if !slices.Equal(got, want) {
		c.Fatalf("there are %q, want %q", got, want)
	}
}

func (c check) put(names ...string) {
	c.Helper()
	for _, name := range names {
		c.did("put "+name, c.s.Put(c.Context(), name, []byte("in "+name)), nil)
	}
}

// clear removes files that are there.
func (c check) clear(names ...string) {
	c.Helper()
	c.did("remove", c.s.Remove(c.Context(), names...), nil)
	c.has()
}

func puts(c check) {
	_, err := c.s.Read(c.Context(), "a")
	c.did("read a file that is not there", err, fs.ErrNotExist)
	_, err = c.s.Read(c.Context(), "deep/below/a")
	c.did("read a file in no folder", err, fs.ErrNotExist)
	c.did("remove files that are not there", c.s.Remove(c.Context(), "a", "deep/a"), nil)
	for _, text := range []string{"long text", "text", "", strings.Repeat("0123456789", 100_000)} {
		for _, name := range []string{"a", "deep/below/a"} {
			c.did("put "+name, c.s.Put(c.Context(), name, []byte(text)), nil)
			c.reads(name, text)
		}
	}
	c.did("remove one", c.s.Remove(c.Context(), "deep/below/a", "deep/none"), nil)
	c.has("a")
	c.put("deep/b")
	c.has("a", "deep/b")
	c.clear("a", "deep/b", "deep/b")
}

func creates(c check) {
	for _, name := range []string{"v/1.json", "b"} {
		c.did("create "+name, c.s.Create(c.Context(), name, []byte("mine")), nil)
		c.did("create it again", c.s.Create(c.Context(), name, []byte("mine")), nil)
		c.did("create another", c.again().Create(c.Context(), name, []byte("theirs")), fs.ErrExist)
		c.reads(name, "mine")
	}
	c.clear("v/1.json", "b")
	c.did("create what was removed", c.s.Create(c.Context(), "b", []byte("theirs")), nil)
	c.clear("b")
}

func races(c check) {
	var won atomic.Int32
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			switch err := c.s.Create(c.Context(), "log/1", fmt.Append(nil, i)); {
			case err == nil:
				won.Add(1)
			case !errors.Is(err, fs.ErrExist):
				c.Error(err)
			}
		})
	}
	all.Wait()
	if won.Load() != 1 {
		c.Errorf("%d have created it", won.Load())
	}
	c.clear("log/1")
}

func lists(c check) {
	names := []string{"a/b.txt", "a/b/c", "a/b/d", "ab", "b", "c/d/e"}
	c.put(names...)
	c.has(names...)
	for _, f := range []struct {
		prefix string
		want   []string
	}{{"a/", names[:3]}, {"a/b", names[:3]}, {"a/b/", names[1:3]}, {"ab", names[3:4]}, {"none/", nil}, {"c/d/e", names[5:]}} {
		var got []string
		for info, err := range c.s.List(c.Context(), f.prefix) {
			if err != nil || info.Size != int64(len("in ")+len(info.Name)) || time.Since(info.ModTime).Abs() > time.Hour || info.IsFolder() || info.Special {
				c.Errorf("%+v, %v", info, err)
			}
			got = append(got, info.Name)
		}
		if !slices.Equal(got, f.want) {
			c.Errorf("the list of %s is %q, want %q", f.prefix, got, f.want)
		}
	}
	for range c.s.List(c.Context(), "a/") {
		break // no more is wanted
	}
	for folder, want := range map[string][]string{"": {"a/", "ab", "b", "c/"}, "a": {"a/b.txt", "a/b/"}, "a/": {"a/b.txt", "a/b/"}, "c": {"c/d/"}, "none": nil} {
		entries, err := c.s.Entries(c.Context(), folder)
		var got []string
		for _, info := range entries {
			got = append(got, info.Name)
			if info.IsFolder() != strings.HasSuffix(info.Name, "/") {
				c.Errorf("%+v", info)
			}
		}
		if err != nil && !store.IsMissing(err) || !slices.Equal(got, want) {
			c.Errorf("directly in %q are %q, want %q; %v", folder, got, want, err)
		}
	}
	c.clear(names...)
}

func begins(c check) {
	held, err := c.s.Lease(c.Context(), "", store.Holder{})
	c.did("lease", err, nil)
	for _, name := range []string{"part", "k=v/part"} {
		for _, size := range []int{0, 1, 3_000_000} {
			text := strings.Repeat("p", size)
			begin := func() store.Unfinished {
				u, err := c.s.Begin(c.Context(), name)
				c.did("begin", err, nil)
				_, err = io.Copy(u, strings.NewReader(text))
				c.did("write", err, nil)
				return u
			}
			c.did("abort", begin().Abort(), nil)
			_, err := c.s.Read(c.Context(), name)
			c.did("read what was aborted", err, fs.ErrNotExist)
			u := begin()
			c.did("flush", u.Flush(), nil)
			f, err := u.Commit()
			c.did("commit", err, nil)
			c.did("abort after commit", u.Abort(), nil)
			if f.Name != name || f.Bytes != int64(size) || f.ModifiedAt.IsZero() || f.SHA256 == "" {
				c.Errorf("the record is %+v", f)
			}
			c.reads(name, text)
			c.did("check", c.again().Check(c.Context(), f, store.Info{}), nil)
			for listed := range c.s.List(c.Context(), name) {
				c.did("check what is listed", c.s.Check(c.Context(), f, listed), nil)
			}
			f.ModifiedAt, f.ETag = f.ModifiedAt.Add(-time.Hour), cmp.Or(f.ETag, "none")+" of another"
			c.did("check the checksum", c.s.Check(c.Context(), f, store.Info{}), nil)
			c.did("remove", c.s.Remove(c.Context(), name), nil)
		}
	}
	c.did("release", held.Release(), nil)
}

func opens(c check) {
	_, err := c.s.Open(c.Context(), "f/1")
	c.did("open a file that is not there", err, fs.ErrNotExist)
	c.put("f/1")
	o, err := c.s.Open(c.Context(), "f/1")
	c.did("open", err, nil)
	text, some := make([]byte, 6), make([]byte, 3)
	if _, err := o.ReadAt(text, 0); err != nil && err != io.EOF || string(text) != "in f/1" || o.Size != 6 || o.Name != "f/1" {
		c.Errorf("it has %q, %+v, %v", text, o.Info, err)
	}
	if n, err := o.ReadAt(some, 4); err != io.EOF || string(some[:n]) != "/1" {
		c.Errorf("its end is %q, %v", some[:n], err)
	}
	all := o.Reader()
	got, err := io.ReadAll(all)
	if err != nil || string(got) != "in f/1" {
		c.Errorf("it has %q, %v", got, err)
	}
	c.did("close", errors.Join(all.Close(), o.Close()), nil)
	o, err = c.s.Open(c.Context(), "f/1")
	c.did("open", err, nil)
	c.did("replace", c.s.Put(c.Context(), "f/1", []byte("other!")), nil)
	if n, err := o.ReadAt(text, 0); string(text[:n]) != "in f/1" && n > 0 {
		c.Errorf("it has the bytes of another one: %q, %v", text, err)
	}
	c.did("close", o.Close(), nil)
	c.clear("f/1")
}

func checks(c check) {
	held, err := c.s.Lease(c.Context(), "", store.Holder{})
	c.did("lease", err, nil)
	u, err := c.s.Begin(c.Context(), "part")
	c.did("begin", err, nil)
	_, err = u.Write([]byte("rows"))
	c.did("write", errors.Join(err, u.Flush()), nil)
	f, err := u.Commit()
	c.did("commit", err, nil)
	c.did("check", c.s.Check(c.Context(), f, store.Info{}), nil)
	f.ModifiedAt = f.ModifiedAt.Add(-time.Hour) // two changes may have one time on a disk
	for _, text := range []string{"cut", "more rows", "sort"} {
		c.did("put", c.s.Put(c.Context(), "part", []byte(text)), nil)
		c.did("check "+text, c.s.Check(c.Context(), f, store.Info{}), store.ErrChanged)
	}
	c.did("put it again", c.s.Put(c.Context(), "part", []byte("rows")), nil)
	c.did("check it", c.s.Check(c.Context(), f, store.Info{}), nil)
	c.did("remove", c.s.Remove(c.Context(), "part"), nil)
	c.did("check what is missing", c.s.Check(c.Context(), f, store.Info{}), fs.ErrNotExist)
	c.did("release", held.Release(), nil)
}

func awaits(c check) {
	c.put("a")
	read := func(name string) func() error {
		return func() error {
			_, err := c.s.Read(c.Context(), name)
			return err
		}
	}
	c.did("await a file that is there", c.s.Await(c.Context(), "a", store.Always, read("a")), nil)
	err := c.s.Await(c.Context(), "b", func() (bool, error) { return false, nil }, read("b"))
	c.did("await one that is not needed", err, fs.ErrNotExist)
	c.clear("a")
}

func named(name string) store.Holder { return store.Holder{Holder: objects.Holder{Name: name}} }

func leases(c check) {
	other := c.again()
	for _, folder := range []string{"", "nights"} {
		held, err := c.s.Lease(c.Context(), folder, named("one"))
		c.did("lease", err, nil)
		_, err = other.Lease(c.Context(), folder, named("another"))
		c.did("lease it again", err, filelock.ErrLocked)
		c.did("renew", held.Renew(c.Context()), nil)
		c.put("nights/1")
		c.did("release", held.Release(), nil)
		taken, err := other.Lease(c.Context(), folder, named("another"))
		c.did("lease it after that", err, nil)
		c.did("release", taken.Release(), nil)
		c.clear("nights/1")
	}
	free, err := c.s.Lease(c.Context(), "unused", store.Holder{})
	c.did("lease a folder", err, nil)
	c.did("release it unused", free.Release(), nil)
	if entries, err := c.s.Entries(c.Context(), ""); len(entries) > 0 || err != nil && !store.IsMissing(err) {
		c.Errorf("there is %+v, %v", entries, err)
	}
}

func logs(c check) {
	open := func() *store.Log { return store.NewLog(c.again(), "runs/log") }
	is := func(l *store.Log, want ...string) {
		c.Helper()
		groups, err := l.Read(c.Context(), func() (bool, error) { return false, nil })
		if got := string(bytes.Join(groups, []byte(" "))); err != nil || got != strings.Join(want, " ") {
			c.Fatalf("the log has %q, want %q; %v", got, want, err)
		}
	}
	begin := func(l *store.Log, group string) error {
		return l.Begin(c.Context(), []byte(group), func() error { return nil })
	}
	one := open()
	_, err := one.Read(c.Context(), store.Always)
	c.did("read a log that is not there", err, fs.ErrNotExist)
	c.did("begin", begin(one, "one"), nil)
	c.did("append", errors.Join(one.Append(c.Context(), []byte("a")), one.Append(c.Context(), []byte("b"))), nil)
	two := open()
	is(two, "one", "a", "b")
	c.did("append behind what the other has read", one.Append(c.Context(), []byte("c")), nil)
	c.did("begin although the other goes on", begin(two, "two"), nil)
	c.did("append after that", one.Append(c.Context(), []byte("d")), store.ErrFenced)
	c.did("append", two.Append(c.Context(), []byte("e")), nil)
	var removed []string
	last := store.NewLog(removals{c.again(), &removed}, "runs/log")
	is(last, "two", "e")
	c.did("remove a file", c.s.Remove(c.Context(), last.FileOf(1)), nil)
	_, err = open().Read(c.Context(), func() (bool, error) { return false, nil })
	if err == nil || errors.Is(err, fs.ErrNotExist) { // in a bucket, the file is late
		c.Errorf("read a log with a gap: %v", err)
	}
	_, err = open().Read(c.Context(), store.Always)
	c.did("read what is left of a removed one", err, fs.ErrNotExist)
	c.did("remove", last.Remove(c.Context()), nil)
	if want := []string{last.FileOf(0), last.FileOf(4)}; len(removed) < 2 || !slices.Equal(removed[:2], want) { // each is durable before the next one
		c.Errorf("%q is removed, want %q first", removed, want)
	}
}

// removals notes what is removed, together with spaces between.
type removals struct {
	store.Store
	noted *[]string
}

func (r removals) Remove(ctx context.Context, names ...string) error {
	*r.noted = append(*r.noted, strings.Join(names, " "))
	return r.Store.Remove(ctx, names...)
}
