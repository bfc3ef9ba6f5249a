package objectstate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/leadetl/leadetl/internal/format"
	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/resolution"
)

// manifestFormat is the number of the format of manifests, of all that they name, and of
// the log. The numbers below are taken.
const manifestFormat = 3

// manifest says which objects of a scope count. Its fields are the JSON of
// v/<n>.json.
type manifest struct {
	Format int `json:"format"`
	// Scope is what the folder is about; it has a hash of it for a name.
	Scope answers.Scope `json:"scope"`
	// Number is the number of the manifest; 0 means that there is no manifest
	// yet.
	Number    int64     `json:"number"`
	Writer    string    `json:"writer"`
	CreatedAt time.Time `json:"created_at"`
	// Files are the files with answers, older generations first. Files of one
	// generation share no hash.
	Files []answerFile `json:"files"`
	Calls *callsFile   `json:"calls,omitempty"`
	// Term is the number of the last takeover of the log. LogFrom is the number
	// of the first log segment that is not in Files and Calls.
	Term    int64 `json:"term"`
	LogFrom int64 `json:"log_from"`
	answers.Spent
}

// answerFile names a file of answers.
type answerFile struct {
	Name       string `json:"name"`
	Generation int64  `json:"generation"`
	First      string `json:"first"` // hash
	Last       string `json:"last"`
	Rows       int64  `json:"rows"`
	Bytes      int64  `json:"bytes"`
	SHA256     string `json:"sha256"`
}

// callsFile names the file with all open calls.
type callsFile struct {
	Name   string `json:"name"`
	Calls  int64  `json:"calls"`
	SHA256 string `json:"sha256"`
}

// generations returns the files of each generation, older ones first.
func (m *manifest) generations() (all [][]answerFile) {
	for i, f := range m.Files {
		if i == 0 || m.Files[i-1].Generation != f.Generation {
			all = append(all, nil)
		}
		all[len(all)-1] = append(all[len(all)-1], f)
	}
	return all
}

// lastGeneration returns the number of the newest generation; 0 if there is
// none.
func (m *manifest) lastGeneration() int64 {
	if len(m.Files) == 0 {
		return 0
	}
	return m.Files[len(m.Files)-1].Generation
}

// next returns a copy of m, to be changed and published after m.
func (m *manifest) next(writer string) *manifest {
	return &manifest{
		Number: m.Number + 1, Writer: writer, CreatedAt: time.Now().UTC().Truncate(time.Millisecond),
		Files: slices.Clone(m.Files), Calls: m.Calls, Term: m.Term, LogFrom: m.LogFrom, Spent: m.Spent,
	}
}

func manifestName(number int64) string { return fmt.Sprintf("v/%010d.json", number) }

// latest reads the newest manifest of a scope. Number 0 means that the
// scope has no manifest.
func (s *State) latest(ctx context.Context, of answers.Scope) (*manifest, error) {
	return s.latestIn(ctx, s.folder(of))
}

// latestIn is latest of the scope that a folder has.
func (s *State) latestIn(ctx context.Context, folder objects.Location) (m *manifest, err error) {
	// It lists again before each try: a hundred newer manifests may be there in the meantime.
	err = s.await(ctx, always, func() (at objects.Location, err error) {
		m = &manifest{}
		names, err := s.manifestsIn(ctx, folder)
		if err != nil || len(names) == 0 {
			return at, err
		}
		at = names[len(names)-1].Location
		return at, s.readManifest(ctx, at, m)
	})
	return m, err
}

// readManifest reads a manifest that is there.
func (s *State) readManifest(ctx context.Context, at objects.Location, into *manifest) error {
	err := s.readJSON(ctx, at, into)
	if err == nil {
		err = format.Check(at.String(), into.Format, manifestFormat, answers.ExportFirst)
	}
	if err == nil && !strings.HasPrefix(at.Key, s.folder(into.Scope).Key) {
		err = fmt.Errorf("%w: %s is about another folder", ErrDamaged, at)
	}
	return err
}

// manifests lists the manifests of a scope, newest last.
func (s *State) manifests(ctx context.Context, of answers.Scope) ([]objects.Info, error) {
	return s.manifestsIn(ctx, s.folder(of))
}

func (s *State) manifestsIn(ctx context.Context, folder objects.Location) ([]objects.Info, error) {
	return s.listAll(ctx, folder.Below("v/"))
}

// listAll lists the objects below a folder, ordered by name, except those that were set aside.
func (s *State) listAll(ctx context.Context, under objects.Location) (all []objects.Info, err error) {
	for info, err := range s.store.List(ctx, under) {
		if err != nil {
			return nil, err
		}
		if !strings.HasSuffix(info.Key, damagedSuffix) {
			all = append(all, info)
		}
	}
	return all, nil
}

// publish makes m the newest manifest. If another process has already published
// a manifest with this number, the lease was lost, and publish returns
// objects.ErrLockLost.
func (s *State) publish(ctx context.Context, of answers.Scope, m *manifest) error {
	m.Format, m.Scope = manifestFormat, of
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	at := s.folder(of).Below(manifestName(m.Number))
	sealed, err := s.seal(at, append(data, '\n'))
	if err != nil {
		return err
	}
	err = s.store.Create(ctx, at, objects.ContentOf(sealed, "application/octet-stream"))
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s: %w", at, objects.ErrLockLost)
	}
	if err != nil {
		return err
	}
	return s.sweep(ctx, of, m)
}

const (
	// keptManifests is how many manifests are kept for troubleshooting.
	keptManifests = 100
	// garbageAge is how long to keep a file that no longer counts: a reader that
	// started earlier may need it.
	garbageAge = 24 * time.Hour
)

// sweep removes old manifests, and the files that m does not name and no process
// reads any more. If there are newer manifests, others than m's files count, and
// sweep returns objects.ErrLockLost.
func (s *State) sweep(ctx context.Context, of answers.Scope, m *manifest) error {
	names, err := s.manifests(ctx, of)
	if err != nil {
		return err
	}
	if n := len(names); n > 0 && names[n-1].Key > s.folder(of).Below(manifestName(m.Number)).Key {
		return fmt.Errorf("%s: %w", names[n-1], objects.ErrLockLost)
	}
	for _, old := range names[:max(len(names)-keptManifests, 0)] {
		if err := s.store.Remove(ctx, old.Location); err != nil {
			return err
		}
	}
	return s.removeFiles(ctx, of, m, time.Now().Add(-garbageAge))
}

// removeFiles removes the files of a scope that m does not name and that were
// written before a time.
func (s *State) removeFiles(ctx context.Context, of answers.Scope, m *manifest, before time.Time) error {
	counts := map[string]bool{}
	for _, f := range m.Files {
		counts[f.Name] = true
	}
	if m.Calls != nil {
		counts[m.Calls.Name] = true
	}
	folder := s.folder(of)
	for _, under := range []string{"f/", "c/"} {
		for info, err := range s.store.List(ctx, folder.Below(under)) {
			if err != nil {
				return err
			}
			if counts[strings.TrimPrefix(info.Key, folder.Key)] || strings.HasSuffix(info.Key, damagedSuffix) || !info.ModTime.Before(before) {
				continue
			}
			if err := s.store.Remove(ctx, info.Location); err != nil {
				return err
			}
		}
	}
	return nil
}

// callLine is an open call as one line of a file of calls.
type callLine struct {
	KeyHash        string    `json:"key_hash"`
	Key            string    `json:"key"`
	State          string    `json:"state"`
	MaybeBilled    bool      `json:"maybe_billed"`
	Run            string    `json:"run"`
	IdempotencyKey string    `json:"idempotency_key"`
	Attempts       int       `json:"attempts"`
	Sent           time.Time `json:"sent_at"`
	Reason         string    `json:"reason,omitempty"`
	Status         int       `json:"status,omitempty"`
	Resolution     string    `json:"resolution_id,omitempty"`
	Request        string    `json:"request_id,omitempty"`
	Deadline       time.Time `json:"deadline,omitzero"`
	Body           []byte    `json:"body_gzip,omitempty"`
}

// writeCalls writes the file of all open calls of a scope for a manifest. It returns nil if
// there are none. No other manifest's file has its name, even if the same calls are open
// again: a request that removes that file may still be on its way.
func (s *State) writeCalls(ctx context.Context, of answers.Scope, number int64, calls []answers.OpenCall) (*callsFile, error) {
	if len(calls) == 0 {
		return nil, nil
	}
	var lines bytes.Buffer
	encoder := json.NewEncoder(&lines)
	for _, c := range calls {
		err := encoder.Encode(callLine{
			c.Hash.String(), c.Asked(), string(c.State), c.MaybeBilled, c.Run, c.IdempotencyKey, c.Attempts, c.Sent, c.Reason, c.Status,
			c.Resolution, c.Request, c.Deadline, c.Body,
		})
		if err != nil {
			return nil, err
		}
	}
	content := objects.ContentOf(lines.Bytes(), "application/x-ndjson")
	sum := fmt.Sprintf("%x", content.SHA256)
	f := &callsFile{Name: fmt.Sprintf("c/%010d-%s.jsonl", number, sum[:16]), Calls: int64(len(calls)), SHA256: sum}
	_, err := s.store.Put(ctx, s.folder(of).Below(f.Name), content)
	return f, err
}

// readCalls reads the open calls that a manifest names.
func (s *State) readCalls(ctx context.Context, of answers.Scope, m *manifest) (calls []answers.OpenCall, err error) {
	if m.Calls == nil {
		return nil, nil
	}
	at := s.folder(of).Below(m.Calls.Name)
	var data []byte
	err = s.awaitOf(ctx, of, at, func() error {
		data, _, err = s.store.ReadFile(ctx, at)
		return err
	})
	if err != nil {
		return nil, err
	}
	if sum := objects.ContentOf(data, "").SHA256; fmt.Sprintf("%x", sum) != m.Calls.SHA256 {
		return nil, fmt.Errorf("%w: %s has another checksum", ErrDamaged, at)
	}
	for decoder := json.NewDecoder(bytes.NewReader(data)); decoder.More(); {
		var l callLine
		if err := decoder.Decode(&l); err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrDamaged, at, err)
		}
		calls = append(calls, l.call(of))
	}
	return calls, nil
}

// call is the call that the line has.
func (l callLine) call(of answers.Scope) answers.OpenCall {
	key, address := resolution.CutAddress(l.Key)
	q := answers.Question{Scope: of, Key: key}
	return answers.OpenCall{
		Hash: q.Hash(), Question: q, Address: address, Run: l.Run, IdempotencyKey: l.IdempotencyKey, Attempts: l.Attempts, Sent: l.Sent.UTC(), State: answers.State(l.State),
		Reason: l.Reason, Status: l.Status, MaybeBilled: l.MaybeBilled, Resolution: l.Resolution, Request: l.Request, Deadline: l.Deadline, Body: l.Body,
	}
}
