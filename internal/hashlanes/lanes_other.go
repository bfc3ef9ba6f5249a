//go:build !amd64

package hashlanes

// best returns none: the kernels are for amd64.
func best() kernel { return none }

func sum(kernel, *byte, *byte, *byte, *byte, *int32) { panic("hashlanes: no kernel") }

func blocks(kernel, *[8][lanes]uint32, *byte, int) { panic("hashlanes: no kernel") }

func shaInstructions() bool { return false }

func encode(dst, src []byte) { panic("hashlanes: no kernel") }
