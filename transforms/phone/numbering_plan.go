package phone

import (
	"strconv"
	"sync"

	"github.com/nyaruka/phonenumbers"
)

// plan has the numbers of a calling code.
type plan struct {
	load    sync.Once
	regions []region      // the main one first; nil when the plan cannot be compiled
	prefix  *digitPattern // of what may precede a national number; nil for nothing
}

// region has the numbers of a region.
type region struct {
	code    string
	leading *digitPattern // of the first digits of its numbers; nil if their types decide
	general numberKind
	kinds   []numberKind // in the order in which they are tried
	fixed   numberKind
	mobile  numberKind
	same    bool // fixed and mobile have the same pattern
}

// numberKind has the numbers of a type.
type numberKind struct {
	kind    phonenumbers.PhoneNumberType
	lengths uint64 // a bit for each possible length; 0 means any
	pattern *digitPattern
}

func (k *numberKind) has(national string) bool {
	return (k.lengths == 0 || k.lengths>>len(national)&1 == 1) && k.pattern.matches(national)
}

// kindOf returns the type of a national number. It tries the types in the order of
// phonenumbers.GetNumberType.
func (r *region) kindOf(national string) phonenumbers.PhoneNumberType {
	if !r.general.has(national) {
		return phonenumbers.UNKNOWN
	}
	for i := range r.kinds {
		if r.kinds[i].has(national) {
			return r.kinds[i].kind
		}
	}
	if r.fixed.has(national) {
		if r.same || r.mobile.has(national) {
			return phonenumbers.FIXED_LINE_OR_MOBILE
		}
		return phonenumbers.FIXED_LINE
	}
	if !r.same && r.mobile.has(national) {
		return phonenumbers.MOBILE
	}
	return phonenumbers.UNKNOWN
}

// plans are the plans of all calling codes.
var plans = sync.OnceValue(func() map[string]*plan {
	all := map[string]*plan{}
	for code := range phonenumbers.GetSupportedCallingCodes() {
		all[strconv.Itoa(code)] = &plan{}
	}
	return all
})

// planOf returns the plan and the national part of a number in E.164. ok is false if
// the library has to read the number, because it may remove a prefix.
func planOf(e164 string) (p *plan, national string, ok bool) {
	if len(e164) < 2 || e164[0] != '+' {
		return nil, "", false
	}
	digits := e164[1:]
	for i := range len(digits) {
		if digits[i] < '0' || digits[i] > '9' {
			return nil, "", false
		}
	}
	for n := 1; n <= min(3, len(digits)); n++ {
		p := plans()[digits[:n]]
		if p == nil {
			continue
		}
		national = digits[n:]
		if len(national) < 2 || len(national) > 15 || national[0] == '0' {
			return nil, "", false
		}
		p.load.Do(func() { p.compile(digits[:n]) })
		return p, national, p.regions != nil && (p.prefix == nil || !p.prefix.matchesPrefix(national))
	}
	return nil, "", false
}

var metadata = sync.OnceValue(func() map[string]*phonenumbers.PhoneMetadata {
	all := map[string]*phonenumbers.PhoneMetadata{}
	collection, err := phonenumbers.MetadataCollection()
	if err != nil {
		return all
	}
	for _, m := range collection.GetMetadata() {
		all[strconv.Itoa(int(m.GetCountryCode()))+m.GetId()] = m
	}
	return all
})

// compile makes the tables. A plan with patterns of more than digits is left to the
// library.
func (p *plan) compile(callingCode string) {
	code, _ := strconv.Atoi(callingCode)
	var regions []region
	var failed error
	pattern := func(expression string) *digitPattern {
		d, err := compileDigits(expression)
		if err != nil {
			failed = err
		}
		return d
	}
	kind := func(of phonenumbers.PhoneNumberType, d *phonenumbers.PhoneNumberDesc) numberKind {
		k := numberKind{kind: of, pattern: pattern(d.GetNationalNumberPattern())}
		for _, length := range d.GetPossibleLength() {
			k.lengths |= 1 << max(length, 0)
		}
		return k
	}
	for _, id := range phonenumbers.GetRegionCodesForCountryCode(code) {
		m := metadata()[callingCode+id]
		if m == nil {
			return
		}
		if leading := m.GetNationalPrefixForParsing(); leading != "" && regions == nil {
			p.prefix = pattern(leading)
		}
		r := region{code: id, same: m.GetSameMobileAndFixedLinePattern(), general: kind(phonenumbers.UNKNOWN, m.GetGeneralDesc()),
			fixed: kind(phonenumbers.FIXED_LINE, m.GetFixedLine()), mobile: kind(phonenumbers.MOBILE, m.GetMobile())}
		if leading := m.GetLeadingDigits(); leading != "" {
			r.leading = pattern(leading)
		}
		r.kinds = []numberKind{
			kind(phonenumbers.PREMIUM_RATE, m.GetPremiumRate()), kind(phonenumbers.TOLL_FREE, m.GetTollFree()),
			kind(phonenumbers.SHARED_COST, m.GetSharedCost()), kind(phonenumbers.VOIP, m.GetVoip()),
			kind(phonenumbers.PERSONAL_NUMBER, m.GetPersonalNumber()), kind(phonenumbers.PAGER, m.GetPager()),
			kind(phonenumbers.UAN, m.GetUan()), kind(phonenumbers.VOICEMAIL, m.GetVoicemail()),
		}
		regions = append(regions, r)
	}
	if failed == nil {
		p.regions = regions
	}
}

// describe returns the details of a national number.
func (p *plan) describe(national string) Details {
	for i := range p.regions {
		r := &p.regions[i]
		kind, known := phonenumbers.UNKNOWN, false
		switch {
		case len(p.regions) == 1, r.leading != nil && r.leading.matchesPrefix(national):
			kind, known = r.kindOf(national), true
		case r.leading == nil:
			kind = r.kindOf(national)
			known = kind != phonenumbers.UNKNOWN
		}
		if known {
			return Details{Region: r.code, Type: typeNames[kind], Valid: kind != phonenumbers.UNKNOWN}
		}
	}
	return Details{Type: typeNames[phonenumbers.UNKNOWN]}
}
