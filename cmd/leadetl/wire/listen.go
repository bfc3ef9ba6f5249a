package wire

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"syscall"
)

// ListenError says why the address of a flag cannot be used to listen.
func ListenError(flag, address string, err error) error {
	why := err
	var dns *net.DNSError
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		why = errors.New("the address is in use by another program; choose another port, or 0 for any free one")
	case errors.Is(err, syscall.EADDRNOTAVAIL), errors.As(err, &dns):
		why = errors.New("this machine does not have the address")
	case errors.Is(err, syscall.EACCES):
		why = errors.New("ports below 1024 need rights that this program does not have; choose a higher port")
	}
	return fmt.Errorf("--%s %s: %w", flag, address, why)
}

// FolderError says why the folder of a flag cannot be used.
func FolderError(flag string, err error) error {
	var path *fs.PathError
	if errors.As(err, &path) && errors.Is(err, syscall.ENOTDIR) {
		return fmt.Errorf("--%s: %s is a file; name a folder", flag, path.Path)
	}
	return fmt.Errorf("--%s: %w", flag, err)
}
