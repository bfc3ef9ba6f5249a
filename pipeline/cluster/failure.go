package cluster

import (
	"context"
	"errors"
	"fmt"

	"go.temporal.io/sdk/temporal"
)

// The types of failures in a history. A history has no text of an error, which
// may name an input: that is in the state.
const (
	finalFailure    = "final"    // another try cannot help
	passingFailure  = "passing"  // another try may help
	handoverFailure = "handover" // the worker stopped, and did not fail
)

// Fault is what an error means for the run.
type Fault struct {
	Code  int  // exit code of the program
	Final bool // another try cannot help
	Text  string
}

// Failure is why a run failed.
type Failure struct {
	Code int
	Text string
}

func (f *Failure) Error() string { return f.Text }

// detail is what a history holds about a failure.
type detail struct {
	Code int    `json:"code"`
	Text string `json:"text,omitempty"` // name of the object with the text
}

// Why a worker stops its steps.
var (
	errHandover = errors.New("the worker ends")
	errCutOff   = errors.New("the Temporal server is out of reach")
)

// asFailure turns an error of a step into one for the history. tell stores the
// text of an error, and returns its name.
func asFailure(ctx context.Context, err error, classify func(error) Fault, tell func(text string) string) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(context.Cause(ctx), errHandover):
		return handover("the worker ended")
	case temporal.IsCanceledError(context.Cause(ctx)):
		return temporal.NewCanceledError()
	case ctx.Err() != nil:
		return handover("the worker was cut off")
	}
	f := classify(err)
	kind := passingFailure
	if f.Final {
		kind = finalFailure
	}
	return temporal.NewApplicationErrorWithOptions(fmt.Sprintf("exit code %d", f.Code), kind,
		temporal.ApplicationErrorOptions{NonRetryable: f.Final, Details: []any{detail{Code: f.Code, Text: tell(f.Text)}}})
}

func handover(why string) error {
	return temporal.NewApplicationErrorWithOptions(why+"; the step goes on elsewhere", handoverFailure, temporal.ApplicationErrorOptions{NextRetryDelay: 1})
}

func isFinal(err error) bool    { return hasType(err, finalFailure) }
func isHandover(err error) bool { return hasType(err, handoverFailure) }

func hasType(err error, kind string) bool {
	failure, ok := errors.AsType[*temporal.ApplicationError](err)
	return ok && failure.Type() == kind
}

// failureOf returns what a failed workflow tells. read returns the text of that
// name.
func failureOf(err error, read func(name string) (string, error)) error {
	if temporal.IsCanceledError(err) {
		return context.Canceled
	}
	failure, ok := errors.AsType[*temporal.ApplicationError](err)
	var d detail
	switch {
	case ok && failure.HasDetails() && failure.Details(&d) == nil:
		text, err := read(d.Text)
		if err != nil {
			text = "a step failed; the logs of the workers say why"
		}
		return &Failure{Code: d.Code, Text: text}
	case temporal.IsTimeoutError(err):
		return &Failure{Code: exitTryAgain, Text: fmt.Sprintf("the workers were lost %d times in the same step; see their logs", stepAttempts)}
	case temporal.IsTerminatedError(err):
		return &Failure{Code: exitTryAgain, Text: "somebody terminated the run on the Temporal server"}
	}
	return &Failure{Code: exitFailure, Text: fmt.Sprintf("the run failed: %v", err)}
}

// Exit codes of failures without an error of a step.
const (
	exitFailure  = 1
	exitTryAgain = 5
)
