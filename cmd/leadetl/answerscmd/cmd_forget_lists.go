package answerscmd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"slices"
	"strings"
	"unicode"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/wire"
	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/transforms/suppression"
)

// forgetLists forgets every answer that names a person on the lists. It reads all
// stored answers: a digest does not tell which keys to look up, and an answer
// about one person may name another.
func (f *forgetFlags) forgetLists(ctx context.Context, std cli.Streams) error {
	lists, err := f.readLists(ctx)
	if err != nil {
		return err
	}
	finder := lists.Set.Finder()
	return f.stored.on(ctx, func(s *answers.Store) error {
		e := eraser{store: s, evenOpen: f.evenOpen, bad: int(lists.Bad), places: lists.Places}
		return e.report(std, errors.Join(e.eraseNamed(ctx, finder), e.emptyLog(ctx)))
	})
}

func (f *forgetFlags) readLists(ctx context.Context) (wire.SuppressionLists, error) {
	flags := wire.Suppress{Lists: f.files}
	if f.column != "" {
		flags.Columns = []string{f.column}
	}
	return flags.Read(ctx, f.defaultRegion, f.networkHosts)
}

// erasedAtOnce is the number of questions forgotten in one transaction.
const erasedAtOnce = 1000

// eraseNamed forgets the questions whose key or answer names a listed person.
func (e *eraser) eraseNamed(ctx context.Context, who *suppression.Finder) error {
	var questions []answers.Hash
	add := func(h answers.Hash) error {
		if questions = append(questions, h); len(questions) < erasedAtOnce {
			return nil
		}
		err := e.erase(ctx, questions)
		questions = questions[:0]
		return err
	}
	for item, err := range counted(ctx, e.store.List(ctx, answers.Filter{Bodies: true})) {
		if err == nil && (who.Names(item.Key) || namesIn(item.Body, who)) {
			err = add(item.Hash)
		}
		if err != nil {
			return err
		}
	}
	held, err := e.store.Contents()
	if err != nil {
		return err
	}
	for _, calls := range []iter.Seq2[answers.OpenCall, error]{held.Unknown(ctx), held.Parked(ctx)} {
		for call, err := range calls {
			if err == nil && namesCall(call, who) {
				err = add(call.Hash)
			}
			if err != nil {
				return err
			}
		}
	}
	return e.erase(ctx, questions)
}

// namesCall reports whether an open call, or its kept body, names a listed person. A body
// that cannot be unpacked is found, too: whom it names is unknown.
func namesCall(call answers.OpenCall, who *suppression.Finder) bool {
	body, err := call.Body.Plain()
	return who.Names(call.Key) || err != nil || namesIn(body, who)
}

// namesIn reports whether any text in a body names a listed person.
func namesIn(body []byte, who *suppression.Finder) bool { return anyText(body, who.Names) }

// anyText reports whether a string in a JSON body is one. Of a body that is not JSON, or is cut
// off, each word may be one.
func anyText(body []byte, is func(text string) bool) bool {
	tokens := json.NewDecoder(bytes.NewReader(body))
	for {
		token, err := tokens.Token()
		switch {
		case err == io.EOF:
			return false
		case err != nil:
			words := strings.FieldsFunc(string(body), func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("\"'<>()[]{},;=\\", r) })
			return slices.ContainsFunc(words, is)
		}
		if text, ok := token.(string); ok && is(text) {
			return true
		}
	}
}
