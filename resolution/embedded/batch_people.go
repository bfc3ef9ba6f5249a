package embedded

import (
	"github.com/leadetl/leadetl/internal/keyed"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/directory/people"
)

// together is how many people are looked up and then read, so that what was loaded for the
// one is in the cache of the processor for the other.
const together = 128

// peopleOf finds the people of profile keys.
func (b *batch) peopleOf(keys *resolution.Texts, limit int, to *resolution.Answers) (n int, err error) {
	b.start(keys)
	b.rows = resize(b.rows, len(b.keys))
	part, lacking := people.Whole, ""
	switch b.operation.Gives() {
	case resolution.GivesPhone:
		part, lacking = people.Phones, NoPhone
	case resolution.GivesHashes:
		part, lacking = people.Emails, NoEmail
	}
	b.engine.directory.StartPeople(to)
	for n < len(b.keys) && to.Size <= limit {
		end := min(n+together, len(b.keys))
		if err := b.findPeople(b.keys[n:end], b.rows[n:end]); err != nil {
			return 0, err
		}
		appended, err := b.engine.directory.AppendPeople(b.rows[n:end], nil, to, part, limit)
		if err != nil {
			return 0, readable(err)
		}
		n += appended
	}
	for i := range n {
		reason, from, emails := b.reasons[i], 0, 0
		if lacking == NoEmail {
			from, emails = to.Emails.Of(i)
		}
		switch {
		case b.keys[i] == "":
		case b.rows[i] == keyed.None:
			reason = NotFound
		case lacking == NoPhone && len(to.Texts[resolution.FieldPhone].At(i)) == 0, lacking == NoEmail && from == emails:
			reason = lacking
		}
		to.Reasons, to.Matched = append(to.Reasons, reason), append(to.Matched, reason == "" && b.keys[i] != "")
	}
	return n, b.complete(to, part, b.rows[:n])
}

// findPeople sets rows to those of the people of profile keys who are not suppressed.
func (b *batch) findPeople(keys []string, rows []uint32) error {
	if b.engine.directory == nil {
		for i := range rows {
			rows[i] = keyed.None
		}
		return nil
	}
	if err := b.engine.directory.PeopleRows(keys, rows); err != nil || b.engine.options.Listed == nil {
		return readable(err)
	}
	b.people = resize(b.people, 1)
	for i, row := range rows {
		if row == keyed.None {
			continue
		}
		if err := b.engine.directory.FillPerson(row, &b.arena, &b.people[0]); err != nil {
			return readable(err)
		}
		if b.engine.hides(&b.people[0].Person) {
			rows[i] = keyed.None
		}
	}
	return nil
}

// complete adds hashes and companies to the people of rows, and leaves out columns that do not answer
// the operation.
func (b *batch) complete(to *resolution.Answers, part people.Fields, rows []uint32) error {
	switch part {
	case people.Emails:
		b.hashes.lists(to)
		to.Emails.Reset(nil)
	case people.Whole:
		b.hashes.lists(to)
		if !to.Unread.Emails {
			b.dropDigests(to)
		}
		if !to.Unread.Companies {
			return b.codeEmployers(to, rows)
		}
	}
	return nil
}
