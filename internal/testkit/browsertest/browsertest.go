// Package browsertest shows pages in a headless Chromium, for tests. It takes
// screenshots, evaluates JavaScript in the page, and reports console messages
// and requests. It speaks the DevTools protocol over a pipe, so no port is open.
//
// Source: chromedevtools.github.io/devtools-protocol
package browsertest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// timeout bounds the life of a browser.
const timeout = 3 * time.Minute

// Screen is a screen to show a page on.
type Screen struct {
	Name   string
	Width  int // CSS pixels
	Height int
	Scale  float64 // device pixels to a CSS pixel
	Dark   bool
	Print  bool
}

// Browser is a running Chromium with one tab. It is for one goroutine, and stops
// at the end of the test.
type Browser struct {
	t       *testing.T
	to      io.Writer
	from    *bufio.Reader
	session string
	last    int
	// Complaints are the console messages of the pages. Asked are the addresses
	// that they requested, except their own.
	Complaints []string
	Asked      []string
	page       string
	ended      bool
}

// Find returns the path of a Chromium; it skips the test without one.
func Find(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("no chromium, chromium-browser or google-chrome on PATH")
	return ""
}

// Start starts a browser; it skips the test without one.
func Start(t *testing.T) *Browser {
	t.Helper()
	path := Find(t)
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	t.Cleanup(cancel)
	theirIn, ourOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	ourIn, theirOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	c := exec.CommandContext(ctx, path, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
		"--hide-scrollbars", "--disable-extensions", "--disable-background-networking", "--disable-component-update",
		"--user-data-dir="+t.TempDir(), "--remote-debugging-pipe", "about:blank")
	c.ExtraFiles = []*os.File{theirIn, theirOut} // 3 and 4, as the browser expects
	c.Stderr = &said
	c.WaitDelay = 10 * time.Second
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	theirIn.Close()
	theirOut.Close()
	b := &Browser{t: t, to: ourOut, from: bufio.NewReader(ourIn)}
	t.Cleanup(func() {
		b.session = ""
		_ = b.send("Browser.close", nil)
		_ = c.Wait() // it was asked to close, or was killed
		ourOut.Close()
		ourIn.Close()
		if b.ended {
			t.Logf("the browser said:\n%s", said.String())
		}
	})
	b.attach()
	return b
}

// attach opens the tab.
func (b *Browser) attach() {
	b.t.Helper()
	var made struct{ TargetID string }
	b.Do("Target.createTarget", map[string]any{"url": "about:blank"}, &made)
	var attached struct{ SessionID string }
	b.Do("Target.attachToTarget", map[string]any{"targetId": made.TargetID, "flatten": true}, &attached)
	b.session = attached.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		b.Do(domain+".enable", nil, nil)
	}
}

// message is a message of the protocol, in either direction.
type message struct {
	ID        int                       `json:"id,omitempty"`
	SessionID string                    `json:"sessionId,omitempty"`
	Method    string                    `json:"method,omitempty"`
	Params    json.RawMessage           `json:"params,omitempty"`
	Result    json.RawMessage           `json:"result,omitempty"`
	Error     *struct{ Message string } `json:"error,omitempty"`
}

func (b *Browser) send(method string, params any) error {
	m := message{SessionID: b.session, Method: method}
	b.last++
	m.ID = b.last
	if params != nil {
		data, err := json.Marshal(params)
		if err != nil {
			return err
		}
		m.Params = data
	}
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	_, err = b.to.Write(append(data, 0))
	return err
}

// Do calls a method of the protocol and waits for its result, which it decodes
// into result unless that is nil.
func (b *Browser) Do(method string, params, result any) {
	b.t.Helper()
	if err := b.send(method, params); err != nil {
		b.t.Fatalf("%s: %v", method, err)
	}
	id := b.last
	m := b.until(func(m message) bool { return m.ID == id })
	if m.Error != nil {
		b.t.Fatalf("%s: %s", method, m.Error.Message)
	}
	if result != nil {
		if err := json.Unmarshal(m.Result, result); err != nil {
			b.t.Fatalf("%s: %v", method, err)
		}
	}
}

// until reads messages up to the one that is wanted, and notes the others.
func (b *Browser) until(is func(message) bool) message {
	b.t.Helper()
	for {
		data, err := b.from.ReadBytes(0)
		if errors.Is(err, io.EOF) {
			b.ended = true
			b.t.Fatal("the browser has ended")
		}
		if err != nil {
			b.t.Fatal(err)
		}
		var m message
		if err := json.Unmarshal(data[:len(data)-1], &m); err != nil {
			b.t.Fatal(err)
		}
		b.note(m)
		if is(m) {
			return m
		}
	}
}

func (b *Browser) note(m message) {
	switch m.Method {
	case "Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded":
		b.Complaints = append(b.Complaints, string(m.Params))
	case "Network.requestWillBeSent":
		var p struct{ Request struct{ URL string } }
		if err := json.Unmarshal(m.Params, &p); err != nil {
			b.t.Fatal(err)
		}
		if p.Request.URL != b.page && !strings.HasPrefix(p.Request.URL, "data:") {
			b.Asked = append(b.Asked, p.Request.URL)
		}
	}
}

// Show shows a page on a screen and waits until it is loaded.
func (b *Browser) Show(url string, s Screen) {
	b.t.Helper()
	b.Do("Emulation.setDeviceMetricsOverride", map[string]any{"width": s.Width, "height": s.Height, "deviceScaleFactor": s.Scale, "mobile": s.Width < 600}, nil)
	scheme, media := "light", "screen"
	if s.Dark {
		scheme = "dark"
	}
	if s.Print {
		media = "print"
	}
	b.Do("Emulation.setEmulatedMedia", map[string]any{"media": media, "features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}}, nil)
	b.page = url
	if err := b.send("Page.navigate", map[string]any{"url": url}); err != nil {
		b.t.Fatal(err)
	}
	b.until(func(m message) bool { return m.Method == "Page.loadEventFired" })
}

// Picture returns a screenshot of the whole page as PNG.
func (b *Browser) Picture() []byte {
	b.t.Helper()
	var shot struct{ Data []byte }
	b.Do("Page.captureScreenshot", map[string]any{"format": "png", "captureBeyondViewport": true}, &shot)
	return shot.Data
}

// Ask evaluates a JavaScript expression and decodes its value into result.
func (b *Browser) Ask(expression string, result any) {
	b.t.Helper()
	var answer struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails json.RawMessage
	}
	b.Do("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true}, &answer)
	if answer.ExceptionDetails != nil {
		b.t.Fatalf("%s: %s", expression, answer.ExceptionDetails)
	}
	if err := json.Unmarshal(answer.Result.Value, result); err != nil {
		b.t.Fatalf("%s: %v: %s", expression, err, fmt.Sprint(string(answer.Result.Value)))
	}
}

// Follow evaluates a JavaScript expression that leads to another page, such as a
// click, and waits until that is loaded.
func (b *Browser) Follow(expression string) {
	b.t.Helper()
	if err := b.send("Runtime.evaluate", map[string]any{"expression": expression, "userGesture": true}); err != nil {
		b.t.Fatal(err)
	}
	b.until(func(m message) bool { return m.Method == "Page.loadEventFired" })
}

// Faults is a JavaScript expression that lists problems for readers: a page
// wider than the screen, too little contrast (WCAG 2.2, 1.4.3), fields and
// drawings without names, a state that its row's button hides.
const Faults = `(() => {
	const wrong = [];
	const name = e => e.tagName.toLowerCase() + "." + e.getAttribute("class") + " " + JSON.stringify(e.textContent.slice(0, 40));
	if (document.documentElement.scrollWidth > document.documentElement.clientWidth || innerWidth > document.documentElement.clientWidth + 20) wrong.push("it is " + document.documentElement.scrollWidth + " wide");
	if (!document.title || document.querySelectorAll("h1").length !== 1 || !document.documentElement.lang) wrong.push("it has no title, language or heading");
	for (const e of document.querySelectorAll("svg"))
		if (e.getAttribute("role") !== "img" || !e.getAttribute("aria-label")) wrong.push(name(e) + " has no text for screen readers");
	for (const e of document.querySelectorAll("svg"))
		if (e.getBoundingClientRect().bottom > e.parentElement.getBoundingClientRect().bottom + 1) wrong.push("a drawing leaves its place");
	for (const e of document.querySelectorAll("th"))
		if (!e.scope) wrong.push(name(e) + " has no scope");
	for (const e of document.querySelectorAll("input:not([type=hidden]):not([hidden]), select"))
		if (!e.labels.length) wrong.push(e.id + " has no label");
	for (const e of document.querySelectorAll("button, a"))
		if (!e.textContent.trim()) wrong.push(name(e) + " has no name");
	for (const e of document.querySelectorAll(".wide"))
		if (e.scrollWidth > e.clientWidth && e.tabIndex !== 0) wrong.push(name(e) + " cannot be scrolled by keyboard");
	for (const e of document.querySelectorAll("td.state")) {
		const act = e.parentElement.querySelector(".act");
		if (act && act.textContent.trim() && e.textContent.trim() && e.getBoundingClientRect().right > act.getBoundingClientRect().left + 1) wrong.push(name(e) + " is hidden by what can be done");
	}
	const rgb = s => s.match(/[0-9.]+/g).map(Number);
	const light = c => { const [r, g, b] = c.map(v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
	const behind = e => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c.length < 4 || c[3] > 0) return c.slice(0, 3); } return [255, 255, 255]; };
	const contrast = (a, b) => { const [x, y] = [light(a), light(b)].sort((x, y) => y - x); return (x + 0.05) / (y + 0.05); };
	const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	for (let n; (n = texts.nextNode());) {
		const e = n.parentElement;
		if (!n.textContent.trim() || e.closest("svg, style")) continue;
		const c = contrast(rgb(getComputedStyle(e).color).slice(0, 3), behind(e));
		if (c < 4.5) wrong.push(name(e) + " has a contrast of " + c.toFixed(2));
	}
	for (const e of document.querySelectorAll("input:not([type=hidden]):not([hidden]):not([type=checkbox]), select")) {
		const c = contrast(rgb(getComputedStyle(e).color).slice(0, 3), behind(e)), border = contrast(rgb(getComputedStyle(e).borderTopColor).slice(0, 3), behind(e.parentElement));
		if (c < 4.5 || border < 3) wrong.push(e.id + " has a contrast of " + c.toFixed(2) + ", and its border of " + border.toFixed(2));
	}
	return [...new Set(wrong)];
})()`
