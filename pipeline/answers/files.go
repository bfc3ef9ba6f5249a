package answers

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"os"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"unsafe"

	"github.com/leadetl/leadetl/internal/appendlog"
	"github.com/leadetl/leadetl/internal/fields"
	"github.com/leadetl/leadetl/internal/keyed"
	"github.com/leadetl/leadetl/internal/store"
	"github.com/leadetl/leadetl/resolution"
)

// A file of answers has a record for each, in the order of the hashes of their questions, which are
// the keys. A file of calls has the calls without an answer in the same way. Both have these fields
// first.
const (
	fieldHash = iota
	fieldNumbers
	fieldService
	fieldOperation
	fieldRun
	fieldState // the outcome of an answer
	fieldReason
	fieldResolution
	fieldRequest
	fieldKey // as it was asked: that of a call has its address
	fieldBody
	fieldIdempotency // of calls
)

// repeated says which of the fields repeat: their texts are in a dictionary.
var repeated = []bool{fieldService: true, fieldOperation: true, fieldRun: true, fieldState: true, fieldReason: true, fieldIdempotency: false}

// answerFields and callFields are how many fields the records of a file have.
const (
	answerFields = fieldBody + 1
	callFields   = fieldIdempotency + 1
)

// dataFile is an open file of a manifest.
type dataFile struct {
	fileRecord
	*keyed.File
	users atomic.Int64 // sets that have it
	texts [fieldReason + 1][]string
}

// openData opens a file that a manifest names.
func openData(ctx context.Context, p Place, of fileRecord, fields int) (_ *dataFile, err error) {
	f := &dataFile{fileRecord: of}
	if f.File, err = openKeyed(ctx, p, of, fields); err != nil {
		return nil, fmt.Errorf("stored answers: %w", damaged(err))
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.File.Close())
		}
	}()
	if f.File.Size() != of.Bytes || f.File.Checksum() != of.Checksum || int64(f.File.Rows()) != of.Rows {
		return nil, fmt.Errorf("stored answers: %s is %w: it is not the file that the manifest names", p.Path(of.Name), appendlog.ErrDamaged)
	}
	for i, is := range repeated[:len(f.texts)] {
		if !is {
			continue
		}
		dictionary := f.Dictionary(i)
		for code := range dictionary.Len() {
			f.texts[i] = append(f.texts[i], string(dictionary.At(int32(code))))
		}
	}
	return f, nil
}

// openKeyed opens a file of this machine as a whole, and any other page by page.
func openKeyed(ctx context.Context, p Place, of fileRecord, fields int) (*keyed.File, error) {
	if p.disk != nil {
		return keyed.Open(p.disk, of.Name, fields)
	}
	o, err := p.Open(context.WithoutCancel(ctx), of.Name)
	if err != nil {
		return nil, err
	}
	return keyed.OpenRemote(keyed.Remote{ReaderAt: o.Exactly(), Closer: o, Path: p.Path(of.Name), Size: o.Size}, p.scratch, fields)
}

// damaged turns the errors of missing and damaged files into appendlog.ErrDamaged.
func damaged(err error) error {
	if err == nil || errors.Is(err, appendlog.ErrDamaged) {
		return err
	}
	if errors.Is(err, keyed.ErrDamaged) || errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%w: %w", appendlog.ErrDamaged, err)
	}
	return fault(err)
}

// record reads the fields of a row, one after another.
type record struct {
	file *dataFile
	keyed.Fields
	field int
}

func (f *dataFile) record(row uint32) record {
	return record{file: f, Fields: f.Fields(row)}
}

// text returns the next field. It is valid until the file is closed.
func (r *record) text() []byte {
	code, text := r.Next()
	r.field++
	if code >= 0 {
		return []byte(r.file.texts[r.field-1][code])
	}
	return text
}

// name returns the next field, which is in the dictionary mostly.
func (r *record) name() string {
	code, text := r.Next()
	r.field++
	if code >= 0 {
		return r.file.texts[r.field-1][code]
	}
	return string(text)
}

// itemOf makes an answer from the fields of a record. Texts are copied into the arena.
func itemOf(texts []string, bodies bool, arena *keyed.Arena) (i Item) {
	i.Hash = Hash([]byte(texts[fieldHash]))
	i.Service, i.Operation = arena.Join(texts[fieldService]), resolution.Operation(arena.Join(texts[fieldOperation]))
	i.Run, i.Outcome, i.Reason = arena.Join(texts[fieldRun]), Outcome(arena.Join(texts[fieldState])), arena.Join(texts[fieldReason])
	i.Resolution, i.Request, i.Key = arena.Join(texts[fieldResolution]), arena.Join(texts[fieldRequest]), arena.Join(texts[fieldKey])
	i.Answer.setNumbers(&fields.Reader{Rest: []byte(texts[fieldNumbers])}, nil)
	if body := texts[fieldBody]; bodies && body != "" {
		i.Body = arena.Copy([]byte(body))
	}
	return i
}

// answer reads the answer of a row into what was found.
// Its price is behind credits, which it returns.
func (f *dataFile) answer(row uint32, bodies bool, arena *keyed.Arena, into *Answer, credits []int64) []int64 {
	r := f.record(row)
	r.Skip(1)
	r.field++
	numbers := fields.Reader{Rest: r.text()}
	r.Skip(2)
	r.field += 2
	into.Run, into.Outcome, into.Reason = r.name(), Outcome(r.name()), r.name()
	into.Resolution, into.Request = arena.Text(r.text()), arena.Text(r.text())
	credits = into.setNumbers(&numbers, credits)
	if !bodies {
		return credits
	}
	r.Skip(1)
	r.field++
	if body := r.text(); len(body) > 0 {
		into.Body = arena.Copy(body)
	}
	return credits
}

// appendNumbers encodes the numbers of an answer.
func (a *Answer) appendNumbers(to []byte) []byte {
	to = binary.AppendVarint(binary.AppendVarint(to, toMillis(a.Received)), int64(a.Status))
	if a.Credits != nil {
		to = binary.AppendVarint(to, *a.Credits)
	}
	return to
}

// setNumbers decodes what appendNumbers has encoded. The price is kept behind credits.
func (a *Answer) setNumbers(from *fields.Reader, credits []int64) []int64 {
	a.Received, a.Status = fromMillis(from.Int()), int(from.Int())
	if len(from.Rest) > 0 {
		credits = append(credits, from.Int())
		a.Credits = &credits[len(credits)-1]
	}
	if from.Broken {
		panic(errNumbers)
	}
	return credits
}

// errNumbers is a runtime.Error, so that keyed.Guard makes it ErrDamaged.
var errNumbers error = numbersError{}

type numbersError struct{}

func (numbersError) Error() string { return "the numbers of a record are cut short" }
func (numbersError) RuntimeError() {}

// call reads a row of calls.
func (f *dataFile) call(row uint32, bodies bool) *OpenCall {
	r := f.record(row)
	c := &OpenCall{Hash: Hash(r.text())}
	n := fields.Reader{Rest: r.text()}
	c.Service, c.Operation = r.name(), resolution.Operation(r.name())
	c.Run, c.State, c.Reason = r.name(), State(r.name()), r.name()
	c.Resolution, c.Request = string(r.text()), string(r.text())
	c.SetAsked(string(r.text()))
	if body := r.text(); bodies && len(body) > 0 {
		c.Body = append(KeptBody(nil), body...)
	}
	c.IdempotencyKey = string(r.text())
	c.Attempts, c.Status, c.Sent, c.Deadline, c.MaybeBilled = int(n.Int()), int(n.Int()), fromMillis(n.Int()), fromMillisOrZero(n.Int()), n.Int() != 0
	if n.Broken {
		panic(errNumbers)
	}
	return c
}

// texts of the fields of a call.
func (c *OpenCall) texts(body KeptBody) []string {
	var n []byte
	for _, number := range []int64{int64(c.Attempts), int64(c.Status), toMillis(c.Sent), toMillisOrZero(c.Deadline), boolToInt(c.MaybeBilled)} {
		n = binary.AppendVarint(n, number)
	}
	return []string{string(c.Hash[:]), string(n), c.Service, string(c.Operation), c.Run, string(c.State), c.Reason, c.Resolution, c.Request, c.Asked(), string(body), c.IdempotencyKey}
}

// fileSet are the open files of a manifest. Whoever uses them acquires the set first.
type fileSet struct {
	files []*dataFile // older generations first
	calls *dataFile   // nil without one
	users atomic.Int64
}

// each lists all files.
func (s *fileSet) each() iter.Seq[*dataFile] {
	return func(yield func(*dataFile) bool) {
		for _, f := range s.files {
			if !yield(f) {
				return
			}
		}
		if s.calls != nil {
			yield(s.calls)
		}
	}
}

// openFiles opens the files of a manifest. Those that before has open too are shared.
func openFiles(ctx context.Context, p Place, m *manifest, before *fileSet) (_ *fileSet, err error) {
	s := &fileSet{}
	s.users.Store(1)
	defer func() {
		if err != nil {
			err = errors.Join(err, s.release())
		}
	}()
	open := func(of fileRecord, fields int) (*dataFile, error) {
		if before != nil {
			for f := range before.each() {
				if f.Name == of.Name {
					f.users.Add(1)
					return f, nil
				}
			}
		}
		f, err := awaitData(ctx, p, m, of, fields)
		if err == nil {
			f.users.Store(1)
		}
		return f, err
	}
	for _, of := range m.Files {
		f, err := open(of, answerFields)
		if err != nil {
			return nil, err
		}
		s.files = append(s.files, f)
	}
	if m.Calls != nil {
		s.calls, err = open(*m.Calls, callFields)
	}
	return s, err
}

// awaitData is openData of a file that exists while the manifest is the newest.
func awaitData(ctx context.Context, p Place, m *manifest, of fileRecord, fields int) (f *dataFile, err error) {
	needed := func() (bool, error) {
		now, err := newest(ctx, p)
		return err == nil && now.Number <= m.Number, err
	}
	err = store.AwaitSealed(ctx, p, of.Name, needed, func() error {
		f, err = openData(ctx, p, of, fields)
		return err
	})
	return f, err
}

// release ends one use of the set. The last one closes the files that no other set has.
func (s *fileSet) release() error {
	if s == nil || s.users.Add(-1) > 0 {
		return nil
	}
	var errs []error
	for f := range s.each() {
		if f.users.Add(-1) == 0 {
			errs = append(errs, f.File.Close())
		}
	}
	return errors.Join(errs...)
}

// find fills into with the answers to questions that have none yet. The newest generation counts.
func (s *fileSet) find(hashes []Hash, f Freshness, bodies bool, arena *keyed.Arena, into []Found) (err error) {
	if len(s.files) == 0 {
		return nil
	}
	defer keyed.Guard(&err, debug.SetPanicOnFault(true))
	keys, rows, at := make([]string, len(hashes)), make([]uint32, len(hashes)), make([]int, len(hashes))
	credits := make([]int64, 0, len(hashes))
	for _, file := range slices.Backward(s.files) {
		n := 0
		for i := range hashes {
			if !into[i].Stored && file.mayHave(&hashes[i]) {
				keys[n], at[n] = unsafe.String(&hashes[i][0], len(hashes[i])), i
				n++
			}
		}
		file.FindAll(keys[:n], rows[:n])
		for k, row := range rows[:n] {
			if row == keyed.None {
				continue
			}
			found := &into[at[k]]
			credits = file.answer(row, bodies, arena, &found.Answer, credits)
			found.Stored, found.Fresh = true, f.Of(found.Answer.Outcome, found.Answer.Received)
		}
	}
	return nil
}

// mayHave reports whether a question is among those of the file by its hash. The files of a generation are of one
// range of hashes each.
func (f *fileRecord) mayHave(h *Hash) bool {
	return bytes.Compare(h[:], f.First[:]) >= 0 && bytes.Compare(h[:], f.Last[:]) <= 0
}

// rowOf returns the row of a question, keyed.None without one. Call it under keyed.Guard.
func (f *dataFile) rowOf(h *Hash) uint32 {
	if !f.mayHave(h) {
		return keyed.None
	}
	return f.Find(string(h[:]))
}

// bodyOf returns the kept body of a call in the file of calls.
func (s *fileSet) bodyOf(h Hash) (body KeptBody, err error) {
	if s.calls == nil {
		return nil, nil
	}
	defer keyed.Guard(&err, debug.SetPanicOnFault(true))
	if row := s.calls.Find(string(h[:])); row != keyed.None {
		body = s.calls.call(row, true).Body
	}
	return body, nil
}

// readCalls reads the open calls.
func (s *fileSet) readCalls() (calls []*OpenCall, err error) {
	if s.calls == nil {
		return nil, nil
	}
	defer keyed.Guard(&err, debug.SetPanicOnFault(true))
	for row := range uint32(s.calls.File.Rows()) {
		calls = append(calls, s.calls.call(row, false))
	}
	return calls, nil
}

// each lists the answers of files, ordered by their hashes: of each question the one of the newest
// generation.
func each(ctx context.Context, files []*dataFile, bodies bool) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		var all keyed.Files
		for _, f := range files {
			all = append(all, f.File)
		}
		var arena keyed.Arena
		for texts, err := range all.InOrder(ctx) {
			var i Item
			if err == nil {
				i, err = tryItem(texts, bodies, &arena)
			}
			if err != nil {
				yield(Item{}, damaged(err))
				return
			}
			if !yield(i, nil) {
				return
			}
			if arena.Size() > arenaBytes { // what was listed may be kept
				arena = keyed.Arena{}
			}
		}
	}
}

const arenaBytes = 1 << 16

func tryItem(texts []string, bodies bool, arena *keyed.Arena) (i Item, err error) {
	defer keyed.Guard(&err, debug.SetPanicOnFault(true))
	return itemOf(texts, bodies, arena), nil
}

// dataWriter writes a file of answers or calls.
type dataWriter struct {
	*keyed.Writer
	about fileRecord
	to    store.Unfinished
}

// newDataWriter begins a file.
func newDataWriter(ctx context.Context, p Place, name string, fields int) (*dataWriter, error) {
	to, err := p.Begin(ctx, name)
	if err != nil {
		return nil, err
	}
	marks := make([]bool, fields)
	copy(marks, repeated)
	scratch := p.scratch
	if scratch == "" {
		scratch = os.TempDir()
	}
	return &dataWriter{keyed.NewWriter(to, scratch, marks, keyed.RemotePages), fileRecord{Name: name}, to}, nil
}

// addItem adds an answer. Answers come in the order of their hashes.
func (w *dataWriter) addItem(i *Item) error {
	var n [3 * binary.MaxVarintLen64]byte
	w.count(i)
	return w.add(i.Hash, string(i.Hash[:]), string(i.appendNumbers(n[:0])), i.Service, string(i.Operation), i.Run, string(i.Outcome), i.Reason, i.Resolution, i.Request, i.Key, string(i.Body))
}

// count counts an answer of a scope.
func (w *dataWriter) count(i *Item) {
	for k := range w.about.Scopes {
		if t := &w.about.Scopes[k]; t.Scope == i.Scope {
			t.add(i)
			return
		}
	}
	t := tallyOf{Scope: i.Scope, Outcomes: map[Outcome]int64{}}
	t.add(i)
	w.about.Scopes = append(w.about.Scopes, t)
}

func (t *tallyOf) add(i *Item) {
	t.Outcomes[i.Outcome]++
	if i.Credits != nil {
		t.Credits += *i.Credits
	}
}

// addCall adds an open call, with its kept body.
func (w *dataWriter) addCall(c *OpenCall, body KeptBody) error {
	if w.about.Runs == nil {
		w.about.Runs = map[string]int64{}
	}
	w.about.Runs[c.Run]++
	return w.add(c.Hash, c.texts(body)...)
}

func (w *dataWriter) add(h Hash, texts ...string) error {
	if w.about.Rows == 0 {
		w.about.First = h
	}
	w.about.Last = h
	w.about.Rows++
	_, err := w.Add(texts...)
	return err
}

// finish makes the file durable.
func (w *dataWriter) finish(ctx context.Context) (fileRecord, error) {
	_, err := w.Records(ctx)
	if err == nil {
		err = w.Finish()
	}
	if err == nil {
		err = w.to.Flush()
	}
	if err = errors.Join(err, w.Writer.Close()); err != nil {
		return w.about, errors.Join(err, w.to.Abort())
	}
	w.about.Bytes, w.about.Checksum = w.Columns.Size(), w.Columns.Checksum()
	_, err = w.to.Commit()
	return w.about, err
}

func (w *dataWriter) abort() error { return errors.Join(w.Writer.Close(), w.to.Abort()) }
