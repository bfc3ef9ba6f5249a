package ranges

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/oschwald/maxminddb-golang/v2"
	"github.com/oschwald/maxminddb-golang/v2/mmdbdata"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/directory/imports"
	"github.com/leadetl/leadetl/transforms/company"
	"github.com/leadetl/leadetl/transforms/orgtype"
)

// readMMDB reads the networks of an MMDB and returns a hash of its content. It refuses a
// damaged one, and one without any of the fields, which would answer nothing.
func (t *table) readMMDB(ctx context.Context, f *os.File, o imports.Options, r *imports.Report) (content string, err error) {
	db, err := maxminddb.Open(r.Source)
	if err != nil {
		return "", fmt.Errorf("%w: %w", resolution.ErrInvalid, err)
	}
	defer db.Close()
	if len(db.Metadata.Description) == 0 { // a database needs none, but Verify does
		db.Metadata.Description = map[string]string{"en": db.Metadata.DatabaseType}
	}
	if err := db.Verify(); err != nil {
		return "", fmt.Errorf("%w: the MMDB is broken: %w", resolution.ErrInvalid, err)
	}
	type numbered struct {
		owner   uint32 // 0 means none
		orgType string
	}
	owners := map[uintptr]numbered{} // by the offset of their record
	answers, flagged := false, flags{known: map[string]string{}, kinds: t.orgTypes}
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
			if own, empty := ownerOf(result, o.Fields, &flagged); !empty {
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
			for _, p := range prefixes(result.Prefix()) {
				if err := t.add(addrRange{p.Addr(), lastAddr(p)}, n.owner); err != nil {
					return "", err
				}
			}
		}
	}
	r.Lines = r.Rows
	if !answers {
		return "", fmt.Errorf("%w: no record of this %s database has a name or a domain at %s", resolution.ErrInvalid,
			db.Metadata.DatabaseType, strings.Join(append(append([]string(nil), o.Fields.Name...), o.Fields.Domain...), ", "))
	}
	h := sha256.New()
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	mapping, err := json.Marshal(struct {
		Fields   imports.Fields    `json:"fields"`
		OrgTypes map[string]string `json:"org_types"`
	}{o.Fields, o.OrgTypes})
	if err != nil {
		return "", err
	}
	sum := imports.NewContent()
	sum.Add(hex.EncodeToString(h.Sum(nil)), string(mapping))
	return sum.Sum(), nil
}

// mapped holds the IPv4 addresses as IPv6 writes them, and all4 the same ones.
var mapped, all4 = netip.MustParsePrefix("::ffff:0:0/96"), netip.MustParsePrefix("0.0.0.0/0")

// prefixes returns the addresses of a network as they are looked up: mapped ones as IPv4.
func prefixes(p netip.Prefix) []netip.Prefix {
	switch {
	case !p.Overlaps(mapped):
	case p.Bits() >= mapped.Bits():
		return []netip.Prefix{netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-mapped.Bits())}
	case !p.Contains(netip.IPv6Unspecified()): // else it has IPv4 at ::/96 too
		return []netip.Prefix{p, all4}
	}
	return []netip.Prefix{p}
}

// ownerOf reads a record of any form. A field that is not a string counts as missing. If flags
// say that it is a provider, it is one whatever its type. empty is true for a record without
// any of the fields.
func ownerOf(result maxminddb.Result, f imports.Fields, flagged *flags) (o owner, empty bool) {
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
	o.orgType, flagged.kind = flagged.kinds.Kind(word), ""
	if err := result.Decode(flagged); err == nil && flagged.kind != "" && !orgtype.IsProvider(o.orgType) {
		o.orgType = flagged.kind
	}
	return o, o.name+o.domain+word+flagged.kind == ""
}

// flags reads the yes-or-no fields of a record, such as vpn or privacy.hosting. kind is that of
// the most telling one that says yes: the last of them in orgtype.Kinds.
type flags struct {
	known map[string]string // kinds by field, "" for fields that are no flag
	kinds orgtype.Vocabulary
	kind  string
}

// flagDepth is how deep in a record flags are.
const flagDepth = 3

// UnmarshalMaxMindDB reads a record.
func (f *flags) UnmarshalMaxMindDB(d *mmdbdata.Decoder) error { return f.read(d, "", flagDepth) }

// read reads the value of a field that names a kind.
func (f *flags) read(d *mmdbdata.Decoder, named string, depth int) error {
	if kind, err := d.PeekKind(); err != nil || kind != mmdbdata.KindMap {
		if err != nil || slices.Index(orgtype.Kinds, named) <= slices.Index(orgtype.Kinds, f.kind) {
			return err
		}
		yes, err := isYes(d)
		if yes {
			f.kind = named
		}
		return err
	}
	if depth == 0 {
		return nil
	}
	fields, _, err := d.ReadMap()
	if err != nil {
		return err
	}
	for name, err := range fields { // it skips what is not read
		if err != nil {
			return err
		}
		kind, met := f.known[string(name)]
		if !met {
			kind = f.kinds.Flag(string(name))
			f.known[string(name)] = kind
		}
		if err := f.read(d, kind, depth-1); err != nil {
			return err
		}
	}
	return nil
}

// isYes reads a value that says yes or no in one of the ways of databases.
func isYes(d *mmdbdata.Decoder) (yes bool, err error) {
	kind, err := d.PeekKind()
	if err != nil {
		return false, err
	}
	switch kind {
	case mmdbdata.KindBool:
		return d.ReadBool()
	case mmdbdata.KindString:
		text, err := d.ReadString()
		switch strings.ToLower(strings.TrimSpace(text)) {
		case "true", "yes", "y", "t", "1":
			yes = true
		}
		return yes, err
	case mmdbdata.KindUint16:
		n, err := d.ReadUint16()
		return n != 0, err
	case mmdbdata.KindUint32:
		n, err := d.ReadUint32()
		return n != 0, err
	case mmdbdata.KindInt32:
		n, err := d.ReadInt32()
		return n != 0, err
	}
	return false, nil
}

func keys(path string) []any {
	var keys []any
	for key := range strings.SplitSeq(path, ".") {
		keys = append(keys, key)
	}
	return keys
}
