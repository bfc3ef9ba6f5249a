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
	"hash/maphash"
	"math/bits"
	"net/netip"
	"os"
	"slices"
	"strings"
)

// tables are reference data in memory.
type tables struct {
	find   func(value []byte) (row, bool)
	hashes []func(out, email []byte) []byte
}

// row is what is known of a key: the texts of all columns, and an email whose digests are wanted.
type row struct{ texts, email []byte }

// index finds the row of a key, behind which it is in one memory: a look-up waits for it twice, and a Go map of texts
// for every text.
type index struct {
	seed  maphash.Seed
	slots []uint64 // some bits of the hash, and the place in data + 1
	data  []byte   // lengths of key, email and texts; key, email, texts
}

const (
	placeBits  = 40
	lengthsEnd = 8
)

func newIndex(keys int) *index {
	return &index{maphash.MakeSeed(), make([]uint64, 1<<bits.Len(uint(2*keys))), nil}
}

func (x *index) add(key []byte, r row) {
	hash := maphash.Bytes(x.seed, key)
	at := hash % uint64(len(x.slots))
	for x.slots[at] != 0 {
		at = (at + 1) % uint64(len(x.slots))
	}
	x.slots[at] = hash>>placeBits<<placeBits | uint64(len(x.data)+1)
	x.data = binary.NativeEndian.AppendUint16(x.data, uint16(len(key)))
	x.data = binary.NativeEndian.AppendUint16(x.data, uint16(len(r.email)))
	x.data = binary.NativeEndian.AppendUint32(x.data, uint32(len(r.texts)))
	x.data = append(append(append(x.data, key...), r.email...), r.texts...)
}

func (x *index) find(key []byte) (row, bool) {
	hash := maphash.Bytes(x.seed, key)
	for at := hash % uint64(len(x.slots)); x.slots[at] != 0; at = (at + 1) % uint64(len(x.slots)) {
		slot := x.slots[at]
		if slot>>placeBits != hash>>placeBits {
			continue
		}
		entry := x.data[slot&(1<<placeBits-1)-1:]
		rest := entry[lengthsEnd:]
		if n := int(binary.NativeEndian.Uint16(entry)); bytes.Equal(rest[:n], key) {
			rest = rest[n:]
			n = int(binary.NativeEndian.Uint16(entry[2:]))
			return row{rest[n:][:binary.NativeEndian.Uint32(entry[4:])], rest[:n]}, true
		}
	}
	return row{}, false
}

var digests = map[string]func(out, email []byte) []byte{
	"hem_md5":    func(out, email []byte) []byte { d := md5.Sum(email); return append(out, d[:]...) },
	"hem_sha1":   func(out, email []byte) []byte { d := sha1.Sum(email); return append(out, d[:]...) },
	"hem_sha256": func(out, email []byte) []byte { d := sha256.Sum256(email); return append(out, d[:]...) },
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
func (k kind) texts(line []string, columns []string, prefix string) (texts []byte) {
	for _, c := range columns {
		if rest, is := strings.CutPrefix(c, prefix); is {
			field := rest
			if s, other := sources[c]; other {
				field = s
			}
			if i := k.of(field); i >= 0 {
				first, _, _ := strings.Cut(line[i], ";")
				texts = append(texts, first...)
			}
		}
	}
	return texts
}

// newTables reads what an operation needs, with the texts of each row put together.
func newTables(operation, folder string, columns []string) (*tables, error) {
	t := &tables{}
	for _, c := range columns {
		if digest := digests[c]; digest != nil {
			t.hashes = append(t.hashes, digest)
		}
	}
	companies := map[string][]byte{}
	if slices.ContainsFunc(columns, func(c string) bool { return strings.HasPrefix(c, "company_") }) {
		k, err := readKind(folder, "companies")
		if err != nil {
			return nil, err
		}
		for _, line := range k.rows {
			companies[line[0]] = k.texts(line, columns, "company_")
		}
	}
	var of owners
	if operation == "ip_to_company" || operation == "deanonymization" {
		var err error
		if of, err = readOwners(folder, companies); err != nil {
			return nil, err
		}
	}
	if operation == "ip_to_company" {
		t.find = func(value []byte) (row, bool) { return of.find(address(value)) }
		return t, nil
	}
	people, err := readPeople(folder, columns, companies)
	if err != nil {
		return nil, err
	}
	if operation != "deanonymization" {
		t.find = func(value []byte) (row, bool) { return people.find(profile(value)) }
		return t, nil
	}
	k, err := readKind(folder, "visits")
	visits := newIndex(len(k.rows))
	for _, line := range k.rows {
		r, _ := people.find(profile([]byte(line[1])))
		visits.add(addressKey(address([]byte(line[0]))), r)
	}
	t.find = func(value []byte) (row, bool) {
		ip := address(value)
		if r, found := visits.find(addressKey(ip)); found {
			return r, true
		}
		return of.find(ip)
	}
	return t, err
}

func addressKey(ip uint32) []byte { return binary.NativeEndian.AppendUint32(make([]byte, 0, 4), ip) }

func readPeople(folder string, columns []string, companies map[string][]byte) (*index, error) {
	k, err := readKind(folder, "people")
	people := newIndex(len(k.rows))
	emails, domain := k.of("emails"), k.of("company_domain")
	for _, line := range k.rows {
		email, _, _ := strings.Cut(line[emails], ";")
		people.add(profile([]byte(line[0])), row{append(k.texts(line, columns, ""), companies[line[domain]]...), []byte(email)})
	}
	return people, err
}

// owners are ranges of addresses that do not overlap, in order, and where those of each 65,536 addresses begin.
type owners struct {
	ranges []owner
	begin  [1<<16 + 1]uint32
}

type owner struct {
	first, last uint32
	texts       []byte // nil of a provider
}

func readOwners(folder string, companies map[string][]byte) (o owners, err error) {
	k, err := readKind(folder, "ip-ranges")
	for _, line := range k.rows {
		p, err := netip.ParsePrefix(line[0])
		if err != nil {
			return o, fmt.Errorf("ip-ranges: %w", err)
		}
		first := number(p.Addr())
		of := owner{first: first, last: first | uint32(uint64(1)<<(32-p.Bits())-1)}
		if !slices.Contains([]string{"isp", "hosting", "cellular"}, line[2]) {
			of.texts = append([]byte(line[2]), companies[line[1]]...)
		}
		o.ranges = append(o.ranges, of)
	}
	slices.SortFunc(o.ranges, func(a, b owner) int { return cmp.Compare(a.first, b.first) })
	for high, i := 0, 0; high < len(o.begin); high++ {
		for i < len(o.ranges) && int(o.ranges[i].last>>16) < high {
			i++
		}
		o.begin[high] = uint32(i)
	}
	return o, err
}

func (o *owners) find(ip uint32) (row, bool) {
	end := min(int(o.begin[ip>>16+1])+1, len(o.ranges))
	for _, of := range o.ranges[o.begin[ip>>16]:end] {
		if ip <= of.last {
			return row{texts: of.texts}, ip >= of.first && of.texts != nil
		}
	}
	return row{}, false
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

// profile is the name in the address of a profile. It brings the value into lower case.
func profile(value []byte) []byte {
	for i, c := range value {
		if 'A' <= c && c <= 'Z' {
			value[i] = c | 0x20
		}
	}
	if i := bytes.Index(value, []byte("/in/")); i >= 0 {
		value = value[i+len("/in/"):]
	}
	if i := bytes.IndexByte(value, '?'); i >= 0 {
		value = value[:i]
	}
	return value
}
