package hashlanes

import (
	"math"
	"math/big"
	"testing"
)

// TestConstants computes the long tables from their definitions.
func TestConstants(t *testing.T) {
	for i, got := range constants.md5 {
		if want := uint32(math.Abs(math.Sin(float64(i+1))) * (1 << 32)); got != want {
			t.Errorf("md5[%d] = %#08x, want %#08x", i, got, want)
		}
	}
	prime := int64(1)
	for i, got := range constants.sha256 {
		for prime++; !big.NewInt(prime).ProbablyPrime(0); prime++ {
		}
		if want := uint32(cubeRoot(prime)); got != want {
			t.Errorf("sha256[%d] = %#08x, want %#08x", i, got, want)
		}
		if i < len(constants.init256) {
			root := new(big.Int).Sqrt(new(big.Int).Lsh(big.NewInt(prime), 64))
			if got, want := constants.init256[i], uint32(root.Uint64()); got != want {
				t.Errorf("init256[%d] = %#08x, want %#08x", i, got, want)
			}
		}
	}
}

// cubeRoot returns floor(2³² · ∛n), by halving.
func cubeRoot(n int64) uint64 {
	cube := new(big.Int).Lsh(big.NewInt(n), 96)
	var root uint64
	for bit := uint64(1) << 40; bit > 0; bit >>= 1 {
		r := new(big.Int).SetUint64(root | bit)
		if r.Exp(r, big.NewInt(3), nil).Cmp(cube) <= 0 {
			root |= bit
		}
	}
	return root
}
