//go:build !linux

package process

// superviseIfFirst is for containers, which are of Linux.
func superviseIfFirst() {}
