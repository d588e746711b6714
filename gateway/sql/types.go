package sql

// Type is the OID of a type of PostgreSQL.
type Type uint32

// Types that are used.
const (
	Bool        Type = 16
	Char        Type = 18 // "char"
	Name        Type = 19
	Int8        Type = 20
	Int2        Type = 21
	Int4        Type = 23
	Text        Type = 25
	JSON        Type = 114
	Oid         Type = 26
	Float4      Type = 700
	Float8      Type = 701
	Unknown     Type = 705
	Bpchar      Type = 1042
	Varchar     Type = 1043
	Date        Type = 1082
	Timestamp   Type = 1114
	Timestamptz Type = 1184
	Interval    Type = 1186
	Numeric     Type = 1700
	BoolArray   Type = 1000
	Int2Array   Type = 1005
	Int4Array   Type = 1007
	TextArray   Type = 1009
	VarcharArr  Type = 1015
	Int8Array   Type = 1016
	OidArray    Type = 1028
	TstzArray   Type = 1185
	NumArray    Type = 1231
	Float8Array Type = 1022
)

// info of a type.
type info struct {
	name  string // as format_type writes it
	short string // as pg_type has it
	size  int16
	class class
	elem  Type // of an array
}

// class of values that are compared with one another.
type class uint8

const (
	other class = iota
	textual
	numeric
	temporal
	boolean
	intervals
	array
)

var types = map[Type]info{
	Bool: {"boolean", "bool", 1, boolean, 0}, Char: {`"char"`, "char", 1, textual, 0}, Name: {"name", "name", 64, textual, 0},
	Int8: {"bigint", "int8", 8, numeric, 0}, Int2: {"smallint", "int2", 2, numeric, 0}, Int4: {"integer", "int4", 4, numeric, 0},
	Text: {"text", "text", -1, textual, 0}, JSON: {"json", "json", -1, other, 0}, Oid: {"oid", "oid", 4, numeric, 0}, Float4: {"real", "float4", 4, numeric, 0},
	Float8: {"double precision", "float8", 8, numeric, 0}, Unknown: {"unknown", "unknown", -2, textual, 0},
	Bpchar: {"character", "bpchar", -1, textual, 0}, Varchar: {"character varying", "varchar", -1, textual, 0},
	Date: {"date", "date", 4, temporal, 0}, Timestamp: {"timestamp without time zone", "timestamp", 8, temporal, 0},
	Timestamptz: {"timestamp with time zone", "timestamptz", 8, temporal, 0}, Interval: {"interval", "interval", 16, intervals, 0},
	Numeric: {"numeric", "numeric", -1, numeric, 0}, BoolArray: {"boolean[]", "_bool", -1, array, Bool},
	Int2Array: {"smallint[]", "_int2", -1, array, Int2}, Int4Array: {"integer[]", "_int4", -1, array, Int4},
	TextArray: {"text[]", "_text", -1, array, Text}, VarcharArr: {"character varying[]", "_varchar", -1, array, Varchar},
	Int8Array: {"bigint[]", "_int8", -1, array, Int8}, OidArray: {"oid[]", "_oid", -1, array, Oid},
	TstzArray: {"timestamp with time zone[]", "_timestamptz", -1, array, Timestamptz}, NumArray: {"numeric[]", "_numeric", -1, array, Numeric},
	Float8Array: {"double precision[]", "_float8", -1, array, Float8},
}

func (t Type) String() string {
	if i, ok := types[t]; ok {
		return i.name
	}
	return "type"
}

// Size is that of RowDescription: bytes, or -1.
func (t Type) Size() int16 {
	if i, ok := types[t]; ok {
		return i.size
	}
	return -1
}

func (t Type) class() class { return types[t].class }

var typesByName = map[string]Type{
	"text": Text, "varchar": Varchar, "bpchar": Bpchar, "char": Bpchar, "character": Bpchar, "name": Name, "int": Int4, "integer": Int4, "int4": Int4,
	"smallint": Int2, "int2": Int2, "bigint": Int8, "int8": Int8, "oid": Oid, "numeric": Numeric, "decimal": Numeric, "dec": Numeric,
	"float": Float8, "float8": Float8, "real": Float4, "float4": Float4, "bool": Bool, "boolean": Bool, "date": Date,
	"timestamp": Timestamp, "timestamptz": Timestamptz, "interval": Interval, "json": JSON,
}

// typeName reads the name of a type.
func (p *parser) typeName() (Type, string, *Error) {
	t := p.now()
	n, err := p.name()
	if err != nil {
		return 0, "", err
	}
	if n == "pg_catalog" && p.take(".") {
		if n, err = p.name(); err != nil {
			return 0, "", err
		}
	}
	switch {
	case n == "double":
		if err := p.want("precision"); err != nil {
			return 0, "", err
		}
		n = "float8"
	case n == "character" && p.take("varying"):
		n = "varchar"
	case n == "timestamp" && p.takeAll("with", "time", "zone"):
		n = "timestamptz"
	case n == "timestamp":
		p.takeAll("without", "time", "zone")
	}
	to, known := typesByName[n]
	if n == "jsonb" || n == "jsonpath" {
		return 0, "", unsupported(t.at, "type "+n, "Use json, whose operators -> ->> #> #>> find the same fields.")
	}
	if !known {
		return 0, "", failf(t.at, StateObject, "type \"%s\" does not exist", clip(n))
	}
	if p.now().is(".") {
		return 0, "", unsupported(p.now().at, "a schema of types", "Types are those of pg_catalog.")
	}
	if p.now().is("(") {
		return 0, "", unsupported(p.now().at, "lengths and precisions of types", "Write the type without.")
	}
	if p.now().is("array") {
		return 0, "", unsupported(p.now().at, "ARRAY behind a type", "Write "+n+"[].")
	}
	if p.take("[") {
		if err := p.want("]"); err != nil {
			return 0, "", err
		}
		for a, i := range types {
			if i.elem == to {
				return a, n + "[]", nil
			}
		}
		return 0, "", failf(t.at, StateUnsupported, "array of %s: not supported", n)
	}
	return to, n, nil
}
