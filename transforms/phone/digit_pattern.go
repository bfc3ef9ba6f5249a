package phone

import (
	"encoding/binary"
	"errors"
	"regexp/syntax"
	"slices"
)

// digitPattern is a regular expression over digits as a table: matching takes a step
// for each digit. Package regexp takes microseconds for a pattern of a numbering plan,
// and a number is compared with a dozen of them.
type digitPattern struct {
	next   [][10]uint16 // by state and digit; state 0 cannot match
	accept []bool       // by state
	last   []bool       // by state: accept if no digit follows, for expressions with $
}

// startState is the first state.
const startState = 1

// maxStates bounds a table. The largest plans have some hundred states.
const maxStates = 1 << 13

var errPattern = errors.New("not a pattern of digits")

// compileDigits makes the table of an expression. An empty expression matches nothing.
func compileDigits(expression string) (*digitPattern, error) {
	p := &digitPattern{next: make([][10]uint16, 2), accept: make([]bool, 2), last: make([]bool, 2)}
	if expression == "" {
		return p, nil
	}
	re, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return nil, err
	}
	prog, err := syntax.Compile(re.Simplify())
	if err != nil {
		return nil, err
	}
	states := stateSets{numbers: map[string]uint16{"": 0}}
	start, err := closure(prog, []uint32{uint32(prog.Start)}, false)
	if err != nil {
		return nil, err
	}
	if _, err := states.number(start); err != nil {
		return nil, err
	}
	for i := 0; i < len(states.sets); i++ {
		state, set := i+1, states.sets[i]
		if state >= len(p.next) {
			p.next, p.accept, p.last = append(p.next, [10]uint16{}), append(p.accept, false), append(p.last, false)
		}
		isMatch := func(pc uint32) bool { return prog.Inst[pc].Op == syntax.InstMatch }
		ended, err := closure(prog, slices.Clone(set), true)
		if err != nil {
			return nil, err
		}
		p.accept[state], p.last[state] = slices.ContainsFunc(set, isMatch), slices.ContainsFunc(ended, isMatch)
		for digit := range 10 {
			var after []uint32
			for _, pc := range set {
				if in := &prog.Inst[pc]; in.Op != syntax.InstMatch && in.Op != syntax.InstEmptyWidth && in.MatchRune(rune('0'+digit)) {
					after = append(after, in.Out)
				}
			}
			reached, err := closure(prog, after, false)
			if err != nil {
				return nil, err
			}
			if p.next[state][digit], err = states.number(reached); err != nil {
				return nil, err
			}
		}
	}
	return p, nil
}

// stateSets numbers the states of a table. A state is a set of instructions of the
// expression; 0 is the empty set.
type stateSets struct {
	numbers map[string]uint16
	sets    [][]uint32 // of the states from 1 on
}

// number returns the number of a state, which may be new.
func (s *stateSets) number(set []uint32) (uint16, error) {
	key := make([]byte, 0, 4*len(set))
	for _, pc := range set {
		key = binary.LittleEndian.AppendUint32(key, pc)
	}
	n, known := s.numbers[string(key)]
	if !known {
		if n = uint16(len(s.numbers)); n == maxStates {
			return 0, errPattern
		}
		s.numbers[string(key)] = n
		s.sets = append(s.sets, set)
	}
	return n, nil
}

// closure returns the instructions that are reached without a digit, sorted. It goes past $
// only at the end of the digits.
func closure(prog *syntax.Prog, from []uint32, atEnd bool) (set []uint32, err error) {
	seen := map[uint32]bool{}
	for len(from) > 0 {
		pc := from[len(from)-1]
		from = from[:len(from)-1]
		if seen[pc] {
			continue
		}
		seen[pc] = true
		switch in := &prog.Inst[pc]; in.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			from = append(from, in.Out, in.Arg)
		case syntax.InstCapture, syntax.InstNop:
			from = append(from, in.Out)
		case syntax.InstEmptyWidth:
			switch {
			case syntax.EmptyOp(in.Arg) != syntax.EmptyEndText:
				return nil, errPattern // no plan has one
			case atEnd:
				from = append(from, in.Out)
			default:
				set = append(set, pc)
			}
		case syntax.InstFail:
		default:
			set = append(set, pc)
		}
	}
	slices.Sort(set)
	return set, nil
}

// matches reports whether all digits match.
func (p *digitPattern) matches(digits string) bool {
	state := uint16(startState)
	for i := range len(digits) {
		state = p.next[state][digits[i]-'0']
	}
	return p.last[state]
}

// matchesPrefix reports whether digits begin with a match, which may be empty.
func (p *digitPattern) matchesPrefix(digits string) bool {
	state := uint16(startState)
	for i := 0; ; i++ {
		if p.accept[state] {
			return true
		}
		if i == len(digits) || state == 0 {
			return p.last[state]
		}
		state = p.next[state][digits[i]-'0']
	}
}
