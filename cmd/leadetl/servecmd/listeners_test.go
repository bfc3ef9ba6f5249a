package servecmd

import (
	"errors"
	"net"
	"regexp"
	"testing"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
)

// TestPortsInUse: a demo takes free ports in place of the default ones that are in use. Any
// other command is told of each port that is in use, and of one that it can have.
func TestPortsInUse(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	for name, c := range map[string]struct {
		demo    bool
		flags   []string
		refused []string
	}{
		"a demo":                          {demo: true},
		"a demo with one named address":   {demo: true, flags: []string{"--listen", busy.Addr().String()}, refused: []string{"listen"}},
		"a demo with two named addresses": {demo: true, flags: []string{"--listen", busy.Addr().String(), "--internal-listen", busy.Addr().String()}, refused: []string{"listen", "internal-listen"}},
		"a service":                       {refused: []string{"listen", "internal-listen"}},
	} {
		t.Run(name, func(t *testing.T) {
			command := NewCommand(cli.Streams{})
			f := serveFlags{demo: c.demo, listen: busy.Addr().String(), internalListen: busy.Addr().String()}
			if err := command.Flags().Parse(c.flags); err != nil {
				t.Fatal(err)
			}
			on, err := f.openListeners(command.Flags())
			var advice [][]string
			if err != nil {
				advice = regexp.MustCompile(`--([a-z-]+): port \d+ is in use at 127.0.0.1; name another, such as (127.0.0.1:\d+)`).FindAllStringSubmatch(err.Error(), -1)
			}
			if len(advice) != len(c.refused) {
				t.Fatalf("%v, want a refusal of %q", err, c.refused)
			}
			for i, a := range advice {
				if a[1] != c.refused[i] {
					t.Errorf("--%s is refused, want --%s", a[1], c.refused[i])
				}
				if l, err := net.Listen("tcp", a[2]); err != nil {
					t.Errorf("%s is advised: %v", a[2], err)
				} else {
					l.Close()
				}
			}
			if err := errors.Join(closeListener(on.Public), closeListener(on.Internal)); err != nil {
				t.Error(err)
			}
		})
	}
}
