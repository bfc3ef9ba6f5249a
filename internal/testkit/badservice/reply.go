package badservice

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"net"
	"net/http"
	"strconv"
	"time"
)

// reply is an answer to be sent.
type reply struct {
	status    int
	header    http.Header
	body      []byte
	breaksOff bool // Content-Length is larger than the body
	dribbles  bool // the body comes in small pieces
}

func (r *reply) clone() *reply {
	c := *r
	c.header = r.header.Clone()
	return &c
}

func newReply(status int, body any) *reply {
	text, err := json.Marshal(body)
	if err != nil {
		panic(err) // the body is always one that can be marshalled
	}
	return &reply{status: status, header: http.Header{"Content-Type": {"application/json"}}, body: text}
}

// compress sends the body with gzip.
func (r *reply) compress() {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write(r.body); err != nil || w.Close() != nil {
		panic(err) // memory takes everything
	}
	r.body = packed.Bytes()
	r.header.Set("Content-Encoding", "gzip")
}

// refuse is an error reply of the service.
func refuse(status int, code, message string) *reply {
	return newReply(status, map[string]any{
		"success": false, "message": message,
		"error": map[string]any{"type": "urn:badservice:error:" + code, "code": code, "title": message, "status": status},
	})
}

// unavailable is the answer of a proxy whose service is down. Its Retry-After says
// that the request was not passed on, however late it comes on a busy machine.
func unavailable() *reply {
	return &reply{
		status: http.StatusServiceUnavailable, header: http.Header{"Content-Type": {"text/html"}, "Retry-After": {"0"}},
		body: []byte("<html><head><title>503 Service Temporarily Unavailable</title></head><body><h1>503</h1></body></html>\n"),
	}
}

// mistyped are answers in JSON whose members have wrong types.
var mistyped = [][]byte{
	[]byte(`{"success":"yes","data":"yes","resolution":{"id":7,"status":"completed"},"lead":"see above"}`),
	[]byte(`["success",true]`),
	[]byte(`{"success":"yes","resolution":"completed","lead":42}`),
	[]byte(`"completed"`),
}

// carryOut ends a call as decided.
func (f *fate) carryOut(w http.ResponseWriter, quit <-chan struct{}) {
	if f.reply == nil {
		reset(w)
		return
	}
	r := f.reply
	for name, values := range r.header {
		w.Header()[name] = values
	}
	length := len(r.body)
	if r.breaksOff {
		length *= 2
	}
	w.Header().Set("Content-Length", strconv.Itoa(length))
	w.WriteHeader(r.status)
	if r.dribbles {
		dribble(w, r.body, quit)
		return
	}
	_, _ = w.Write(r.body) // the caller may be gone
	if r.breaksOff {
		_ = http.NewResponseController(w).Flush() // so that the first part arrives
		panic(http.ErrAbortHandler)
	}
}

// reset breaks the connection without closing it properly, as a crashed machine
// does.
func reset(w http.ResponseWriter) {
	hijacked, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	below := hijacked
	if c, is := below.(*conn); is {
		below = c.Conn
	}
	if tcp, is := below.(*net.TCPConn); is {
		_ = tcp.SetLinger(0) // send RST instead of FIN, where possible
	}
	_ = hijacked.Close()
}

// dribble sends a body a few bytes at a time.
func dribble(w http.ResponseWriter, body []byte, quit <-chan struct{}) {
	pause := time.NewTicker(2 * time.Millisecond)
	defer pause.Stop()
	for len(body) > 0 {
		n := min(len(body), 16)
		if _, err := w.Write(body[:n]); err != nil {
			return
		}
		if http.NewResponseController(w).Flush() != nil {
			return
		}
		body = body[n:]
		select {
		case <-pause.C:
		case <-quit:
			panic(http.ErrAbortHandler)
		}
	}
}
