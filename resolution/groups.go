package resolution

import "math"

// Group is a group of columns of Answers that belong together: a row that is made of several
// answers has all of a group from one of them, so that no phone number gets the type of another.
type Group uint8

// The groups.
const (
	GroupEmail   Group = iota // the first plain address
	GroupEmails               // all addresses
	GroupPhone                // the first number, the same as it was written, and its details
	GroupPhones               // all numbers
	GroupHashes               // hashed emails
	GroupCompany              // the company, and the kind of organization behind an address
	GroupAddress              // street, postal code, city and state of the person
	GroupMatch                // match level and confidence
	GroupPerson               // all other columns
	Groups
)

// textGroups are the groups of the texts of answers.
var textGroups = func() (of [Fields]Group) {
	for f := range of {
		of[f] = GroupPerson
	}
	of[FieldPhone], of[FieldPhoneRaw], of[FieldPhoneDetails] = GroupPhone, GroupPhone, GroupPhone
	of[FieldEmail], of[FieldMatchLevel] = GroupEmail, GroupMatch
	of[FieldStreet], of[FieldZipCode], of[FieldCity], of[FieldState] = GroupAddress, GroupAddress, GroupAddress, GroupAddress
	return of
}()

// Group is the group of a text.
func (f Field) Group() Group { return textGroups[f] }

// Values are the groups in which an answer has a value, one bit each.
func (r AnswerRow) Values() (groups uint) {
	if !r.Matched() || !r.Of.Matched[r.I] {
		return 0
	}
	a, i := r.Of, r.I
	for f, of := range textGroups {
		if len(a.Texts[f].At(i)) > 0 {
			groups |= 1 << of
		}
	}
	add := func(g Group, has bool) {
		if has {
			groups |= 1 << g
		}
	}
	any := func(l *TextLists) bool { from, to := l.Of(i); return from < to }
	add(GroupEmails, any(&a.Emails.TextLists))
	add(GroupPhones, any(&a.Phones.TextLists))
	add(GroupHashes, any(&a.Hashes.TextLists))
	add(GroupCompany, i < len(a.Companies.Codes) && a.Companies.Codes[i] != 0 || i < len(a.OrgTypes) && a.OrgTypes[i] != "")
	add(GroupMatch, i < len(a.Confidences) && !math.IsNaN(a.Confidences[i]))
	add(GroupPerson, any(&a.Keywords) || i < len(a.LastSeen) && a.LastSeen[i] != NotSeen || i < len(a.SearchedAt) && a.SearchedAt[i] != NotSeen)
	return groups
}

// AddMerged adds a match with each group of columns from another answer, whose table of companies
// is the same or a CompanyList. The zero AnswerRow leaves a group empty.
func (a *Answers) AddMerged(from [Groups]AnswerRow) {
	i := a.AddMatch()
	if r := from[GroupCompany]; r.Matched() && r.I < len(r.Of.OrgTypes) {
		a.OrgTypes = append(Pad(a.OrgTypes, i, ""), r.Of.OrgTypes[r.I])
	}
	done := uint(0)
	for g, r := range from {
		if !r.Matched() || done>>g&1 == 1 {
			continue
		}
		groups := uint(0) // from the same answer: most rows are of one
		for h := g; h < len(from); h++ {
			if from[h] == r {
				groups |= 1 << h
			}
		}
		a.copyGroups(groups, r.Of, r.I)
		done |= groups
	}
}

// copyGroups sets the columns of some groups of the last row, one bit each, to those of an answer
// of another Answers.
func (a *Answers) copyGroups(groups uint, from *Answers, j int) {
	i := a.Len() - 1
	for f := range a.Texts {
		if groups>>textGroups[f]&1 == 1 {
			a.Texts[f].copy(i, &from.Texts[f], j)
		}
	}
	if groups>>GroupEmails&1 == 1 {
		a.Emails.copy(i, &from.Emails, j)
	}
	if groups>>GroupPhones&1 == 1 {
		a.Phones.copy(i, &from.Phones, j)
	}
	if groups>>GroupHashes&1 == 1 {
		a.Hashes.copy(i, &from.Hashes, j)
	}
	if groups>>GroupMatch&1 == 1 && j < len(from.Confidences) {
		a.Confidences = append(Pad(a.Confidences, i, math.NaN()), from.Confidences[j])
	}
	if groups>>GroupCompany&1 == 1 {
		a.copyCompany(from, j)
	}
	if groups>>GroupPerson&1 == 1 {
		a.Keywords.copy(i, &from.Keywords, j)
		if j < len(from.LastSeen) {
			a.LastSeen = append(Pad(a.LastSeen, i, NotSeen), from.LastSeen[j])
		}
		if j < len(from.SearchedAt) {
			a.SearchedAt = append(Pad(a.SearchedAt, i, NotSeen), from.SearchedAt[j])
		}
	}
}
