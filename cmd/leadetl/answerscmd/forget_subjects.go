package answerscmd

import (
	"iter"

	"github.com/apache/arrow/go/v17/arrow/array"

	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/transforms/email"
	"github.com/leadetl/leadetl/transforms/person"
	"github.com/leadetl/leadetl/transforms/phone"
	"github.com/leadetl/leadetl/transforms/suppression"
)

// subjects are the questions about identifiers of a kind, among those of a state.
type subjects struct {
	kind   resolution.Identifier
	scopes []answers.Scope
	region string // of phone numbers without a country code
}

// of returns the scopes whose keys are of the kind.
func (s *subjects) of() (scopes []answers.Scope) {
	for _, scope := range s.scopes {
		if scope.Identifier() == s.kind {
			scopes = append(scopes, scope)
		}
	}
	return scopes
}

// questions are those about keys.
func (s *subjects) questions(keys []string) (all []answers.Hash) {
	for _, scope := range s.of() {
		for _, key := range keys {
			all = append(all, answers.Question{Scope: scope, Key: key}.Hash())
		}
	}
	return all
}

// found are the questions to verifiers about what stored answers have found. chosen are the questions about the
// keys.
func (s *subjects) found(items iter.Seq2[answers.Item, error], chosen []answers.Hash) (all []answers.Hash, err error) {
	if !s.verified() {
		return nil, nil
	}
	is := make(map[answers.Hash]bool, len(chosen))
	for _, h := range chosen {
		is[h] = true
	}
	for item, err := range items {
		if err != nil {
			return nil, err
		}
		if is[item.Hash] {
			all = s.addFound(all, item.Body)
		}
	}
	return all, nil
}

// verified reports whether the state may have answers of verifiers.
func (s *subjects) verified() bool {
	for _, scope := range s.scopes {
		if isVerifier(scope) {
			return true
		}
	}
	return false
}

// isVerifier reports whether a verifier may be asked these questions. A state does not tell a
// verifier from a provider that is asked about emails.
func isVerifier(of answers.Scope) bool {
	return of.IsProvider() && (of.Identifier() == resolution.Email || of.Identifier() == resolution.Phone)
}

// addFound adds the questions to verifiers about the values in a body.
func (s *subjects) addFound(all []answers.Hash, body []byte) []answers.Hash {
	for text := range suppression.Texts(body) {
		for _, scope := range s.scopes {
			if !isVerifier(scope) {
				continue
			}
			if key := s.value(scope.Identifier(), text); key != "" {
				all = append(all, answers.Question{Scope: scope, Key: key}.Hash())
			}
		}
	}
	return all
}

// value is an email or a phone in its canonical form; "" for another text.
func (s *subjects) value(kind resolution.Identifier, text string) string {
	if kind == resolution.Phone {
		number, err := phone.Parse(text, s.region)
		if err != nil {
			return ""
		}
		return number.E164
	}
	a, err := email.Read([]byte(text))
	if err != nil {
		return ""
	}
	return string(a.AppendKey(nil))
}

// personKeys are the keys of the questions that the values of a row answer to: those of any of them, because a
// provider may be asked by fewer than the job names.
func personKeys(columns []*array.String, from []string, row int) (keys []string) {
	values := map[string]string{}
	var has []string
	for i, name := range from {
		if value := person.Canonical(name, columns[i].Value(row)); value != "" {
			values[name], has = value, append(has, name)
		}
	}
	for some := 1; some < 1<<len(has); some++ {
		of := map[string]string{}
		for i, name := range has {
			if some>>i&1 == 1 {
				of[name] = values[name]
			}
		}
		keys = append(keys, person.Key(of))
	}
	return keys
}
