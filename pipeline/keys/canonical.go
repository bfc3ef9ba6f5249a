package keys

import (
	"encoding/hex"
	"slices"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/transforms/email"
	"github.com/leadetl/leadetl/transforms/ipaddr"
	"github.com/leadetl/leadetl/transforms/profile"
)

// Canonical returns the keys by which runs may have asked about the identifier in a cell. The
// first is the key of a row with that cell. The others are the digests of an address by all
// profiles, and the former key of a page. hosts are the hosts of network profiles. The text of the error is the reason
// for which a run rejects the cell.
func Canonical(kind resolution.Identifier, cell string, hosts []string) ([]string, error) {
	switch kind {
	case resolution.Email:
		a, err := email.Parse([]byte(cell))
		if err != nil {
			return nil, err
		}
		return emailKeys(a), nil
	case resolution.NetworkURL:
		key, err := profile.Rules{Hosts: hosts}.ParsePerson(cell)
		if err != nil {
			return nil, err
		}
		if former, changed := profile.Former(key); changed {
			return []string{key, former}, nil
		}
		return []string{key}, nil
	case resolution.IP:
		addr, err := ipaddr.Parse(cell)
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
