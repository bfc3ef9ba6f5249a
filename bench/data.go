package main

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"strings"
	"time"
)

// The inputs are generated here and in user_data.go and are the same on every machine:
// nothing is downloaded, and they hold no real people. The lists and reference data of
// this file are as they always were, so that results of different days can be compared.

var (
	firstNames = strings.Fields("ada alan anita barbara claude dennis donald edsger frances grace hedy jean john karen ken leslie linus margaret niklaus radia richard robin shafi tim tony vint")
	lastNames  = strings.Fields("example sample specimen pattern model instance template placeholder mockup exemplar doe roe public bloggs mustermann dupont rossi")
	mailHosts  = strings.Fields("mail.example post.example inbox.example letters.example.com webmail.example.org")
)

// writeFile creates a file with the lines that write writes.
func writeFile(name string, write func(*bufio.Writer)) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	write(w)
	return errors.Join(w.Flush(), f.Close())
}

// writeEmails writes a list of `id,email` with about 45 bytes a row. Most
// addresses are lower case, and half are at a few large mail hosts.
func writeEmails(name string, rows int) error {
	r := rand.New(rand.NewPCG(1, 1))
	return writeFile(name, func(w *bufio.Writer) {
		fmt.Fprintln(w, "id,email")
		for id := range rows {
			fmt.Fprintf(w, "%d,%s\n", id+1, emailAddress(r))
		}
	})
}

func emailAddress(r *rand.Rand) string {
	first, last := pick(r, firstNames), pick(r, lastNames)
	number, host := r.IntN(100_000), pick(r, mailHosts)
	if r.IntN(2) == 0 {
		host = fmt.Sprintf("company-%d.example", r.IntN(50_000))
	}
	switch r.IntN(10) {
	case 0:
		return strings.ToUpper(fmt.Sprintf("%s.%s%d@%s", first, last, number, host))
	case 1, 2:
		return fmt.Sprintf("%s.%s%d@%s", title(first), title(last), number, host)
	case 3:
		return fmt.Sprintf("%s%d+news@%s", first, number, title(host))
	}
	return fmt.Sprintf("%s.%s%d@%s", first, last, number, host)
}

func pick(r *rand.Rand, from []string) string { return from[r.IntN(len(from))] }
func title(s string) string                   { return strings.ToUpper(s[:1]) + s[1:] }

// writeCompanies writes reference data of n companies.
func writeCompanies(name string, n int) error {
	r := rand.New(rand.NewPCG(2, 2))
	return writeFile(name, func(w *bufio.Writer) {
		fmt.Fprintln(w, "domain,name,website_url,industry,revenue,employee_count,year_founded,city,state")
		for i := range n {
			fmt.Fprintf(w, "company-%d.example,Company %d,https://www.company-%[1]d.example,%[3]s,%[4]s,%[5]s,%[6]d,%[7]s,%[8]s\n", i, i,
				pick(r, []string{"Software", "Retail", "Logistics", "Health Care", "Machinery"}),
				pick(r, []string{"$1M-$10M", "$10M-$50M", "$50M-$100M", "over $1B"}),
				pick(r, []string{"1-10", "11-50", "51-200", "201-500", "10001+"}),
				1900+r.IntN(120), pick(r, []string{"Springfield", "Riverton", "Lakeside"}), pick(r, []string{"OR", "CA", "NY"}))
		}
	})
}

// specialOctets are the first octets of the IPv4 addresses that ranges leave
// out: special addresses and their neighbours.
var specialOctets = map[byte]bool{10: true, 100: true, 127: true, 169: true, 172: true, 192: true, 198: true, 203: true}

// writeRanges writes n IP ranges, one after another from 1.0.0.0 on, each of 256
// to 8,192 addresses. Most belong to companies. It returns the address after
// the last range.
func writeRanges(name string, n, companies int) (end uint32, err error) {
	r := rand.New(rand.NewPCG(3, 3))
	full := false
	err = writeFile(name, func(w *bufio.Writer) {
		fmt.Fprintln(w, "cidr,company_domain,org_type")
		at := uint32(1 << 24)
		for range n {
			bits := 24 - min(r.IntN(8), r.IntN(6))
			size := uint32(1) << (32 - bits)
			at = (at + size - 1) / size * size
			for specialOctets[byte(at>>24)] {
				at = (at>>24 + 1) << 24
			}
			if full = at>>24 >= 224; full {
				return
			}
			company := r.IntN(companies)
			kind := []string{"business", "business", "business", "education", "isp"}[company%5]
			fmt.Fprintf(w, "%s/%d,company-%d.example,%s\n", ipv4(at), bits, company, kind)
			at += size
		}
		end = at
	})
	if full {
		err = errors.Join(err, fmt.Errorf("%d ranges do not fit into IPv4", n))
	}
	return end, err
}

// publicAddress returns the i-th public address from 1.0.0.0 on.
func publicAddress(i uint32) uint32 {
	at := 1<<24 + i
	for octet := byte(1); octet <= byte(at>>24); octet++ {
		if specialOctets[octet] {
			at += 1 << 24
		}
	}
	return at
}

// publicAddresses is how many public addresses there are up to end.
func publicAddresses(end uint32) uint32 {
	n := end - 1<<24
	for octet := range specialOctets {
		if uint32(octet) < end>>24 {
			n -= 1 << 24
		}
	}
	return n
}

// writeIPs writes a list of `id,ip` with random addresses from 1.0.0.0 to end.
func writeIPs(name string, rows int, end uint32) error {
	r := rand.New(rand.NewPCG(4, 4))
	return writeFile(name, func(w *bufio.Writer) {
		fmt.Fprintln(w, "id,ip")
		for id := range rows {
			fmt.Fprintf(w, "%d,%s\n", id+1, ipv4(publicAddress(r.Uint32N(publicAddresses(end)))))
		}
	})
}

func ipv4(n uint32) netip.Addr {
	return netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
}

// writePeople writes reference data of n people, two emails each.
func writePeople(name string, n, companies int) error {
	r := rand.New(rand.NewPCG(5, 5))
	return writeFile(name, func(w *bufio.Writer) {
		fmt.Fprintln(w, "network_url,first_name,last_name,headline,job_title,seniority,department,emails,phones,street,zip_code,city,state,company_domain,last_seen_at")
		for i := range n {
			first, last := title(pick(r, firstNames)), title(pick(r, lastNames))
			fmt.Fprintf(w, "network.example/in/person-%d,%s,%s,%s at Company,%s,senior,Engineering,person-%d@mail.example;%s.%s%d@post.example,+1202555%04d,%d Sample Street,%05d,Springfield,OR,company-%d.example,2026-11-01\n",
				i, first, last, pick(r, jobTitles), pick(r, jobTitles), i, strings.ToLower(first), strings.ToLower(last), i, r.IntN(10_000), r.IntN(1000), r.IntN(100_000), r.IntN(companies))
		}
	})
}

var jobTitles = strings.Fields("Engineer Baker Editor Nurse Analyst Designer Director Clerk Partner Professor")

// writeSearches writes n keyword searches of the last 30 days: half have the
// word software, and one in a thousand has each of a thousand topics.
func writeSearches(name string, n, people int, now time.Time) error {
	r := rand.New(rand.NewPCG(6, 6))
	return writeFile(name, func(w *bufio.Writer) {
		fmt.Fprintln(w, "keyword,searched_at,network_url,city,state,zip_code,job_title,lead_type")
		for range n {
			what := pick(r, []string{"software for topic", "tools for topic", "software topic", "books on topic"})
			at := now.Add(-time.Duration(r.Int64N(int64(30 * 24 * time.Hour)))).UTC()
			fmt.Fprintf(w, "%s %d,%s,network.example/in/person-%d,%s,%s,%05d,%s,%s\n", what, r.IntN(1000), at.Format(time.RFC3339), r.IntN(people),
				pick(r, []string{"Springfield", "Riverton", "Lakeside"}), pick(r, []string{"OR", "CA", "NY"}), 10_000+r.IntN(1000), pick(r, jobTitles), pick(r, []string{"b2b", "b2c"}))
		}
	})
}
