// Command plainloop is the loop that people write first. It reads addresses from
// a CSV file, asks a service about each from several goroutines, and writes the
// answers to another CSV file. It keeps no progress on disk, waits only for
// answers, and stops at the first error.
package main

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"sync"
)

type answer struct {
	Lead struct {
		Company struct {
			Name   string `json:"name"`
			Domain string `json:"domain"`
		} `json:"company"`
	} `json:"lead"`
}

func main() {
	concurrency := flag.Int("concurrency", 64, "`calls` in flight")
	flag.Parse()
	in, err := os.Open(flag.Arg(1))
	check(err)
	out, err := os.Create(flag.Arg(2))
	check(err)
	client := &http.Client{Transport: &http.Transport{MaxIdleConns: *concurrency, MaxIdleConnsPerHost: *concurrency}}
	questions, lines := make(chan string, *concurrency), make(chan string, *concurrency)
	var callers, writer sync.WaitGroup
	for range *concurrency {
		callers.Go(func() {
			for ip := range questions {
				lines <- ask(client, flag.Arg(0), ip)
			}
		})
	}
	writer.Go(func() {
		w := bufio.NewWriter(out)
		for line := range lines {
			fmt.Fprintln(w, line)
		}
		check(w.Flush())
		check(out.Close())
	})
	rows := csv.NewReader(in)
	_, err = rows.Read() // the header
	check(err)
	for {
		row, err := rows.Read()
		if err == io.EOF {
			break
		}
		check(err)
		questions <- row[0]
	}
	close(questions)
	callers.Wait()
	close(lines)
	writer.Wait()
}

func ask(client *http.Client, base, ip string) string {
	body, err := json.Marshal(map[string]string{"ip": ip})
	check(err)
	response, err := client.Post(base+"/lead/resolution/ip_to_company", "application/json", bytes.NewReader(body))
	check(err)
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		log.Fatal(response.Status)
	}
	var a answer
	check(json.NewDecoder(response.Body).Decode(&a))
	_, err = io.Copy(io.Discard, response.Body)
	check(err)
	return ip + "," + a.Lead.Company.Name + "," + a.Lead.Company.Domain
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
