package hashlanes_test

import (
	"context"
	"fmt"
	"io"
	"strings"

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

func ExampleSHA256Streams() {
	files := []io.Reader{strings.NewReader("abc"), strings.NewReader("")}
	sums, err := hashlanes.SHA256Streams(context.Background(), files)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%x\n%x\n", sums[0], sums[1])
	// Output:
	// ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad
	// e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
}
