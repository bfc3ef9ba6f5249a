package main

import (
	"errors"
	"slices"
)

// closers give back what was opened, the last first.
type closers []func() error

func (c *closers) add(closeOne func() error) { *c = append(*c, closeOne) }

func (c *closers) close() (err error) {
	for _, closeOne := range slices.Backward(*c) {
		err = errors.Join(err, closeOne())
	}
	return err
}

// closeOn gives everything back where opening failed half-way.
func (c *closers) closeOn(err *error) {
	if *err != nil {
		*err = errors.Join(*err, c.close())
	}
}
