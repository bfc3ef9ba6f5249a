package ipaddr

import (
	"net/netip"
	"slices"
	"strings"
)

// Read is Parse of a cell that may be as proxies write it: with for= and the other parameters
// of a Forwarded header (RFC 7239), or with separators at the end. Where Parse reads a cell,
// Read says the same. A cell with several addresses is ErrMultiple; Split returns them.
func Read(s string) (netip.Addr, error) {
	a, err := Parse(s)
	if err == nil || err == ErrEmpty {
		return a, err
	}
	switch all := entries(s); {
	case len(all) > 1:
		return netip.Addr{}, ErrMultiple
	case len(all) == 1:
		if a, ok := parseOne(all[0]); ok {
			return a, nil
		}
	}
	return netip.Addr{}, err
}

// Split returns the entries of a cell in which Read finds several; nil of any other cell. Read
// reads each, or says what is wrong with it.
func Split(s string) []string {
	if _, err := Read(s); err != ErrMultiple {
		return nil
	}
	return entries(s)
}

// FirstPublic returns the first of some entries with an address that is asked about; else the
// first with an address, and else the first.
func FirstPublic(all []string) string {
	first := ""
	for _, entry := range all {
		a, err := Read(entry)
		if err != nil {
			continue
		}
		if _, public := LookupAddr(a); public {
			return entry
		}
		if first == "" {
			first = entry
		}
	}
	if first == "" {
		return all[0]
	}
	return first
}

// entries are the addresses of a cell, or what stands for them.
func entries(s string) (all []string) {
	isHeader := false
	for element := range strings.SplitSeq(s, ",") {
		for pair := range strings.SplitSeq(element, ";") {
			if name, value, found := strings.Cut(trim(pair), "="); found && strings.EqualFold(name, "for") {
				isHeader = true
				if value = strings.Trim(trim(value), `"`); value != "" {
					all = append(all, value)
				}
			}
		}
		if !strings.Contains(element, "=") && trim(element) != "" {
			all = append(all, trim(element)) // X-Forwarded-For has addresses alone
		}
	}
	if isHeader {
		return all
	}
	if all = slices.Collect(separated(s)); len(all) == 1 && isList(all[0]) {
		return strings.Fields(all[0])
	}
	return all
}
