package report

import (
	"context"
	"iter"

	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/stats"
)

// SetCalls sets the counts, latencies and waits of the calls.
func (s *Service) SetCalls(calls stats.CallSnapshot) {
	s.Calls = calls
	s.Latency = Latency{P50: Seconds(calls.P50), P95: Seconds(calls.P95), P99: Seconds(calls.P99)}
	s.Waits = map[string]float64{}
	for reason, waited := range calls.Waits {
		s.Waits[reason] = Seconds(waited)
	}
}

// OpenCalls lists the calls that are open in a store.
type OpenCalls interface {
	Unknown(ctx context.Context) iter.Seq2[answers.OpenCall, error]
	Parked(ctx context.Context) iter.Seq2[answers.OpenCall, error]
}

// SetOpenCalls sets the open calls of a scope. Unknown calls of run are listed
// first. After an error the list is empty.
func (s *Service) SetOpenCalls(ctx context.Context, store OpenCalls, scope answers.Scope, run string) (err error) {
	if s.Unknown, err = listUnknown(ctx, store, scope, run); err != nil {
		return err
	}
	s.Parked, err = countParked(ctx, store, scope)
	return err
}

func listUnknown(ctx context.Context, store OpenCalls, scope answers.Scope, run string) (UnknownCalls, error) {
	var ours, others []UnknownCall
	var count int64
	for c, err := range store.Unknown(ctx) {
		if err != nil {
			return UnknownCalls{Count: count, Listed: []UnknownCall{}}, err
		}
		if c.Scope != scope {
			continue
		}
		count++
		list := &others
		if c.Run == run {
			list = &ours
		}
		if len(*list) < maxListed {
			*list = append(*list, unknownCall(c, c.Run == run))
		}
	}
	listed := append(append([]UnknownCall{}, ours...), others...)
	return UnknownCalls{Count: count, Listed: listed[:min(len(listed), maxListed)]}, nil
}

func unknownCall(c answers.OpenCall, thisRun bool) UnknownCall {
	return UnknownCall{
		KeyHash: c.Hash.String(), IdempotencyKey: c.SentKey(), RequestID: c.Request, SentAt: c.Sent.UTC(),
		Attempts: c.Attempts, ThisRun: thisRun, Reason: c.Reason, Status: c.Status,
	}
}

func countParked(ctx context.Context, store OpenCalls, scope answers.Scope) (n int64, err error) {
	for c, err := range store.Parked(ctx) {
		if err != nil {
			return n, err
		}
		if c.Scope == scope {
			n++
		}
	}
	return n, nil
}
