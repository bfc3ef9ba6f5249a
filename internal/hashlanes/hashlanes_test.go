package hashlanes

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// forKernels runs the test with every kernel this CPU has.
func forKernels(t *testing.T, test func(t *testing.T)) {
	defer func(k kernel) { use = k }(use)
	for k, name := range []string{none: "none", avx2: "avx2", avx512: "avx512"} {
		t.Run(name, func(t *testing.T) {
			if use = kernel(k); use > best() {
				t.Skip("not on this CPU")
			}
			test(t)
		})
	}
}

// column lays messages out as an Arrow string array does, behind some bytes
// that belong to none of them.
func column(ahead string, messages ...string) (data []byte, offsets []int32) {
	data = []byte(ahead)
	offsets = []int32{int32(len(data))}
	for _, m := range messages {
		data = append(data, m...)
		offsets = append(offsets, int32(len(data)))
	}
	return data, offsets
}

// compare checks Hex and SHA256 against crypto/*, message by message, and that
// nothing is written beyond the last digest.
func compare(t *testing.T, data []byte, offsets []int32) {
	t.Helper()
	n := max(len(offsets)-1, 0)
	const fence = 64
	toMD5, toSHA1, toSHA256 := make([]byte, 32*n+fence), make([]byte, 40*n+fence), make([]byte, 64*n+fence)
	raw := make([]byte, 32*n+fence)
	Hex(toMD5, toSHA1, toSHA256, data, offsets)
	SHA256(raw, data, offsets)
	for i := range n {
		msg := data[offsets[i]:offsets[i+1]]
		m, s, s256 := md5.Sum(msg), sha1.Sum(msg), sha256.Sum256(msg)
		for _, c := range []struct{ name, got, want string }{
			{"md5", string(toMD5[32*i : 32*i+32]), hex.EncodeToString(m[:])},
			{"sha1", string(toSHA1[40*i : 40*i+40]), hex.EncodeToString(s[:])},
			{"sha256", string(toSHA256[64*i : 64*i+64]), hex.EncodeToString(s256[:])},
			{"raw sha256", string(raw[32*i : 32*i+32]), string(s256[:])},
		} {
			if c.got != c.want {
				t.Fatalf("message %d of %d, %q: %s = %q, want %q", i, n, msg, c.name, c.got, c.want)
			}
		}
	}
	zeros := strings.Repeat("\x00", fence)
	for _, c := range []struct{ name, rest string }{
		{"md5", string(toMD5[32*n:])},
		{"sha1", string(toSHA1[40*n:])},
		{"sha256", string(toSHA256[64*n:])},
		{"raw sha256", string(raw[32*n:])},
	} {
		if c.rest != zeros {
			t.Fatalf("%d messages: %s wrote beyond its last digest", n, c.name)
		}
	}
}

func TestHexVectors(t *testing.T) {
	vectors := []struct{ name, message, md5, sha1, sha256 string }{
		{"RFC 1321 A.5, empty", "",
			"d41d8cd98f00b204e9800998ecf8427e",
			"da39a3ee5e6b4b0d3255bfef95601890afd80709",
			"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
		{"RFC 1321 A.5, a", "a", "0cc175b9c0f1b6a831c399e269772661", "", ""},
		{"RFC 1321 A.5 and FIPS 180, one block", "abc",
			"900150983cd24fb0d6963f7d28e17f72",
			"a9993e364706816aba3e25717850c26c9cd0d89d",
			"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
		{"RFC 1321 A.5, message digest", "message digest", "f96b697d7cb7938d525a2f31aaf161d0", "", ""},
		{"RFC 1321 A.5, small letters", "abcdefghijklmnopqrstuvwxyz", "c3fcd3d76192e4007dfb496cca67e13b", "", ""},
		{"RFC 1321 A.5, letters and digits", "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
			"d174ab98d277d9f5a5611c2c9f419d9f", "", ""},
		{"RFC 1321 A.5, digits", strings.Repeat("1234567890", 8), "57edf4a22be3c955ac49da2e2107b67a", "", ""},
		{"FIPS 180, two blocks", "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", "",
			"84983e441c3bd26ebaae4aa1f95129e5e54670f1",
			"248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
		{"unifiedid.com, normalization", "user@example.com", "", "",
			"b4c9a289323b21a01c3e940f150eb9b8c542587f1abfd8f0e1cc1ffc5e475514"},
	}
	var messages []string
	for _, v := range vectors {
		messages = append(messages, v.message)
	}
	forKernels(t, func(t *testing.T) {
		data, offsets := column("", messages...)
		n := len(messages)
		toMD5, toSHA1, toSHA256 := make([]byte, 32*n), make([]byte, 40*n), make([]byte, 64*n)
		Hex(toMD5, toSHA1, toSHA256, data, offsets)
		for i, v := range vectors {
			if got := string(toMD5[32*i : 32*i+32]); v.md5 != "" && got != v.md5 {
				t.Errorf("%s: md5 = %s, want %s", v.name, got, v.md5)
			}
			if got := string(toSHA1[40*i : 40*i+40]); v.sha1 != "" && got != v.sha1 {
				t.Errorf("%s: sha1 = %s, want %s", v.name, got, v.sha1)
			}
			if got := string(toSHA256[64*i : 64*i+64]); v.sha256 != "" && got != v.sha256 {
				t.Errorf("%s: sha256 = %s, want %s", v.name, got, v.sha256)
			}
		}
	})
}

// TestEveryLength has every length in every lane: 131 is odd.
func TestEveryLength(t *testing.T) {
	var messages []string
	text := strings.Repeat("\xffA long message, longer than any address in the list. ", 3)
	for range lanes {
		for n := range 131 {
			messages = append(messages, text[:n])
		}
	}
	data, offsets := column("", messages...)
	forKernels(t, func(t *testing.T) { compare(t, data, offsets) })
}

// TestOneLength has groups of short messages only, hashed where they are but
// for the last.
func TestOneLength(t *testing.T) {
	text := strings.Repeat("\xffabcdefghijklmnopqrstuvwxyz", 4)
	forKernels(t, func(t *testing.T) {
		for n := range maxShort + 1 {
			var messages []string
			for i := range 3 * lanes {
				messages = append(messages, text[i:i+n])
			}
			data, offsets := column("", messages...)
			compare(t, data, offsets)
		}
	})
}

func TestEveryCount(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, longest := range []int{maxShort, maxShort + 5, 200} {
		for n := range 41 {
			messages := make([]string, n)
			for i := range messages {
				b := make([]byte, random.IntN(longest+1))
				for j := range b {
					b[j] = byte(random.Uint32())
				}
				messages[i] = string(b)
			}
			data, offsets := column("not a message", messages...)
			forKernels(t, func(t *testing.T) { compare(t, data, offsets) })
		}
	}
}

func TestNilSkips(t *testing.T) {
	data, offsets := column("", strings.Split("some words that fill more than one of the groups", " ")...)
	n := len(offsets) - 1
	forKernels(t, func(t *testing.T) {
		toMD5, toSHA1, toSHA256 := make([]byte, 32*n), make([]byte, 40*n), make([]byte, 64*n)
		Hex(toMD5, toSHA1, toSHA256, data, offsets)
		for _, only := range []struct {
			name   string
			length int
			want   []byte
			hex    func(dst []byte)
		}{
			{"md5", 32 * n, toMD5, func(dst []byte) { Hex(dst, nil, nil, data, offsets) }},
			{"sha1", 40 * n, toSHA1, func(dst []byte) { Hex(nil, dst, nil, data, offsets) }},
			{"sha256", 64 * n, toSHA256, func(dst []byte) { Hex(nil, nil, dst, data, offsets) }},
		} {
			got := make([]byte, only.length)
			if only.hex(got); string(got) != string(only.want) {
				t.Errorf("%s alone = %s, want %s", only.name, got, only.want)
			}
		}
		Hex(nil, nil, nil, data, offsets)
	})
}

// TestOutOfRange gives offsets that no Arrow array has. A panic is right; a
// kernel reading outside data is not.
func TestOutOfRange(t *testing.T) {
	cases := []struct {
		name    string
		offsets []int32
	}{
		{"beyond the end", []int32{0, 10, 20, 30, 40, 50, 60, 70, 400}},
		{"all beyond the end", []int32{500, 501, 502, 503, 504, 505, 506, 507, 508}},
		{"negative", []int32{-80, -70, -60, -50, -40, -30, -20, -10, 0}},
		{"descending", []int32{80, 70, 60, 50, 40, 30, 20, 10, 0}},
		{"back once", []int32{0, 10, 20, 30, 29, 50, 60, 70, 80}},
		{"over the top", []int32{math.MaxInt32 - 20, math.MaxInt32 - 10, math.MinInt32, math.MinInt32 + 10,
			math.MinInt32 + 20, math.MinInt32 + 30, math.MinInt32 + 40, math.MinInt32 + 50, math.MinInt32 + 60}},
	}
	data := make([]byte, 200)
	forKernels(t, func(t *testing.T) {
		for _, c := range cases {
			func() {
				defer func() {
					if recover() == nil {
						t.Errorf("%s: no panic", c.name)
					}
				}()
				Hex(make([]byte, 32*lanes), nil, nil, data, c.offsets)
			}()
		}
	})
}

func TestAllocatesNothing(t *testing.T) {
	data, offsets := column("", strings.Split(strings.Repeat("jane.doe@example.com ", 42), " ")...)
	n := len(offsets) - 1
	toMD5, toSHA1, toSHA256 := make([]byte, 32*n), make([]byte, 40*n), make([]byte, 64*n)
	forKernels(t, func(t *testing.T) {
		got := testing.AllocsPerRun(10, func() {
			Hex(toMD5, toSHA1, toSHA256, data, offsets)
			SHA256(toSHA256, data, offsets)
		})
		if got != 0 {
			t.Errorf("%v allocations, want 0", got)
		}
	})
}

// FuzzHex cuts data into messages at the lengths in cuts and compares with
// crypto/*.
func FuzzHex(f *testing.F) {
	f.Add([]byte("jane@example.com,john@example.com"), []byte{16, 1, 16})
	f.Add(make([]byte, 600), []byte{55, 55, 55, 55, 55, 55, 55, 55, 56})
	f.Add(make([]byte, 64), []byte{0, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, data, cuts []byte) {
		offsets := []int32{0}
		at := 0
		for _, c := range cuts {
			at = min(at+int(c), len(data))
			offsets = append(offsets, int32(at))
		}
		defer func(k kernel) { use = k }(use) // the loop leaves one that this CPU may not have
		for use = none; use <= best(); use++ {
			compare(t, data, offsets)
			compare(t, data, offsets[len(offsets)/2:])
		}
	})
}
