package clitest

import (
	"context"
	"encoding/csv"
	"errors"
	"log"
	"os"
	"strconv"
	"time"

	"github.com/leadetl/leadetl/cmd/leadetl/wire"
	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/resolution"
)

// bought is the program bought of scripts: it stores answers and open calls as
// runs would have. Each line of the file is
//
//	SERVICE,OPERATION,KEY,matched|no_match|refused|unknown|parked,CREDITS,DAY,BODY
//
// where no credits are a price that was not said, and an unknown call keeps its body.
func bought() {
	if len(os.Args) != 3 {
		log.Fatal("usage: bought STATE FILE")
	}
	in, err := os.Open(os.Args[2])
	check(err)
	lines, err := csv.NewReader(in).ReadAll()
	check(err)
	s, err := answers.Open(context.Background(), wire.Answers(os.Args[1]).Of(""), answers.Options{})
	check(err)
	for i, l := range lines {
		check(Buy(s, i, l[0], l[1], l[2], l[3], l[4], l[5], l[6]))
	}
	check(errors.Join(in.Close(), s.Close()))
}

// Buy stores one of the lines of bought.
func Buy(s *answers.Store, i int, service, operation, key, state, credits, day, body string) error {
	ctx := context.Background()
	q := answers.Question{Scope: answers.Scope{Service: service, Operation: resolution.Operation(operation)}, Key: key}
	at, err := time.Parse(time.DateOnly, day)
	if err != nil {
		return err
	}
	const run = "night"
	if _, err := s.Intent(ctx, q, answers.Send{Run: run, At: at}); err != nil {
		return err
	}
	request := "request-" + strconv.Itoa(i+1)
	switch state {
	case string(answers.Unknown):
		return s.Fail(ctx, q, answers.Failure{Reason: "timeout", Request: request, MayBeBilled: true, Body: []byte(body)})
	case string(answers.Parked):
		return s.Park(ctx, q, answers.Parking{Resolution: "resolution-" + strconv.Itoa(i+1), Request: request, Deadline: at.Add(time.Hour)})
	}
	a := answers.Answer{Run: run, Outcome: answers.Outcome(state), Status: 200, Body: []byte(body), Request: request, Received: at}
	if n, err := strconv.ParseInt(credits, 10, 64); err == nil {
		a.Credits = &n
	}
	return s.Put(ctx, q, a)
}
