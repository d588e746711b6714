package kafka

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/grid-node/match"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// sample is an order of partition p2 as the formats get it.
func sample(t *testing.T) *view { t.Helper(); return sampleOf(t, testgrid.Order("ID-\"7\"", 0)) }

// samples are in FIX 4.2 and in FIX 5.0 SP2.
func samples(t *testing.T) []*view {
	t.Helper()
	later := append([]byte("8=FIXT.1.1"), testgrid.Order("ID-\"7\"", 0)[len("8=FIX.4.2"):]...)
	order.Seal(later)
	return []*view{sample(t), sampleOf(t, later)}
}

func sampleOf(t *testing.T, fix []byte) *view {
	t.Helper()
	var o order.Order
	if err := order.Parse(fix, &o); err != nil {
		t.Fatal(err)
	}
	e := order.Entry{Kind: order.KindOrder, Size: uint32(order.HeaderSize + len(fix)), Seq: 1 << 60, Epoch: 9, TimeNs: time.Date(2026, 11, 23, 9, 30, 0, 5, time.UTC).UnixNano(), Fields: o.Fields}
	bytes := make([]byte, order.HeaderSize, e.Size)
	e.Put(bytes)
	return &view{entry: &client.LogEntry{Entry: e, Bytes: append(bytes, fix...)}, partition: 2, lineage: 4, hash: 0xa1, prev: 1<<60 - 2}
}

// descriptor reads a message of order.proto: flat messages of proto3 are all that it has.
func descriptor(t *testing.T, message string) protoreflect.MessageDescriptor {
	t.Helper()
	text, err := os.ReadFile("order.proto")
	if err != nil {
		t.Fatal(err)
	}
	types := map[string]descriptorpb.FieldDescriptorProto_Type{
		"string": descriptorpb.FieldDescriptorProto_TYPE_STRING, "bytes": descriptorpb.FieldDescriptorProto_TYPE_BYTES, "uint32": descriptorpb.FieldDescriptorProto_TYPE_UINT32,
		"uint64": descriptorpb.FieldDescriptorProto_TYPE_UINT64, "fixed64": descriptorpb.FieldDescriptorProto_TYPE_FIXED64, "int64": descriptorpb.FieldDescriptorProto_TYPE_INT64,
		"bool": descriptorpb.FieldDescriptorProto_TYPE_BOOL,
	}
	m := &descriptorpb.DescriptorProto{Name: &message}
	_, body, _ := strings.Cut(string(text), "\nmessage "+message+" {\n")
	body, _, _ = strings.Cut(body, "\n}\n")
	for _, f := range regexp.MustCompile(`(?m)^  (\w+) (\w+) = (\d+);`).FindAllStringSubmatch(body, -1) {
		kind, known := types[f[1]]
		n, err := strconv.Atoi(f[3])
		if !known || err != nil {
			t.Fatalf("order.proto: %q", f[0])
		}
		m.Field = append(m.Field, &descriptorpb.FieldDescriptorProto{Name: &f[2], Number: proto.Int32(int32(n)), Type: &kind, Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum()})
	}
	file, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name: proto.String("order.proto"), Package: proto.String("ordergrid.sink.v1"), Syntax: proto.String("proto3"), MessageType: []*descriptorpb.DescriptorProto{m},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return file.Messages().Get(0)
}

// What is written by hand is read with the schema of order.proto, and every field of it is there.
func TestProtobuf(t *testing.T) {
	for _, v := range samples(t) {
		checkProtobuf(t, "Order", FormatProtobuf.append(nil, v, "trades"), map[string]string{
			"grid": "trades", "partition": "2", "seq": "1152921504606846976", "epoch": "9", "lineage": "4", "hash": "161", "prev": "1152921504606846974",
			"received_unix_nano": fmt.Sprint(v.entry.TimeNs), "cl_ord_id": `ID-"7"`, "symbol": "IBM", "account": "ACC", "side": "1", "order_qty": "100", "price": "125.25",
			"fix": string(order.Payload(v.entry.Bytes)),
		})
	}
	e := executedSample()
	checkProtobuf(t, "Execution", appendExecutionProtobuf(nil, e, "trades", 4, 9, "17.1"), map[string]string{
		"grid": "trades", "partition": "2", "entry": "17", "n": "2", "epoch": "9", "lineage": "4", "prev": "17.1", "received_unix_nano": fmt.Sprint(e.Received.UnixNano()),
		"kind": "filled", "symbol": "IBM", "account": "ACC", "side": "2", "cl_ord_id": `ID-"7"`, "order": "12", "other": "17", "price": "125.25", "quantity": "100",
		"leaves": "0", "cumulative": "300", "reason": match.Reason(e.Reason).String(), "passive": "true", "auction": "true",
	})
}

// executedSample has a value in every field.
func executedSample() *client.Executed {
	return &client.Executed{
		Execution: client.Execution{Partition: 2, Entry: 17, N: 2, Kind: client.ExecFilled, Side: 2, Reason: 3, Passive: true, Auction: true, Order: 12, Other: 17, Price: 12525, Qty: 100, Cum: 300},
		Received:  time.Date(2026, 11, 23, 9, 30, 0, 5, time.UTC), PriceDigits: 2, Symbol: "IBM", Account: "ACC", ClOrdID: `ID-"7"`,
	}
}

// checkProtobuf reads a message with the schema of order.proto: every field of it is there, and nothing else.
func checkProtobuf(t *testing.T, message string, b []byte, want map[string]string) {
	t.Helper()
	m := dynamicpb.NewMessage(descriptor(t, message))
	if err := proto.Unmarshal(b, m); err != nil {
		t.Fatal(err)
	}
	if len(m.GetUnknown()) > 0 {
		t.Errorf("bytes that order.proto does not describe: %x", m.GetUnknown())
	}
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		got := m.Get(f).String()
		if f.Kind() == protoreflect.BytesKind {
			got = string(m.Get(f).Bytes())
		}
		if name := string(f.Name()); got != want[name] || want[name] == "" {
			t.Errorf("%s is %q, want %q", name, got, want[name])
		}
	}
	if fields.Len() != len(want) {
		t.Errorf("message %s of order.proto has %d fields, want %d", message, fields.Len(), len(want))
	}
}

func TestExecutionJSON(t *testing.T) {
	e := executedSample()
	got := string(appendExecutionJSON(nil, e, "trades", 4, 9, "17.1"))
	want := `{"grid":"trades","partition":2,"entry":17,"n":2,"epoch":9,"lineage":4,"prev":"17.1","received":"2026-11-23T09:30:00.000000005Z","kind":"filled","symbol":"IBM",` +
		`"account":"ACC","side":"2","clOrdID":"ID-\"7\"","order":12,"other":17,"price":"125.25","quantity":"100","leaves":"0","cumulative":"300","reason":"` + match.Reason(3).String() + `","passive":true,"auction":true}`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	e = &client.Executed{Execution: client.Execution{Partition: 2, Entry: 17, N: 1, Kind: client.ExecCancelRejected, Order: 17, Other: 5}, Received: e.Received, PriceDigits: 2, Symbol: "IBM"}
	want = `{"grid":"trades","partition":2,"entry":17,"n":1,"epoch":9,"lineage":4,"prev":"","received":"2026-11-23T09:30:00.000000005Z","kind":"cancel rejected","symbol":"IBM","order":17}`
	if got := string(appendExecutionJSON(nil, e, "trades", 4, 9, "")); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestJSON(t *testing.T) {
	for _, v := range samples(t) {
		checkJSON(t, v)
	}
}

func checkJSON(t *testing.T, v *view) {
	t.Helper()
	got := string(FormatJSON.append(nil, v, "trades"))
	fix := strings.ReplaceAll(string(order.Payload(v.entry.Bytes)), "\x01", "|")
	quoted, err := json.Marshal(fix)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"grid":"trades","partition":2,"seq":1152921504606846976,"epoch":9,"lineage":4,"hash":"00000000000000a1","prev":1152921504606846974,` +
		`"received":"2026-11-23T09:30:00.000000005Z","clOrdID":"ID-\"7\"","symbol":"IBM","account":"ACC","side":"1","orderQty":"100","price":"125.25","fix":` + string(quoted) + `}`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if !json.Valid([]byte(got)) {
		t.Error("it is no JSON")
	}
}

func TestTemplates(t *testing.T) {
	for template, want := range map[string]string{
		"orders": "", "{grid}.orders": "", "{grid}.{partition}.orders": "", "a_b-c": "",
		"": "topic is", "a b": `with the character ' '`, "{shard}.orders": `with the character '{'`, strings.Repeat("x", 245): "1 to 249 characters",
	} {
		err := checkTemplate(template, "trades")
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: %v, want %q", template, err, want)
		}
	}
	x := Target{cfg: Config{Grid: "trades", Topic: "{grid}.{partition}.orders", Partitions: 8}}
	if at, n := x.place(x.cfg.Topic, 5); at.topic != "trades.p5.orders" || at.partition != 0 || n != 1 {
		t.Errorf("%+v %d", at, n)
	}
	x.cfg.Topic = "{grid}.orders"
	if at, n := x.place(x.cfg.Topic, 5); at.topic != "trades.orders" || at.partition != 5 || n != 8 {
		t.Errorf("%+v %d", at, n)
	}
	if id := x.transactionalID(wire.PartitionID(5)); id != "ordergrid.trades..p5" {
		t.Errorf("transactional id %s", id)
	}
}

func TestConfig(t *testing.T) {
	good := Config{Brokers: []string{"kafka:9092"}, Grid: "trades", Sink: "kafka", Partitions: 2, Topic: "{grid}.orders"}
	for want, change := range map[string]func(*Config){
		"brokers: none":           func(c *Config) { c.Brokers = nil },
		`broker is "kafka"`:       func(c *Config) { c.Brokers = []string{"kafka"} },
		"partitions of the grid":  func(c *Config) { c.Partitions = 0 },
		"topic is":                func(c *Config) { c.Topic = "" },
		`compression is "best"`:   func(c *Config) { c.Compression = "best" },
		"of executions: topic is": func(c *Config) { c.ExecutionsTopic = "a b" },
		"one of its own":          func(c *Config) { c.ExecutionsTopic = "trades.orders.positions" },
	} {
		c := good
		change(&c)
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if _, err := New(good); err != nil {
		t.Error(err)
	}
	for want, c := range map[string]Credentials{
		"allowed: all three":         {Mechanism: "PLAIN"},
		"no such file":               {Mechanism: "PLAIN", UserFile: "absent", PasswordFile: "absent"},
		`SASL mechanism is "GSSAPI"`: {Mechanism: "GSSAPI", UserFile: "order.proto", PasswordFile: "order.proto"},
		"is empty, allowed: a line":  {Mechanism: "PLAIN", UserFile: os.DevNull, PasswordFile: os.DevNull},
	} {
		if _, err := c.SASL(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", c, err, want)
		}
	}
	for want, f := range map[string]TLSFiles{
		"allowed: both or none":  {CA: "order.proto", Cert: "x"},
		"has no certificate":     {CA: "order.proto"},
		"without a file of auth": {Name: "x"},
	} {
		if _, err := f.Config(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", f, err, want)
		}
	}
}
