package openapitest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
)

// checkRules looks at what no schema can say: how the parts of an answer have
// to do with each other, and with the request.
func checkRules(path string, x Exchange) error {
	body, ok := decode(x.Body)
	if !ok {
		return nil // HEAD, or checkResponse says so
	}
	if x.Status >= http.StatusBadRequest {
		return checkError(body, x)
	}
	if x.Request.Method != http.MethodPost {
		return nil
	}
	if strings.HasPrefix(path, "/account/") {
		return nil
	}
	return errors.Join(checkReplay(x), checkResolution(path, body, x), checkData(path, body), checkLead(x.Body), checkEcho(path, body, x))
}

func decode(text []byte) (map[string]any, bool) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var body map[string]any
	return body, d.Decode(&body) == nil
}

// checkError holds the error object against the answer it came in.
func checkError(body map[string]any, x Exchange) error {
	e := body
	if inner, nested := body["error"].(map[string]any); nested {
		e = inner
	}
	var wrong []error
	if got, want := fmt.Sprint(e["status"]), fmt.Sprint(x.Status); got != want {
		wrong = append(wrong, fmt.Errorf("error.status is %s in an answer with status %s", got, want))
	}
	if got, want := e["type"], "urn:leadetl:error:"+fmt.Sprint(e["code"]); got != want {
		wrong = append(wrong, fmt.Errorf("error.type is %v, want %s", got, want))
	}
	if got, want := e["request_id"], x.Header.Get("X-Request-Id"); got != want {
		wrong = append(wrong, fmt.Errorf("error.request_id is %v, X-Request-Id %s", got, want))
	}
	if got, want := e["instance"], x.Request.URL.EscapedPath(); got != want {
		wrong = append(wrong, fmt.Errorf("error.instance is %v, the path %s", got, want))
	}
	_, told := e["shortfall"]
	if want := e["code"] == "insufficient_credits"; told != want {
		wrong = append(wrong, fmt.Errorf("error.shortfall is there: %t, with code %v", told, e["code"]))
	}
	return errors.Join(wrong...)
}

// checkReplay holds a replay to its promise to cost nothing.
func checkReplay(x Exchange) error {
	if spent := x.Header.Get("X-Credits-Spent"); x.Header.Get("Idempotent-Replayed") != "" && spent != "0" {
		return fmt.Errorf("a replay spent %q credits", spent)
	}
	return nil
}

// checkResolution looks for the callback address of the request, and for when
// to ask again.
func checkResolution(path string, body map[string]any, x Exchange) error {
	resolution, is := body["resolution"].(map[string]any)
	if !is {
		return nil // checkResponse says whether one has to be there
	}
	if isResult(path) {
		unfinished := resolution["status"] == "queued" || resolution["status"] == "processing"
		if unfinished != (x.Header.Get("Retry-After") != "") {
			return fmt.Errorf("status %v with Retry-After %q", resolution["status"], x.Header.Get("Retry-After"))
		}
		return nil
	}
	sent, _ := decode(x.Sent)
	if got, want := resolution["callback_url"], sent["callback_url"]; got != want {
		return fmt.Errorf("resolution.callback_url does not repeat the request's")
	}
	return nil
}

func isResult(path string) bool { return strings.HasSuffix(path, "/result") }

// checkData holds data to the lead beside it.
func checkData(path string, body map[string]any) error {
	data, told := body["data"].(bool)
	lead, is := body["lead"].(map[string]any)
	if !told || !is || isResult(path) {
		return nil
	}
	holds := false
	for _, v := range lead {
		if list, is := v.([]any); !is || len(list) > 0 {
			holds = true
		}
	}
	if data != holds {
		return fmt.Errorf("data is %t, and that lead holds something is %t", data, holds)
	}
	return nil
}

// checkLead looks for texts that are empty where they should be left out.
func checkLead(text []byte) error {
	body, _ := decode(text)
	var wrong []error
	var walk func(pointer string, v any)
	walk = func(pointer string, v any) {
		switch v := v.(type) {
		case string:
			if v == "" {
				wrong = append(wrong, fmt.Errorf("%s is empty; it should be left out", pointer))
			}
		case map[string]any:
			for name, member := range v {
				walk(pointer+"/"+name, member)
			}
		case []any:
			for i, item := range v {
				walk(fmt.Sprintf("%s/%d", pointer, i), item)
			}
		}
	}
	walk("/lead", body["lead"])
	return errors.Join(wrong...)
}

// checkEcho holds payload to the request: the same, but for the scheme that
// network_to_phone takes off the address and what result calls leave out. A
// replay echoes the first request, in another spelling perhaps.
func checkEcho(path string, body map[string]any, x Exchange) error {
	sent, ok := decode(x.Sent)
	payload, is := body["payload"].(map[string]any)
	if !ok || !is || x.Header.Get("Idempotent-Replayed") != "" {
		return nil
	}
	switch {
	case isResult(path):
		sent = map[string]any{"resolution_id": sent["resolution_id"]}
	case strings.HasSuffix(path, "/network_to_phone"):
		sent["network_url"] = payload["network_url"]
	}
	if !reflect.DeepEqual(payload, sent) {
		return errors.New("payload does not repeat the request")
	}
	return nil
}
