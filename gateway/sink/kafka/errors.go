package kafka

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/ordergrid/ordergrid/gateway/sink"
)

// explain classifies what the client returned: fenced, permanent, or to be tried again.
func (t *Target) explain(err error) error {
	var done *sink.PermanentError
	if err == nil || errors.As(err, &done) || errors.Is(err, sink.ErrFenced) {
		return err
	}
	if errors.Is(err, kerr.InvalidProducerEpoch) || errors.Is(err, kerr.ProducerFenced) {
		return fmt.Errorf("%w (or its transaction took longer than %s, and the broker aborted it): %w", sink.ErrFenced, transactionTimeout, err)
	}
	cause := err
	if last := t.last.get(); last != nil && !strings.Contains(err.Error(), last.Error()) {
		cause = fmt.Errorf("%w; last connection: %w", err, last)
	}
	if what, remedy := t.permanent(cause); what != "" {
		return &sink.PermanentError{What: what, Remedy: remedy, Err: cause}
	}
	return fmt.Errorf("kafka %s: %w", strings.Join(t.cfg.Brokers, ","), cause)
}

// permanent returns what an administrator has to change; "" if nothing.
func (t *Target) permanent(err error) (what, remedy string) {
	brokers := "kafka " + strings.Join(t.cfg.Brokers, ",")
	var unverified *tls.CertificateVerificationError
	var authority x509.UnknownAuthorityError
	var record tls.RecordHeaderError
	var alert tls.AlertError
	switch {
	case errors.Is(err, kerr.SaslAuthenticationFailed):
		return brokers, "allowed: credentials that the broker knows; correct the files of --sasl-user-file and --sasl-password-file, they are read again at each attempt"
	case errors.Is(err, kerr.UnsupportedSaslMechanism), errors.Is(err, kerr.IllegalSaslState):
		return brokers, "allowed: a mechanism that the listener has enabled (--sasl-mechanism)"
	case errors.Is(err, kerr.TopicAuthorizationFailed), errors.Is(err, kerr.TransactionalIDAuthorizationFailed), errors.Is(err, kerr.ClusterAuthorizationFailed):
		return brokers, fmt.Sprintf("allow this user Describe, Read and Write on the topics %s and %s%s, and Describe and Write on the transactional ids ordergrid.%s.%s.*",
			t.cfg.Topic, t.cfg.Topic, positionsSuffix, t.cfg.Grid, t.cfg.Sink)
	case errors.As(err, &unverified), errors.As(err, &authority):
		return brokers, "allowed: a broker whose certificate --kafka-ca has signed for the name that it is dialled at (--kafka-tls-name)"
	case errors.As(err, &record):
		return brokers, "the listener does not speak TLS: leave out --kafka-ca, or use the broker's TLS listener"
	case errors.As(err, &alert):
		return brokers, "the broker refused the TLS handshake: it may require --kafka-cert and --kafka-key"
	case errors.Is(err, kerr.MessageTooLarge):
		return "an order with its headers", "raise max.message.bytes of the topic " + t.cfg.Topic
	case errors.Is(err, kerr.InvalidTransactionTimeout):
		return "transaction timeout " + transactionTimeout.String(), "raise transaction.max.timeout.ms of the brokers to 60000 or more"
	}
	return "", ""
}
