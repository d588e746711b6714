package secure

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"

	"github.com/ordergrid/ordergrid/grid-node/tlsrecord"
)

// ErrPlain means that the other end does not speak TLS.
var ErrPlain = errors.New("the other end does not speak TLS")

// ErrTLS means that the other end speaks TLS and this one does not.
var ErrTLS = errors.New("the other end speaks TLS")

// LooksLikeTLS reports whether buf begins with a TLS record (a handshake or an alert, of a
// version above SSL 3.0) rather than a frame: as a frame's length these three bytes are
// 66,000 or more, out of range for a first frame. It needs three bytes.
func LooksLikeTLS(b []byte) bool {
	return len(b) >= 3 && (b[0] == recordHandshake || b[0] == recordAlert) && b[1] == 3 && b[2] >= 1 && b[2] <= 4
}

const (
	recordAlert     = 21
	recordHandshake = 22
)

// Actionable alerts of RFC 8446, by number.
var alerts = map[tls.AlertError]string{
	42:  "it does not accept the certificate presented: is it signed by an authority that the other end trusts?",
	43:  "it does not accept this kind of certificate: it needs extended key usage clientAuth",
	45:  "the certificate presented has expired",
	46:  "it does not accept the certificate presented",
	48:  "it does not know the authority of the certificate presented: compare the CA files of both ends",
	70:  "it does not speak TLS 1.3",
	116: "it demands a certificate and none was presented",
}

// HandshakeError is a failed handshake, explained for its user.
type HandshakeError struct {
	Why   string
	Cause error // ErrPlain too, if that is what it is
}

func (e *HandshakeError) Error() string { return "TLS: " + e.Why + " (" + e.Cause.Error() + ")" }

// Unwrap returns the cause.
func (e *HandshakeError) Unwrap() error { return e.Cause }

// Explain returns why a handshake failed, from the view of the end that saw err. The
// result is a *HandshakeError; nil stays nil.
func Explain(err error) error {
	if err == nil {
		return nil
	}
	return explain(err)
}

func explain(err error) *HandshakeError {
	var record tls.RecordHeaderError
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	var timeout net.Error
	switch {
	case errors.As(err, &record):
		return &HandshakeError{"it did not send TLS", fmt.Errorf("%w: its first bytes are % x", ErrPlain, record.RecordHeader[:])}
	case remote(err) != "":
		return &HandshakeError{remote(err), err}
	case errors.As(err, &unknown):
		return &HandshakeError{"the other end's certificate is of an authority that the CA file does not have", err}
	case errors.As(err, &name):
		return &HandshakeError{"the other end's certificate is for another name", err}
	case errors.As(err, &invalid):
		return &HandshakeError{"the other end's certificate cannot be used", err}
	case errors.As(err, &timeout) && timeout.Timeout():
		return &HandshakeError{"the handshake was not finished in time", err}
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, net.ErrClosed):
		return &HandshakeError{"the other end closed the connection during the handshake; does it speak TLS?", err}
	}
	return &HandshakeError{"the handshake failed", err}
}

// ExplainRead is Explain for a connection whose handshake this end has finished: the other
// end's verdict on our certificate comes as an alert later. Other errors are returned as
// they are.
func ExplainRead(err error) error {
	if why := remote(err); why != "" {
		return &HandshakeError{why, err}
	}
	return err
}

// remote returns the meaning of an alert of the other end, "" if err is none. Package tls
// does not export the type of received alerts; their texts are those of AlertError.
func remote(err error) string {
	var said string
	var op *net.OpError
	var later *tlsrecord.AlertError
	switch {
	case errors.As(err, &later):
		said = later.Alert.Error()
	case errors.As(err, &op) && op.Op == "remote error":
		said = op.Err.Error()
	default:
		return ""
	}
	for n, text := range alerts {
		if said == n.Error() {
			return text
		}
	}
	return "the other end ended the connection with an alert"
}
