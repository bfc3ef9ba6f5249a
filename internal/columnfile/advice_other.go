//go:build !linux

package largepages

// Ask does nothing: only Linux takes this advice.
func Ask([]byte) {}
