package server

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ordergrid/ordergrid/gateway/sql"
)

// reported are the parameters whose values clients are told.
var reported = []string{"server_version", "server_encoding", "client_encoding", "application_name", "is_superuser", "session_authorization",
	"DateStyle", "IntervalStyle", "TimeZone", "integer_datetimes", "standard_conforming_strings", "default_transaction_read_only", "in_hot_standby"}

// fixedSettings cannot be changed; some may be set to what they are.
var fixedSettings = map[string]string{
	"server_version": sql.ServerVersion, "server_version_num": "150000", "server_encoding": "UTF8", "is_superuser": "off",
	"integer_datetimes": "on", "in_hot_standby": "off", "transaction_isolation": "read committed", "transaction_read_only": "on",
	"max_index_keys": "32", "max_identifier_length": "63", "block_size": "8192", "lc_collate": "C", "lc_ctype": "C",
	"client_encoding": "UTF8", "standard_conforming_strings": "on", "datestyle": "ISO, MDY", "intervalstyle": "postgres",
	"default_transaction_read_only": "on", "transaction_deferrable": "off", "wal_level": "replica", "backslash_quote": "safe_encoding", "array_nulls": "on",
	"synchronize_seqscans": "on", "max_connections": "200",
}

// freeSettings are kept and have no effect but those that settings.apply names.
var freeSettings = map[string]string{
	"application_name": "", "timezone": "UTC", "statement_timeout": "0", "search_path": `"$user", public`, "extra_float_digits": "1",
	"lock_timeout": "0", "idle_in_transaction_session_timeout": "0", "idle_session_timeout": "0", "client_min_messages": "notice",
	"bytea_output": "hex", "jit": "off", "row_security": "on", "default_transaction_isolation": "read committed", "work_mem": "4MB",
	"session_replication_role": "origin", "default_transaction_deferrable": "off", "lc_messages": "C", "lc_monetary": "C", "lc_numeric": "C", "lc_time": "C",
	"tcp_keepalives_idle": "0", "tcp_keepalives_interval": "0", "tcp_keepalives_count": "0", "escape_string_warning": "on", "enable_seqscan": "on",
	"default_table_access_method": "heap", "geqo": "on", "check_function_bodies": "on", "xmloption": "content", "ssl_renegotiation_limit": "0",
	"plan_cache_mode": "auto", "synchronous_commit": "on", "constraint_exclusion": "partition", "password_encryption": "scram-sha-256", linearizable: "off",
}

// linearizable is the setting with which answers have every order that was acknowledged before
// the statement, at the cost of a read of each partition that its primary confirms.
const linearizable = "ordergrid.linearizable"

// sessionReadOnly is the setting with which statements change nothing.
const sessionReadOnly = "default_transaction_read_only"

func boolOf(value string) (on, ok bool) {
	on, ok = map[string]bool{"on": true, "true": true, "1": true, "yes": true, "off": false, "false": false, "0": false, "no": false}[strings.ToLower(value)]
	return on, ok
}

// settings of a session.
type settings struct {
	user, database string
	values         map[string]string
	initial        map[string]string
	zone           *time.Location
	timeout        time.Duration
	linearizable   bool // ordergrid.linearizable
	writable       bool // changes of regions may be made
	pid            uint32
}

func newSettings(user, database string, pid uint32) *settings {
	return &settings{user: user, database: database, pid: pid, values: maps.Clone(freeSettings), zone: time.UTC}
}

// mayWrite lets statements change regions, until the client says that they shall not.
func (s *settings) mayWrite() {
	s.writable = true
	s.values[sessionReadOnly] = "off"
}

// readOnly reports whether statements may not change anything.
func (s *settings) readOnly() bool { return s.get(sessionReadOnly) != "off" }

// get is a parameter's value; names are of small letters.
func (s *settings) get(name string) string {
	v, _ := s.lookup(name)
	return v
}

func (s *settings) lookup(name string) (string, bool) {
	switch name {
	case "pid":
		return strconv.FormatUint(uint64(s.pid), 10), true
	case "session_authorization":
		return s.user, true
	case "role":
		return "none", true
	case "transaction_read_only":
		name = sessionReadOnly
	}
	if v, ok := s.values[name]; ok {
		return v, true
	}
	v, ok := fixedSettings[name]
	return v, ok
}

// set changes a parameter.
func (s *settings) set(name string, values []string) *sql.Error {
	name = strings.ToLower(name)
	value := strings.Join(values, ", ")
	if len(value) > 1024 {
		return sql.Refuse(sql.StateParameter, "invalid value for parameter \"%.60s\": it has %d bytes, allowed: 1,024", name, len(value))
	}
	if s.writable && (name == sessionReadOnly || name == "transaction_read_only") {
		on, ok := boolOf(value)
		if !ok {
			return sql.Refuse(sql.StateParameter, "parameter \"%s\" requires a Boolean value", name)
		}
		s.values[sessionReadOnly] = map[bool]string{true: "on", false: "off"}[on]
		return nil
	}
	if fixed, ok := fixedSettings[name]; ok {
		if sameSetting(name, fixed, value) {
			return nil
		}
		e := sql.Refuse(sql.StateParameter, "parameter \"%.60s\" is %s, and cannot be changed to \"%.60s\"", name, fixed, value)
		if name == "transaction_read_only" || name == "default_transaction_read_only" {
			e.Hint = "The connection is for reading: its user has not the permission Write, or the listener takes no changes (--postgresql-insecure-writes)."
		}
		return e
	}
	_, known := freeSettings[name]
	if !known && !strings.Contains(name, ".") { // names with a point are of extensions
		return sql.Refuse(sql.StateObject, "unrecognized configuration parameter \"%.60s\"", name)
	}
	if !known && len(s.values) > len(freeSettings)+32 {
		return sql.Refuse(sql.StateConfigurationLimit, "%d parameters of extensions are set, allowed: 32", len(s.values)-len(freeSettings))
	}
	if err := s.apply(name, &value); err != nil {
		return err
	}
	s.values[name] = value
	return nil
}

// sameSetting reports whether a value means what a fixed parameter is.
func sameSetting(name, fixed, value string) bool {
	plain := func(v string) string {
		return strings.NewReplacer("-", "", " ", "", "'", "").Replace(strings.ToLower(v))
	}
	switch v := plain(value); name {
	case "client_encoding":
		return v == "utf8" || v == "unicode"
	case "datestyle":
		return strings.HasPrefix(v, "iso")
	case "standard_conforming_strings", "default_transaction_read_only", "transaction_read_only":
		return v == "on" || v == "true" || v == "1" || v == "yes"
	default:
		return v == plain(fixed)
	}
}

// apply gives effect to those that have one.
func (s *settings) apply(name string, value *string) *sql.Error {
	switch name {
	case "timezone":
		zone, err := sql.LoadZone(*value)
		if err != nil {
			if e, ok := err.(*sql.Error); ok {
				return e
			}
			return sql.Refuse(sql.StateParameter, "%s", err)
		}
		s.zone = zone
		if zone == time.UTC {
			*value = "UTC"
		}
	case linearizable:
		on, ok := boolOf(*value)
		if !ok {
			return sql.Refuse(sql.StateParameter, "parameter \"%s\" requires a Boolean value", name)
		}
		s.linearizable = on
	case "statement_timeout":
		t, ok := milliseconds(*value)
		if !ok {
			return sql.Refuse(sql.StateParameter, "invalid value for parameter \"statement_timeout\": \"%.60s\"", *value)
		}
		s.timeout = t
	}
	return nil
}

// milliseconds reads 500, 500ms, 2s or 1min.
func milliseconds(s string) (time.Duration, bool) {
	s = strings.TrimSpace(s)
	n := strings.TrimRight(s, "abcdefghijklmnopqrstuvwxyz ")
	v, err := strconv.ParseUint(n, 10, 31)
	unit, ok := map[string]time.Duration{"": time.Millisecond, "ms": time.Millisecond, "s": time.Second, "min": time.Minute, "h": time.Hour}[strings.TrimSpace(s[len(n):])]
	return time.Duration(v) * unit, err == nil && ok
}

func (s *settings) restore(name string) *sql.Error {
	v, ok := freeSettings[name]
	if !ok {
		if s.writable && name == sessionReadOnly {
			s.mayWrite()
			return nil
		}
		if _, fixed := fixedSettings[name]; fixed {
			return nil
		}
		if _, there := s.values[name]; there {
			delete(s.values, name)
			return nil
		}
		return sql.Refuse(sql.StateObject, "unrecognized configuration parameter \"%.60s\"", name)
	}
	return s.set(name, []string{v})
}

func (s *settings) reset() {
	app := s.values["application_name"]
	s.values, s.zone, s.timeout = maps.Clone(freeSettings), time.UTC, 0
	s.linearizable = false
	s.values["application_name"] = app
	if s.writable {
		s.mayWrite()
	}
}

// show is SHOW name, or SHOW ALL.
func (s *settings) show(name string) (*sql.Prepared, *sql.Error) {
	if name == "all" {
		rows := [][]string{}
		for _, n := range slices.Sorted(maps.Keys(fixedSettings)) {
			rows = append(rows, []string{n, fixedSettings[n], ""})
		}
		for _, n := range slices.Sorted(maps.Keys(s.values)) {
			rows = append(rows, []string{n, s.values[n], ""})
		}
		return sql.Constant([]string{"name", "setting", "description"}, rows), nil
	}
	v, ok := s.lookup(strings.ToLower(name))
	if !ok {
		return nil, sql.Refuse(sql.StateObject, "unrecognized configuration parameter \"%.60s\"", name)
	}
	for _, r := range reported {
		if strings.EqualFold(r, name) {
			name = r
		}
	}
	return sql.Constant([]string{name}, [][]string{{v}}), nil
}
