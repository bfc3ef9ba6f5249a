package phone

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/nyaruka/phonenumbers"
)

// TestDescribeExamples asks about the example number of every region and type:
// each is valid, of that region's plan and of a type with a name.
func TestDescribeExamples(t *testing.T) {
	for region := range phonenumbers.GetSupportedRegions() {
		for kind := range typeNames {
			example := phonenumbers.GetExampleNumberForType(region, kind)
			if example == nil || kind == phonenumbers.UNKNOWN {
				continue
			}
			e164 := phonenumbers.Format(example, phonenumbers.E164)
			d := Describe(e164)
			if d.Valid != phonenumbers.IsValidNumber(example) || !d.Valid || d.Type == "" || d.Region == "" {
				t.Errorf("Describe(%s), an example of %s in %s, = %+v", e164, typeNames[kind], region, d)
			}
		}
	}
}

// TestRules: the rules have the version of the library, whose plans say what a number is.
func TestRules(t *testing.T) {
	mod, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if want := "github.com/nyaruka/" + Rules + "\n"; !strings.Contains(string(mod), want) {
		t.Errorf("go.mod has another version than %s: change Rules, so that phones of reference data are described anew", Rules)
	}
}

// TestDescribeIsTheLibrarys holds the tables against the library, over numbers
// near those that are given out.
func TestDescribeIsTheLibrarys(t *testing.T) {
	var examples []string
	for code := range phonenumbers.GetSupportedCallingCodes() {
		for _, region := range phonenumbers.GetRegionCodesForCountryCode(code) {
			for kind := range typeNames {
				if example := phonenumbers.GetExampleNumberForType(region, kind); example != nil {
					examples = append(examples, phonenumbers.Format(example, phonenumbers.E164))
				}
			}
		}
		examples = append(examples, fmt.Sprintf("+%d123456789", code), fmt.Sprintf("+%d80012345", code))
	}
	slices.Sort(examples)
	random := rand.New(rand.NewPCG(1, 2))
	fast := 0
	check := func(e164 string) {
		t.Helper()
		if got, want := Describe(e164), describeSlowly(e164); got != want {
			t.Fatalf("%s: %+v, the library says %+v", e164, got, want)
		} else if back := ParseDetails(got.Text()); back != got {
			t.Fatalf("%s: %+v, and by way of its text %+v", e164, got, back)
		}
		if _, _, ok := planOf(e164); ok {
			fast++
		}
	}
	changes := 20
	if testing.Short() {
		changes = 2
	}
	n := 0
	for _, example := range examples {
		check(example)
		for range changes {
			b := []byte(example)
			for range 1 + random.IntN(3) {
				b[1+random.IntN(len(b)-1)] = byte('0' + random.IntN(10))
			}
			switch random.IntN(8) {
			case 0:
				b = b[:len(b)-1]
			case 1:
				b = append(b, byte('0'+random.IntN(10)))
			}
			check(string(b))
			n++
		}
	}
	for _, odd := range []string{"", "+", "+1", "+12", "1234", "+0123456", "+99912345678", "+1202555010a", "+12025550100123456789"} {
		check(odd)
	}
	if fast < n/2 {
		t.Errorf("%d of %d numbers were read by the tables", fast, n)
	}
}

func BenchmarkDescribe(b *testing.B) {
	for b.Loop() {
		Describe("+12025550100")
	}
}

// TestEveryPlanIsATable: no plan is left to the library, which takes microseconds for a number.
func TestEveryPlanIsATable(t *testing.T) {
	for code := range phonenumbers.GetSupportedCallingCodes() {
		p := &plan{}
		if p.compile(strconv.Itoa(code)); p.regions == nil {
			t.Errorf("the plan of calling code %d cannot be compiled", code)
		}
	}
}

// TestDigitPatternEnd: $ matches only after the last digit.
func TestDigitPatternEnd(t *testing.T) {
	p, err := compileDigits(`([24-9]\d{2})$|0|12`)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []struct {
		digits          string
		matches, prefix bool
	}{
		{"", false, false},
		{"2", false, false},
		{"234", true, true},
		{"2345", false, false},
		{"0", true, true},
		{"0234", false, true},
		{"12", true, true},
		{"129", false, true},
		{"334", false, false},
	} {
		if p.matches(f.digits) != f.matches || p.matchesPrefix(f.digits) != f.prefix {
			t.Errorf("%q: matches %v, as a prefix %v", f.digits, p.matches(f.digits), p.matchesPrefix(f.digits))
		}
	}
	if _, err := compileDigits(`^1`); err == nil {
		t.Error("^ is compiled")
	}
}
