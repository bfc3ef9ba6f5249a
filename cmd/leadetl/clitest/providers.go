package clitest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/internal/testkit/badservice"
)

// badProvider is the program badprovider: a badservice.Provider that says its address and lives until its
// input ends.
func badProvider() {
	if len(os.Args) != 2 {
		log.Fatal("usage: badprovider OPTIONS")
	}
	var o badservice.ProviderOptions
	check(json.Unmarshal([]byte(os.Args[1]), &o))
	p, err := badservice.NewProvider(o)
	check(err)
	url, err := p.Start()
	check(err)
	fmt.Println(url)
	_, err = io.Copy(io.Discard, os.Stdin)
	check(err)
}

// ProviderProcess is a provider in a process of its own, which can be killed. Its ledger is a file.
type ProviderProcess struct {
	testing.TB
	Options badservice.ProviderOptions
	URL     string
	process *exec.Cmd
}

// StartProvider starts a provider for a test.
func StartProvider(t testing.TB, o badservice.ProviderOptions) *ProviderProcess {
	t.Helper()
	p := &ProviderProcess{TB: t, Options: o}
	p.Start()
	t.Cleanup(p.Kill)
	return p
}

// Start starts the process with the ledger of the one before, at its address.
func (p *ProviderProcess) Start() {
	p.Helper()
	options, err := json.Marshal(p.Options)
	if err != nil {
		p.Fatal(err)
	}
	program, err := exec.LookPath("badprovider")
	if err != nil {
		p.Fatal(err)
	}
	p.process = exec.Command(program, string(options))
	p.process.Stderr = os.Stderr
	_, err = p.process.StdinPipe() // it ends with the test
	if err != nil {
		p.Fatal(err)
	}
	out, err := p.process.StdoutPipe()
	if err != nil {
		p.Fatal(err)
	}
	if err := p.process.Start(); err != nil {
		p.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		p.Fatal(err)
	}
	p.URL = strings.TrimSpace(line)
	p.Options.Address = strings.TrimPrefix(p.URL, "http://")
}

// Kill ends the process the hard way. What it has not answered is lost, its ledger is not.
func (p *ProviderProcess) Kill() {
	_ = p.process.Process.Kill() // one that has ended already is as well
	_ = p.process.Wait()         // a killed process ends with an error
}

// Ledger reads the ledger.
func (p *ProviderProcess) Ledger() []badservice.Asked {
	p.Helper()
	book, err := badservice.ReadLedger(p.Options.Ledger)
	if err != nil {
		p.Fatal(err)
	}
	return book
}

// Written is how much is in the ledger, in bytes.
func (p *ProviderProcess) Written() int64 {
	info, err := os.Stat(p.Options.Ledger)
	if err != nil {
		return 0
	}
	return info.Size()
}
