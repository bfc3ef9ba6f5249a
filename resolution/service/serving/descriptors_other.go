//go:build !unix

package serving

// descriptorLimit is unknown: there is no such limit, or no way to read it.
func descriptorLimit() (limit uint64, known bool) { return 0, false }
