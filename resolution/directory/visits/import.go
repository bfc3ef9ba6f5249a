package visits

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"runtime/debug"
	"slices"

	"github.com/leadetl/leadetl/internal/keyed"
	"github.com/leadetl/leadetl/internal/spill"
	"github.com/leadetl/leadetl/resolution/directory/imports"
	"github.com/leadetl/leadetl/transforms/ipaddr"
)

// Columns are the columns of a file of visits.
var Columns = imports.Columns{
	Names:    []string{"ip", "network_url", "seen_at", "confidence"},
	Required: []string{"ip", "network_url"},
}

// line is a line of a file of visits.
type line struct {
	addr       netip.Addr
	networkURL string
	known      bool  // when it was
	micros     int64 // unix
	confidence float64
}

// unsorted is a line that waits for the others of its address. Its profile is in a spool.
type unsorted struct {
	hash       keyed.Hash // of the address
	micros     int64
	confidence float64
	from, to   uint64 // of the profile
	raw        [16]byte
	size       uint8 // of raw
	known      bool
}

// Import reads r.Source and writes a file. It keeps the first 16 visits of an address.
func Import(ctx context.Context, options imports.Options, r *imports.Report, to imports.File) (_ imports.Result, err error) {
	profiles, lines := keyed.NewSpool[uint8](to.Scratch), newLines(to.Scratch)
	defer func() { err = errors.Join(err, profiles.Close(), lines.Close()) }()
	sum := imports.NewContent()
	if err := imports.Read(ctx, options, r, Columns, parser(options), func(l line) error {
		var when any
		if l.known {
			when = l.micros
		}
		sum.Add(l.addr.String(), l.networkURL, fmt.Sprint(when), fmt.Sprint(l.confidence))
		u := unsorted{known: l.known, micros: l.micros, confidence: l.confidence, from: uint64(profiles.Len())}
		key := keyOf(l.addr, &u.raw)
		u.size, u.hash, u.to = uint8(len(key)), keyed.HashOf(key), u.from+uint64(len(l.networkURL))
		return errors.Join(profiles.Add([]byte(l.networkURL)...), lines.Add(u))
	}); err != nil {
		return imports.Result{}, err
	}
	w := keyed.NewWriter(to, to.Scratch, make([]bool, fields), keyed.MappedPages)
	defer func() { err = errors.Join(err, w.Close()) }()
	texts, err := profiles.Read()
	if err != nil {
		return imports.Result{}, err
	}
	if err := write(ctx, w, lines, texts); err != nil {
		return imports.Result{}, err
	}
	keys, err := w.Records(ctx)
	if err != nil {
		return imports.Result{}, err
	}
	return imports.Result{Keys: int64(keys), Content: sum.Sum()}, w.Finish()
}

// newLines sorts lines by the hash of their address.
func newLines(scratch string) *spill.Sorter[unsorted] {
	return spill.New(scratch, func(u unsorted) spill.Prefix { return spill.Prefix{High: u.hash.High} })
}

// write writes a record for each address.
func write(ctx context.Context, w *keyed.Writer, lines *spill.Sorter[unsorted], profiles []byte) error {
	profile := func(u unsorted) []byte { return profiles[u.from:u.to] }
	sort := func(lines, _ []unsorted) (_ []unsorted, err error) {
		defer keyed.Guard(&err, debug.SetPanicOnFault(true)) // the profiles are a mapped file
		slices.SortFunc(lines, func(a, b unsorted) int {
			if a.hash.High != b.hash.High {
				return cmp.Compare(a.hash.High, b.hash.High)
			}
			return cmp.Or(bytes.Compare(a.raw[:a.size], b.raw[:b.size]), cmp.Compare(b.confidence, a.confidence), compareTimes(b, a),
				bytes.Compare(profile(a), profile(b)))
		})
		return lines, nil
	}
	var text []byte
	return lines.Each(ctx, sort, func(lines []unsorted) (err error) {
		defer keyed.Guard(&err, debug.SetPanicOnFault(true))
		for i := 0; i < len(lines); {
			first, n := lines[i], 0
			text = text[:0]
			for ; i < len(lines) && lines[i].raw == first.raw && lines[i].size == first.size; i++ {
				if n++; n <= maxVisits {
					text = encode(text, lines[i].confidence, lines[i].known, lines[i].micros, profile(lines[i]))
				}
			}
			if _, err := w.Add(string(first.raw[:first.size]), string(text)); err != nil {
				return err
			}
		}
		return nil
	})
}

// compareTimes sorts unknown times first.
func compareTimes(a, b unsorted) int {
	switch {
	case a.known && b.known:
		return cmp.Compare(a.micros, b.micros)
	case a.known:
		return 1
	case b.known:
		return -1
	}
	return 0
}

// parser returns a function that reads a line.
func parser(o imports.Options) func(imports.Row, *imports.Report) (line, bool) {
	rules := o.Rules()
	return func(row imports.Row, r *imports.Report) (l line, ok bool) {
		c := row.Cells
		var reason string
		if l.addr, reason = publicAddr(c[0]); reason != "" {
			r.Skip(row.Line, "ip: "+reason)
			return l, false
		}
		var err error
		if l.networkURL, err = rules.ParsePerson(c[1]); err != nil {
			r.Skip(row.Line, "network_url: "+err.Error())
			return l, false
		}
		if at, ok := imports.Time(c[2]); ok {
			l.known, l.micros = true, at.UnixMicro()
		} else if c[2] != "" {
			r.Drop(row.Line, "seen_at: invalid_time")
		}
		l.confidence = DefaultConfidence
		if given, ok := imports.Share(c[3]); ok {
			l.confidence = given
		} else if c[3] != "" {
			r.Drop(row.Line, "confidence: invalid_share")
		}
		return l, true
	}
}

// publicAddr reads an address, in the form for look-ups. reason says why it cannot be looked
// up.
func publicAddr(cell string) (a netip.Addr, reason string) {
	a, err := ipaddr.Parse(cell)
	if err != nil {
		return a, err.Error()
	}
	found, ok := ipaddr.LookupAddr(a)
	if !ok {
		return a, "ip_class:" + string(ipaddr.ClassOf(a))
	}
	return found, ""
}
