package find

import (
	"context"
	"fmt"

	"github.com/leadetl/leadetl/internal/progress"
	"github.com/leadetl/leadetl/pipeline/answers"
)

// The parts of a state that name subjects.
const (
	Answer   = "answer"
	OpenCall = "open call"
)

// Answers looks for subjects in all stored answers of a place, also in those that others have replaced, and in
// its open calls.
func Answers(ctx context.Context, c *answers.Contents, s *Subjects, found Found) error {
	for _, f := range c.Files() {
		found.Read(File{Name: f.Name, Rows: f.Rows, Bytes: f.Bytes, CRC32C: fmt.Sprintf("%08x", f.Checksum)})
		progress.Of(ctx).Expect(f.Rows)
	}
	work, lookers := progress.Of(ctx), s.lookers()
	batch := make([]answers.Kept, 0, answersTogether)
	look := func() {
		hits := lookers.each(len(batch), func(l *Looker, i int) []Hit {
			item := &batch[i]
			l.Note("key", l.Names(item.Key))
			l.Note("body", l.NamesInBody(item.Body))
			return l.Hits(Hit{What: Answer, File: item.File, KeyHash: item.Hash.String()})
		})
		work.Done(int64(len(batch)))
		batch = batch[:0]
		tell(found, hits)
	}
	for item, err := range c.All(ctx) {
		if err != nil {
			return err
		}
		if batch = append(batch, item); len(batch) == cap(batch) {
			look()
		}
	}
	look()
	return openCalls(ctx, c, lookers[0], found)
}

// answersTogether is how many answers are looked into at a time.
const answersTogether = 256

func openCalls(ctx context.Context, c *answers.Contents, l *Looker, found Found) error {
	calls, err := c.Calls(ctx)
	if err != nil {
		return err
	}
	for i := range calls {
		l.Note("key", l.Names(calls[i].Key))
		body, err := calls[i].Body.Plain()
		if err != nil {
			found.Unread(OpenCall+" "+calls[i].Hash.String(), fmt.Errorf("its kept body: %w", err))
		}
		l.Note("body", l.NamesInBody(body))
		tell(found, l.Hits(Hit{What: OpenCall, KeyHash: calls[i].Hash.String()}))
	}
	return nil
}

func tell(found Found, hits []Hit) {
	for _, h := range hits {
		found.Hit(h)
	}
}
