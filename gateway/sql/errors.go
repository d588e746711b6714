package sql

import (
	"fmt"
	"unicode/utf8"
)

// SQLSTATEs that are used.
const (
	StateWarning            = "01000"
	StateProtocol           = "08P01"
	StateUnknownOutcome     = "08007" // transaction resolution unknown
	StateUnsupported        = "0A000"
	StateNoBytes            = "22021" // character not in repertoire
	StateRange              = "22003"
	StateDatetime           = "22007"
	StateText               = "22P02" // invalid text representation
	StateBinary             = "22P03"
	StateUntranslatable     = "22P05"
	StateParameter          = "22023"
	StateLimit              = "2201W"
	StateOffset             = "2201X"
	StateReadOnly           = "25006"
	StateActive             = "25001"
	StateNoTransaction      = "25P01"
	StateAborted            = "25P02"
	StateStatementName      = "26000"
	StatePassword           = "28P01"
	StateAuthorization      = "28000"
	StateCursorName         = "34000"
	StateDatabase           = "3D000"
	StatePrivilege          = "42501"
	StateSyntax             = "42601"
	StateGrouping           = "42803"
	StateMismatch           = "42804"
	StateColumn             = "42703"
	StateAmbiguous          = "42702"
	StateFunction           = "42883" // undefined function or operator
	StateObject             = "42704"
	StateParameterName      = "42P02"
	StateTable              = "42P01"
	StateStatementThere     = "42P05"
	StateCursorThere        = "42P03"
	StateOrderBy            = "42P10"
	StateUnknownType        = "42P18"
	StateResources          = "53000"
	StateConnections        = "53300"
	StateConfigurationLimit = "53400"
	StateTooLarge           = "54000"
	StateTooComplex         = "54001"
	StateNotReady           = "55000"
	StateCancelled          = "57014"
	StateShutdown           = "57P01"
	StateCannotConnect      = "57P03"
	StateIdle               = "57P05"
	StateStorage            = "58000"
	StateInternal           = "XX000"
)

// Error is what a client is told.
type Error struct {
	Code    string // SQLSTATE
	Message string
	Detail  string
	Hint    string
	Offset  int // bytes before its place in the statement, -1 for none
}

func (e *Error) Error() string { return e.Message + " (SQLSTATE " + e.Code + ")" }

// Position is the place in characters from 1, 0 for none.
func (e *Error) Position(statement string) int {
	if e.Offset < 0 || e.Offset > len(statement) {
		return 0
	}
	return utf8.RuneCountInString(statement[:e.Offset]) + 1
}

func failf(offset int, code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...), Offset: offset}
}

// Refuse makes an error without a place.
func Refuse(code, format string, args ...any) *Error { return failf(-1, code, format, args...) }

func (e *Error) hint(format string, args ...any) *Error {
	e.Hint = fmt.Sprintf(format, args...)
	return e
}

// oneTable is the hint of what needs more than a table.
const oneTable = "A statement is about one table: orders, or that of a region, regions.NAME."

// unsupported is for what PostgreSQL has and this does not.
func unsupported(offset int, what, hint string) *Error {
	return failf(offset, StateUnsupported, "%s: not supported", what).hint("%s", hint)
}
