package downstream

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ordergrid/ordergrid/e2e/artifact"
	"github.com/ordergrid/ordergrid/internal/pki"
	"github.com/ordergrid/ordergrid/internal/proc"
)

// Kafka is a broker of Apache Kafka: one process that is broker and controller, with a listener of each kind. Its
// addresses and its data stay when it is killed and started again.
type Kafka struct {
	Address     string // plain
	SASLAddress string // plain TCP with SASL: User and Password, by PLAIN or SCRAM
	TLSAddress  string
	User        string
	Password    string
	CA          string // PEM file of the authority of the certificate at TLSAddress

	host      string
	dir       string
	classpath string
	ports     proc.HeldPorts
	p         *process
}

const (
	kafkaFormat = time.Minute
	kafkaReady  = 90 * time.Second
)

// StartKafka starts a broker with its data below dir.
func StartKafka(ctx context.Context, dir string) (*Kafka, error) {
	return StartKafkaAt(ctx, dir, "127.0.0.1")
}

// StartKafkaAt is StartKafka at another IP address of this machine.
func StartKafkaAt(ctx context.Context, dir, host string) (*Kafka, error) {
	k := &Kafka{host: host, dir: dir, User: "ordergrid", Password: "downstream-secret"}
	var err error
	if k.classpath, err = artifact.Classpath(ctx, "e2e/downstream/java/pom.xml", "43 MB"); err != nil {
		return nil, err
	}
	var controller string
	for _, at := range []*string{&k.Address, &k.SASLAddress, &k.TLSAddress, &controller} {
		if *at, err = k.ports.Take(host, 0); err != nil {
			k.ports.Release()
			return nil, err
		}
	}
	err = k.configure(controller)
	if err == nil {
		err = k.format(ctx)
	}
	if err == nil {
		err = k.Start(ctx)
	}
	if err != nil {
		k.ports.Release()
		return nil, err
	}
	return k, nil
}

func (k *Kafka) properties() string { return filepath.Join(k.dir, "server.properties") }

// configure writes the broker's configuration and its certificate.
func (k *Kafka) configure(controller string) error {
	authority, err := pki.Load(filepath.Join(k.dir, "pki"), "downstream")
	if err != nil {
		return err
	}
	files, err := authority.Save(filepath.Join(k.dir, "pki"), "kafka", pki.Identity{User: "kafka", Names: []string{"localhost"}, Addrs: []netip.Addr{netip.MustParseAddr(k.host)}})
	if err != nil {
		return err
	}
	k.CA = files.CA
	cert, err1 := os.ReadFile(files.Cert)
	key, err2 := os.ReadFile(files.Key)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	_, pair, err := pki.ParsePair(cert, key)
	if err != nil {
		return err
	}
	der, err := x509.MarshalPKCS8PrivateKey(pair) // the one form that Java reads
	if err != nil {
		return err
	}
	store := filepath.Join(k.dir, "pki", "kafka.pem")
	if err := os.WriteFile(store, append(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), cert...), 0o600); err != nil {
		return err
	}
	listeners := fmt.Sprintf("PLAINTEXT://%s,SASL_PLAINTEXT://%s,SSL://%s", k.Address, k.SASLAddress, k.TLSAddress)
	lines := []string{
		"process.roles=broker,controller", "node.id=1", "controller.quorum.voters=1@" + controller,
		"listeners=" + listeners + ",CONTROLLER://" + controller, "advertised.listeners=" + listeners,
		"listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,SSL:SSL,CONTROLLER:PLAINTEXT",
		"controller.listener.names=CONTROLLER", "inter.broker.listener.name=PLAINTEXT",
		"log.dirs=" + filepath.Join(k.dir, "data"),
		"broker.session.timeout.ms=3000", "broker.heartbeat.interval.ms=500",
		"num.partitions=1", "auto.create.topics.enable=false", "group.initial.rebalance.delay.ms=0",
		"offsets.topic.num.partitions=1", "offsets.topic.replication.factor=1",
		"transaction.state.log.num.partitions=4", "transaction.state.log.replication.factor=1", "transaction.state.log.min.isr=1",
		"ssl.keystore.type=PEM", "ssl.keystore.location=" + store,
		"sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
		"listener.name.sasl_plaintext.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_" + k.User + "=\"" + k.Password + "\";",
		"listener.name.sasl_plaintext.scram-sha-256.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;",
		"listener.name.sasl_plaintext.scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;",
	}
	return os.WriteFile(k.properties(), []byte(strings.Join(lines, "\n")+"\n"), 0o600)
}

func (k *Kafka) java(main string, args ...string) []string {
	return append([]string{"-Xms128m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:-UsePerfData", "-Djava.net.preferIPv4Stack=true", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
		"-cp", k.classpath, main}, args...)
}

// format makes the data directory, with the user of SCRAM.
func (k *Kafka) format(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, kafkaFormat)
	defer cancel()
	args := []string{"format", "--cluster-id", "b3JkZXJncmlkLWthZmthMQ", "--config", k.properties()}
	for _, mechanism := range []string{"SCRAM-SHA-256", "SCRAM-SHA-512"} {
		args = append(args, "--add-scram", fmt.Sprintf("%s=[name=%s,password=%s]", mechanism, k.User, k.Password))
	}
	if said, err := exec.CommandContext(ctx, "java", k.java("kafka.tools.StorageTool", args...)...).CombinedOutput(); err != nil {
		return fmt.Errorf("format the storage of Kafka: %w\n%s", err, said)
	}
	return nil
}

// Start starts the broker, again after Kill, and returns when it answers.
func (k *Kafka) Start(ctx context.Context) (err error) {
	if k.p, err = startProcess("java", k.java("kafka.Kafka", k.properties())...); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, kafkaReady)
	defer cancel()
	cl, err := kgo.NewClient(kgo.SeedBrokers(k.Address), kgo.RetryTimeout(time.Second))
	if err != nil {
		return err
	}
	defer cl.Close()
	for {
		err := cl.Ping(ctx)
		switch {
		case err == nil:
			return nil
		case k.p.ended():
			return fmt.Errorf("kafka ended before it was ready\n%s", k.p.said.String())
		case ctx.Err() != nil:
			k.Kill()
			return fmt.Errorf("kafka does not answer after %s: %w\n%s", kafkaReady, err, k.p.said.String())
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// Kill ends the broker as a lost machine does. Start continues with its data.
func (k *Kafka) Kill() { k.p.kill() }

// Stop ends the broker for good.
func (k *Kafka) Stop() {
	k.p.stop()
	k.ports.Release()
}

// PID is that of the broker's process.
func (k *Kafka) PID() int { return k.p.cmd.Process.Pid }

// Log is the end of what the broker printed.
func (k *Kafka) Log() string { return k.p.said.String() }
