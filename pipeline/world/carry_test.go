package world

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/leadetl/leadetl/internal/disk"
	"github.com/leadetl/leadetl/internal/testkit/worldtest"
	"github.com/leadetl/leadetl/pipeline/answers"
)

// firstCarrier is the number of the first life of a machine that imports answers.
const firstCarrier = 2000

// carry exports what is stored, and lets another machine import it, which dies on the way. What it has
// in the end has to be the same. A file that says something else is refused.
func (h *history) carry(ctx context.Context, from *answers.Contents) {
	file := filepath.Join(h.dir, "exported.jsonl")
	want := h.exportTo(ctx, file, from, false)
	dir := h.dir + "-imported"
	defer os.RemoveAll(dir)
	m := h.world.Another(firstCarrier)
	disk := worldtest.NewDisk(m)
	disk.Name = "imported"
	if err := os.Mkdir(dir, 0o700); err != nil {
		h.wrongly("%v", err)
		return
	}
	other := &history{world: m, plan: h.plan, disk: disk, dir: dir, known: h.known, service: h.service, scope: h.scope}
	for i := range 3 {
		last := 1 + h.world.Below(30, "import", i)
		if i == 2 {
			last = 0
		}
		_, err := other.importFile(m.Begin(ctx, last), file)
		if other.unexpected("import", err); err == nil {
			break
		}
		m.Crash()
		disk.Restart(h.world.Below(3, "import", "power cut", i) > 0)
	}
	m.Crash()
	disk.Restart(false)
	again, err := other.importFile(m.Begin(ctx, 0), file)
	if h.unexpected("import again", err); again != (answers.Taken{}) {
		h.wrongly("what is imported is imported again: %+v", again)
	}
	copied, err := other.openContents(ctx)
	if h.unexpected("open what was imported", err); err != nil {
		return
	}
	defer copied.Close()
	if got := h.exportTo(ctx, file, copied, false); got != want {
		h.wrongly("what was exported is\n%s\nand imported\n%s", want, got)
	}
	if changed := h.exportTo(ctx, file, from, true); changed != want {
		_, err := other.importFile(m.Begin(ctx, 0), file)
		if _, refused := errors.AsType[*answers.LineError](err); !refused {
			h.wrongly("a file with another answer is imported: %v", err)
		}
	}
	h.exportTo(ctx, file, from, false)
	h.importBroken(ctx, m.Begin(ctx, 0), other, file, want)
}

// importBroken imports a file with a broken line. It may be one of an export still; else the error says
// which line it is, and nothing is imported.
func (h *history) importBroken(ctx, importing context.Context, other *history, file, want string) {
	text, err := os.ReadFile(file)
	if h.unexpected("read the export", err); want == "" || err != nil {
		return
	}
	h.unexpected("break the export", os.WriteFile(file, []byte(h.breakLine(string(text))), 0o600))
	if _, err = other.importFile(importing, file); err == nil {
		return
	}
	if _, refused := errors.AsType[*answers.LineError](err); !refused {
		h.wrongly("a broken line is refused without its number: %v", err)
	}
	copied, err := other.openContents(ctx)
	if h.unexpected("open what was imported", err); err != nil {
		return
	}
	defer copied.Close()
	if got := h.exportTo(ctx, file, copied, false); got != want {
		h.wrongly("a broken line is refused, and something is imported: %s", got)
	}
}

// exportTo exports all answers and open calls, and returns their lines in order. If changed, the file
// has another first answer.
func (h *history) exportTo(ctx context.Context, file string, from *answers.Contents, changed bool) string {
	calls, err := from.Calls(ctx)
	h.unexpected("list calls", err)
	lines := func(yield func(answers.Line, error) bool) {
		for i, err := range from.List(ctx, answers.Filter{Bodies: true}) {
			if changed {
				i.Body, changed = []byte("no JSON\xff"), false
			}
			if !yield(answers.Line{Item: i}, err) {
				return
			}
		}
		for i := range calls {
			if !yield(answers.Line{Call: &calls[i]}, nil) {
				return
			}
		}
	}
	var text bytes.Buffer
	h.unexpected("export", answers.Export(&text, lines))
	h.unexpected("export", os.WriteFile(file, text.Bytes(), 0o600))
	return strings.Join(slices.Sorted(strings.Lines(text.String())), "")
}

// importFile is what a process does that imports a file.
func (h *history) importFile(ctx context.Context, file string) (taken answers.Taken, err error) {
	s, err := answers.Open(context.Background(), answers.On(h.disk), h.stored())
	if err != nil {
		return taken, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	lines, err := answers.OpenImport(ctx, file, h.dir)
	if err != nil {
		return taken, err
	}
	defer func() { err = errors.Join(err, lines.Close()) }()
	if err := lines.Check(ctx, s); err != nil {
		return taken, err
	}
	return lines.Take(ctx, s)
}

// copyTo copies the folder, with the files of its log.
func (h *history) copyTo(dir string) error {
	names, err := disk.Names(h.disk)
	err = errors.Join(err, os.Mkdir(dir, 0o700))
	for _, name := range names {
		text, read := h.disk.ReadFile(name)
		err = errors.Join(err, read, os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
	return err
}

// inspect compares what an inspection of a copy finds with what a run finds: nothing is damaged. A
// repair changes nothing.
func (h *history) inspect(ctx context.Context, dir string, found []answers.Found) {
	i, err := answers.Inspect(ctx, answers.InFolder(dir))
	h.unexpected("inspect", err)
	stored, open := int64(0), int64(0)
	for _, f := range found {
		if f.Stored {
			stored++
		}
		if f.Open != "" {
			open++
		}
	}
	if !i.Whole() || i.Lost != (answers.Lost{}) || i.Answers < stored || i.Calls != open {
		h.wrongly("of %d answers and %d calls an inspection finds %+v", stored, open, i)
	}
	aside, err := answers.Repair(ctx, answers.InFolder(dir))
	if h.unexpected("repair", err); len(aside) > 0 {
		h.wrongly("a repair sets %v aside", aside)
	}
	s, err := answers.Open(context.Background(), answers.InFolder(dir), answers.Options{})
	if h.unexpected("open what is repaired", err); err != nil {
		return
	}
	h.compareFound(ctx, s, found)
	h.unexpected("close", s.Close())
}

// impatient is a context that ends when it has been asked for some times whether it has ended: a user
// interrupts a command in the midst of its work.
type impatient struct {
	context.Context
	end  context.CancelFunc
	left atomic.Int64
}

func (h *history) impatient(ctx context.Context, of string) *impatient {
	ctx, end := context.WithCancel(ctx)
	i := &impatient{Context: ctx, end: end}
	i.left.Store(int64(1 + h.world.Below(60, "impatient", of, h.lives)))
	return i
}

func (i *impatient) count() {
	if i.left.Add(-1) == 0 {
		i.end()
	}
}

// Done is that of context.Context.
func (i *impatient) Done() <-chan struct{} {
	i.count()
	return i.Context.Done()
}

// Err is that of context.Context.
func (i *impatient) Err() error {
	i.count()
	return i.Context.Err()
}

// interrupt interrupts commands that only read. They say so, or are done.
func (h *history) interrupt(ctx context.Context, dir string) {
	for _, c := range []struct {
		name    string
		command func(ctx context.Context) error
	}{
		{"inspect", func(ctx context.Context) error {
			_, err := answers.Inspect(ctx, answers.InFolder(dir))
			return err
		}},
		{"list", func(ctx context.Context) error {
			c, err := answers.OpenContents(ctx, answers.InFolder(dir))
			if err != nil {
				return err
			}
			defer c.Close()
			for _, err := range c.List(ctx, answers.Filter{Bodies: true}) {
				if err != nil {
					return err
				}
			}
			_, failed := c.Calls(ctx)
			_, err = c.Stat(ctx)
			_, other := c.SpentSince(ctx, "")
			return errors.Join(failed, err, other)
		}},
		{"repair", func(ctx context.Context) error {
			_, err := answers.Repair(ctx, answers.InFolder(dir))
			return err
		}},
	} {
		i := h.impatient(ctx, c.name)
		if err := c.command(i); err != nil && (i.Context.Err() == nil || !errors.Is(err, context.Canceled) && !strings.Contains(err.Error(), "interrupted")) {
			h.wrongly("%s, interrupted %t: %v", c.name, i.Context.Err() != nil, err)
		}
		i.end()
	}
}

// breakLine is a file of lines with one that has another member, or none.
func (h *history) breakLine(text string) string {
	lines := strings.SplitAfter(text, "\n")
	at := h.world.Below(len(lines)-1, "broken line")
	var members map[string]any
	if err := json.Unmarshal([]byte(lines[at]), &members); err != nil {
		h.wrongly("%v", err)
		return text
	}
	names := slices.Sorted(maps.Keys(members))
	name := names[h.world.Below(len(names), "broken member")]
	others := []any{nil, "", "other", -1, 0.5, map[string]any{}, true, "2020-01-01T00:00:00Z"}
	switch i := h.world.Below(len(others)+4, "broken how"); i {
	case len(others):
		delete(members, name)
	case len(others) + 1:
		members[[]string{"body", "body_text", "body_base64", "sent_at", "received_at", "credits", "another"}[h.world.Below(7, "added member")]] = "bW9yZQ=="
	case len(others) + 2:
		lines[at] = lines[at][:h.world.Below(len(lines[at]), "cut")]
		return strings.Join(lines[:at+1], "")
	case len(others) + 3:
		return strings.Join(lines[:at], "") + "\xff" + strings.Join(lines[at:], "")
	default:
		members[name] = others[i]
	}
	line, err := json.Marshal(members)
	if err != nil {
		panic(err)
	}
	lines[at] = string(line) + "\n"
	return strings.Join(lines, "")
}
