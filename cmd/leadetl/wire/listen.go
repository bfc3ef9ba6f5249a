package wire

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"syscall"
)

// ListenError says why the address of a setting cannot be used to listen.
func ListenError(setting, address string, err error) error {
	why := err
	var dns *net.DNSError
	host, service, malformed := net.SplitHostPort(address)
	_, unknown := net.LookupPort("tcp", service)
	switch {
	case malformed != nil || unknown != nil:
		return fmt.Errorf("%s: %s is not an address; write HOST:PORT", setting, address)
	case errors.Is(err, syscall.EADDRINUSE):
		at := ""
		if host != "" {
			at = " at " + host
		}
		return fmt.Errorf("%s: port %s is in use%s; name another%s", setting, service, at, freeAddress(host))
	case errors.Is(err, syscall.EADDRNOTAVAIL), errors.As(err, &dns):
		why = errors.New("this machine does not have the address")
	case errors.Is(err, syscall.EACCES):
		why = errors.New("ports below 1024 need rights that this program does not have; choose a higher port")
	}
	return fmt.Errorf("%s %s: %w", setting, address, why)
}

// freeAddress names an address of the host whose port is free, "" if there is none. The
// system chooses the port, so it is none that this process listens on.
func freeAddress(host string) string {
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return ""
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return ", such as " + net.JoinHostPort(host, port)
}

// FolderError says why the folder of a flag cannot be used.
func FolderError(flag string, err error) error {
	var path *fs.PathError
	if errors.As(err, &path) && errors.Is(err, syscall.ENOTDIR) {
		return fmt.Errorf("--%s: %s is a file; name a folder", flag, path.Path)
	}
	return fmt.Errorf("--%s: %w", flag, err)
}
