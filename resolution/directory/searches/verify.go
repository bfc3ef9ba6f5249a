package searches

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/leadetl/leadetl/internal/keyed"
)

// Verify checks that the columns match each other, so that no query fails, and that derived
// columns are as this program makes them. Its keys are the keywords.
func (f *File) Verify(ctx context.Context) (keys, rows int64, err error) {
	return int64(f.keywords.Len()), int64(len(f.at)), f.verify(ctx)
}

func (f *File) verify(ctx context.Context) (err error) {
	defer damaged(&err)
	if err := f.file.Verify(); err != nil {
		return err
	}
	defer keyed.Guard(&err, debug.SetPanicOnFault(true))
	for _, check := range []func() error{f.verifyTexts, f.verifyRows, f.verifyLeads, f.verifyKeywords, f.verifyDictionaries} {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := check(); err != nil {
			return fmt.Errorf("%w: %w", keyed.ErrDamaged, err)
		}
	}
	return nil
}

func (f *File) verifyTexts() error {
	for name, t := range map[string]keyed.Texts{"lead_key": f.leadKeys, "email_text": f.emails, "keyword_text": f.keywords, "word_text": f.words,
		"city": f.cities.raw, "zip_code": f.zips.raw, "job_title": f.jobTitles.raw,
		"city_folded": f.cities.folded, "zip_code_folded": f.zips.folded, "job_title_folded": f.jobTitles.folded} {
		if err := ascending(name, t.Offsets, len(t.Bytes)); err != nil {
			return err
		}
	}
	return errors.Join(ascending("keyword_words", f.keywordWords.Offsets, len(f.keywordWords.Members)),
		ascending("word_keywords", f.wordKeywords.Offsets, len(f.wordKeywords.Members)),
		below("keyword_words", f.keywordWords.Members, f.words.Len()),
		below("word_keywords", f.wordKeywords.Members, f.keywords.Len()))
}

func ascending(name string, offsets []uint64, end int) error {
	if !slices.IsSorted(offsets) || offsets[0] != 0 || offsets[len(offsets)-1] != uint64(end) {
		return fmt.Errorf("the offsets of %s are out of place", name)
	}
	return nil
}

func below[T uint8 | uint16 | uint32](name string, codes []T, n int) error {
	for i, code := range codes {
		if int(code) >= n {
			return fmt.Errorf("%s: number %d belongs to nothing", name, i)
		}
	}
	return nil
}

func (f *File) verifyRows() error {
	if err := errors.Join(below("lead", f.lead, len(f.leadIDs)), below("keyword", f.keyword, f.keywords.Len()),
		below("email", f.email, f.emails.Len()), below("city", f.city, f.cities.raw.Len()), below("zip_code", f.zip, f.zips.raw.Len()),
		below("job_title", f.jobTitle, f.jobTitles.raw.Len()), below("lead_type", f.leadType, len(leadTypes))); err != nil {
		return err
	}
	for i := 1; i < len(f.at); i++ {
		if f.at[i] > f.at[i-1] || f.at[i] == f.at[i-1] && f.lead[i] < f.lead[i-1] {
			return fmt.Errorf("search %d is out of order", i)
		}
	}
	return nil
}

func (f *File) verifyLeads() error {
	for i, id := range f.leadIDs {
		if i > 0 && bytes.Compare(f.leadIDs[i-1][:], id[:]) >= 0 {
			return fmt.Errorf("lead %d is out of order", i)
		}
		key := string(f.leadKeys.At(uint32(i)))
		if len(key) < 2 || key[0] != leadByProfile && key[0] != leadByEmail || leadIDOf(key) != id {
			return fmt.Errorf("lead %d has another's id", i)
		}
	}
	return nil
}

func (f *File) verifyKeywords() error {
	for i := 1; i < f.words.Len(); i++ {
		if bytes.Compare(f.words.At(uint32(i-1)), f.words.At(uint32(i))) >= 0 {
			return fmt.Errorf("word %d is out of order", i)
		}
	}
	for i := range uint32(f.keywords.Len()) {
		own := words(string(f.keywords.At(i)))
		coded := f.keywordWords.At(i)
		if !slices.EqualFunc(own, coded, func(word string, code uint32) bool { return word == string(f.words.At(code)) }) {
			return fmt.Errorf("keyword %d has other words", i)
		}
	}
	want := inverted(f.keywordWords, f.words.Len())
	if !slices.Equal(want.Offsets, f.wordKeywords.Offsets) || !slices.Equal(want.Members, f.wordKeywords.Members) {
		return errors.New("the words are in other keywords")
	}
	return nil
}

func (f *File) verifyDictionaries() error {
	for name, d := range map[string]dictionary{"city": f.cities, "zip_code": f.zips, "job_title": f.jobTitles} {
		for i := range uint32(d.raw.Len()) {
			if fold(string(d.raw.At(i))) != string(d.folded.At(i)) || i > 0 && bytes.Compare(d.folded.At(i-1), d.folded.At(i)) > 0 {
				return fmt.Errorf("%s: text %d is out of order", name, i)
			}
		}
	}
	return nil
}
