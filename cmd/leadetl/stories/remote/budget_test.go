//go:build unix

package remote

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
	"github.com/leadetl/leadetl/internal/testkit/badservice"
	"github.com/leadetl/leadetl/sinks"
)

// budgetRows is how much work there is: more than any budget of the test.
const budgetRows = 300

// TestRemoteBudgets runs jobs with 64 calls in flight into budgets of 0 to 200
// credits and calls. None is ever passed, by the service's own books, and
// each is used up, however often the job was killed on the way: what is left
// is no more than the calls that may have been billed.
//
// With LEADETL_KILLS every number is tried, else a few, and under -short the first four.
func TestRemoteBudgets(t *testing.T) {
	t.Parallel()
	testRemoteBudgets(t, clitest.InFolder, 0, 1, 2, 63, 64, 65, 128, 199, 200)
}

// TestRemoteBudgetsOnS3 is TestRemoteBudgets with the state on S3.
func TestRemoteBudgetsOnS3(t *testing.T) {
	t.Parallel()
	testRemoteBudgets(t, clitest.OnS3(t), 0, 1, 64, 199)
}

func testRemoteBudgets(t *testing.T, keep clitest.Keeper, budgets ...int) {
	if os.Getenv("LEADETL_KILLS") != "" {
		budgets = budgets[:0]
		for n := range 201 {
			budgets = append(budgets, n)
		}
	} else if testing.Short() {
		budgets = budgets[:4]
	}
	random := rand.New(rand.NewPCG(remoteKillSeed, 2))
	for _, flag := range []string{"--max-credits", "--max-calls"} {
		for i, n := range budgets {
			kills := 0
			if i%4 == 3 {
				kills = 3
			}
			storm := i%2 == 1
			t.Run(fmt.Sprintf("%s %d, %d kills, storm %v", flag, n, kills, storm), func(t *testing.T) {
				testBudget(t, flag, int64(n), kills, storm, random, keep)
			})
		}
	}
}

func testBudget(t *testing.T, flag string, n int64, kills int, storm bool, random *rand.Rand, keep clitest.Keeper) {
	o := badservice.DefaultOptions()
	o.Matched, o.Seed = 1, uint64(n) // each is a credit
	if storm {
		o.Faults = badservice.Storm()
		o.Faults.Limited = 0 // takes time alone
	}
	if kills > 0 {
		o.Latency = 20 * time.Millisecond
	}
	s, url := clitest.StartService(t, o)
	j := clitest.NewRemoteJob(t, "ip_to_company", url, clitest.AddressList(budgetRows), "--concurrency", "64", "--set", "rows_per_part=100", "--idempotent", flag, strconv.FormatInt(n, 10))
	keep(j)
	within := func(when string) {
		t.Helper()
		if spent := int64(len(s.Ledger())); spent > n || s.Spent() > n {
			t.Fatalf("%s: %d answers are billed, %d credits, of %d", when, spent, s.Spent(), n)
		}
	}
	for range kills {
		seen := s.Seen()
		p := j.Start()
		most := time.Now().Add(time.Duration(random.IntN(1000)) * time.Millisecond)
		calls := random.IntN(int(n)/2 + 1)
		clitest.Until(t, "it is time", func() bool { return s.Seen() > seen+calls || p.Ended() || time.Now().After(most) })
		p.Kill()
		within("after a kill")
	}
	j.Within(cli.ExitBudget)
	within("stopped")
	if storm || kills > 0 {
		s.SetFaults(badservice.Faults{})
		j.Within(cli.ExitBudget)
		within("stopped again")
	}
	// What may have been billed counts too.
	if billed, unknown := int64(len(s.Ledger())), int64(len(j.Unknown())); billed+unknown < n || !storm && kills == 0 && billed != n {
		t.Errorf("%d of %d are used, %d more may be; %v", billed, n, unknown, s.Fates())
	}
	for key, times := range s.BilledKeys() {
		if times != 1 {
			t.Errorf("a key is billed %d times: %v", times, clitest.CallsOf(s, key))
		}
	}
	j.Flags = append(j.Flags, flag, strconv.Itoa(budgetRows)) // more of it
	j.Within(cli.ExitDone)
	if len(s.Ledger()) != budgetRows || len(clitest.ReadDataset(t, j.Path("out")).Rows) != budgetRows {
		t.Errorf("with more of it, %d are billed of %d rows", len(s.Ledger()), budgetRows)
	}
}

// TestRemoteAllowance: jobs of one state stop together at the credits of some days, whatever
// they ask for and whoever was killed, and cost says what they have paid.
func TestRemoteAllowance(t *testing.T) {
	for name, keep := range map[string]clitest.Keeper{"in a folder": clitest.InFolder, "on S3": clitest.OnS3(t)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := badservice.DefaultOptions()
			o.Matched, o.Latency = 1, 5*time.Millisecond
			s, url := clitest.StartService(t, o)
			first := clitest.NewRemoteJob(t, "ip_to_company", url, clitest.AddressList(100), "--concurrency", "16", "--idempotent")
			keep(first)
			p := first.Start()
			clitest.Until(t, "it has bought some", func() bool { return s.Spent() > 20 || p.Ended() })
			p.Kill()
			first.Within(cli.ExitDone)
			second := clitest.NewRemoteJob(t, "deanonymization", url, clitest.AddressList(100), "--concurrency", "16", "--idempotent", "--set", "max_credits_per=30d=250")
			second.State, second.Store = first.State, first.Store
			second.Within(cli.ExitBudget)
			if s.Spent() > 250 || s.Spent() < 248 { // 1 or 3 credits each
				t.Errorf("%d credits are spent of 250", s.Spent())
			}
			stopped := s.Spent()
			p = second.Start("--set", "max_credits_per=1d=250")
			if code := p.Code(); code != cli.ExitBudget || !strings.Contains(p.Said.String(), "max_credits_per 1d=250") || s.Spent() != stopped {
				t.Errorf("exit code %d and %d credits:\n%s", code, s.Spent(), clitest.Tail(p.Said.String()))
			}
			second.Flags = append(second.Flags, "--set", "max_credits_per=30d=400")
			second.Within(cli.ExitDone)
			cost := clitest.StartProgram(t, clitest.OnStore(second.Store, "cost", "--json", second.State[1])...)
			if code := cost.Code(); code != cli.ExitDone || strings.Count(cost.Printed.String(), `"answers":100,`) != 2 ||
				!strings.Contains(cost.Printed.String(), `"credits":100}`) || !strings.Contains(cost.Printed.String(), fmt.Sprintf(`"credits":%d}`, s.Spent()-100)) {
				t.Errorf("%d credits are spent; exit code %d, cost says\n%s", s.Spent(), code, cost.Printed.String())
			}
		})
	}
}

// TestRemoteNewKeys: a job that has finished a dataset stops before the first call if too many
// keys of its list are new, also after it was killed; its first dataset and a resumed one do not.
func TestRemoteNewKeys(t *testing.T) {
	for name, keep := range map[string]clitest.Keeper{"in a folder": clitest.InFolder, "on S3": clitest.OnS3(t)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := badservice.DefaultOptions()
			o.Latency = 5 * time.Millisecond
			s, url := clitest.StartService(t, o)
			j := clitest.NewRemoteJob(t, "ip_to_company", url, clitest.AddressList(100), "--concurrency", "4", "--idempotent", "--set", "rows_per_part=20", "--set", "name=visitors")
			keep(j)
			limit := []string{"--set", "max_new_keys=10%"}
			j.Run(cli.ExitDone, limit...) // all keys are new, and nothing was finished before
			night := func(rows int, out string) []string {
				list := j.Path(out + ".csv")
				if err := os.WriteFile(list, []byte(clitest.AddressList(rows)), 0o600); err != nil {
					t.Fatal(err)
				}
				j.In = list
				return append([]string{"--out", j.Path(out)}, limit...)
			}
			j.Run(cli.ExitDone, night(110, "second")...) // 10 of 110 are new
			seen := s.Seen()
			flags := append(night(200, "second"), "--overwrite")
			p := j.Start(flags...)
			if code := p.Code(); code != cli.ExitBudget || s.Seen() != seen {
				t.Errorf("of a job that replaces its dataset: exit code %d, %d calls", code, s.Seen()-seen)
			}
			if _, err := os.Stat(filepath.Join(j.Path("second"), sinks.SuccessName)); err != nil {
				t.Errorf("the dataset is gone although it is not replaced: %v", err)
			}
			flags = night(200, "third")
			p = j.Start(flags...)
			if code := p.Code(); code != cli.ExitBudget || s.Seen() != seen || !strings.Contains(p.Said.String(), "90 of 200 keys have no stored answer, more than max_new_keys 10%; no call was made") {
				t.Errorf("exit code %d, %d calls:\n%s", code, s.Seen()-seen, clitest.Tail(p.Said.String()))
			}
			plan := clitest.StartProgram(t, append([]string{"plan"}, j.Args(flags...)[1:]...)...)
			if code := plan.Code(); code != cli.ExitDone || !strings.Contains(plan.Printed.String(), "max_new_keys is not enough") {
				t.Errorf("plan: exit code %d\n%s", code, plan.Printed.String())
			}
			p = j.Start(append(flags, "--set", "max_new_keys=50%")...)
			clitest.Until(t, "some parts are done", func() bool { return s.Seen() > seen+60 || p.Ended() })
			p.Kill()
			j.Run(cli.ExitDone, append(flags, "--set", "max_new_keys=50%")...)
			if n := len(s.BilledKeys()); n != 200 || len(s.Ledger()) != 200 {
				t.Errorf("%d keys are billed %d times, want 200", n, len(s.Ledger()))
			}
		})
	}
}
