package callback

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// zone is a name server's data: the addresses of names.
type zone map[string][]string

// answer answers a query as a name server does.
func (z zone) answer(query []byte) ([]byte, error) {
	return answerWith(query, func(name string) []string { return z[name] })
}

func answerWith(query []byte, find func(name string) []string) ([]byte, error) {
	var m dnsmessage.Message
	if err := m.Unpack(query); err != nil {
		return nil, err
	}
	question := m.Questions[0]
	reply := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: m.ID, Response: true, Authoritative: true, RecursionAvailable: true},
		Questions: m.Questions,
	}
	name := strings.TrimSuffix(question.Name.String(), ".")
	addrs := find(name)
	if len(addrs) == 0 {
		reply.RCode = dnsmessage.RCodeNameError
	}
	header := dnsmessage.ResourceHeader{Name: question.Name, Class: dnsmessage.ClassINET, TTL: 1}
	for _, s := range addrs {
		a := netip.MustParseAddr(s)
		switch {
		case a.Is4() && question.Type == dnsmessage.TypeA:
			reply.Answers = append(reply.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.AResource{A: a.As4()}})
		case a.Is6() && question.Type == dnsmessage.TypeAAAA:
			reply.Answers = append(reply.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.AAAAResource{AAAA: a.As16()}})
		}
	}
	return reply.Pack()
}

// resolverOf returns a resolver whose name server is in memory.
func resolverOf(z zone) *net.Resolver { return resolverTo(z.answer) }

// resolverTo is resolverOf with any answers. A query answered with an error is
// never answered.
func resolverTo(answer func(query []byte) ([]byte, error)) *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe() // no packets, so queries come as over TCP
		go func() {
			defer theirs.Close()
			for {
				var size [2]byte
				if _, err := io.ReadFull(theirs, size[:]); err != nil {
					return
				}
				query := make([]byte, binary.BigEndian.Uint16(size[:]))
				if _, err := io.ReadFull(theirs, query); err != nil {
					return
				}
				reply, err := answer(query)
				if err != nil {
					continue
				}
				if _, err := theirs.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(reply))), reply...)); err != nil {
					return
				}
			}
		}()
		return ours, nil
	}}
}

// nameServer is one on loopback, asked by real packets.
type nameServer struct {
	conn net.PacketConn

	mu    sync.Mutex
	asked map[dnsmessage.Question]int
	find  func(name string, asked int) []string
}

func serveNames(t *testing.T, find func(name string, asked int) []string) *nameServer {
	conn, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &nameServer{conn: conn, asked: map[dnsmessage.Question]int{}, find: find}
	var done sync.WaitGroup
	done.Go(s.serve)
	t.Cleanup(func() { _ = conn.Close(); done.Wait() })
	return s
}

func (s *nameServer) serve() {
	packet := make([]byte, 1500)
	for {
		n, from, err := s.conn.ReadFrom(packet)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		reply, err := s.answer(packet[:n])
		if err == nil {
			_, _ = s.conn.WriteTo(reply, from)
		}
	}
}

func (s *nameServer) answer(query []byte) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var m dnsmessage.Message
	if err := m.Unpack(query); err != nil {
		return nil, err
	}
	s.asked[m.Questions[0]]++ // A and AAAA go out at once, in any order
	n := s.asked[m.Questions[0]]
	return answerWith(query, func(name string) []string { return s.find(name, n) })
}

// lookups returns how often the IPv4 addresses of a name were asked for.
func (s *nameServer) lookups(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[dnsmessage.Question{Name: dnsmessage.MustNewName(name + "."), Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET}]
}

func (s *nameServer) resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "udp4", s.conn.LocalAddr().String())
	}}
}
