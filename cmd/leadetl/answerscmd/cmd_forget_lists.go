package answerscmd

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"unicode"

	"github.com/leadetl/leadetl/cmd/leadetl/wire"
	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/transforms/suppression"
)

// readLists reads lists of people. A digest does not tell which keys to look up, and an answer about one person
// may name another: so all stored answers are read.
func (f *forgetFlags) readLists(ctx context.Context) (wire.SuppressionLists, error) {
	flags := wire.Suppress{Lists: f.files}
	if f.idColumn != "" {
		flags.Columns = []string{f.idColumn}
	}
	return flags.Read(ctx, f.defaultRegion, f.networkHosts)
}

// namesCall reports whether an open call, or its kept body, names a listed person. A body
// that cannot be unpacked is found, too: whom it names is unknown.
func namesCall(call *answers.OpenCall, who *suppression.Finder) bool {
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
