package order

import (
	"context"
	"errors"
)

// PayerOf is who pays for the answers of a step in a run: each has an account of its own.
func (o *Order) PayerOf(run string, s *Step) string {
	return run + "/" + s.Name
}

// ReasonOf is the reason of a row that gets no answer from a step.
func (o *Order) ReasonOf(reason string, s *Step) string {
	return reason + ":" + s.Name
}

// named says whose error it is, except of the end of the run.
func (o *Order) named(s *Step, err error) error {
	if s.Remote == nil || errors.Is(err, context.Canceled) {
		return err
	}
	return &StepError{s.Name, err}
}
