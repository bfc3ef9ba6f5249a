package answers

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
)

// writeAnswers writes answers, which are in the order of their hashes, to files that no manifest
// names yet. On error the files go with the next sweep.
func (s *published) writeAnswers(ctx context.Context, items iter.Seq2[Item, error]) (files []fileRecord, err error) {
	var w *dataWriter
	finish := func() error {
		f, err := w.finish(ctx)
		w, files = nil, append(files, f)
		return err
	}
	defer func() {
		if w != nil {
			err = errors.Join(err, w.abort())
		}
		if err != nil {
			s.unmake(files)
		}
	}()
	for i, err := range items {
		if err == nil && w == nil {
			w, err = s.newData(ctx, "answers", answerFields)
		}
		if err == nil {
			err = w.addItem(&i)
		}
		if err == nil && w.about.Rows == int64(s.options.RowsPerFile) {
			err = finish()
		}
		if err != nil {
			return files, err
		}
	}
	if w != nil {
		err = finish()
	}
	return files, err
}

// newData begins a file of answers or calls.
func (s *published) newData(ctx context.Context, kind string, fields int) (*dataWriter, error) {
	name := s.nameData(kind)
	w, err := newDataWriter(ctx, s.in, name, fields)
	if err != nil {
		s.unmake([]fileRecord{{Name: name}})
	}
	return w, err
}

// unmake gives up files that were made.
func (s *published) unmake(files []fileRecord) {
	s.publishing.Lock()
	defer s.publishing.Unlock()
	for _, f := range files {
		delete(s.making, f.Name)
	}
}

// writeCalls writes all open calls, as they are behind a generation, to a file that no manifest names
// yet. It returns nil without a call.
func (s *published) writeCalls(ctx context.Context, behind *generation) (_ *fileRecord, err error) {
	if len(behind.open) == 0 {
		return nil, nil
	}
	before, err := s.acquire()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, before.release()) }()
	w, err := s.newData(ctx, "calls", callFields)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.unmake([]fileRecord{w.about})
		}
	}()
	for _, h := range slices.SortedFunc(maps.Keys(behind.open), Hash.Compare) {
		body, changed := behind.bodies[h]
		if !changed {
			body, err = before.bodyOf(h)
		}
		if err == nil {
			err = w.addCall(behind.open[h], body)
		}
		if err != nil {
			return nil, errors.Join(err, w.abort())
		}
	}
	f, err := w.finish(ctx)
	return &f, err
}

// mergeFrom returns the index of the first generation to merge after a
// generation was added: all from there on are merged into one. Up to
// most, nothing needs to be merged, and it returns the last index. The
// generation before the index is then larger than the merged one, so that large
// generations are seldom rewritten.
func mergeFrom(generations [][]fileRecord, most int) int {
	from := len(generations) - 1
	if len(generations) <= most {
		return from
	}
	after := rowsOf(generations[from])
	for ; from > 0; from-- {
		if before := rowsOf(generations[from-1]); before > after && from <= most-1 {
			break
		}
		after += rowsOf(generations[from-1])
	}
	return from
}

func rowsOf(files []fileRecord) (rows int64) {
	for _, f := range files {
		rows += f.Rows
	}
	return rows
}

// merge merges generations if there are too many, beside later changes. If it fails, because the
// disk is full for example, nothing is lost, and a later one merges more. The caller is the only one
// that moves a generation.
func (s *published) merge() {
	select {
	case <-s.merging:
	default:
		if s.merging != nil {
			return // one is at work
		}
	}
	done := make(chan struct{})
	s.merging = done
	if s.options.InTurn {
		_ = s.mergeGenerations(context.Background(), s.options.Generations)
		close(done)
		return
	}
	go func() {
		defer close(done)
		_ = s.mergeGenerations(context.Background(), s.options.Generations)
	}()
}

func (s *published) awaitMerge() {
	if s.merging != nil {
		<-s.merging
	}
}

// mergeGenerations replaces the last generations by one, if there are more than so many.
func (s *published) mergeGenerations(ctx context.Context, most int) (err error) {
	set, err := s.acquire()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, set.release()) }()
	inputs := slices.Clone(set.inputs(most))
	if len(inputs) == 0 {
		return nil
	}
	files, err := s.writeAnswers(ctx, each(ctx, inputs, true))
	if err != nil {
		return err
	}
	return s.publish(ctx, files, func(next *manifest) error {
		at := slices.IndexFunc(next.Files, func(f fileRecord) bool { return f.Name == inputs[0].Name })
		if at < 0 {
			return errors.New("the files of a merge have gone") // a deletion has replaced them meanwhile
		}
		for i, f := range inputs {
			if at+i >= len(next.Files) || next.Files[at+i].Name != f.Name {
				return errors.New("the files of a merge have changed")
			}
		}
		for i := range files {
			files[i].Generation = inputs[len(inputs)-1].Generation
		}
		next.Files = slices.Replace(next.Files, at, at+len(inputs), files...)
		return nil
	})
}

// inputs returns the files to merge, if there are more than so many generations.
func (s *fileSet) inputs(most int) []*dataFile {
	m := manifest{}
	for _, f := range s.files {
		m.Files = append(m.Files, f.fileRecord)
	}
	all := m.generations()
	from := mergeFrom(all, most)
	if from >= len(all)-1 {
		return nil
	}
	kept := 0
	for _, g := range all[:from] {
		kept += len(g)
	}
	return s.files[kept:]
}

// Compact merges all files into one generation, and returns the number of files before and after.
func (s *Store) Compact(ctx context.Context) (before, after int, err error) {
	if err := s.flush(); err != nil {
		return 0, 0, err
	}
	s.awaitMerge()
	before = len(s.newest().Files)
	if err := s.mergeGenerations(ctx, 1); err != nil {
		return 0, 0, damaged(err)
	}
	return before, len(s.newest().Files), nil
}
