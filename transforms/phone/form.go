package phone

// Form is how a number is written before it is hashed. The table of transforms/hashed says who
// does it so.
type Form uint8

// The forms.
const (
	E164   Form = iota // + and digits
	Digits             // digits alone
	Last10             // the last ten digits
)

// Form returns n in a form. It does not allocate.
func (n Number) Form(f Form) string {
	digits := n.E164
	if digits == "" || f == E164 {
		return digits
	}
	digits = digits[len("+"):]
	if f == Last10 && len(digits) > 10 {
		return digits[len(digits)-10:]
	}
	return digits
}
