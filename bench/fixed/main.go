// Command fixed is the service for measurements of remote runs. Its answers take
// a fixed time, and their rate may be limited. It answers ip_to_company; /seen
// says how many calls it answered and refused, /times when it was called.
//
// It stands for a service on another machine, but shares the cores with the run that is
// measured. So it is built on fasthttp, which takes two thirds of the processor time of
// net/http: 64 µs a call instead of 92.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
	"golang.org/x/time/rate"
)

func main() {
	s := &service{times: newTimes(), tokens: rate.NewLimiter(rate.Inf, 1)}
	flag.DurationVar(&s.latency, "latency", 0, "`time` each answer takes")
	limit := flag.Float64("limit", 0, "most `calls` a second; 0 for no limit")
	burst := flag.Int("burst", 10, "`calls` at once under the limit")
	flag.Parse()
	if *limit > 0 {
		s.tokens = rate.NewLimiter(rate.Limit(*limit), *burst)
	}
	log.Fatal(fasthttp.ListenAndServe(flag.Arg(0), s.handle))
}

type service struct {
	latency           time.Duration
	tokens            *rate.Limiter
	times             *times
	answered, refused atomic.Int64
}

func (s *service) handle(r *fasthttp.RequestCtx) {
	switch string(r.Path()) {
	case "/times":
		s.times.print(r)
	case "/seen":
		fmt.Fprintf(r, "%d %d\n", s.answered.Load(), s.refused.Load())
	case "/lead/resolution/ip_to_company":
		s.answer(r)
	default:
		r.Error("no such path", fasthttp.StatusNotFound)
	}
}

func (s *service) answer(r *fasthttp.RequestCtx) {
	var question struct {
		IP string `json:"ip"`
	}
	if json.Unmarshal(r.PostBody(), &question) != nil {
		r.Error("not JSON", fasthttp.StatusBadRequest)
		return
	}
	s.times.add()
	if !s.tokens.Allow() {
		s.refused.Add(1)
		r.Error("slower", fasthttp.StatusTooManyRequests)
		r.Response.Header.Set("Retry-After", "1")
		return
	}
	time.Sleep(s.latency)
	n := s.answered.Add(1)
	r.SetContentType("application/json")
	r.Response.Header.Set("X-Credits-Spent", "1")
	r.Response.Header.Set("X-Request-Id", "req_"+strconv.FormatInt(n, 10))
	fmt.Fprintf(r, `{"success":true,"message":"IP address resolved to a company.","data":true,"lead":{"company":{"name":"Company %d","domain":"company-%d.example",`+
		`"website_url":"https://company-%d.example","industry":"Machinery","revenue":"$10M to $50M","employee_count":"51-200","year_founded":1987,`+
		`"address":{"street":"1 Long Street","zip_code":"10001","city":"New York","state":"NY"}}},"payload":{"ip":%q}}`, n%1000, n%1000, n%1000, question.IP)
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
func (t *times) print(w io.Writer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, at := range t.at {
		fmt.Fprintln(w, at.Nanoseconds())
	}
}
