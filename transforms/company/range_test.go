package company_test

import (
	"testing"

	"github.com/leadetl/leadetl/transforms/company"
)

func exact(v int64) company.Range { return between(v, v) }

func between(low, high int64) company.Range {
	return company.Range{Min: low, Max: high, HasMin: true, HasMax: true}
}

func from(low int64) company.Range { return company.Range{Min: low, HasMin: true} }

func upTo(high int64) company.Range { return company.Range{Max: high, HasMax: true} }

var (
	none = company.Range{}
	date = company.Range{Spreadsheet: true}
)

func TestParseRangeEmployees(t *testing.T) {
	tests := []struct {
		text string
		want company.Range
	}{
		// Source: LinkedIn Organization API, staffCountRange; page labels.
		{"Self-employed", exact(1)},
		{"Myself Only", exact(1)},
		{"SIZE_1", exact(1)},
		{"SIZE_2_TO_10", between(2, 10)},
		{"SIZE_11_TO_50", between(11, 50)},
		{"SIZE_51_TO_200", between(51, 200)},
		{"SIZE_201_TO_500", between(201, 500)},
		{"SIZE_501_TO_1000", between(501, 1000)},
		{"SIZE_1001_TO_5000", between(1001, 5000)},
		{"SIZE_5001_TO_10000", between(5001, 10000)},
		{"SIZE_10001_OR_MORE", from(10001)},
		{"501-1,000 employees", between(501, 1000)},
		{"1,001-5,000", between(1001, 5000)},
		{"10,001+ employees", from(10001)},
		// Source: People Data Labs, company sizes.
		{"1-10", between(1, 10)},
		{"11-50", between(11, 50)},
		{"51-200", between(51, 200)},
		{"201-500", between(201, 500)},
		{"501-1000", between(501, 1000)},
		{"1001-5000", between(1001, 5000)},
		{"5001-10000", between(5001, 10000)},
		{"10001+", from(10001)},
		// Source: Generect API; thousands parted by a space.
		{"10 000+", from(10000)},
		// Source: Clearbit, employeesRange. The lower bound is printed 1K.
		{"51-250", between(51, 250)},
		{"251-1K", between(251, 1000)},
		{"1K-5K", between(1000, 5000)},
		{"5K-10K", between(5000, 10000)},
		{"10K-50K", between(10000, 50000)},
		{"50K-100K", between(50000, 100000)},
		{"100K+", from(100000)},
		// Source: FullContact.
		{"0-1", between(0, 1)},

		{"11 – 50", between(11, 50)},
		{"11—50", between(11, 50)},
		{"11\u201250", between(11, 50)},
		{"11 − 50", between(11, 50)},
		{"11 to 50", between(11, 50)},
		{" 11-50\u00a0", between(11, 50)},
		{"11 employees to 50 employees", between(11, 50)},
		{"1'000-5'000", between(1000, 5000)},
		{"1\u202f001–5\u202f000", between(1001, 5000)},
		{"<10", upTo(9)},
		{"≤10", upTo(10)},
		{"<= 10", upTo(10)},
		{"Under 50", upTo(49)},
		{"less than 50", upTo(49)},
		{"fewer than 50 employees", upTo(49)},
		{"up to 50", upTo(50)},
		{"50 or less", upTo(50)},
		{"50 or fewer employees", upTo(50)},
		{">500", from(501)},
		{"≥500", from(500)},
		{">=500", from(500)},
		{"Over 500", from(501)},
		{"More than 10,000", from(10001)},
		{"at least 500", from(500)},
		{"500 or more", from(500)},
		{"500 and above", from(500)},
		{"500 plus", from(500)},
		{"500", exact(500)},
		{"500.0", exact(500)},
		{"1000.000", exact(1000)},
		{"1,234", exact(1234)},
		{"1.2K", exact(1200)},
		{"~200", exact(200)},
		{"approx. 200", exact(200)},
		{"About 200 people", exact(200)},
		{"11-50 employees (estimated)", between(11, 50)},
		{"1-1K", between(1, 1000)},
		{"0", exact(0)},
		{"<1", upTo(0)},

		{"Nov-50", date},
		{"11-Oct", date},
		{"nov-50", date},
		{"Oct 10", date},
		{"10. Okt", date},
		{"11-Oct-2024", date},
		{"November 1, 1950", date},
		{"1950-11-01", date},
		{"1950-11-01 00:00:00", date},
		{"1950-11-01T00:00:00.000Z", date},
		{"11/1/1950", date},
		{"11/1/50 0:00", date},
		{"01.11.1950", date},

		{"50-11", none},
		{"2050-11", none},
		{"<0", none},
		{"1.000", none},
		{"1.000-5.000", none},
		{"1,5", none},
		{"1,00", none},
		{"1,234,56", none},
		{"1234,567", none},
		{"2.5", none},
		{"-5", none},
		{"1--5", none},
		{"11-50-200", none},
		{"500-1000+", none},
		{"11-", none},
		{"11-50 (2-10)", none},
		{"500 in 3 offices", none},
		{"2 to many", none},
		{"N/A", none},
		{"unknown", none},
		{"-", none},
		{"", none},
		{"+", none},
		{"11-50\xff", none},
	}
	for _, test := range tests {
		if got := company.ParseRange(test.text); got != test.want {
			t.Errorf("ParseRange(%q) = %+v, want %+v", test.text, got, test.want)
		}
	}
}

func TestParseRangeRevenue(t *testing.T) {
	tests := []struct {
		text string
		want company.Range
	}{
		// Source: People Data Labs, inferred_revenue; Clearbit, estimatedAnnualRevenue.
		{"$0-$1M", between(0, 1_000_000)},
		{"$1M-$10M", between(1_000_000, 10_000_000)},
		{"$10M-$25M", between(10_000_000, 25_000_000)},
		{"$10M-$50M", between(10_000_000, 50_000_000)},
		{"$25M-$50M", between(25_000_000, 50_000_000)},
		{"$50M-$100M", between(50_000_000, 100_000_000)},
		{"$100M-$250M", between(100_000_000, 250_000_000)},
		{"$250M-$500M", between(250_000_000, 500_000_000)},
		{"$500M-$1B", between(500_000_000, 1_000_000_000)},
		{"$1B-$10B", between(1_000_000_000, 10_000_000_000)},
		{"$10B+", from(10_000_000_000)},
		// Source: ZoomInfo.
		{"$1 mil. - $5 mil.", between(1_000_000, 5_000_000)},

		{"$1M - $10M", between(1_000_000, 10_000_000)},
		{"$1M to $10M", between(1_000_000, 10_000_000)},
		{"$1-10M", between(1_000_000, 10_000_000)},
		{"$1.5-3M", between(1_500_000, 3_000_000)},
		{"$500-$1M", between(500, 1_000_000)},
		{"$500,000-$1M", between(500_000, 1_000_000)},
		{"1M-10M USD", between(1_000_000, 10_000_000)},
		{"1M USD - 10M USD", between(1_000_000, 10_000_000)},
		{"US$1M-US$10M", between(1_000_000, 10_000_000)},
		{"USD 1M - USD 10M", between(1_000_000, 10_000_000)},
		{"1M$-10M$", between(1_000_000, 10_000_000)},
		{"$ 1M - $ 10M", between(1_000_000, 10_000_000)},
		{"US $5M", exact(5_000_000)},
		{"5 million US dollars", exact(5_000_000)},
		{"ca. $5M", exact(5_000_000)},
		{"about $5M", exact(5_000_000)},
		{"$5M (estimated)", exact(5_000_000)},
		{"$5M (USD)", exact(5_000_000)},
		{"＄5M", exact(5_000_000)},
		{"<$1M", upTo(999_999)},
		{"Under $500,000", upTo(499_999)},
		{"Over $1 billion", from(1_000_000_001)},
		{"$1 million - $10 million", between(1_000_000, 10_000_000)},
		{"$1MM-$10MM", between(1_000_000, 10_000_000)},
		{"$2.5M", exact(2_500_000)},
		{"$1.250M", exact(1_250_000)},
		{"1.5bn", exact(1_500_000_000)},
		{"$5K-$10K", between(5_000, 10_000)},
		{"$1,234,567", exact(1_234_567)},
		{"$1,234,567.00", exact(1_234_567)},
		{"$5M per year", exact(5_000_000)},
		{"9223372036854775807", exact(1<<63 - 1)},

		// In another currency.
		{"EUR 1M-10M", none}, {"€1M-€10M", none}, {"1M€-10M€", none}, {"1M-10M €", none}, {"5M euros", none}, {"<€1M", none}, {"Over €1 billion", none},
		{"£5M", none}, {"5M GBP", none}, {"5M pounds", none}, {"¥100M", none}, {"￥100M", none}, {"JPY 100M", none}, {"100M yen", none}, {"CNY 5M", none},
		{"₹5M", none}, {"INR 5M", none}, {"Rs 5M", none}, {"Rs. 5 crore", none}, {"CHF 1M", none}, {"Fr. 1M", none}, {"SEK 5M", none}, {"5M kr", none}, {"kr5M", none},
		{"₩5M", none}, {"KRW 5M", none}, {"5M zł", none}, {"PLN 5M", none}, {"R$5M", none}, {"R$ 5M", none}, {"BRL 5M", none}, {"₽5M", none}, {"₺5M", none},
		{"A$5M", none}, {"A $5M", none}, {"AU$5M", none}, {"AUD 5M", none}, {"C$5M", none}, {"CA$5M", none}, {"CA $5M", none}, {"$5M CAD", none}, {"CAD $5M", none},
		{"HK$5M", none}, {"HK $5M", none}, {"S$5M", none}, {"SGD 5M", none}, {"NZ$5M", none}, {"MX$5M", none}, {"NT$5M", none}, {"5M Canadian dollars", none},
		{"5M (EUR)", none}, {"1M-10M (in EUR)", none}, {"$5M (Canadian)", none}, {"$1M-€10M", none}, {"$1M - A$10M", none}, {"RM5M", none}, {"5M元", none},
		{"1.000.000", none},
		{"$1M-$10", none},
		{"$1.234,56", none},
		{"1.2345K", none},
		{"5T", none},
		{"($500)", none},
		{"9223372036854775808", none},
		{"$1-9223372036854775808", none},
		{">9223372036854775807", none},
		{"10000000000B", none},
		{"99999999999999999999999+", none},
		{"N/A", none},
		{"", none},
	}
	for _, test := range tests {
		if got := company.ParseRange(test.text); got != test.want {
			t.Errorf("ParseRange(%q) = %+v, want %+v", test.text, got, test.want)
		}
	}
}

func TestParseRangeDoesNotAllocate(t *testing.T) {
	for _, text := range []string{"SIZE_51_TO_200", "$1 million - $10 million", "11 – 50 employees (estimated)", "Nov-50", "unknown"} {
		if n := testing.AllocsPerRun(100, func() { company.ParseRange(text) }); n != 0 {
			t.Errorf("ParseRange(%q) allocates %v times, want 0", text, n)
		}
	}
}

func BenchmarkParseRange(b *testing.B) {
	for _, text := range []string{"51-200", "$1 million - $10 million"} {
		b.Run(text, func(b *testing.B) {
			for b.Loop() {
				company.ParseRange(text)
			}
		})
	}
}
