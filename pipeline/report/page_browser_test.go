package report_test

import (
	"bytes"
	"image/png"
	"os"
	"path/filepath"
	"testing"

	"github.com/leadetl/leadetl/internal/testkit/browsertest"
)

var screens = []browsertest.Screen{
	{Name: "light", Width: 1280, Height: 900, Scale: 1},
	{Name: "dark", Width: 1280, Height: 900, Scale: 1, Dark: true},
	{Name: "phone", Width: 390, Height: 844, Scale: 2},
	{Name: "narrow", Width: 320, Height: 640, Scale: 1, Dark: true},
	{Name: "print", Width: 794, Height: 1123, Scale: 1, Print: true},
}

// TestInABrowser looks at the page of every run under testdata on every screen.
// LEADETL_PICTURES=FOLDER keeps the pictures.
func TestInABrowser(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a browser")
	}
	b := browsertest.Start(t)
	folder := t.TempDir()
	for run, page := range pages(t) {
		path := filepath.Join(folder, run+".html")
		if err := os.WriteFile(path, page, 0o644); err != nil {
			t.Fatal(err)
		}
		for _, s := range screens {
			name := run + "-" + s.Name
			b.Show("file://"+path, s)
			picture := b.Picture()
			if folder := os.Getenv("LEADETL_PICTURES"); folder != "" {
				if err := os.WriteFile(filepath.Join(folder, name+".png"), picture, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			checkPicture(t, name, picture, s)
			var wrong []string
			b.Ask(lookForFaults, &wrong)
			for _, w := range wrong {
				t.Errorf("%s: %s", name, w)
			}
		}
	}
	if len(b.Complaints) > 0 {
		t.Errorf("the console says %q", b.Complaints)
	}
	if len(b.Asked) > 0 {
		t.Errorf("the pages asked for %q", b.Asked)
	}
}

// checkPicture sees to it that there is something on a picture, and that the
// page is as wide as the screen.
func checkPicture(t *testing.T, name string, picture []byte, s browsertest.Screen) {
	t.Helper()
	size, err := png.DecodeConfig(bytes.NewReader(picture))
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	if want := int(float64(s.Width) * s.Scale); size.Width != want {
		t.Errorf("%s is %d pixels wide, want %d", name, size.Width, want)
	}
	if s.Width < 1000 {
		return // long pictures of what the wide ones show: with the race detector they take a minute
	}
	m, err := png.Decode(bytes.NewReader(picture))
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	bounds, colours := m.Bounds(), map[[3]uint32]int{}
	for y := bounds.Min.Y; y < bounds.Max.Y; y += 3 {
		for x := bounds.Min.X; x < bounds.Max.X; x += 3 {
			r, g, b, _ := m.At(x, y).RGBA()
			colours[[3]uint32{r, g, b}]++
		}
	}
	if len(colours) < 20 {
		t.Errorf("%s has %d colours: it is empty", name, len(colours))
	}
}

// lookForFaults lists what a reader would stumble over: a page wider than the
// screen, texts one over the other or cut off, too little contrast (WCAG 2.2,
// 1.4.3), drawings without words.
const lookForFaults = `(() => {
	const wrong = [];
	const name = e => e.tagName.toLowerCase() + "." + e.getAttribute("class") + " " + JSON.stringify(e.textContent.slice(0, 40));
	if (document.documentElement.scrollWidth > innerWidth) wrong.push("it is " + document.documentElement.scrollWidth + " wide");
	for (const e of document.querySelectorAll(".label, .tiles strong, .ticks span, .grid span, h1, .output")) {
		const r = e.getBoundingClientRect();
		if (r.left < 0 || r.right > innerWidth + 0.5) wrong.push(name(e) + " leaves the screen");
	}
	for (const e of document.querySelectorAll(".tiles strong"))
		if (e.scrollWidth > e.clientWidth) wrong.push(name(e) + " leaves its tile");
	if (!matchMedia("print").matches)
		for (const e of document.querySelectorAll(".files[open] .wide")) {
			const r = e.getBoundingClientRect();
			if (r.right > innerWidth || r.height > 450) wrong.push(name(e) + " is " + r.width + " by " + r.height);
			if (e.scrollWidth > e.clientWidth) { e.scrollLeft = 9; if (e.scrollLeft !== 9) wrong.push(name(e) + " does not scroll inside its box"); }
		}
	for (const group of [".plot > .label", ".ends > .label", ".ticks span"])
		for (const box of new Set([...document.querySelectorAll(group)].map(e => e.parentElement))) {
			const rects = [...box.querySelectorAll(group)].map(e => [e, e.getBoundingClientRect()]);
			rects.forEach(([a, ra], i) => rects.slice(i + 1).forEach(([b, rb]) => {
				const over = Math.min(ra.bottom, rb.bottom) - Math.max(ra.top, rb.top), across = Math.min(ra.right, rb.right) - Math.max(ra.left, rb.left);
				if (over > 1 && across > 1) wrong.push(name(a) + " lies on " + name(b));
			}));
		}
	for (const e of document.querySelectorAll("svg, [role=img]"))
		if (e.getAttribute("role") !== "img" || !e.getAttribute("aria-label")) wrong.push(name(e) + " has no text for screen readers");
	for (const e of document.querySelectorAll("th"))
		if (!e.scope) wrong.push(name(e) + " has no scope");
	const rgb = s => s.match(/[0-9.]+/g).map(Number);
	const light = c => { const [r, g, b] = c.map(v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
	const behind = e => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c.length < 4 || c[3] > 0) return c.slice(0, 3); } return [255, 255, 255]; };
	const texts = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
	for (let n; (n = texts.nextNode());) {
		const e = n.parentElement;
		if (!n.textContent.trim() || e.closest("svg")) continue;
		const [a, b] = [light(rgb(getComputedStyle(e).color).slice(0, 3)), light(behind(e))].sort((x, y) => y - x);
		if ((a + 0.05) / (b + 0.05) < 4.5) wrong.push(name(e) + " has a contrast of " + ((a + 0.05) / (b + 0.05)).toFixed(2));
	}
	return [...new Set(wrong)];
})()`
