package schema

import (
	"strings"
	"testing"
)

func TestSnake(t *testing.T) {
	for name, want := range map[string]string{
		"Record ID": "record_id", "RecordID": "record_id", "recordId": "record_id", "RECORD_ID": "record_id", "record-id": "record_id",
		"record_id": "record_id", "  Record   ID ": "record_id", "__record__id__": "record_id", "Record\tID\n": "record_id", "record.id": "record_id",
		"HTTPServer": "http_server", "RecordIDs": "record_ids", "IPv4": "ipv4", "Q1Revenue": "q1_revenue", "B2B": "b2b", "B2BLead": "b2b_lead",
		"LinkedInURL": "linked_in_url", "Address1": "address1", "address2Line": "address2_line",
		"Prénom": "prenom", "PRÉNOM": "prenom", "ÉtatCivil": "etat_civil", "e\u0301tat": "etat", "Größe": "grosse", "STRAẞE": "strasse", "Ærø": "aero",
		"Łódź": "lodz", "Þór": "thor", "ＦＵＬＬ": "full", "ﬁrst": "first", "№": "no", "½": "_1_2", "ÆRØ": "aero", "ÞÓR": "thor", "Kelvin K": "kelvin_k",
		"Growth %": "growth", "% Growth": "growth", "Phone #": "phone", "A&B": "a_b", "Customer's Name": "customers_name", "Revenue, USD": "revenue_usd", "a=b": "a_b",
		"???": "column_3", "": "column_3", "%": "column_3", "名前": "column_3", "Имя": "column_3", "客户ID": "id", "😀": "column_3",
		"2020 Revenue": "_2020_revenue", "2FA": "_2fa", "2ndName": "_2nd_name", "1": "_1",
		strings.Repeat("a", 126) + " b": strings.Repeat("a", 126), strings.Repeat("a", 125) + " bcd": strings.Repeat("a", 125) + "_b",
	} {
		got := Snake(name, 3)
		if got != want || !IsPlain(got) {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
		if again := Snake(got, 4); again != got {
			t.Errorf("%q: %q, and again %q", name, got, again)
		}
	}
}

func FuzzSnake(f *testing.F) {
	f.Add("Record ID")
	f.Add("2ÉtatCivilẞ_'’ǅ")
	f.Fuzz(func(t *testing.T, name string) {
		got := Snake(name, 1)
		if !IsPlain(got) || got != strings.ToLower(got) || Snake(got, 2) != got {
			t.Errorf("%q: %q, and again %q", name, got, Snake(got, 2))
		}
	})
}

func TestIsPlain(t *testing.T) {
	for name, want := range map[string]bool{
		"id": true, "_id": true, "ID2": true, "": false, "2nd": false, "a b": false, "é": false, "a-b": false,
		strings.Repeat("a", 127): true, strings.Repeat("a", 128): false,
	} {
		if got := IsPlain(name); got != want {
			t.Errorf("%q: %v", name, got)
		}
	}
}
