// Package wire builds the parts of commands from flags: inputs, stores on S3,
// suppression lists, reference data, state folders and listeners.
package wire

import (
	"errors"
	"slices"
)

// Closers are functions that close opened resources. They run in reverse order.
type Closers []func() error

// Add adds a function that closes a resource.
func (c *Closers) Add(closeOne func() error) { *c = append(*c, closeOne) }

// Close closes all resources. Its error joins all errors. It may be called again,
// which does nothing.
func (c *Closers) Close() (err error) {
	all := *c
	*c = nil
	for _, closeOne := range slices.Backward(all) {
		err = errors.Join(err, closeOne())
	}
	return err
}

// CloseOn closes all resources if err is set.
func (c *Closers) CloseOn(err *error) {
	if *err != nil {
		*err = errors.Join(*err, c.Close())
	}
}
