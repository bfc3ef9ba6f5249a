package keys

import (
	"encoding/hex"
	"slices"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/transforms/email"
	"github.com/leadetl/leadetl/transforms/ipaddr"
	"github.com/leadetl/leadetl/transforms/profile"
)

// Canonical are the keys under which runs ask about the identifier in a
// cell. The first is the key of a run's rows; an address is also known by its
// digests, by whatever profile they were made. hosts are the
// hosts of network profiles. The error's text is the reason a run would give for
// rejecting the cell.
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
	for _, p := range []email.Profile{email.Plain, email.UID2, email.Google} {
		form, ok := a.AppendForm(nil, p)
		if !ok {
			continue // a digest already, or no address by this profile
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
