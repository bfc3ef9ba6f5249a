package cliflag

import (
	"errors"
	"net/netip"
	"strings"
)

// Networks is a list of networks in CIDR form. A single address is a network
// with one address. It is a pflag.SliceValue.
type Networks []netip.Prefix

func (n *Networks) String() string { return strings.Join(n.GetSlice(), ",") }

// Type is the word for the value in help texts.
func (n *Networks) Type() string { return "network" }

// Set adds a network.
func (n *Networks) Set(text string) error { return n.Append(text) }

// Append adds a network.
func (n *Networks) Append(text string) error {
	prefix, err := netip.ParsePrefix(text)
	if err != nil {
		addr, notAddr := netip.ParseAddr(text)
		if notAddr != nil || addr.Zone() != "" {
			return errors.New("write a network such as 10.1.0.0/16 or fd00::/8, or an address")
		}
		prefix = netip.PrefixFrom(addr, addr.BitLen())
	}
	*n = append(*n, prefix.Masked())
	return nil
}

// Replace sets the whole list.
func (n *Networks) Replace(all []string) error {
	*n = nil
	for _, text := range all {
		if err := n.Append(text); err != nil {
			return err
		}
	}
	return nil
}

// GetSlice is the list as text.
func (n *Networks) GetSlice() []string {
	all := make([]string, len(*n))
	for i, prefix := range *n {
		all[i] = prefix.String()
	}
	return all
}
