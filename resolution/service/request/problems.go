package request

import (
	"fmt"
	"strings"
)

// maxProblems is how many problems an answer lists.
const maxProblems = 100

// problems collects what is wrong with a body.
type problems struct {
	list []Problem
	n    int // also those that are no longer listed
}

func (p *problems) add(found Problem) {
	if p.n++; p.n <= maxProblems {
		p.list = append(p.list, found)
	}
}

// all are the problems, nil when there are none. When there are more than can
// be listed, the last says how many are not.
func (p *problems) all() []Problem {
	if p.n > maxProblems {
		p.list[maxProblems-1] = Problem{
			Code:   "more_problems",
			Detail: fmt.Sprintf("and %d more problems", p.n-maxProblems+1),
		}
	}
	return p.list
}

// pointer names a value in an object or an array. Source: RFC 6901 3.
func pointer(parent, name string) string {
	return parent + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}
