package phone_test

import (
	"errors"
	"testing"

	"github.com/leadetl/leadetl/transforms/phone"
)

func TestParse(t *testing.T) {
	tests := []struct {
		name, cell, region string
		want               string
		err                error
	}{
		// Source: unifiedid.com, getting started, normalization.
		{"national with country digit", "1 (234) 567-8901", "US", "+12345678901", nil},
		{"own calling code without plus", "65 1243 5678", "SG", "+6512435678", nil},
		{"trunk zero", "(02) 1234 5678", "AU", "+61212345678", nil},
		// Source: googleads/data-manager-python, tests/formatter_test.py.
		{"already E.164", "+18005550100", "", "+18005550100", nil},
		{"leading spaces", "   +1-800-555-0100", "", "+18005550100", nil},
		{"trailing spaces", "1-800-555-0100   ", "US", "+18005550100", nil},
		{"dashes", "+44-113-496-0987", "GB", "+441134960987", nil},
		// Source: Meta, customer information parameters; capi-param-builder, phoneUtil.test.js.
		{"national", "(650)555-1212", "US", "+16505551212", nil},
		{"plus and double zero", "+001 (616) 954-78 88", "", "+16169547888", nil},
		{"spaces", "+44 20 7946 0958", "", "+442079460958", nil},
		// Source: TikTok, California DROP.
		{"as written", "+37493828222", "", "+37493828222", nil},
		{"parentheses", "+84(90)123 4567", "", "+84901234567", nil},
		// Source: IABTechLab/uid2-operator, InputNormalizationTest.java.
		{"ten digits", "+1234567890", "", "+1234567890", nil},
		{"fifteen digits", "+123456789012345", "", "+123456789012345", nil},
		{"sixteen digits", "+1234567890123456", "", "", phone.ErrInvalid},
		{"letter behind", "+1234567890A", "", "", phone.ErrInvalid},
		{"plus inside", "+12345+67890", "", "", phone.ErrInvalid},
		{"no digits", "asdaksjdakfj", "US", "", phone.ErrInvalid},
		{"plus alone", "+", "US", "", phone.ErrInvalid},

		{"optional zero", "+44 (0)20 7946 0958", "", "+442079460958", nil},
		{"optional zero, national", "(0)20 7946 0958", "GB", "+442079460958", nil},
		{"trunk zero behind the code", "+44 020 7946 0958", "", "+442079460958", nil},
		{"zero that belongs", "+39 06 1234 5678", "", "+390612345678", nil},
		{"one too many in North America", "+1 1 650 253 0000", "", "+16502530000", nil},
		{"eight too many in Russia", "+7 8 495 123-45-67", "", "+74951234567", nil},
		{"eight that belongs", "+7 812 123-45-67", "", "+78121234567", nil},
		{"extension", "650-253-0000 x123", "US", "+16502530000", nil},
		{"extension, international", "+1 650 253 0000 ext. 123", "", "+16502530000", nil},
		{"dialled extension", "+1 650 253 0000,,123", "", "+16502530000", nil},
		{"tel URI", "tel:+1-650-253-0000;ext=123", "", "+16502530000", nil},
		{"vanity", "1-800-FLOWERS", "US", "+18003569377", nil},
		{"full width", "＋１６５０２５３００００", "", "+16502530000", nil},
		{"full width, national", "６５０２５３００００", "US", "+16502530000", nil},
		{"Arabic-Indic", "+٩٦٦٥٠١٢٣٤٥٦٧", "", "+966501234567", nil},
		{"other digits", "+९१९८१०१२३४५६", "", "", phone.ErrInvalid},
		{"no-break spaces, dashes", "+44\u00a020\u20117946\u20130958", "", "+442079460958", nil},
		{"bidi marks from an address book", "\u202a+1 650 253 0000\u202c", "", "+16502530000", nil},
		{"byte order mark", "\ufeff+16502530000", "", "+16502530000", nil},
		{"text quote", "'+16502530000", "US", "+16502530000", nil},
		{"lower-case region", "650 253 0000", "us", "+16502530000", nil},
		{"unknown region", "650 253 0000", "XX", "", phone.ErrInvalid},
		{"no region", "650 253 0000", "", "", phone.ErrInvalid},
		{"international prefix of the region", "011 44 20 7946 0958", "US", "+442079460958", nil},
		{"possible, not valid", "650 000 0000", "US", "+16500000000", nil},
		{"shorter than eight digits, possible", "+290 2222", "", "+2902222", nil},
		{"longer than fifteen digits, possible", "+49 123456789012345", "", "+49123456789012345", nil},

		{"double zero", "0044 20 7946 0958", "", "+442079460958", nil},
		{"double zero, region where it is the prefix", "0044 20 7946 0958", "DE", "+442079460958", nil},
		{"double zero, region with another prefix", "0044 20 7946 0958", "US", "+442079460958", nil},
		{"double zero, region that reads it as its own", "0044 20 7946 0958", "KR", "+442079460958", nil},
		{"double zero, optional zero", "0044 (0)20 7946 0958", "US", "+442079460958", nil},
		{"double zero, extension", "0044 20 7946 0958 ext 12", "US", "+442079460958", nil},
		{"double zero, region's longer prefix", "0011 44 20 7946 0958", "AU", "+442079460958", nil},
		{"double zero, not possible", "0012345678", "US", "", phone.ErrInvalid},
		{"zeros", "0000000000", "US", "", phone.ErrInvalid},

		// Source: giggsey/libphonenumber-for-php#4, google-libphonenumber 3.2.47.
		{"15 of a mobile", "+54 11 15 3456 7890", "AR", "+5491134567890", nil},
		{"15 of a mobile elsewhere", "+54 2966 15 433289", "", "+5492966433289", nil},
		{"15 of a mobile, calling code without plus", "54 11 15 3456 7890", "AR", "+5491134567890", nil},
		{"trunk 8", "+370-8-600-12345", "LT", "+37060012345", nil},
		{"trunk 8, double zero", "00370 8 600 12345", "GB", "+37060012345", nil},
		{"trunk 8 and 0", "+375 (8) 029 1234567", "BY", "+375291234567", nil},
		{"trunk 8 in parentheses", "+993 (8 12) 34-56-78", "TM", "+99312345678", nil},
		{"trunk 1", "+692 1 247 1234", "MH", "+6922471234", nil},
		{"carrier's prefix", "+55 0 15 11 96123 4567", "BR", "+5511961234567", nil},
		// Valid only without what is no longer dialled.
		{"WhatsApp's Mexico", "+52 1 55 1234 5678", "", "+525512345678", nil},
		{"WhatsApp's Mexico, together", "5215512345678", "MX", "+525512345678", nil},
		{"Mexico, from abroad", "011 52 1 55 1234 5678", "US", "+525512345678", nil},
		{"Mexico, double zero", "00 52 1 55 1234 5678", "DE", "+525512345678", nil},
		{"Mexico, national", "1 55 1234 5678", "MX", "+525512345678", nil},
		{"mobile prefix of Mexico", "044 55 1234 5678", "MX", "+525512345678", nil},
		{"mobile prefix of Mexico, international", "+52 045 55 1234 5678", "", "+525512345678", nil},
		{"trunk prefix of Mexico", "+52 01 55 1234 5678", "", "+525512345678", nil},
		{"Mexico, extension", "+52 1 55 1234 5678 ext. 12", "", "+525512345678", nil},
		{"carrier's code without 0", "+55 15 11 98765 4321", "", "+5511987654321", nil},
		{"carrier's code without 0, national", "15 11 98765 4321", "BR", "+5511987654321", nil},
		{"carrier's code without 0, fixed line", "+55 41 11 3456 7890", "", "+551134567890", nil},
		{"carrier's code that is an area", "+55 21 98765 4321", "", "+5521987654321", nil},
		{"carrier's code of Colombia", "+57 3 310 1234567", "", "+573101234567", nil},
		{"9 of Argentina stays", "+54 9 11 3456 7890", "", "+5491134567890", nil},
		{"no 9 of Argentina", "+54 11 3456 7890", "", "+541134567890", nil},
		{"15 before the area", "+54 15 11 3456 7890", "", "+5491134567890", nil},
		{"0 of mobiles in Italy", "+39 0347 1234567", "", "+393471234567", nil},
		{"0 that belongs, in Italy", "+39 06 1234 5678", "", "+390612345678", nil},
		{"0 of mobiles in Chile", "+56 09 8765 4321", "", "+56987654321", nil},
		{"0 where there is none", "+34 0 612 345 678", "", "+34612345678", nil},
		{"8 of the Soviet Union", "+998 8 90 123 45 67", "", "+998901234567", nil},
		{"8 and 0 of the Soviet Union", "+380 8 050 123 45 67", "", "+380501234567", nil},
		{"8 of Estonia", "+372 8 5123 4567", "", "+37251234567", nil},
		{"06 of Hungary", "+36 06 20 123 4567", "", "+36201234567", nil},
		{"0 of another country", "02079460958", "US", "", phone.ErrInvalid},
		{"two prefixes are no number", "+52 1 1 55 1234 5678", "", "+52115512345678", nil},
		{"not valid either way", "+370 8 000 00000", "", "+370800000000", nil},
		// Source: twcclegg/libphonenumber-csharp#211, google-libphonenumber 3.2.47.
		{"prefix of Korea", "00700 44 20 7946 0958", "KR", "+442079460958", nil},
		{"another prefix of Korea", "00755 44 20 7946 0958", "KR", "+442079460958", nil},
		{"short prefix of Korea", "001 1 212 555 2368", "KR", "+12125552368", nil},
		{"prefix of Singapore", "002 1 212 555 2368", "SG", "+12125552368", nil},
		{"double zero in Singapore", "0044 20 7946 0958", "SG", "+442079460958", nil},
		{"prefix of Colombia", "005 44 20 7946 0958", "CO", "+442079460958", nil},
		{"prefix of Brazil", "0031 1 212 555 2368", "BR", "+12125552368", nil},
		{"double zero in Brazil", "0031 20 624 1111", "BR", "+31206241111", nil},
		{"prefix of Australia", "0011 44 20 7946 0958", "AU", "+442079460958", nil},
		{"prefix of Hong Kong", "001 44 20 7946 0958", "HK", "+442079460958", nil},
		{"prefix of Colombia, valid both ways", "009 1 212 555 2368", "CO", "+12125552368", nil},
		{"prefix of Colombia, valid both ways, together", "00912125552368", "CO", "+12125552368", nil},
		{"double zero in Colombia, valid both ways", "0091 212 555 2368", "CO", "+912125552368", nil},
		{"double zero apart in Colombia, valid both ways", "00 91 212 555 2368", "CO", "+912125552368", nil},
		{"double zero in parentheses", "(0044) 20 7946 0958", "US", "+442079460958", nil},
		{"double zero behind a label", "Tel. 0044 20 7946 0958", "US", "+442079460958", nil},
		// Source: giggsey/libphonenumber-for-php#67, JoshClose/CsvHelper#758.
		{"float with plus", "+12125552368.0", "US", "+12125552368", nil},
		{"float, two decimals", "12125552368.00", "US", "+12125552368", nil},
		{"float, comma", "442079460958,0", "GB", "+442079460958", nil},
		{"float, double zero", "00442079460958.0", "US", "+442079460958", nil},
		{"float behind spaces", "+1 212 555 2368.0", "", "+12125552368", nil},
		{"float behind punctuation", "(212) 555-2368.0", "US", "+12125552368", nil},
		{"zero that belongs, behind a dot", "+49 30 90182.0", "", "+4930901820", nil},
		{"formula", `="02079460958"`, "GB", "+442079460958", nil},
		{"formula without quotes", `=+442079460958`, "US", "+442079460958", nil},
		{"formula, double zero", `="0044 20 7946 0958"`, "US", "+442079460958", nil},
		{"quotes", `"+44 20 7946 0958"`, "US", "+442079460958", nil},
		{"typographic quote", "’+442079460958", "US", "+442079460958", nil},
		{"extension without digits", "+1 212 555 2368 Ext", "US", "+12125552368", nil},
		{"extension without digits, dot", "(212) 555-2368 ext.", "US", "+12125552368", nil},
		{"extension without digits, x", "212-555-2368x", "US", "+12125552368", nil},
		{"extension without digits, sign", "212-555-2368 #", "US", "+12125552368", nil},
		{"label", "(212) 555-2368 (cell)", "US", "+12125552368", nil},
		{"label, international", "+1 212 555 2368 (mobile)", "US", "+12125552368", nil},
		{"label of one letter", "212 555 2368 (h)", "US", "+12125552368", nil},
		{"label of two words", "030 901820 (office phone)", "DE", "+4930901820", nil},
		{"label without parentheses", "030 901820 mobile phone", "DE", "+4930901820", nil},
		{"label behind a dash", "212-555-2368 - cell", "US", "+12125552368", nil},
		{"label in brackets, extension", "212-555-2368 ext [fax]", "US", "+12125552368", nil},
		{"label in front", "(cell) 212-555-2368", "US", "+12125552368", nil},
		{"vanity that ends in a label", "1-800-CALL-FAX", "US", "+18002255329", nil},
		{"optional zero at the end of a list in parentheses", "020 7946 (0958)", "GB", "+442079460958", nil},
		{"full-width punctuation", "（０２０）７９４６－０９５８", "GB", "+442079460958", nil},

		{"local only", "253-0000", "US", "", phone.ErrLocalOnly},
		{"too short", "12345", "US", "", phone.ErrInvalid},
		{"too long", "650 253 0000 000", "US", "", phone.ErrInvalid},
		{"spreadsheet", "6.50555E+09", "US", "", phone.ErrExcelDamage},
		{"spreadsheet, lower case", "6.50555e+09", "US", "", phone.ErrExcelDamage},
		{"spreadsheet, comma", "4,42079E+11", "GB", "", phone.ErrExcelDamage},
		{"spreadsheet, no fraction", "7E+09", "US", "", phone.ErrExcelDamage},
		{"float", "16502530000.0", "US", "+16502530000", nil},
		{"empty", "", "US", "", phone.ErrEmpty},
		{"spaces only", " \t\u00a0", "US", "", phone.ErrEmpty},
		{"null word", "N/A", "US", "", phone.ErrEmpty},
		{"dash", "-", "US", "", phone.ErrEmpty},
		{"list, comma", "650-253-0000, 415-555-9317", "US", "", phone.ErrMultiple},
		{"list, semicolon", "+16502530000;+14155559317", "", "", phone.ErrMultiple},
		{"list that looks like an extension", "6502530000;4155559317", "US", "", phone.ErrMultiple},
		{"list, slash", "650 253 0000 / 415 555 9317", "US", "", phone.ErrMultiple},
		{"invalid UTF-8", "+1650253\xff0000", "US", "", phone.ErrInvalid},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			n, err := phone.Parse(test.cell, test.region)
			if !errors.Is(err, test.err) || n.E164 != test.want {
				t.Errorf("Parse(%q, %q) = %q, %v, want %q, %v", test.cell, test.region, n.E164, err, test.want, test.err)
			}
		})
	}
}

func TestForm(t *testing.T) {
	tests := []struct {
		cell, region string
		form         phone.Form
		want         string
	}{
		{"+18005550100", "", phone.E164, "+18005550100"},
		{"(650)555-1212", "US", phone.Digits, "16505551212"},
		{"+37493828222", "", phone.Digits, "37493828222"},
		{"+001 (616) 954-78 88", "", phone.Digits, "16169547888"},
		{"+44 20 7946 0958", "", phone.Digits, "442079460958"},
		{"+1(415)555-9317", "", phone.Last10, "4155559317"},
		{"+84(90)123 4567", "", phone.Last10, "4901234567"},
		{"+290 2222", "", phone.Last10, "2902222"},
	}
	for _, test := range tests {
		n, err := phone.Parse(test.cell, test.region)
		if err != nil {
			t.Errorf("Parse(%q): %v", test.cell, err)
		}
		if got := n.Form(test.form); got != test.want {
			t.Errorf("Parse(%q).Form(%d) = %q, want %q", test.cell, test.form, got, test.want)
		}
	}
	if got := (phone.Number{}).Form(phone.Last10); got != "" {
		t.Errorf("form of no number = %q, want none", got)
	}
}

func TestDescribe(t *testing.T) {
	tests := []struct {
		e164 string
		want phone.Details
	}{
		{"+16502530000", phone.Details{Region: "US", Type: "fixed_line_or_mobile", Valid: true}},
		{"+18005550100", phone.Details{Region: "US", Type: "toll_free", Valid: true}},
		{"+442079460958", phone.Details{Region: "GB", Type: "fixed_line", Valid: true}},
		{"+447400123456", phone.Details{Region: "GB", Type: "mobile", Valid: true}},
		{"+390612345678", phone.Details{Region: "IT", Type: "fixed_line", Valid: true}},
		{"+80012345678", phone.Details{Region: "001", Type: "toll_free", Valid: true}},
		{"+6512435678", phone.Details{Region: "SG", Type: "unknown"}},
		{"+16500000000", phone.Details{Type: "unknown"}},
		{"+116502530000", phone.Details{Type: "unknown"}},
		{"+999123456789", phone.Details{Type: "unknown"}},
		{"", phone.Details{Type: "unknown"}},
	}
	for _, test := range tests {
		if got := phone.Describe(test.e164); got != test.want {
			t.Errorf("Describe(%q) = %+v, want %+v", test.e164, got, test.want)
		}
	}
}

func BenchmarkParse(b *testing.B) {
	for _, bench := range []struct{ name, cell string }{
		{"international", "+1 (650) 253-0000"}, {"national", "(650) 253-0000"}, {"double zero", "0044 20 7946 0958"},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := phone.Parse(bench.cell, "US"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkDescribe(b *testing.B) {
	for b.Loop() {
		phone.Describe("+16502530000")
	}
}
