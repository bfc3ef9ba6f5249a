package ranges

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/oschwald/maxminddb-golang/v2"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/directory/imports"
	"github.com/leadetl/leadetl/transforms/company"
	"github.com/leadetl/leadetl/transforms/orgtype"
)

// Fields are the dotted paths of name, domain and type in the records of an MMDB. The first
// value that is not empty counts.
type Fields struct {
	Name   []string `json:"name"`
	Domain []string `json:"domain"`
	Type   []string `json:"type"`
}

// readMMDB reads the networks of an MMDB and returns a hash of its content. It refuses a
// damaged one, and one without any of the fields, which would answer nothing.
func (t *table) readMMDB(ctx context.Context, f *os.File, o Options, r *imports.Report) (content string, err error) {
	db, err := maxminddb.Open(r.Source)
	if err != nil {
		return "", fmt.Errorf("%w: %w", resolution.ErrInvalid, err)
	}
	defer db.Close()
	fields := o.Fields
	if err := db.Verify(); err != nil {
		return "", fmt.Errorf("%w: the MMDB is broken: %w", resolution.ErrInvalid, err)
	}
	type numbered struct {
		owner   uint32 // 0 means none
		orgType string
	}
	owners := map[uintptr]numbered{} // by the offset of their record
	answers := false
	for result := range db.Networks(maxminddb.SkipEmptyValues()) {
		if err := result.Err(); err != nil {
			return "", fmt.Errorf("%w: the MMDB is broken: %w", resolution.ErrInvalid, err)
		}
		r.Rows++
		if r.Rows%1024 == 0 && ctx.Err() != nil {
			return "", ctx.Err()
		}
		n, met := owners[result.Offset()]
		if !met {
			if own, empty := fields.owner(result, t.orgTypes); !empty {
				if n.owner, err = t.number(own); err != nil {
					return "", err
				}
				n.orgType = own.orgType
				answers = answers || own.name+own.domain != ""
			}
			owners[result.Offset()] = n
		}
		if n.owner != 0 {
			t.words.Add(n.orgType)
			p := result.Prefix()
			if err := t.add(addrRange{p.Addr(), lastAddr(p)}, n.owner); err != nil {
				return "", err
			}
		}
	}
	r.Lines = r.Rows
	if !answers {
		return "", fmt.Errorf("%w: no record of this %s database has a name or a domain at %s", resolution.ErrInvalid,
			db.Metadata.DatabaseType, strings.Join(append(append([]string(nil), fields.Name...), fields.Domain...), ", "))
	}
	h := sha256.New()
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	mapping, err := json.Marshal(o)
	if err != nil {
		return "", err
	}
	sum := imports.NewContent()
	sum.Add(hex.EncodeToString(h.Sum(nil)), string(mapping))
	return sum.Sum(), nil
}

// owner reads a record of any form. A field that is not a string counts as missing. empty is
// true for a record without any of the fields.
func (f Fields) owner(result maxminddb.Result, kinds orgtype.Vocabulary) (o owner, empty bool) {
	first := func(paths []string) string {
		for _, path := range paths {
			var s string
			if err := result.DecodePath(&s, keys(path)...); err == nil && strings.TrimSpace(s) != "" {
				return strings.TrimSpace(s)
			}
		}
		return ""
	}
	o.name, o.domain = first(f.Name), first(f.Domain)
	if domain := company.Domain(o.domain); domain != "" {
		o.domain = domain
	}
	word := first(f.Type)
	o.orgType = kinds.Kind(word)
	return o, o.name+o.domain+word == ""
}

func keys(path string) []any {
	var keys []any
	for key := range strings.SplitSeq(path, ".") {
		keys = append(keys, key)
	}
	return keys
}
