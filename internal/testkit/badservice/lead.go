package badservice

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"time"
)

// hashOf is the hash from which all data of a key is derived.
func hashOf(parts ...string) []byte {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return sum[:]
}

// isShare reports whether a hash falls into the given share of all hashes.
func isShare(hash []byte, share float64) bool {
	return float64(binary.BigEndian.Uint32(hash))/math.MaxUint32 < share
}

func hex(b []byte) string { return fmt.Sprintf("%x", b) }

var (
	firstNames = []string{"Ada", "Grace", "Edsger", "Barbara", "Niklaus", "Frances", "Ole-Johan", "Åse"}
	lastNames  = []string{"Example", "Sample", "Muster", "Specimen", "O'Model", "Beispiel", "Prøve", "Instance"}
	titles     = []string{"Baker", "Head of Ovens", "Chief Flour Officer", "Miller"}
	employees  = []string{"11-50", "1,001-5,000", "10,001+"}
)

// leadOf makes the lead of a key.
func leadOf(operation, key string) map[string]any {
	h := hashOf("lead", operation, key)
	pick := func(i int, from []string) string { return from[int(h[i])%len(from)] }
	first, last := pick(0, firstNames), pick(1, lastNames)
	number := binary.BigEndian.Uint32(h[4:8])
	address := fmt.Sprintf("person%d@mail.example", number)
	profile := fmt.Sprintf("network.example/in/person-%d", number)
	phone := fmt.Sprintf("+1202555%04d", number%10_000)
	company := map[string]any{
		"name": last + " Bakeries", "domain": fmt.Sprintf("bakery%d.example", number%1000), "website_url": fmt.Sprintf("https://www.bakery%d.example/", number%1000),
		"network_url": fmt.Sprintf("network.example/company/bakery-%d", number%1000), "industry": nil, "revenue": "$1M-$10M", "employee_count": pick(2, employees),
		"year_founded": 1900 + int(h[3])%120, "about": "Bakes.",
		"address": map[string]any{"street": "1 Example Street", "zip_code": "20001", "city": "Washington", "state": "DC"},
	}
	if h[8]%2 == 0 {
		company["industry"] = "Food"
	}
	switch operation {
	case "email_to_hem":
		if !strings.Contains(key, "@") {
			return map[string]any{"hashed_emails": digests(address), "network_url": profile}
		}
		return map[string]any{"hashed_emails": digests(key), "network_url": profile}
	case "network_to_hem":
		return map[string]any{"hashed_emails": append(digests(address), digests("second."+address)...), "network_url": key}
	case "network_to_phone":
		return map[string]any{"phone": phone}
	case "ip_to_company":
		return map[string]any{"company": company}
	}
	person := map[string]any{
		"first_name": first, "last_name": last, "full_name": first + " " + last, "headline": pick(9, titles) + " at " + last + " Bakeries", "job_title": pick(9, titles),
		"seniority": "senior", "department": "Baking", "email": address, "emails": []any{map[string]any{"email": address, "type": "work"}},
		"phone": phone, "phones": []any{map[string]any{"phone": phone, "type": "mobile"}}, "hashed_emails": digests(address), "network_url": profile,
		"address": map[string]any{"street": "2 Example Street", "zip_code": "94105", "city": "San Francisco", "state": "CA"}, "company": company,
		"last_seen_at": time.Unix(1_790_000_000+int64(number%1_000_000), 0).UTC().Format(time.RFC3339),
	}
	if operation == "enrichment" {
		person["network_url"] = key
	}
	if operation == "deanonymization" {
		if h[10]%4 == 0 {
			return map[string]any{"company": company, "match_level": "company", "confidence": 0.5}
		}
		person["match_level"], person["confidence"] = "person", 0.75
	}
	return person
}

// digests are an address's hashed emails.
func digests(address string) []any {
	m, s1, s256 := md5.Sum([]byte(address)), sha1.Sum([]byte(address)), sha256.Sum256([]byte(address))
	return []any{
		map[string]any{"email": hex(m[:]), "type": "md5"},
		map[string]any{"email": hex(s1[:]), "type": "sha1"},
		map[string]any{"email": hex(s256[:]), "type": "sha256"},
	}
}
