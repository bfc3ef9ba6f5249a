package request

// read finds the members and returns where a name stands that its object has
// already, -1 when none does.
func (o *Object) read() (twice int) {
	c := cursor{text: o.text}
	var at nameScope
	twice = -1
	c.each(func(written string) {
		m := member{name: unquote(written), from: c.at}
		if !at.add(m.name) && twice < 0 {
			twice = c.at - 1 - len(written)
		}
		if inner := walkNames(&c); inner >= 0 && twice < 0 {
			twice = inner
		}
		m.to = c.at
		o.members = append(o.members, m)
	})
	return twice
}

// walkNames moves past the next value and returns where a name in it stands
// twice, -1 for nowhere.
func walkNames(c *cursor) (twice int) {
	if !c.composite() {
		c.scalar()
		return -1
	}
	var at nameScope
	twice = -1
	c.each(func(written string) {
		if written != "" && !at.add(unquote(written)) && twice < 0 {
			twice = c.at - 1 - len(written)
		}
		if inner := walkNames(c); inner >= 0 && twice < 0 {
			twice = inner
		}
	})
	return twice
}

// nameScope is the set of the names of one object: a list while they are few,
// which costs no memory, a map when they are many.
type nameScope struct {
	few  [8]string
	n    int
	many map[string]struct{}
}

// add reports whether name is new.
func (s *nameScope) add(name string) bool {
	if s.many == nil {
		for _, known := range s.few[:s.n] {
			if known == name {
				return false
			}
		}
		if s.n < len(s.few) {
			s.few[s.n] = name
			s.n++
			return true
		}
		s.many = make(map[string]struct{}, 4*len(s.few))
		for _, known := range s.few {
			s.many[known] = struct{}{}
		}
	}
	if _, known := s.many[name]; known {
		return false
	}
	s.many[name] = struct{}{}
	return true
}
