//go:build !unix

package service

// descriptorLimit is not known: there is no such limit, or no way to ask.
func descriptorLimit() (limit uint64, known bool) { return 0, false }
