package keys

import (
	"cmp"
	"encoding/hex"
	"slices"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/transforms/email"
	"github.com/leadetl/leadetl/transforms/ipaddr"
	"github.com/leadetl/leadetl/transforms/profile"
	"github.com/leadetl/leadetl/transforms/suppression"
)

// Canonical returns the keys by which runs may have asked about the identifiers in a cell,
// with its reason for one that a run rejects. Of each identifier the first is the key of a row
// with it. The others are the digests of an address by all profiles. hosts are the hosts of
// network profiles.
func Canonical(kind resolution.Identifier, cell string, hosts []string) (all []string, err error) {
	for _, value := range suppression.Values(suppression.Kind(kind), cell) {
		keys, rejected := canonical(kind, value, hosts)
		all, err = append(all, keys...), cmp.Or(err, rejected)
	}
	return all, err
}

// canonical is Canonical of one identifier.
func canonical(kind resolution.Identifier, cell string, hosts []string) ([]string, error) {
	switch kind {
	case resolution.Email:
		a, err := email.Read([]byte(cell))
		if err != nil {
			return nil, err
		}
		return emailKeys(a), nil
	case resolution.NetworkURL:
		key, err := profile.Rules{Hosts: hosts}.ParsePerson(cell)
		if err != nil {
			return nil, err
		}
		return []string{key}, nil
	case resolution.IP:
		addr, err := ipaddr.Read(cell)
		if err != nil {
			return nil, err
		}
		return []string{addr.String()}, nil
	}
	panic("keys: no kind of identifier: " + string(kind))
}

func emailKeys(a email.Address) []string {
	keys := []string{string(a.AppendKey(nil))}
	for _, p := range email.Known {
		form, ok := a.AppendForm(nil, p)
		if !ok {
			continue // it is a digest, or has no form in this profile
		}
		sums := email.Sum(form)
		for _, sum := range [][]byte{sums.MD5[:], sums.SHA1[:], sums.SHA256[:]} {
			if key := hex.EncodeToString(sum); !slices.Contains(keys, key) {
				keys = append(keys, key)
			}
		}
	}
	return keys
}
