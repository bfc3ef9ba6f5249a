package csvfile

import "bytes"

// delimiters are the candidates of detection, more common ones first.
var delimiters = []byte{',', ';', '\t', '|'}

// detectRecords is how many records after the header are used for detection.
const detectRecords = 100

// detect finds the delimiter of the text. Among the candidates that split the
// header, it chooses the one that gives most of the first records as many
// fields as the header; among equals, the one that gives the header most
// fields. If no candidate splits the header, the text has one column, and
// detect returns a comma.
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

// fit returns the number of header fields for a delimiter, and the share of the
// following records with the same number of fields.
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
