package csvfile

import (
	"bytes"
	"slices"
	"strings"
)

// delimiters are the candidates of detection, more common ones first.
var delimiters = []byte{',', ';', '\t', '|'}

// detectRecords is how many records after the header are used for detection.
const detectRecords = 100

// detect finds the delimiter of the text. Among the candidates that split the
// header, it chooses one that gives a wanted column and fits a record; among these, or without
// such, the one that gives most of the first records as many
// fields as the header; among equals, the one that gives the header most
// fields. If no candidate splits the header, the text has one column, and
// detect returns a comma.
func detect(text []byte, whole bool, wanted []string) byte {
	best := delimited{delimiter: delimiters[0], fields: 1, share: -1}
	for _, d := range delimiters {
		if found := fit(text, whole, d, wanted); found.fields > 1 && found.isBetter(best) {
			best = found
		}
	}
	return best.delimiter
}

// delimited is a text as a delimiter divides it.
type delimited struct {
	delimiter byte
	fields    int     // of the header
	share     float64 // of the following records, that have as many fields
	wanted    bool    // the header has a wanted column
}

func (d delimited) isBetter(than delimited) bool {
	switch a, b := d.wanted && d.share > 0, than.wanted && than.share > 0; {
	case a != b:
		return a
	case d.share != than.share:
		return d.share > than.share
	}
	return d.fields > than.fields
}

// fit divides the first records of a text.
func fit(text []byte, whole bool, delimiter byte, wanted []string) (d delimited) {
	d.delimiter = delimiter
	s := scanner{delimiter: delimiter}
	records, fitting := 0, 0
	for len(text) > 0 && records < detectRecords {
		if n := blank(text, whole); n > 0 {
			text = text[n:]
			continue
		}
		f := s.scan(text, whole)
		switch {
		case f.short:
			text = nil
			continue
		case f.fault != "":
			f.next = len(text)
			if n := bytes.IndexByte(text, '\n'); n >= 0 {
				f.next = n + 1
			}
			s.spans = s.spans[:0]
		}
		record := text
		text = text[f.next:]
		if d.fields == 0 {
			if d.fields = len(s.spans); d.fields < 2 {
				return d
			}
			for i, span := range s.spans {
				name := columnName(span.value(record), i)
				d.wanted = d.wanted || slices.ContainsFunc(wanted, func(w string) bool { return strings.EqualFold(w, name) })
			}
			continue
		}
		records++
		if len(s.spans) == d.fields {
			fitting++
		}
	}
	if d.share = 1; records > 0 {
		d.share = float64(fitting) / float64(records)
	}
	return d
}
