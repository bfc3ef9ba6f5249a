package callback

import (
	"context"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// Package net reads the system's settings at the first look-up, and keeps
	// them under a channel that must not be of a synctest bubble.
	_, _ = resolverOf(zone{}).LookupHost(context.Background(), "first.example.com.")
	goleak.VerifyTestMain(m)
}
