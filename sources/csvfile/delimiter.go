package csvfile

import "bytes"

// delimiters are those that are looked for, the more usual first.
var delimiters = []byte{',', ';', '\t', '|'}

// detectRecords is how many records after the header have a say.
const detectRecords = 100

// detect finds the delimiter of the text: of those that cut the header, the
// one by which most of the first records have as many fields as the header;
// among equals the one that cuts it into most fields. A text that none of them
// cuts has one column, and a comma as good as any.
func detect(text []byte, whole bool) byte {
	best, bestFields, bestShare := delimiters[0], 1, -1.0
	for _, d := range delimiters {
		fields, share := fit(text, whole, d)
		if fields > 1 && (share > bestShare || share == bestShare && fields > bestFields) {
			best, bestFields, bestShare = d, fields, share
		}
	}
	return best
}

// fit returns the header's fields by one delimiter and the share of the
// records after it that have as many.
func fit(text []byte, whole bool, delimiter byte) (fields int, share float64) {
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
		text = text[f.next:]
		if fields == 0 {
			if fields = len(s.spans); fields < 2 {
				return fields, 0
			}
			continue
		}
		records++
		if len(s.spans) == fields {
			fitting++
		}
	}
	if records == 0 {
		return fields, 1
	}
	return fields, float64(fitting) / float64(records)
}
