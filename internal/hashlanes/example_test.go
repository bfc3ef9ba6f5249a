package hashlanes_test

import (
	"fmt"

	"github.com/leadetl/leadetl/internal/hashlanes"
)

func ExampleHex() {
	data := []byte("jane@example.comjohn@example.com")
	offsets := []int32{0, 16, 32}
	md5 := make([]byte, 2*32)
	hashlanes.Hex(md5, nil, nil, data, offsets)
	fmt.Printf("%s\n%s\n", md5[:32], md5[32:])
	// Output:
	// 9e26471d35a78862c17e467d87cddedf
	// d4c74594d841139328695756648b6bd6
}
