package callback

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
)

// hostile is what callers write to get inside, and what it is refused for by a
// policy that opens nothing. No row needs a look-up.
var hostile = []struct {
	raw  string
	want Refusal
}{
	// No absolute address.
	{"", ErrInvalidURL},
	{"hooks.example.com", ErrInvalidURL},
	{"hooks.example.com/x", ErrInvalidURL},
	{"//hooks.example.com/x", ErrInvalidURL},
	{"/x", ErrInvalidURL},
	{"://hooks.example.com", ErrInvalidURL},
	{"https:hooks.example.com", ErrInvalidURL},
	{"https:/hooks.example.com", ErrInvalidURL},
	{"https:\\\\hooks.example.com", ErrInvalidURL},
	{"mailto:someone@example.com", ErrInvalidURL},
	{"javascript:alert(1)", ErrInvalidURL},
	{"data:text/plain,x", ErrInvalidURL},

	// Bytes that programs read differently.
	{" https://hooks.example.com/", ErrInvalidURL},
	{"https://hooks.example.com/ ", ErrInvalidURL},
	{"https://hooks.example.com/a b", ErrInvalidURL},
	{"https://hooks.example.com/\r\nHost: x", ErrInvalidURL},
	{"https://hooks.example.com\n@169.254.169.254/", ErrInvalidURL},
	{"https://hooks.example.com/\t", ErrInvalidURL},
	{"ht\ntps://hooks.example.com/", ErrInvalidURL},
	{"https://hooks.example.com/\x00", ErrInvalidURL},
	{"https://hooks.example.com/\x7f", ErrInvalidURL},
	{"https://hooks.example.com\\@169.254.169.254/", ErrInvalidURL},
	{"https://169.254.169.254\\.example.com/", ErrInvalidURL},
	{"https://hooks.example.com/\\..", ErrInvalidURL},
	{"https://hooks.example.com/\xff", ErrInvalidURL},
	{"https://hooks.\xffexample.com/", ErrInvalidURL},
	{"https://hooks.example.com/caf\u00e9", ErrInvalidURL},
	{"https://hooks.example.com/?q=\u2028", ErrInvalidURL},
	{"https://hooks.example.com/%", ErrInvalidURL},
	{"https://hooks.example.com/%zz", ErrInvalidURL},
	{"https://hooks.example.com/" + strings.Repeat("a", 2048), ErrTooLong},
	{strings.Repeat("h", 2049), ErrTooLong},

	// Other schemes.
	{"http://hooks.example.com/", ErrNotHTTPS},
	{"HTTP://hooks.example.com/", ErrNotHTTPS},
	{"http://169.254.169.254/latest/meta-data/", ErrNotHTTPS},
	{"ftp://hooks.example.com/", ErrNotHTTPS},
	{"file:///etc/passwd", ErrNotHTTPS},
	{"gopher://127.0.0.1:6379/_INFO", ErrNotHTTPS},
	{"ws://hooks.example.com/", ErrNotHTTPS},
	{"wss://hooks.example.com/", ErrNotHTTPS},
	{"unix:///run/docker.sock", ErrNotHTTPS},
	{"https+unix://hooks.example.com/", ErrNotHTTPS},
	{"httpss://hooks.example.com/", ErrNotHTTPS},
	{"view-source:https://hooks.example.com/", ErrNotHTTPS},
	{"x?y=https://hooks.example.com/", ErrNotHTTPS},

	// User information, which hides the host.
	{"https://user@hooks.example.com/", ErrUserInfo},
	{"https://user:password@hooks.example.com/", ErrUserInfo},
	{"https://@hooks.example.com/", ErrUserInfo},
	{"https://:@hooks.example.com/", ErrUserInfo},
	{"https://hooks.example.com@169.254.169.254/", ErrUserInfo},
	{"https://hooks.example.com:443@127.0.0.1/", ErrUserInfo},
	{"https://a@b@hooks.example.com/", ErrUserInfo},
	{"https://hooks.example.com&@127.0.0.1/", ErrUserInfo},
	{"https://%40@hooks.example.com/", ErrUserInfo},

	// Fragments.
	{"https://hooks.example.com/#x", ErrFragment},
	{"https://hooks.example.com/?a#", ErrFragment},
	{"https://hooks.example.com#@127.0.0.1/", ErrFragment},
	{"https://127.0.0.1#.example.com/", ErrFragment},

	// Ports.
	{"https://hooks.example.com:80/", ErrPort},
	{"https://hooks.example.com:22/", ErrPort},
	{"https://hooks.example.com:6379/", ErrPort},
	{"https://hooks.example.com:8080/", ErrPort},
	{"https://hooks.example.com:8444/", ErrPort},
	{"https://hooks.example.com:/", ErrPort},
	{"https://hooks.example.com:0/", ErrPort},
	{"https://hooks.example.com:0443/", ErrPort},
	{"https://hooks.example.com:+443/", ErrPort},
	{"https://hooks.example.com:-443/", ErrPort},
	{"https://hooks.example.com:65979/", ErrPort}, // 443 of 16 bits
	{"https://hooks.example.com:4294967739/", ErrPort},
	{"https://hooks.example.com:https/", ErrPort},
	{"https://hooks.example.com:0x1bb/", ErrPort},
	{"https://hooks.example.com:44\u0663/", ErrPort},
	{"https://hooks.example.com:443:443/", ErrOddAddress},
	{"https://8.8.8.8:80/", ErrPort},
	{"https://[2606:4700:4700::1111]:80/", ErrPort},
	{"https://[2606:4700:4700::1111]443/", ErrPort},

	// No names.
	{"https://", ErrBadHost},
	{"https:///x", ErrBadHost},
	{"https://:443/", ErrBadHost},
	{"https://?x", ErrBadHost},
	{"https://./", ErrBadHost},
	{"https://../", ErrBadHost},
	{"https://.example.com/", ErrBadHost},
	{"https://hooks..example.com/", ErrBadHost},
	{"https://hooks.example.com./", ErrBadHost},
	{"https://hooks.example.com../", ErrBadHost},
	{"https://-hooks.example.com/", ErrBadHost},
	{"https://hooks-.example.com/", ErrBadHost},
	{"https://hooks_1.example.com/", ErrBadHost},
	{"https://*.example.com/", ErrBadHost},
	{"https://hooks,example.com/", ErrBadHost},
	{"https://hooks.example.com;x/", ErrBadHost},
	{"https://hooks!.example.com/", ErrBadHost},
	{"https://$(id).example.com/", ErrBadHost},
	{"https://{hooks}.example.com/", ErrBadHost},
	{"https://hooks%2eexample.com/", ErrBadHost},
	{"https://hooks.example.com%2f@x/", ErrUserInfo},
	{"https://hooks.example.com%00.example.org/", ErrBadHost},
	{"https://%6c%6f%63%61%6c%68%6f%73%74.example/", ErrBadHost},
	{"https://" + strings.Repeat("a", 64) + ".example.com/", ErrBadHost},
	{"https://" + strings.Repeat("a.", 125) + "com5/", ErrBadHost},
	{"https://xn--.example.com/", ErrBadHost},
	{"https://xn--a-.example.com/", ErrBadHost},
	{"https://xn--ls8h=.example.com/", ErrBadHost},
	{"https://hooks\u3002example.com/", ErrBadHost}, // a full stop of another script
	{"https://hooks\uff0eexample.com/", ErrBadHost},
	{"https://\uff48ooks.example.com/", ErrBadHost}, // a full-width letter
	{"https://\u24d5.example.com/", ErrBadHost},     // a circled one
	{"https://\u212aelvin.example.com/", ErrBadHost},
	{"https://\ufb01ne.example.com/", ErrBadHost}, // a ligature
	{"https://hoo\u00adks.example.com/", ErrBadHost},
	{"https://hoo\u200bks.example.com/", ErrBadHost},
	{"https://hooks.example.com\u2044x/", ErrBadHost}, // looks like a slash
	{"https://hooks.example.com\u2215x/", ErrBadHost},
	{"https://B\u00dcCHER.example/", ErrBadHost}, // not the canonical letters
	{"https://\u05d0a.example/", ErrBadHost},     // right to left and left to right

	// Names that are not the public Internet's.
	{"https://localhost/", ErrSpecialName},
	{"https://LocalHost/", ErrSpecialName},
	{"https://localhost:8443/", ErrSpecialName},
	{"https://app.localhost/", ErrSpecialName},
	{"https://localhost.localdomain/", ErrSpecialName},
	{"https://printer.local/", ErrSpecialName},
	{"https://metadata.google.internal/", ErrSpecialName},
	{"https://METADATA.GOOGLE.INTERNAL/computeMetadata/v1/", ErrSpecialName},
	{"https://metadata.azure.internal/", ErrSpecialName},
	{"https://instance-data.ec2.internal/", ErrSpecialName},
	{"https://metadata/", ErrSpecialName},
	{"https://instance-data/", ErrSpecialName},
	{"https://kubernetes/", ErrSpecialName},
	{"https://kubernetes.default.svc.cluster.local/", ErrSpecialName},
	{"https://host.docker.internal/", ErrSpecialName},
	{"https://router.home.arpa/", ErrSpecialName},
	{"https://1.0.0.127.in-addr.arpa/", ErrSpecialName},
	{"https://router.lan/", ErrSpecialName},
	{"https://intranet/", ErrSpecialName},
	{"https://wiki.intranet/", ErrSpecialName},
	{"https://mail.corp/", ErrSpecialName},
	{"https://nas.home/", ErrSpecialName},
	{"https://db.private/", ErrSpecialName},
	{"https://duckduckgogg42xjoc72x3sjasowoarfbgcmvfimaftt6twagswzczad.onion/", ErrSpecialName},
	{"https://com/", ErrSpecialName},
	{"https://xn--bcher-kva/", ErrSpecialName},

	// IPv4 that is not four decimal numbers.
	{"https://2130706433/", ErrOddAddress},
	{"https://02130706433/", ErrOddAddress},
	{"https://017700000001/", ErrOddAddress},
	{"https://0x7f000001/", ErrOddAddress},
	{"https://0X7F000001/", ErrOddAddress},
	{"https://0x/", ErrOddAddress},
	{"https://0/", ErrOddAddress},
	{"https://127.1/", ErrOddAddress},
	{"https://127.0.1/", ErrOddAddress},
	{"https://127.0.0.1.1/", ErrOddAddress},
	{"https://0177.0.0.1/", ErrOddAddress},
	{"https://0177.0.0.01/", ErrOddAddress},
	{"https://127.0.0.01/", ErrOddAddress},
	{"https://127.000.000.001/", ErrOddAddress},
	{"https://0x7f.1/", ErrOddAddress},
	{"https://0x7f.0.0.1/", ErrOddAddress},
	{"https://127.0.0.0x1/", ErrOddAddress},
	{"https://127.0.0.0x/", ErrOddAddress},
	{"https://256.256.256.256/", ErrOddAddress},
	{"https://127.0.0.257/", ErrOddAddress},
	{"https://169.16689662/", ErrOddAddress},
	{"https://0xa9fea9fe/", ErrOddAddress},
	{"https://0251.0376.0251.0376/", ErrOddAddress},
	{"https://127.0.0.1./", ErrOddAddress},
	{"https://8.8.8.8./", ErrOddAddress},
	{"https://.127.0.0.1/", ErrOddAddress},
	{"https://127..0.1/", ErrOddAddress},
	{"https://example.1/", ErrOddAddress},
	{"https://example.0x1/", ErrOddAddress},
	{"https://1.e2/", ""}, // a name, if an odd one
	{"https://%31%32%37.0.0.1/", ErrOddAddress},
	{"https://127.0.0.%31/", ErrBadHost},
	{"https://127.0.0.1%00/", ErrBadHost},
	{"https://127.0.0.1%2e/", ErrBadHost},
	{"https://\uff11\uff12\uff17.0.0.1/", ErrOddAddress},
	{"https://127\u30020\u30020\u30021/", ErrOddAddress},
	{"https://127\uff0e0\uff0e0\uff0e1/", ErrOddAddress},
	{"https://127.0.0.\uff11/", ErrOddAddress},
	{"https://\u2460\u2461\u2466.\u24ea.\u24ea.\u2460/", ErrOddAddress},
	{"https://\u2460\u2461\u2466.\u24ea.\u24ea.\u2460./", ErrOddAddress},
	{"https://\U0001d7f7\U0001d7f8\U0001d7fd.0.0.1/", ErrOddAddress},
	{"https://\u0661\u0662\u0667.0.0.1/", ErrOddAddress},
	{"https://16\u00b2.0.0.1/", ErrOddAddress},

	// IPv6 that is not in its one spelling.
	{"https://::1/", ErrOddAddress},
	{"https://2606:4700:4700::1111/", ErrOddAddress},
	{"https://[/", ErrOddAddress},
	{"https://[]/", ErrOddAddress},
	{"https://[::1/", ErrOddAddress},
	{"https://::1]/", ErrOddAddress},
	{"https://[[::1]]/", ErrOddAddress},
	{"https://[::1]x/", ErrPort},
	{"https://x[::1]/", ErrOddAddress},
	{"https://[0:0:0:0:0:0:0:1]/", ErrOddAddress},
	{"https://[::0001]/", ErrOddAddress},
	{"https://[::00001]/", ErrOddAddress},
	{"https://[0::1]/", ErrOddAddress},
	{"https://[2606:4700:4700:0::1111]/", ErrOddAddress},
	{"https://[2606:4700:4700:0:0:0:0:1111]/", ErrOddAddress},
	{"https://[2A00:1450:4001::1]/", ErrOddAddress},
	{"https://[fe80::1%25eth0]/", ErrOddAddress},
	{"https://[fe80::1%eth0]/", ErrOddAddress},
	{"https://[2606:4700:4700::1111%25lo]/", ErrOddAddress},
	{"https://[2606:4700:4700::1111%25]/", ErrOddAddress},
	{"https://[::ffff:127.0.0.1]/", ErrOddAddress},
	{"https://[::ffff:8.8.8.8]/", ErrOddAddress},
	{"https://[::ffff:7f00:1]/", ErrOddAddress},
	{"https://[::FFFF:7F00:1]/", ErrOddAddress},
	{"https://[0:0:0:0:0:ffff:7f00:1]/", ErrOddAddress},
	{"https://[::127.0.0.1]/", ErrOddAddress},
	{"https://[64:ff9b::127.0.0.1]/", ErrOddAddress},
	{"https://[127.0.0.1]/", ErrOddAddress},
	{"https://[8.8.8.8]/", ErrOddAddress},
	{"https://[localhost]/", ErrOddAddress},
	{"https://[v1.fe80::1]/", ErrOddAddress},
	{"https://[::%31]/", ErrOddAddress},
	{"https://[\uff1a\uff1a1]/", ErrOddAddress},

	// Well-spelled addresses that are nobody's on the public Internet.
	{"https://0.0.0.0/", ErrSpecialAddress},
	{"https://0.1.2.3/", ErrSpecialAddress},
	{"https://10.0.0.1/", ErrSpecialAddress},
	{"https://10.255.255.255/", ErrSpecialAddress},
	{"https://100.64.0.1/", ErrSpecialAddress},
	{"https://100.100.100.200/latest/meta-data/", ErrSpecialAddress},
	{"https://127.0.0.1/", ErrSpecialAddress},
	{"https://127.0.0.1:8443/", ErrSpecialAddress},
	{"https://127.127.127.127/", ErrSpecialAddress},
	{"https://168.63.129.16/machine", ErrSpecialAddress},
	{"https://169.254.169.254/latest/meta-data/", ErrSpecialAddress},
	{"https://169.254.170.2/v2/credentials", ErrSpecialAddress},
	{"https://172.16.0.1/", ErrSpecialAddress},
	{"https://172.31.255.255/", ErrSpecialAddress},
	{"https://192.0.0.1/", ErrSpecialAddress},
	{"https://192.0.0.9/", ErrSpecialAddress},
	{"https://192.0.0.192/", ErrSpecialAddress},
	{"https://192.0.2.1/", ErrSpecialAddress},
	{"https://192.31.196.1/", ErrSpecialAddress},
	{"https://192.52.193.1/", ErrSpecialAddress},
	{"https://192.88.99.1/", ErrSpecialAddress},
	{"https://192.168.0.1/", ErrSpecialAddress},
	{"https://192.175.48.1/", ErrSpecialAddress},
	{"https://198.18.0.1/", ErrSpecialAddress},
	{"https://198.51.100.1/", ErrSpecialAddress},
	{"https://203.0.113.1/", ErrSpecialAddress},
	{"https://224.0.0.1/", ErrSpecialAddress},
	{"https://239.255.255.250/", ErrSpecialAddress},
	{"https://240.0.0.1/", ErrSpecialAddress},
	{"https://255.255.255.255/", ErrSpecialAddress},
	{"https://[::]/", ErrSpecialAddress},
	{"https://[::1]/", ErrSpecialAddress},
	{"https://[::1]:8443/", ErrSpecialAddress},
	{"https://[::7f00:1]/", ErrSpecialAddress},                   // IPv4-compatible
	{"https://[::808:808]/", ErrSpecialAddress},                  // whatever it holds
	{"https://[::ffff:0:7f00:1]/", ErrSpecialAddress},            // IPv4-translated
	{"https://[64:ff9b::7f00:1]/", ErrSpecialAddress},            // NAT64
	{"https://[64:ff9b::808:808]/", ErrSpecialAddress},           //
	{"https://[64:ff9b:1::a9fe:a9fe]/", ErrSpecialAddress},       // NAT64 of a network
	{"https://[64:ff9b:1:ffff::1]/", ErrSpecialAddress},          //
	{"https://[100::1]/", ErrSpecialAddress},                     // discard
	{"https://[100:0:0:1::1]/", ErrSpecialAddress},               //
	{"https://[400::1]/", ErrSpecialAddress},                     // not allocated
	{"https://[2001::1]/", ErrSpecialAddress},                    // Teredo
	{"https://[2001:0:7f00:1::]/", ErrSpecialAddress},            //
	{"https://[2001:1::1]/", ErrSpecialAddress},                  // a network's gateway by anycast
	{"https://[2001:2::1]/", ErrSpecialAddress},                  // benchmark
	{"https://[2001:20::1]/", ErrSpecialAddress},                 // ORCHID
	{"https://[2001:db8::1]/", ErrSpecialAddress},                // documentation
	{"https://[2002:7f00:1::]/", ErrSpecialAddress},              // 6to4
	{"https://[2002:808:808::1]/", ErrSpecialAddress},            //
	{"https://[2620:4f:8000::1]/", ErrSpecialAddress},            // AS112
	{"https://[2a00:1450:4001::5efe:a00:1]/", ErrSpecialAddress}, // ISATAP
	{"https://[2a00:1450:4001:0:200:5efe:a00:1]/", ErrSpecialAddress},
	{"https://[3fff::1]/", ErrSpecialAddress},
	{"https://[4000::1]/", ErrSpecialAddress},
	{"https://[5f00::1]/", ErrSpecialAddress},
	{"https://[fc00::1]/", ErrSpecialAddress},
	{"https://[fd00:ec2::254]/latest/meta-data/", ErrSpecialAddress},
	{"https://[fd20:ce::254]/", ErrSpecialAddress},
	{"https://[fe80::1]/", ErrSpecialAddress},
	{"https://[fe80::a9fe:a9fe]/", ErrSpecialAddress},
	{"https://[fec0::1]/", ErrSpecialAddress},
	{"https://[ff02::1]/", ErrSpecialAddress},
}

func TestHostileAddresses(t *testing.T) {
	policy := &Policy{Resolver: resolverOf(zone{})} // no name is found
	for _, c := range hostile {
		receiver, err := policy.Check(t.Context(), c.raw)
		if c.want == "" {
			if err != nil {
				t.Errorf("Check(%q): got %v, want none", c.raw, err)
			}
			continue
		}
		if err != error(c.want) || receiver != "" {
			t.Errorf("Check(%q): got %q, %v; want %v", c.raw, receiver, err, c.want)
		}
		if err != nil && c.raw != "" && strings.Contains(err.Error(), c.raw) {
			t.Errorf("Check(%q): the error repeats it", c.raw)
		}
	}
}

func TestGoodAddresses(t *testing.T) {
	policy := &Policy{Resolver: resolverOf(zone{})}
	for _, c := range []struct{ raw, receiver, url string }{
		{"https://hooks.example.com", "hooks.example.com:443", "https://hooks.example.com"},
		{"https://hooks.example.com/", "hooks.example.com:443", "https://hooks.example.com/"},
		{"https://hooks.example.com?x=1", "hooks.example.com:443", "https://hooks.example.com?x=1"},
		{"HTTPS://Hooks.Example.COM/Path?Query", "hooks.example.com:443", "https://hooks.example.com/Path?Query"},
		{"https://hooks.example.com:443/", "hooks.example.com:443", "https://hooks.example.com:443/"},
		{"https://hooks.example.com:8443/a/b%20c?d=e&f=%2F", "hooks.example.com:8443", "https://hooks.example.com:8443/a/b%20c?d=e&f=%2F"},
		{"https://hooks.example.com/@me", "hooks.example.com:443", "https://hooks.example.com/@me"},
		{"https://hooks.example.com/?mail=a@b.example", "hooks.example.com:443", "https://hooks.example.com/?mail=a@b.example"},
		{"https://hooks.example.com//x/../y", "hooks.example.com:443", "https://hooks.example.com//x/../y"},
		{"https://hooks.example.com/?to=http://127.0.0.1/", "hooks.example.com:443", "https://hooks.example.com/?to=http://127.0.0.1/"},
		{"https://1.example.com/", "1.example.com:443", "https://1.example.com/"},
		{"https://127.0.0.1.example.com/", "127.0.0.1.example.com:443", "https://127.0.0.1.example.com/"}, // what it leads to is looked up
		{"https://0x7f.example.com/", "0x7f.example.com:443", "https://0x7f.example.com/"},
		{"https://local.example.com/", "local.example.com:443", "https://local.example.com/"},
		{"https://localhost.example.com/", "localhost.example.com:443", "https://localhost.example.com/"},
		{"https://b\u00fccher.example/", "xn--bcher-kva.example:443", "https://xn--bcher-kva.example/"},
		{"https://xn--bcher-kva.example/", "xn--bcher-kva.example:443", "https://xn--bcher-kva.example/"},
		{"https://\u4f8b\u3048.\u30c6\u30b9\u30c8/", "xn--r8jz45g.xn--zckzah:443", "https://xn--r8jz45g.xn--zckzah/"},
		{"https://8.8.8.8/", "8.8.8.8:443", "https://8.8.8.8/"},
		{"https://[2606:4700:4700::1111]/", "[2606:4700:4700::1111]:443", "https://[2606:4700:4700::1111]/"},
		{"https://[2606:4700:4700::1111]:8443/", "[2606:4700:4700::1111]:8443", "https://[2606:4700:4700::1111]:8443/"},
		{"https://" + strings.Repeat("a", 63) + ".example.com/", strings.Repeat("a", 63) + ".example.com:443", "https://" + strings.Repeat("a", 63) + ".example.com/"},
		{"https://hooks.example.com/" + strings.Repeat("a", 2048-26), "hooks.example.com:443", "https://hooks.example.com/" + strings.Repeat("a", 2048-26)},
	} {
		receiver, err := policy.Check(t.Context(), c.raw)
		if err != nil || receiver != c.receiver {
			t.Errorf("Check(%q): got %q, %v; want %q", c.raw, receiver, err, c.receiver)
			continue
		}
		if got, err := policy.parse(c.raw); err != nil || got.url.String() != c.url {
			t.Errorf("parse(%q): got %v, %v; want %s", c.raw, got.url, err, c.url)
		}
	}
}

func TestAllow(t *testing.T) {
	policy := &Policy{
		Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("fd00::/8")},
		Resolver: resolverOf(zone{
			"opened.example.com": {"127.0.0.5", "fd00::5"},
			"half.example.com":   {"127.0.0.5", "8.8.8.8"},
			"public.example.com": {"8.8.8.8"},
			"mixed.example.com":  {"127.0.0.5", "10.0.0.1"},
			"receiver.internal":  {"127.0.0.7"},
			"stranger.internal":  {"8.8.8.8"},
		}),
	}
	for _, c := range []struct {
		raw  string
		want Refusal // "" is accepted
	}{
		{"http://127.0.0.1:9000/x", ""},
		{"http://127.0.0.1/x", ""},
		{"https://127.0.0.1/x", ""},
		{"https://127.0.0.1:9000/x", ""},
		{"http://[fd00::1]:9000/x", ""},
		{"http://[::1]:9000/x", ErrNotHTTPS}, // not among the opened ones
		{"https://[::1]:9000/x", ErrPort},
		{"https://[::1]/x", ErrSpecialAddress},
		{"http://8.8.8.8/", ErrNotHTTPS},
		{"https://8.8.8.8:9000/", ErrPort},
		{"https://8.8.8.8/", ""},
		{"http://opened.example.com:9000/", ""},
		{"https://opened.example.com:9000/", ""},
		{"https://opened.example.com/", ""},
		{"http://half.example.com/", ErrNotHTTPS},
		{"https://half.example.com:9000/", ErrPort},
		{"https://half.example.com/", ""},
		{"http://public.example.com/", ErrNotHTTPS},
		{"https://public.example.com/", ""},
		{"https://mixed.example.com/", ErrSpecialAddress},
		{"http://nowhere.example.com/", ErrNotHTTPS},
		{"https://nowhere.example.com:9000/", ErrPort},
		{"https://nowhere.example.com/", ""},
		{"https://receiver.internal/", ""},
		{"http://receiver.internal:9000/", ""},
		{"https://stranger.internal/", ErrSpecialName},
		{"https://nowhere.internal/", ErrSpecialName},
		{"http://2130706433:9000/", ErrOddAddress}, // spellings are never opened
		{"http://127.1:9000/", ErrOddAddress},
		{"http://[::ffff:127.0.0.1]:9000/", ErrOddAddress},
		{"http://user@127.0.0.1:9000/", ErrUserInfo},
		{"http://127.0.0.1:09000/", ErrPort},
		{"ftp://127.0.0.1/", ErrNotHTTPS},
	} {
		_, err := policy.Check(t.Context(), c.raw)
		var got Refusal
		errors.As(err, &got)
		if got != c.want || (err == nil) != (c.want == "") {
			t.Errorf("Check(%q): got %v, want %q", c.raw, err, c.want)
		}
	}
}
