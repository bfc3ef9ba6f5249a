package main

import (
	"bytes"
	"cmp"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/binary"
	"encoding/csv"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
)

// tables are reference data in memory.
type tables struct {
	find func(value []byte) (row, bool)
}

// row is what is known of a key: texts, and an email whose digests are wanted.
type row struct {
	texts  []string
	email  string
	hashes []func([]byte, string) []byte
}

// appendTo appends the columns of a row.
func (r row) appendTo(out []byte) []byte {
	for _, text := range r.texts {
		out = append(out, text...)
	}
	for _, digest := range r.hashes {
		out = digest(out, r.email)
	}
	return out
}

var digests = map[string]func([]byte, string) []byte{
	"hem_md5":    func(out []byte, email string) []byte { d := md5.Sum([]byte(email)); return append(out, d[:]...) },
	"hem_sha1":   func(out []byte, email string) []byte { d := sha1.Sum([]byte(email)); return append(out, d[:]...) },
	"hem_sha256": func(out []byte, email string) []byte { d := sha256.Sum256([]byte(email)); return append(out, d[:]...) },
}

// sources say which field of a file a column is made from, if it has another name.
var sources = map[string]string{
	"email": "emails", "phone": "phones", "phone_region": "phones", "phone_type": "phones",
	"company_revenue_min": "revenue", "company_revenue_max": "revenue", "company_employee_min": "employee_count", "company_employee_max": "employee_count",
}

// kind is a file of reference data: for each line, the texts of the wanted columns.
type kind struct {
	rows [][]string // of all fields, by the names in head
	head []string
}

func readKind(folder, name string) (k kind, err error) {
	f, err := os.Open(folder + "/" + name + ".csv")
	if err != nil {
		return k, err
	}
	defer f.Close()
	k.rows, err = csv.NewReader(f).ReadAll()
	if err == nil && len(k.rows) > 0 {
		k.head, k.rows = k.rows[0], k.rows[1:]
	}
	return k, err
}

// of is the field of a name, -1 without one.
func (k kind) of(name string) int { return slices.Index(k.head, name) }

// texts are the columns of a line, without those that the file has not.
func (k kind) texts(line []string, columns []string, prefix string) (texts []string) {
	for _, c := range columns {
		if rest, is := strings.CutPrefix(c, prefix); is {
			field := rest
			if s, other := sources[c]; other {
				field = s
			}
			if i := k.of(field); i >= 0 {
				first, _, _ := strings.Cut(line[i], ";")
				texts = append(texts, first)
			}
		}
	}
	return texts
}

// newTables reads what an operation needs, with the texts of each row put together.
func newTables(operation, folder string, columns []string) (*tables, error) {
	companies := map[string][]string{}
	if slices.ContainsFunc(columns, func(c string) bool { return strings.HasPrefix(c, "company_") }) {
		k, err := readKind(folder, "companies")
		if err != nil {
			return nil, err
		}
		for _, line := range k.rows {
			companies[line[0]] = k.texts(line, columns, "company_")
		}
	}
	if operation == "ip_to_company" {
		owners, err := readOwners(folder, companies)
		return &tables{func(value []byte) (row, bool) {
			texts, found := owners.of(address(value))
			return row{texts: texts}, found
		}}, err
	}
	people, err := readPeople(folder, columns, companies)
	if err != nil {
		return nil, err
	}
	if operation != "deanonymization" {
		return &tables{func(value []byte) (row, bool) { r, found := people[string(profile(value))]; return r, found }}, nil
	}
	owners, err := readOwners(folder, companies)
	if err != nil {
		return nil, err
	}
	k, err := readKind(folder, "visits")
	visits := make(map[uint32]row, len(k.rows))
	for _, line := range k.rows {
		visits[address([]byte(line[0]))] = people[string(profile([]byte(line[1])))]
	}
	return &tables{func(value []byte) (row, bool) {
		ip := address(value)
		if r, found := visits[ip]; found {
			return r, true
		}
		texts, found := owners.of(ip)
		return row{texts: texts}, found
	}}, err
}

func readPeople(folder string, columns []string, companies map[string][]string) (map[string]row, error) {
	k, err := readKind(folder, "people")
	people := make(map[string]row, len(k.rows))
	emails, domain := k.of("emails"), k.of("company_domain")
	for _, line := range k.rows {
		r := row{texts: append(k.texts(line, columns, ""), companies[line[domain]]...)}
		for _, c := range columns {
			if digest := digests[c]; digest != nil && line[emails] != "" {
				r.email, _, _ = strings.Cut(line[emails], ";")
				r.hashes = append(r.hashes, digest)
			}
		}
		people[strings.TrimPrefix(line[0], "linkedin.com/in/")] = r
	}
	return people, err
}

// owners are ranges of addresses that do not overlap, in order.
type owners []owner

type owner struct {
	first, last uint32
	texts       []string // nil of a provider
}

func readOwners(folder string, companies map[string][]string) (o owners, err error) {
	k, err := readKind(folder, "ip-ranges")
	for _, line := range k.rows {
		p, err := netip.ParsePrefix(line[0])
		if err != nil {
			return nil, fmt.Errorf("ip-ranges: %w", err)
		}
		first := number(p.Addr())
		of := owner{first: first, last: first | uint32(uint64(1)<<(32-p.Bits())-1)}
		if !slices.Contains([]string{"isp", "hosting", "cellular"}, line[2]) {
			of.texts = append([]string{line[2]}, companies[line[1]]...)
		}
		o = append(o, of)
	}
	slices.SortFunc(o, func(a, b owner) int { return cmp.Compare(a.first, b.first) })
	return o, err
}

func (o owners) of(ip uint32) ([]string, bool) {
	i, exact := slices.BinarySearchFunc(o, ip, func(of owner, ip uint32) int { return cmp.Compare(of.first, ip) })
	if !exact {
		i--
	}
	if i < 0 || ip > o[i].last || o[i].texts == nil {
		return nil, false
	}
	return o[i].texts, true
}

func number(a netip.Addr) uint32 { b := a.As4(); return binary.BigEndian.Uint32(b[:]) }

// address is the number of an IPv4 address.
func address(value []byte) (ip uint32) {
	part := uint32(0)
	for _, c := range value {
		if c == '.' {
			ip, part = ip<<8|part, 0
		} else {
			part = 10*part + uint32(c-'0')
		}
	}
	return ip<<8 | part
}

// profile is the name in the address of a profile, in lower case.
func profile(value []byte) []byte {
	value = bytes.ToLower(value)
	if i := bytes.Index(value, []byte("/in/")); i >= 0 {
		value = value[i+len("/in/"):]
	}
	if i := bytes.IndexByte(value, '?'); i >= 0 {
		value = value[:i]
	}
	return value
}
