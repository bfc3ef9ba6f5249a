// Package wire makes the parts that commands are wired from out of flags: inputs,
// stores on S3, suppression lists, reference data, state folders and listeners.
package wire

import (
	"errors"
	"slices"
)

// Closers give back what was opened, in reverse order.
type Closers []func() error

// Add adds what gives something back.
func (c *Closers) Add(closeOne func() error) { *c = append(*c, closeOne) }

// Close gives everything back. Its error joins all that failed.
func (c *Closers) Close() (err error) {
	for _, closeOne := range slices.Backward(*c) {
		err = errors.Join(err, closeOne())
	}
	return err
}

// CloseOn gives everything back when opening ended with an error.
func (c *Closers) CloseOn(err *error) {
	if *err != nil {
		*err = errors.Join(*err, c.Close())
	}
}
