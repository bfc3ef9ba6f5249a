package main

import (
	"bufio"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
)

// suppression measures a suppression list with twice as many hashes as the main
// job has rows: the cost of reading it and of comparing rows with it.
func (b *bench) suppression(ctx context.Context) (err error) {
	list, one, in, out := b.path("list.txt"), b.path("one.csv"), b.path("emails.csv"), b.path("hems")
	defer func() { err = errors.Join(err, os.Remove(list), os.Remove(one), os.Remove(in), os.RemoveAll(out)) }()
	entries := 2 * b.rows
	if err := errors.Join(writeHashes(list, entries), writeEmails(one, 1), writeEmails(in, b.rows)); err != nil {
		return err
	}
	// With one row, nearly all time and memory of the run is for the list.
	reading, err := b.leadetl(ctx, b.job(b.rows, "email_to_hem", one, out, "--suppress", list)...)
	if err != nil {
		return err
	}
	without, err := b.leadetl(ctx, b.job(b.rows, "email_to_hem", in, out, "--overwrite")...)
	if err != nil {
		return err
	}
	with, err := b.leadetl(ctx, b.job(b.rows, "email_to_hem", in, out, "--overwrite", "--suppress", list)...)
	if err != nil {
		return err
	}
	b.report.below("peak memory of reading a suppression list of "+millions(entries)+" hashes", 300, float64(reading.peakRSS)/1e6, "%.0f MB")
	b.report.note("  time of reading it", fmt.Sprintf("%.1f s", reading.wall.Seconds()))
	b.report.note("  "+millions(b.rows)+" emails with that list, against without: CPU seconds beside the reading",
		fmt.Sprintf("%.2f×", (with.cpu-reading.cpu).Seconds()/without.cpu.Seconds()))
	return nil
}

// writeHashes writes a list of random SHA-256 digests in hex.
func writeHashes(name string, n int) error {
	r := rand.New(rand.NewPCG(6, 6))
	return writeFile(name, func(w *bufio.Writer) {
		var raw [32]byte
		for range n {
			for i := range raw {
				raw[i] = byte(r.Uint32())
			}
			fmt.Fprintln(w, hex.EncodeToString(raw[:]))
		}
	})
}
