package program

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/leadetl/leadetl/cmd/leadetl/admincmd"
	"github.com/leadetl/leadetl/cmd/leadetl/answerscmd"
	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/findcmd"
	"github.com/leadetl/leadetl/cmd/leadetl/providercmd"
	"github.com/leadetl/leadetl/cmd/leadetl/runcmd"
	"github.com/leadetl/leadetl/cmd/leadetl/servecmd"
	"github.com/leadetl/leadetl/cmd/leadetl/workercmd"
)

// Execute runs the command line and returns the exit code.
func Execute(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) int {
	checked := cli.NewOutput(out)
	root := NewRoot(cli.Streams{In: in, Out: checked, Err: errOut})
	root.SetArgs(args)
	c, err := root.ExecuteContextC(ctx)
	if err == nil {
		err = checked.Err()
	}
	if err != nil {
		cli.ReportError(c, err, errOut)
	}
	return cli.ExitCode(err)
}

// NewRoot is the tree of all commands.
func NewRoot(std cli.Streams) *cobra.Command {
	root := &cobra.Command{
		Use:   "leadetl",
		Short: "Turn lists of identifiers into lead data",
		Long: `leadetl reads lists of emails, profile addresses, IP addresses or keyword
searches from CSV, JSON Lines or Parquet, on local disk or S3, resolves each,
normalizes hashed emails, phones and companies, and writes a Parquet dataset that
loads everywhere. leadetl serve answers the same questions over HTTP.`,
	}
	root.AddCommand(runcmd.NewRunCommand(std), runcmd.NewPlanCommand(std), runcmd.NewDoctorCommand(std), runcmd.NewSurveyCommand(std), runcmd.NewPartCommand(std), runcmd.NewFinishCommand(std), newVerifyCommand(std), newChangesCommand(std), newSchemaCommand(std), newReportCommand(std), newHeadCommand(std), newExportCommand(std), findcmd.NewCommand(std), newCostCommand(std), newSampleCommand(std), servecmd.NewCommand(std), workercmd.NewCommand(std), admincmd.NewCommand(std), newDirectoryCommand(std), providercmd.NewCommand(std), answerscmd.NewCommand(std), newVersionCommand(std))
	cli.Setup(root, std, versionText(), runcmd.PrintSettings)
	return root
}
