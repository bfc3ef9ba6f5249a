// Command fixed is the service for measurements of remote runs. Its answers take
// a fixed time, and their rate may be limited. It answers ip_to_company; /seen
// says how many calls it answered and refused, /times when it was called.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

func main() {
	latency := flag.Duration("latency", 0, "`time` each answer takes")
	limit := flag.Float64("limit", 0, "most `calls` a second; 0 for no limit")
	burst := flag.Int("burst", 10, "`calls` at once under the limit")
	flag.Parse()
	var answered, refused atomic.Int64
	tokens := rate.NewLimiter(rate.Inf, 1)
	if *limit > 0 {
		tokens = rate.NewLimiter(rate.Limit(*limit), *burst)
	}
	mux := http.NewServeMux()
	times := newTimes()
	mux.HandleFunc("GET /times", times.print)
	mux.HandleFunc("GET /seen", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "%d %d\n", answered.Load(), refused.Load())
	})
	mux.HandleFunc("POST /lead/resolution/ip_to_company", func(w http.ResponseWriter, r *http.Request) {
		var question struct {
			IP string `json:"ip"`
		}
		body, err := io.ReadAll(r.Body)
		if err != nil || json.Unmarshal(body, &question) != nil {
			http.Error(w, "not JSON", http.StatusBadRequest)
			return
		}
		times.add()
		if !tokens.Allow() {
			refused.Add(1)
			w.Header().Set("Retry-After", "1")
			http.Error(w, "slower", http.StatusTooManyRequests)
			return
		}
		if *latency > 0 {
			time.Sleep(*latency)
		}
		n := answered.Add(1)
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Credits-Spent", "1")
		w.Header().Set("X-Request-Id", "req_"+strconv.FormatInt(n, 10))
		fmt.Fprintf(w, `{"success":true,"message":"IP address resolved to a company.","data":true,"lead":{"company":{"name":"Company %d","domain":"company-%d.example",`+
			`"website_url":"https://company-%d.example","industry":"Machinery","revenue":"$10M to $50M","employee_count":"51-200","year_founded":1987,`+
			`"address":{"street":"1 Long Street","zip_code":"10001","city":"New York","state":"NY"}}},"payload":{"ip":%q}}`, n%1000, n%1000, n%1000, question.IP)
	})
	log.Fatal(http.ListenAndServe(flag.Arg(0), mux))
}

// times are when calls came.
type times struct {
	began time.Time
	mu    sync.Mutex
	at    []time.Duration
}

func newTimes() *times { return &times{began: time.Now()} }

func (t *times) add() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.at = append(t.at, time.Since(t.began))
}

// print writes nanoseconds, one call a line.
func (t *times) print(w http.ResponseWriter, _ *http.Request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, at := range t.at {
		fmt.Fprintln(w, at.Nanoseconds())
	}
}
