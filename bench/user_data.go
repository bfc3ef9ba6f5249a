package main

import (
	"bufio"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"strconv"
	"strings"
)

// userData is reference data as users have it, and lists of its people and addresses:
// long texts, empty fields, several owners of a domain, and addresses of profiles as
// people type them.
type userData struct {
	companies, people int
	ranges            []ipRange // in the order of their addresses
}

type ipRange struct {
	first uint32
	bits  int // of its prefix
}

func (r ipRange) size() uint32 { return 1 << (32 - r.bits) }

// newUserData places n IP ranges of 256 to 8,192 addresses.
func newUserData(companies, people, n int) (*userData, error) {
	r := rand.New(rand.NewPCG(13, 13))
	d := &userData{companies: companies, people: people, ranges: make([]ipRange, n)}
	at := uint32(1 << 24)
	for i := range d.ranges {
		block := ipRange{bits: 24 - min(r.IntN(8), r.IntN(6))}
		at = (at + block.size() - 1) / block.size() * block.size()
		for specialOctets[byte(at>>24)] {
			at = (at>>24 + 1) << 24
		}
		if at>>24 >= 224 {
			return nil, fmt.Errorf("%d ranges do not fit into IPv4", n)
		}
		block.first = at
		d.ranges[i] = block
		at += block.size()
	}
	return d, nil
}

// shuffled returns a place below n for each i below n, a different one for each.
func shuffled(i, n int) int { return int(uint64(i) * 2654435761 % uint64(n)) }

// zipf returns a rank below n. The first ranks, as many as head, are equally frequent.
// From there on, each doubling of the rank is as frequent as the one before.
func zipf(r *rand.Rand, n, head int) int {
	for {
		from := head << r.IntN(bits.Len(uint(n/head))+1)
		if rank := from + r.IntN(from) - head; rank < n {
			return rank
		}
	}
}

// filled returns a field that is empty but for some percent of the records.
func filled(r *rand.Rand, percent int, field string) string {
	if r.IntN(100) < percent {
		return field
	}
	return ""
}

func domain(company int) string { return "company-" + strconv.Itoa(company) + ".example" }

// words are those of the descriptions of companies.
var words = func() (all []string) {
	for _, a := range strings.Fields("ba ce di fo gu ha je ki lo mu na pe ri so tu va") {
		for _, b := range strings.Fields("l nd r st m ng t v") {
			for _, c := range strings.Fields("a er ing ion e ity ed ous al ic ment or y um as is") {
				all = append(all, a+b+c)
			}
		}
	}
	return all
}()

var (
	industries = strings.Fields("Software Retail Logistics Machinery Insurance Farming Publishing Mining Chemicals Textiles Aviation Banking")
	revenues   = strings.Fields("$1M-$10M $10M-$50M $50M-$100M $100M-$500M $500M-$1B")
	employees  = strings.Fields("1-10 11-50 51-200 201-500 501-1000 1001-5000 5001-10000 10001+")
	states     = strings.Fields("CA NY TX WA OR FL IL MA CO GA OH PA NC VA AZ MI")
)

func (d *userData) writeCompanies(name string) error {
	r := rand.New(rand.NewPCG(12, 12))
	return writeFile(name, func(w *bufio.Writer) {
		fmt.Fprintln(w, "domain,name,website_url,network_url,industry,revenue,employee_count,year_founded,street,zip_code,city,state,about")
		for i := range d.companies {
			fmt.Fprintf(w, "%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,", domain(i), filled(r, 90, fmt.Sprintf("%s %s %d", title(pick(r, words)), title(pick(r, words)), i)),
				filled(r, 90, "https://www."+domain(i)), filled(r, 60, fmt.Sprintf("linkedin.com/company/company-%d", i)), filled(r, 85, pick(r, industries)),
				filled(r, 60, pick(r, revenues)), filled(r, 80, pick(r, employees)), filled(r, 70, strconv.Itoa(1900+r.IntN(120))),
				filled(r, 65, fmt.Sprintf("%d %s Street", 1+r.IntN(9999), title(pick(r, words)))), filled(r, 70, fmt.Sprintf("%05d", 10_000+r.IntN(80_000))),
				filled(r, 85, title(pick(r, words))), filled(r, 75, pick(r, states)))
			if r.IntN(100) < 80 {
				writeAbout(w, r)
			}
			w.WriteByte('\n') // Flush returns its error
		}
	})
}

// writeAbout writes 200 to 1,500 bytes, with commas and thus in quotes.
func writeAbout(w *bufio.Writer, r *rand.Rand) {
	size := 200 + r.IntN(1300)
	word := title(pick(r, words))
	w.WriteByte('"')
	for n := len(word); n < size; n += len(word) {
		w.WriteString(word)
		word = " " + pick(r, words)
		if r.IntN(12) == 0 {
			word = "," + word
		}
	}
	w.WriteByte('"')
}

// orgTypes are those of the owners of ranges; 40% are providers. Neighbours differ.
var orgTypes = strings.Fields("isp business hosting business isp business education cellular business government")

// writeRanges gives half of the companies a second owner, of another type. Every twelfth
// range has none.
func (d *userData) writeRanges(name string) error {
	owners := d.companies + d.companies/2
	return writeFile(name, func(w *bufio.Writer) {
		fmt.Fprintln(w, "cidr,company_domain,org_type")
		for i, block := range d.ranges {
			owner := shuffled(i%owners, owners)
			company, second := owner%d.companies, owner/d.companies
			if i%12 > 0 {
				fmt.Fprintf(w, "%s/%d,%s,%s\n", ipv4(block.first), block.bits, domain(company), orgTypes[(company+second)%len(orgTypes)])
			}
		}
	})
}

// person is what follows from the number of a person.
type person struct{ number, first, last, emails, phones int }

func personOf(number int) person {
	h := uint64(number)*0x9E3779B97F4A7C15 ^ uint64(number)>>7
	h ^= h >> 32
	return person{number, int(h % uint64(len(firstNames))), int(h >> 8 % 10), int(h >> 16 % 5), int(h >> 24 % 3)}
}

func (p person) names() (first, last string) { return firstNames[p.first], lastNames[p.last] }

// slug is the end of the address of the profile.
func (p person) slug() string {
	first, last := p.names()
	return first + "-" + last + "-" + strconv.FormatInt(int64(p.number)+46656, 36)
}

// email returns one of the addresses.
func (p person) email(i int) string {
	first, last := p.names()
	number := strconv.Itoa(p.number)
	return []string{first + "." + last + number + "@mail.example", first + number + "@" + domain(p.number%50_000), last + number + "@post.example", "p" + number + "@inbox.example"}[i]
}

// jobTitle is one of 20,000.
func jobTitle(n int) string {
	return title(words[n%20*7]) + " " + title(words[n/20%50*11]) + " " + []string{"Engineer", "Manager", "Director", "Analyst", "Nurse", "Clerk", "Editor", "Partner", "Buyer", "Planner",
		"Designer", "Lead", "Officer", "Assistant", "Consultant", "Teacher", "Chemist", "Baker", "Driver", "Trainer"}[n/1000%20]
}

var areaCodes = strings.Fields("202 206 212 213 214 215 303 305 310 312 313 314 404 408 412 415 503 512 513 602 612 614 615 617 619 702 704 713 716 718 801 804 808 813 816 901 904 907 913 919")

func (d *userData) writePeople(name string) error {
	r := rand.New(rand.NewPCG(15, 15))
	return writeFile(name, func(w *bufio.Writer) {
		fmt.Fprintln(w, "network_url,first_name,last_name,headline,job_title,seniority,department,emails,phones,street,zip_code,city,state,company_domain,last_seen_at")
		for i := range d.people {
			p := personOf(i)
			first, last := p.names()
			var emails, phones []string
			for k := range p.emails {
				emails = append(emails, p.email(k))
			}
			for range p.phones {
				phones = append(phones, fmt.Sprintf("+1%s555%04d", pick(r, areaCodes), r.IntN(10_000)))
			}
			job := jobTitle(zipf(r, 20_000, 64))
			company := domain(shuffled(zipf(r, d.companies, 256), d.companies))
			fmt.Fprintf(w, "linkedin.com/in/%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s\n", p.slug(), title(first), title(last), filled(r, 80, job+" at "+company), filled(r, 90, job),
				filled(r, 75, pick(r, []string{"entry", "senior", "manager", "director", "vp"})), filled(r, 70, pick(r, industries)), strings.Join(emails, ";"), strings.Join(phones, ";"),
				filled(r, 60, fmt.Sprintf("%d %s Street", 1+r.IntN(9999), title(pick(r, words)))), filled(r, 65, fmt.Sprintf("%05d", 10_000+r.IntN(80_000))),
				filled(r, 85, title(pick(r, words))), filled(r, 85, pick(r, states)), filled(r, 85, company), filled(r, 90, fmt.Sprintf("2026-%02d-%02d", 1+r.IntN(10), 1+r.IntN(28))))
		}
	})
}

// visits is how many visits there are: one for each person, but at most one in a range.
func (d *userData) visits() int { return min(d.people, len(d.ranges)) }

// writeVisits writes visits, each from its own address.
func (d *userData) writeVisits(name string) error {
	r := rand.New(rand.NewPCG(19, 19))
	return writeFile(name, func(w *bufio.Writer) {
		fmt.Fprintln(w, "ip,network_url,seen_at,confidence")
		for i := range d.visits() {
			fmt.Fprintf(w, "%s,linkedin.com/in/%s,2026-11-01T08:%02d:00Z,0.%02d\n", ipv4(d.visited(i)), personOf(r.IntN(d.people)).slug(), r.IntN(60), 1+r.IntN(99))
		}
	})
}

// visited returns the address that a visit came from.
func (d *userData) visited(i int) uint32 {
	block := d.ranges[shuffled(i, len(d.ranges))]
	return block.first + uint32(i)%256
}

// writeList writes a list of `id` and an identifier. A third of the rows repeat an
// earlier identifier by Zipf's law; the others are new: write gets their number.
func writeList(name, column string, rows int, seed uint64, write func(w *bufio.Writer, r *rand.Rand, number int)) error {
	r := rand.New(rand.NewPCG(seed, seed))
	return writeFile(name, func(w *bufio.Writer) {
		fmt.Fprintln(w, "id,"+column)
		known := 0
		for id := range rows {
			number := known
			if known > 0 && r.IntN(3) == 0 {
				number = zipf(r, known, 1)
			} else {
				known++
			}
			w.WriteString(strconv.Itoa(id + 1))
			w.WriteByte(',')
			write(w, r, number)
			w.WriteByte('\n')
		}
	})
}

// writeIPs writes a list of `id,ip`. Ranges are hit by Zipf's law. With visits, every
// second address is that of a visit.
func (d *userData) writeIPs(name string, rows int, visits bool) error {
	var source rand.PCG // of what follows from the number of an address
	of := rand.New(&source)
	return writeList(name, "ip", rows, 14, func(w *bufio.Writer, _ *rand.Rand, number int) {
		if visits && number%2 == 0 {
			w.WriteString(ipv4(d.visited(number / 2 % d.visits())).String())
			return
		}
		source.Seed(14, uint64(number))
		block := d.ranges[shuffled(zipf(of, len(d.ranges), 256), len(d.ranges))]
		w.WriteString(ipv4(block.first + of.Uint32N(block.size())).String())
	})
}

// writeProfiles writes a list of `id,url`; a quarter of the people are unknown. If there
// are more rows than people, more than a third are repeated.
func (d *userData) writeProfiles(name string, rows int) error {
	all := d.people + d.people/3
	return writeList(name, "url", rows, 17, func(w *bufio.Writer, r *rand.Rand, number int) {
		slug, host := personOf(shuffled(number%all, all)).slug(), "linkedin.com/in/"
		if r.IntN(2) == 0 {
			parts := strings.Split(slug, "-")
			slug, host = title(parts[0])+"-"+title(parts[1])+"-"+strings.ToUpper(parts[2]), "LinkedIn.com/in/"
		}
		w.WriteString([]string{"https://", "https://", "http://", ""}[r.IntN(4)])
		switch n := r.IntN(100); {
		case n < 5:
			w.WriteString(pick(r, []string{"de.", "fr.", "uk.", "br."}))
		case n < 60:
			w.WriteString("www.")
		}
		w.WriteString(host + slug)
		if r.IntN(100) < 30 {
			w.WriteString(pick(r, []string{"?trk=people-guest", "?originalSubdomain=de", "?utm_source=share&utm_medium=member"}))
		}
	})
}

// writeEmails writes a list of `id,email`; half are addresses of people.
func (d *userData) writeEmails(name string, rows int) error {
	return writeList(name, "email", rows, 18, func(w *bufio.Writer, r *rand.Rand, number int) {
		if p := personOf(shuffled(number%d.people, d.people)); number%2 == 0 && p.emails > 0 {
			w.WriteString(p.email(0))
		} else {
			w.WriteString(emailAddress(r))
		}
	})
}
