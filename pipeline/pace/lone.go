package pace

const (
	between = 64 // answers for each refusal that concerns its call alone
	atOnce  = 4  // such refusals in a row at most, after many answers
	opening = 16 // answers before the first such refusal
)

// lone tells a single refusal among many answers from those of a limit: they come seldom,
// and the calls that follow are answered. A limit that is used up refuses those, too. So
// after a lone refusal no call leaves until one is answered that left after the refused one.
type lone struct {
	credit float64 // refusals that concern their calls alone
	waits  bool    // for such an answer
	call   uint64  // the refused one
	left   uint64  // the last call that had left by then
}

// answered notes an answer to a call, and reports whether calls waited for it.
func (l *lone) answered(call uint64) (waited bool) {
	l.credit = min(l.credit+1./between, atOnce)
	waited = l.waits && call > l.call
	l.waits = l.waits && !waited
	return waited
}

// refused notes a refusal, and reports whether it concerns its call alone. left is the
// last call that has left.
func (l *lone) refused(call, left uint64) bool {
	if l.credit < 1 || l.waits && call > l.left {
		return false
	}
	l.credit--
	if !l.waits {
		l.waits, l.call, l.left = true, call, left
	}
	return true
}

// forget notes that a refusal tells a limit.
func (l *lone) forget() { l.credit, l.waits = 0, false }
