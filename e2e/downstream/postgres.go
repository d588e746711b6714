package downstream

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/ordergrid/ordergrid/internal/proc"
)

// PostgresSuperuser is the user that initdb makes, and the name of a database.
const PostgresSuperuser = "postgres"

// PostgresOptions are of a server.
type PostgresOptions struct {
	// Host is an IP address of this machine to listen at, for clients anywhere, with their passwords; "" is 127.0.0.1.
	Host     string
	Settings map[string]string // of postgresql.conf
	// Cert and Key are PEM files for TLS; without them the server has none.
	Cert, Key string
}

// Postgres is a PostgreSQL server of its own, on a port of the loopback interface or of PostgresOptions.Host, with passwords (SCRAM).
type Postgres struct {
	Host     string
	Port     int
	Password string // of PostgresSuperuser
	// Dir is a directory that the server's user may enter and write.
	Dir string

	bin   string
	as    *syscall.Credential // nil: the user of this process
	port  proc.HeldPorts
	cmd   *exec.Cmd
	ended chan struct{}
	log   *proc.Tail
}

// FindPostgres returns the directory of the server's programs, or why there is none.
func FindPostgres() (string, error) {
	dirs, _ := filepath.Glob("/usr/lib/postgresql/*/bin") // the pattern is valid
	slices.Sort(dirs)
	if path, err := exec.LookPath("initdb"); err == nil {
		dirs = append(dirs, filepath.Dir(path))
	}
	for _, dir := range slices.Backward(dirs) {
		if has(dir, "initdb", "postgres", "pg_isready", "psql") {
			return dir, nil
		}
	}
	return "", errors.New("no PostgreSQL server on this machine (Debian: apt-get install postgresql-15)")
}

func has(dir string, programs ...string) bool {
	for _, name := range programs {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return false
		}
	}
	return true
}

// NewPostgres makes an empty database cluster and starts its server. Remove ends it.
func NewPostgres(bin string, o PostgresOptions) (_ *Postgres, err error) {
	p := &Postgres{bin: bin, Password: rand.Text()}
	if p.Dir, err = os.MkdirTemp("", "ordergrid-postgres-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			p.Remove()
		}
	}()
	address, err := p.port.Take(cmp.Or(o.Host, "127.0.0.1"), 0)
	if err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	p.Host = host
	if p.Port, err = strconv.Atoi(port); err != nil {
		return nil, err
	}
	if err := p.initialize(&o); err != nil {
		return nil, err
	}
	return p, p.Start()
}

// initialize runs initdb, which refuses root: then the server's user is postgres, or else nobody.
func (p *Postgres) initialize(o *PostgresOptions) error {
	if os.Getuid() == 0 {
		account, err := user.Lookup("postgres")
		if err != nil {
			account, err = user.Lookup("nobody")
		}
		if err != nil {
			return err
		}
		uid, uidErr := strconv.ParseUint(account.Uid, 10, 32)
		gid, gidErr := strconv.ParseUint(account.Gid, 10, 32)
		if err := errors.Join(uidErr, gidErr); err != nil {
			return err
		}
		p.as = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
	passwordFile := filepath.Join(p.Dir, "password")
	if err := os.WriteFile(passwordFile, []byte(p.Password), 0o600); err != nil {
		return err
	}
	conf := []string{"listen_addresses = '" + p.Host + "'", "port = " + strconv.Itoa(p.Port), "unix_socket_directories = '" + p.Dir + "'", "max_connections = 40", "log_min_messages = warning", "timezone = UTC"}
	for name, value := range o.Settings {
		conf = append(conf, name+" = '"+value+"'")
	}
	if o.Cert != "" {
		conf = append(conf, "ssl = on", "ssl_cert_file = '"+p.Dir+"/server.crt'", "ssl_key_file = '"+p.Dir+"/server.key'")
		for name, from := range map[string]string{"server.crt": o.Cert, "server.key": o.Key} {
			raw, err := os.ReadFile(from)
			if err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(p.Dir, name), raw, 0o600); err != nil {
				return err
			}
		}
	}
	if err := p.own(); err != nil {
		return err
	}
	initdb := exec.Command(filepath.Join(p.bin, "initdb"), "-D", p.data(), "-U", PostgresSuperuser, "-A", "scram-sha-256", "--pwfile="+passwordFile, "-E", "UTF8", "--locale=C", "--no-sync")
	initdb.Dir, initdb.SysProcAttr = p.Dir, &syscall.SysProcAttr{Credential: p.as}
	if out, err := initdb.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, out)
	}
	file, err := os.OpenFile(filepath.Join(p.data(), "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteString("\n" + strings.Join(conf, "\n") + "\n")
	if err = errors.Join(err, file.Close()); err != nil || o.Host == "" {
		return err
	}
	rules, err := os.OpenFile(filepath.Join(p.data(), "pg_hba.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = rules.WriteString("\nhost all all all scram-sha-256\n")
	return errors.Join(err, rules.Close())
}

func (p *Postgres) data() string { return filepath.Join(p.Dir, "data") }

// own gives the directory and its files to the server's user.
func (p *Postgres) own() error {
	if p.as == nil {
		return nil
	}
	return filepath.WalkDir(p.Dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return p.Own(path)
	})
}

// Own gives a file or directory to the server's user.
func (p *Postgres) Own(path string) error {
	if p.as == nil {
		return nil
	}
	return os.Chown(path, int(p.as.Uid), int(p.as.Gid))
}

// postgresPatience is how long a server may take to recover and answer.
const postgresPatience = 20 * time.Second

// Start starts the server, which recovers if it was killed, and waits until it answers.
func (p *Postgres) Start() error {
	limit := time.Now().Add(postgresPatience)
	for {
		again, err := p.try(limit)
		if err == nil || !again || time.Now().After(limit) {
			return err
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// try starts the server once. again: processes of the one before have not ended.
func (p *Postgres) try(limit time.Time) (again bool, err error) {
	p.log, p.ended = &proc.Tail{}, make(chan struct{})
	p.cmd = exec.Command(filepath.Join(p.bin, "postgres"), "-D", p.data())
	p.cmd.Dir, p.cmd.Stderr, p.cmd.Stdout = p.Dir, p.log, p.log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: p.as, Setpgid: true, Pdeathsig: syscall.SIGQUIT}
	p.cmd.WaitDelay = time.Second
	if err := p.cmd.Start(); err != nil {
		return false, err
	}
	go func(cmd *exec.Cmd, ended chan struct{}) {
		_ = cmd.Wait() // how it ended is in its log
		close(ended)
	}(p.cmd, p.ended)
	refused := "not asked"
	for time.Now().Before(limit) {
		select {
		case <-p.ended:
			text := p.log.String()
			return strings.Contains(text, "still in use") || strings.Contains(text, "lock file"), fmt.Errorf("postgres ended: %s", text)
		case <-time.After(20 * time.Millisecond):
		}
		ready := exec.Command(filepath.Join(p.bin, "pg_isready"), "-h", p.Host, "-p", strconv.Itoa(p.Port))
		out, err := ready.CombinedOutput()
		if err == nil {
			return false, nil
		}
		refused = fmt.Sprintf("%v: %s", err, out)
	}
	_ = p.Kill() // the log says more
	return false, fmt.Errorf("postgres does not answer after %v: %s: %s", postgresPatience, refused, p.log.String())
}

// Stop ends the server at once, in order: its connections end, nothing has to be recovered.
func (p *Postgres) Stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGINT); err != nil {
		return err
	}
	select {
	case <-p.ended:
		return nil
	case <-time.After(postgresPatience):
		return errors.Join(fmt.Errorf("postgres has not ended after %v: %s", postgresPatience, p.log.String()), p.Kill())
	}
}

// PIDs are those of the server, and of the processes that it has at the moment, such as one for each connection.
func (p *Postgres) PIDs() ([]int, error) {
	pid := p.cmd.Process.Pid
	pids := []int{pid}
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	for _, field := range bytes.Fields(children) {
		if child, err := strconv.Atoi(string(field)); err == nil {
			pids = append(pids, child)
		}
	}
	return pids, nil
}

// Kill kills all processes of the server with SIGKILL, as a power failure would end them.
func (p *Postgres) Kill() error {
	pids, err := p.PIDs()
	if err != nil {
		return err
	}
	killed := p.cmd.Process.Kill()
	for _, child := range pids[1:] {
		_ = syscall.Kill(child, syscall.SIGKILL) // it may have ended
	}
	<-p.ended
	if errors.Is(killed, os.ErrProcessDone) {
		return nil
	}
	return killed
}

// Remove ends the server and removes its data.
func (p *Postgres) Remove() {
	if p.cmd != nil {
		_ = p.Kill() // it may have ended
	}
	p.port.Release()
	_ = os.RemoveAll(p.Dir) // in the directory for temporary files
}

// URL is a connection string; parameters as "sslmode=disable".
func (p *Postgres) URL(name, password, database string, parameters ...string) string {
	u := url.URL{Scheme: "postgres", User: url.UserPassword(name, password), Host: net.JoinHostPort(p.Host, strconv.Itoa(p.Port)), Path: "/" + database, RawQuery: strings.Join(parameters, "&")}
	return u.String()
}

// Admin is the connection string of the superuser, without TLS.
func (p *Postgres) Admin() string {
	return p.URL(PostgresSuperuser, p.Password, PostgresSuperuser, "sslmode=disable")
}

// PSQL runs SQL with Debian's client as the superuser and returns its rows, columns separated by "|".
func (p *Postgres) PSQL(ctx context.Context, sql string) (string, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(p.bin, "psql"), "-XAtq", "-v", "ON_ERROR_STOP=1", "-c", sql, p.Admin())
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return "", fmt.Errorf("psql: %s", exit.Stderr)
	}
	return strings.TrimSpace(string(out)), err
}

// Log is the end of what the server reported.
func (p *Postgres) Log() string { return p.log.String() }
